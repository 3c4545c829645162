//! Entries that a search found, as text.

use jiff::Timestamp;
use mainstay_model::{Role, Validity};
use mainstay_protocol::view::FoundView;
use mainstay_terminal::{Paint, Tone, ago, note, printable};

use crate::transcript::role_mark;

/// Shows what was found, the best first.
pub fn show_found(found: &[FoundView], paint: Paint, now: Timestamp) {
    found.iter().for_each(|found| print!("{}", found_text(found, paint, now)));
    if found.is_empty() {
        note("nothing was found");
    }
}

/// What was found, in two lines.
fn found_text(found: &FoundView, paint: Paint, now: Timestamp) -> String {
    let FoundView { short_id, name, index, role, at, snippet, working_directory, validity, .. } = found;
    let place = match index {
        Some(index) => format!("entry {}", index + 1),
        None => "no longer in its transcript".to_owned(),
    };
    let mark = role_mark(*role);
    let facts = format!("{place}  {working_directory}  {}", ago(*at, now));
    let validity = validity.filter(|_| *role == Role::Output).and_then(Validity::mark);
    let validity =
        validity.map_or_else(String::new, |mark| format!("    {}\n", paint.tone(Tone::Warning, mark)));
    format!(
        "{}  {name}  {}\n  {mark} {}\n{validity}",
        paint.tone(Tone::Name, short_id),
        paint.tone(Tone::Faint, &facts),
        printable(snippet),
    )
}

#[cfg(test)]
mod tests {
    use mainstay_model::SessionKind;

    use super::*;

    #[test]
    fn what_was_found_says_where_it_is() {
        let mut found = FoundView {
            session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            short_id: "a1b2c3d4".to_owned(),
            name: "lab".to_owned(),
            kind: SessionKind::fsharp(),
            working_directory: "/code/lab".to_owned(),
            index: Some(6),
            role: Role::Input,
            at: "2026-02-13T13:29:20Z".parse().unwrap(),
            snippet: "… let dog = 1 …".to_owned(),
            validity: None,
        };
        let now = "2026-02-13T13:30:20Z".parse().unwrap();
        insta::assert_snapshot!(found_text(&found, Paint::plain(), now), @"
        a1b2c3d4  lab  entry 7  /code/lab  1 min ago
          > … let dog = 1 …
        ");
        found.role = Role::ToolResult;
        insta::assert_snapshot!(found_text(&found, Paint::plain(), now), @"
        a1b2c3d4  lab  entry 7  /code/lab  1 min ago
          tool result: … let dog = 1 …
        ");
    }
}
