//! `docs/reference/prompt.md`, generated from what the prompt's help lists.

use mainstay_prompt::help::{HelpSection, help_sections};

use super::{GENERATED, assert_is_page, escaped};

#[test]
fn the_reference_of_the_prompt_is_what_help_says() {
    let mut page = format!("{GENERATED}# Prompt commands\n\n{INTRODUCTION}");
    for HelpSection { title, rows } in help_sections() {
        page.push_str(&format!("## {title}\n\n| command or key | what it does |\n|---|---|\n"));
        for (name, about) in rows {
            page.push_str(&format!(
                "| `{}` | {} |\n",
                name.replace('|', "\\|"),
                escaped(about).replace('|', "\\|")
            ));
        }
        page.push('\n');
    }
    assert_is_page("reference/prompt.md", &page);
}

const INTRODUCTION: &str = "\
What `:help` lists at a prompt. [Work at the prompt](../how-to/prompt.md) shows how it is used. A slash may stand for the colon. `:rebuild`, `:refresh`, `:test` and the
directives (`:r`, `:I`, `:nowarn`, `:time`) are there in F# sessions alone.

";
