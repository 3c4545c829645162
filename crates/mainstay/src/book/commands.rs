//! `docs/reference/commands.md`, generated from the command line's own definition.

use clap::{Arg, Command, CommandFactory as _};

use super::{GENERATED, assert_is_page, escaped};

#[test]
fn the_reference_of_the_commands_is_what_their_help_says() {
    let mut program = crate::commands::Cli::command().term_width(100);
    program.build();
    let mut page = format!("{GENERATED}# Commands\n\n{INTRODUCTION}");
    section(&program, "mainstay", 2, &mut page);
    assert_is_page("reference/commands.md", &page);
}

const INTRODUCTION: &str = "\
Every command of the command line with its arguments. `mainstay COMMAND --help` says the same in a terminal.

A command exits with 0 when it succeeds, with 1 when the code or the command failed, and with 2 when the command line was wrong. A daemon in the
foreground (`mainstay serve`) that cannot start exits with 3. `eval`, `run` and piped scripts exit with the code that the code itself gave to
`exit`, unless `--json` is set.

";

/// Writes a command and, below it, its subcommands.
fn section(command: &Command, name: &str, level: usize, page: &mut String) {
    page.push_str(&format!("{} `{name}`\n\n", "#".repeat(level)));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        page.push_str(&format!("{}\n\n", escaped(&about.to_string())));
    }
    let usage = command.clone().render_usage().to_string();
    page.push_str(&format!(
        "```text\n{}\n```\n\n",
        usage.trim_start_matches("Usage: ").replace("\n       ", "\n")
    ));
    list("Arguments", command.get_positionals().collect(), page);
    list("Options", options(command), page);
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        epilogue(&after.to_string(), page);
    }
    for child in command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help")
    {
        section(child, &format!("{name} {}", child.get_name()), (level + 1).min(4), page);
    }
}

/// The options of a command, without those that every command has.
fn options(command: &Command) -> Vec<&Arg> {
    let is_common = |argument: &Arg| ["help", "version"].contains(&argument.get_id().as_str());
    command.get_arguments().filter(|argument| !argument.is_positional() && !is_common(argument)).collect()
}

/// Writes a list of arguments, where there are any.
fn list(title: &str, arguments: Vec<&Arg>, page: &mut String) {
    let shown: Vec<&Arg> = arguments.into_iter().filter(|argument| !argument.is_hide_set()).collect();
    if shown.is_empty() {
        return;
    }
    page.push_str(&format!("{title}:\n\n"));
    for argument in shown {
        let help = argument.get_long_help().or(argument.get_help());
        let help =
            help.map(|help| help.to_string().replace("\n\n", " ").replace('\n', " ")).unwrap_or_default();
        page.push_str(&format!("- `{}`: {}{}\n", name(argument), escaped(&help), remarks(argument)));
    }
    page.push('\n');
}

/// How an argument is written: `-s, --session <SESSION>`.
fn name(argument: &Arg) -> String {
    let value = if argument.get_action().takes_values() || argument.is_positional() {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
    } else {
        String::new()
    };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    format!("{} {value}", names.join(", ")).trim().to_owned()
}

/// The values that an argument takes, and its default.
fn remarks(argument: &Arg) -> String {
    let mut remarks = String::new();
    let values: Vec<String> = match argument.get_action().takes_values() {
        true => {
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect()
        }
        false => Vec::new(),
    };
    if !values.is_empty() {
        remarks.push_str(&format!(". Possible values: {}", values.join(", ")));
    }
    let defaults: Vec<_> = match argument.get_action().takes_values() {
        true => argument.get_default_values().iter().map(|value| format!("`{}`", value.display())).collect(),
        false => Vec::new(),
    };
    if !defaults.is_empty() {
        remarks.push_str(&format!(". Default: {}", defaults.join(", ")));
    }
    remarks
}

/// Writes what follows the options in a command's help: lines that are indented are examples.
fn epilogue(text: &str, page: &mut String) {
    let mut is_example = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        if indented && !is_example {
            page.push_str("\n```text\n");
        }
        if !indented && is_example {
            page.push_str("```\n\n");
        }
        is_example = indented;
        match indented {
            true => page.push_str(&format!("{}\n", &line[2..])),
            false => page.push_str(&format!("{}\n", escaped(line))),
        }
    }
    page.push_str(if is_example { "```\n\n" } else { "\n" });
}
