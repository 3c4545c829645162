//! What came of a tool's call, as text: in short, and whole.

use super::change::Line;
use super::tool::{Excerpt, Outcome};
use crate::{Paint, Tone, counted, cut, printable};

/// How many lines of what a tool gave are shown.
const LINES: usize = 5;
/// And of what it changed.
const CHANGED_LINES: usize = 20;
/// Before what stands below a call.
const INDENT: &str = "  ";

/// A line, and below it the lines that are worth the most where people look, on so many columns. `whole` is the command that shows all.
pub(super) fn short_text(outcome: &Outcome, columns: Option<usize>, whole: &str, paint: Paint) -> String {
    let Outcome { tone, below, worth, .. } = outcome;
    let Some(columns) = columns.filter(|_| !below.is_empty()) else {
        return format!("{}\n", paint.tone(*tone, &printable(&outcome.line())));
    };
    let most = match worth {
        Excerpt::Beginning | Excerpt::End => LINES,
        Excerpt::Change => CHANGED_LINES,
    };
    // A line that says that one more is there would take its place.
    let hidden = if below.len() > most + 1 { below.len() - most } else { 0 };
    let (shown, place) = match worth {
        Excerpt::End => (&below[hidden..], "before"),
        Excerpt::Beginning | Excerpt::Change => (&below[..below.len() - hidden], "more"),
    };
    let lines: Vec<String> = shown.iter().map(|line| line_text(line, Some(columns), paint)).collect();
    let is_cut = || shown.iter().zip(&lines).any(|(line, text)| *text != line_text(line, None, paint));
    let mut text = vec![head(outcome, paint)];
    let more = match hidden {
        0 if is_cut() => Some(format!("{whole} shows whole lines")),
        0 => None,
        _ => Some(format!("… {} {place}, {whole} shows all", counted(hidden as u64, "line"))),
    };
    let more = more.map(|more| format!("{INDENT}{}\n", paint.tone(Tone::Faint, &more)));
    match worth {
        Excerpt::End if hidden > 0 => text.extend(more.into_iter().chain(lines)),
        Excerpt::End | Excerpt::Beginning | Excerpt::Change => text.extend(lines.into_iter().chain(more)),
    }
    text.concat()
}

/// Renders an outcome with its whole text.
pub fn whole_text(outcome: &Outcome, paint: Paint) -> String {
    let Outcome { tone, whole_call, short, below, worth, .. } = outcome;
    let is_said_in_head = *worth == Excerpt::Change || below.is_empty();
    let said = if is_said_in_head && !short.is_empty() { format!(": {short}") } else { String::new() };
    let head = printable(&format!("{whole_call}{said}")).replace('\n', &format!("\n{INDENT}"));
    let lines = below.iter().map(|line| line_text(line, None, paint));
    std::iter::once(format!("{}\n", paint.tone(*tone, &head))).chain(lines).collect()
}

fn head(outcome: &Outcome, paint: Paint) -> String {
    let line = match outcome.worth {
        Excerpt::Change => outcome.line(),
        Excerpt::Beginning | Excerpt::End => outcome.call.clone(),
    };
    format!("{}\n", paint.tone(outcome.tone, &printable(&line)))
}

fn line_text(line: &Line, columns: Option<usize>, paint: Paint) -> String {
    let text = printable(&line.text).replace('\t', "    ");
    let text = match columns {
        Some(columns) => cut(&text, columns.saturating_sub(INDENT.len())),
        None => text,
    };
    let text = line.tone.map_or_else(|| text.clone(), |tone| paint.tone(tone, &text));
    format!("{INDENT}{text}\n")
}

#[cfg(test)]
mod tests {
    use mainstay_model::Part;
    use serde_json::{Value, json};

    use super::super::tool::Call;
    use super::*;

    fn outcome(tool: &str, arguments: &Value, result: Part) -> Outcome {
        Call::of(&Part::tool_call("c1", tool, arguments)).outcome(&result)
    }

    fn short(outcome: &Outcome) -> String {
        short_text(outcome, Some(40), ":output", Paint::plain())
    }

    fn gave(lines: usize) -> Part {
        let lines: Vec<String> = (1..=lines).map(|line| format!("line {line}")).collect();
        Part::tool_result("c1", lines.join("\n"))
    }

    #[test]
    fn of_a_command_the_end_is_shown_and_of_a_file_the_beginning() {
        let ran = outcome("bash", &json!({ "command": "make" }), gave(9));
        insta::assert_snapshot!(short(&ran), @"
        ✓ bash make
          … 4 lines before, :output shows all
          line 5
          line 6
          line 7
          line 8
          line 9
        ");
        insta::assert_snapshot!(short(&outcome("read", &json!({ "path": "a.txt" }), gave(9))), @"
        ✓ read a.txt
          line 1
          line 2
          line 3
          line 4
          line 5
          … 4 lines more, :output shows all
        ");
        assert!(!short(&outcome("read", &json!({ "path": "a.txt" }), gave(6))).contains('…'));
        insta::assert_snapshot!(short_text(&ran, None, ":output", Paint::plain()), @"✓ bash make: line 1 … (9 lines)");
        let all = whole_text(&ran, Paint::plain());
        assert!((1..=9).all(|line| all.contains(&format!("  line {line}\n"))), "{all}");
    }

    #[test]
    fn a_long_line_is_cut_and_what_was_printed_is_as_a_terminal_shows_it() {
        let text = format!("\r 50%\r100%\u{1b}[32m\u{7}\n{}", "x".repeat(60));
        insta::assert_snapshot!(short(&outcome("grep", &json!({ "pattern": "x" }), Part::tool_result("c1", text))), @"
        ✓ grep x
          100%
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          :output shows whole lines
        ");
    }

    #[test]
    fn the_whole_has_all_of_the_command_and_of_a_long_line() {
        let command = format!("for f in *\ndo\n  {}\ndone", "x".repeat(90));
        let ran = outcome("bash", &json!({ "command": command }), Part::tool_result("c1", "y".repeat(90)));
        let whole = format!("✓ bash {}\n  {}\n", command.replace('\n', "\n  "), "y".repeat(90));
        assert_eq!(whole_text(&ran, Paint::plain()), whole);
        assert_eq!(
            short(&ran),
            format!("✓ bash for f in * …\n  {}…\n  :output shows whole lines\n", "y".repeat(37))
        );
        let quick = outcome("bash", &json!({ "command": "true" }), Part::tool_result("c1", "yes"));
        assert_eq!([whole_text(&quick, Paint::plain()), short(&quick)], ["✓ bash true: yes\n"; 2]);
    }

    #[test]
    fn an_edit_is_a_difference_as_the_tool_says_it() {
        let diff = " 1 one\n-2 two\n+2 zwei\n   ...";
        let result = Part::tool_result("c1", "Successfully replaced 1 block(s)")
            .with("details", json!({ "diff": diff }));
        let arguments = json!({ "path": "a.txt", "edits": [{ "oldText": "two", "newText": "zwei" }] });
        let edit = outcome("edit", &arguments, result);
        insta::assert_snapshot!(short(&edit), @"
        ✓ edit a.txt: +1 -1
           1 one
          -2 two
          +2 zwei
             ...
        ");
        assert_eq!(edit.line(), "✓ edit a.txt: +1 -1");
    }

    #[test]
    fn without_a_word_of_the_tool_it_is_what_was_to_be_put_in_the_place_of_what() {
        let edits = json!([
            { "oldText": "let x = 1\nlet y = 2\n", "newText": "let x = 1\nlet y = 3\n" },
            { "oldText": "a", "newText": "b" },
        ]);
        insta::assert_snapshot!(short(&outcome("edit", &json!({ "path": "a.fs", "edits": edits }), gave(1))), @"
        ✓ edit a.fs: +2 -2
            let x = 1
          - let y = 2
          + let y = 3
          ...
          - a
          + b
        ");
        let other = json!({ "file_path": "a.fs", "old_string": "a", "new_string": "" });
        insta::assert_snapshot!(short(&outcome("Edit", &other, gave(1))), @"
        ✓ Edit a.fs: +0 -1
          - a
        ");
    }

    #[test]
    fn what_is_written_is_new_and_a_long_one_is_cut() {
        let content = (1..=30).map(|line| format!("{line}\n")).collect::<String>();
        let wrote = outcome("write", &json!({ "path": "a.txt", "content": content }), gave(1));
        let shown = short(&wrote);
        assert!(shown.starts_with("✓ write a.txt: +30 -0\n  + 1\n"), "{shown}");
        assert!(shown.ends_with("  + 20\n  … 10 lines more, :output shows all\n"), "{shown}");
        let failed = Part::tool_result("c1", "no such folder").with("isError", true);
        assert_eq!(
            short(&outcome("write", &json!({ "path": "a/b", "content": "x" }), failed)),
            "✗ write a/b: no such folder\n"
        );
    }
}
