//! Entries of a transcript, read page by page and shown.

use mainstay_client::Client;
use mainstay_model::entry::FORMS;
use mainstay_model::message::IS_ERROR;
use mainstay_model::transcript::total;
use mainstay_model::{Content, Entry, Error, Role, SessionId, TranscriptEntry, Validity};
use mainstay_protocol::operations::ListEntries;
use mainstay_protocol::view::EntryView;
use mainstay_terminal::{Paint, Surface, Tone, printable, printed};
use serde_json::Value;

/// How many lines of an entry are shown.
pub const SHOWN_LINES: usize = 12;

/// Why there is nothing from this number on.
pub const fn nothing_shown(from: u64) -> &'static str {
    if from == 1 { "nothing was said in it yet" } else { "it has no entry of that number" }
}

/// Chooses the entries that are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntrySelection {
    /// From this index on.
    pub from: u64,
    /// At most so many.
    pub count: Option<u64>,
    /// With all that they say, however large.
    pub full: bool,
}

/// A session's entries, page by page.
#[derive(Debug)]
pub struct Pages {
    session: SessionId,
    /// The index of the next one.
    next: u64,
    /// That of the first one that is not wanted.
    end: u64,
    full: bool,
}

impl Pages {
    /// Starts before the first page of the entries that are wanted.
    pub fn of(session: SessionId, wanted: EntrySelection) -> Self {
        let EntrySelection { from, count, full } = wanted;
        Self { session, next: from, end: count.map_or(u64::MAX, |count| from.saturating_add(count)), full }
    }

    /// The next page, each entry with its number; the first of all has the number 1.
    pub async fn next(&mut self, client: &Client) -> Result<Option<Vec<(u64, EntryView)>>, Error> {
        if self.next >= self.end {
            return Ok(None);
        }
        let limit = usize::try_from(self.end - self.next).ok();
        let page = ListEntries { session: self.session.to_string(), from: self.next, limit, full: self.full };
        let page: Vec<(u64, EntryView)> = (self.next + 1..).zip(client.call(page).await?).collect();
        self.next += page.len() as u64;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// Reads a session's entries; the first has the number 1.
pub async fn for_each_entry(
    client: &Client,
    session: SessionId,
    wanted: EntrySelection,
    mut show: impl FnMut(u64, &EntryView) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut pages = Pages::of(session, wanted);
    while let Some(page) = pages.next(client).await? {
        for (number, entry) in &page {
            show(*number, entry)?;
        }
    }
    Ok(())
}

/// Shows the picture that the entry with this number has, where the terminal shows pictures.
pub async fn show_picture(
    client: &Client,
    session: SessionId,
    number: u64,
    view: &EntryView,
) -> Result<(), Error> {
    let surface = Surface::stdout();
    if !surface.shows_pictures() || !view.placed.entry.metadata.contains_key(FORMS) {
        return Ok(());
    }
    let page = ListEntries { session: session.to_string(), from: number - 1, limit: Some(1), full: true };
    let whole = client.call(page).await?;
    let bundle = whole.first().map(|whole| serde_json::from_str(whole.placed.entry.content.beginning()));
    if let Some(drawn) = bundle.and_then(Result::ok).and_then(|bundle| surface.drawn(&bundle)) {
        print!("{drawn}");
    }
    Ok(())
}

/// An entry as a person reads it.
pub fn entry_text(number: u64, view: &EntryView, lines: usize, paint: Paint) -> String {
    let TranscriptEntry { entry, origin, .. } = &view.placed;
    let words = entry.words(entry.content.beginning());
    let text = match entry.is_printed() {
        true => printed(words.trim_end(), paint),
        false => printable(words.trim_end()).into_owned(),
    };
    let mut told = String::new();
    let mark = match entry.role {
        Role::Input => paint.tone(Tone::Name, &format!("{number:>4} > ")),
        Role::Output => paint.tone(Tone::Faint, &format!("{number:>4}   ")),
        Role::User => said_by(&mut told, number, entry, Tone::Name, paint),
        Role::System
        | Role::Assistant
        | Role::Thinking
        | Role::ToolCall
        | Role::ToolResult
        | Role::Summary => said_by(&mut told, number, entry, Tone::Faint, paint),
    };
    let all: Vec<&str> = text.lines().collect();
    for (index, line) in all.iter().take(lines).enumerate() {
        let before = if index == 0 { mark.as_str() } else { "       " };
        told.push_str(&format!("{before}{line}\n"));
    }
    if all.is_empty() {
        told.push_str(&format!("{}\n", mark.trim_end()));
    }
    let untold = all.len().saturating_sub(lines);
    let more = match &entry.content {
        Content::Object { bytes, .. } => {
            Some(format!("{bytes} bytes in all; `mainstay session transcript --full` shows them"))
        }
        Content::Text(_) if untold > 0 => {
            Some(format!("{untold} lines more; `mainstay session transcript --full` shows them"))
        }
        Content::Text(_) => None,
    };
    let brought = origin.map(|origin| format!("brought from {}", origin.session.short()));
    if let Some(label) = &view.label {
        told.push_str(&format!(
            "       {}\n",
            paint.tone(Tone::Name, &format!("label: {}", printable(label)))
        ));
    }
    let is_cut_off = |ending: &&str| ["cancelled", "interrupted"].contains(ending);
    let ending = entry.metadata.get("ending").and_then(Value::as_str).filter(is_cut_off).map(str::to_owned);
    for fact in more.map(|more| format!("… {more}")).into_iter().chain(ending).chain(brought) {
        told.push_str(&format!("       {}\n", paint.tone(Tone::Faint, &fact)));
    }
    if let Some(mark) = view.validity.filter(|_| entry.role == Role::Output).and_then(Validity::mark) {
        told.push_str(&format!("       {}\n", paint.tone(Tone::Warning, mark)));
    }
    told
}

/// Who says an entry, on a line of its own; gives what stands before what is said.
fn said_by(told: &mut String, number: u64, entry: &Entry, tone: Tone, paint: Paint) -> String {
    let tool = entry.tool().map(|tool| format!(" {}", printable(tool))).unwrap_or_default();
    let covered = match entry.role {
        Role::Summary => format!(" of {} entries", total(&entry.covers())),
        _ => String::new(),
    };
    let failed = if entry.metadata.get(IS_ERROR) == Some(&true.into()) { ", failed" } else { "" };
    let role = if entry.is_shell_run() { "shell" } else { role_words(entry.role) };
    let who = format!("{number:>4} {role}{tool}{covered}{failed}");
    told.push_str(&format!("{}\n", paint.tone(tone, &who)));
    "       ".to_owned()
}

/// What part an entry plays, in words.
const fn role_words(role: Role) -> &'static str {
    match role {
        Role::ToolCall => "tool call",
        Role::ToolResult => "tool result",
        _ => role.name(),
    }
}

/// What stands before an entry that is told on one line: the mark of code or of what came of it, or who says it.
pub fn role_mark(role: Role) -> String {
    match role {
        Role::Input => ">".to_owned(),
        Role::Output => " ".to_owned(),
        _ => format!("{}:", role_words(role)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Compaction, Message, Origin, Part, PartRole, Segment, Seq};

    fn told(role: Role, text: &str) -> String {
        let entry = Entry { role, content: Content::of(text.to_owned()).0, metadata: Default::default() };
        entry_told(entry, text)
    }

    fn entry_told(entry: Entry, text: &str) -> String {
        view_told(entry, text, None)
    }

    fn view_told(entry: Entry, text: &str, validity: Option<Validity>) -> String {
        let session = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
        let placed = TranscriptEntry {
            session,
            number: 6,
            hash: entry.hash(),
            entry,
            at: Default::default(),
            first: Seq(2),
            last: Seq(3),
            origin: (text == "brought").then_some(Origin { session, number: 1 }),
        };
        entry_text(
            7,
            &EntryView { placed, validity, label: (text == "labeled").then(|| "the good one".to_owned()) },
            3,
            Paint::plain(),
        )
    }

    #[test]
    fn an_output_that_may_hold_no_longer_is_marked() {
        let marked = |role, validity| {
            let entry = Entry { role, content: Content::Text("2".to_owned()), metadata: Default::default() };
            view_told(entry, "2", Some(validity))
        };
        insta::assert_snapshot!(marked(Role::Output, Validity::Stale), @"
        7   2
            stale: something it used has changed since
        ");
        insta::assert_snapshot!(marked(Role::Output, Validity::Invalid), @"
        7   2
            invalid: something it used is gone
        ");
        assert_eq!(marked(Role::Output, Validity::Unknown), told(Role::Output, "2"));
        assert_eq!(marked(Role::Output, Validity::Valid), told(Role::Output, "2"));
        assert_eq!(marked(Role::Input, Validity::Stale), told(Role::Input, "2"));
    }

    #[test]
    fn an_entry_is_numbered_and_long_ones_are_cut() {
        insta::assert_snapshot!(told(Role::Input, "let f x =\n  x + 1"), @"
        7 > let f x =
              x + 1
        ");
        insta::assert_snapshot!(told(Role::Output, "1\n2\n3\n4\n5\n"), @"
        7   1
            2
            3
            … 2 lines more; `mainstay session transcript --full` shows them
        ");
        insta::assert_snapshot!(told(Role::Output, ""), @"   7");
        insta::assert_snapshot!(told(Role::Input, "brought"), @"
        7 > brought
            brought from a1b2c3d4
        ");
        insta::assert_snapshot!(told(Role::Input, "labeled"), @"
        7 > labeled
            label: the good one
        ");
        insta::assert_snapshot!(told(Role::Output, &"line\n".repeat(4000)), @"
        7   line
            line
            line
            … 20000 bytes in all; `mainstay session transcript --full` shows them
        ");
    }

    #[test]
    fn what_was_said_stands_under_who_said_it() {
        let call = Part::tool_call("c1", "read", &serde_json::json!({ "path": "a.txt" }));
        let image = serde_json::json!({ "type": "image", "data": "aW1hZ2U=" });
        let result = Part::tool_result("c1", "no such file").with("tool", "read").with("isError", true);
        let parts = vec![
            Part::text(PartRole::User, "What is this?"),
            Part::block(PartRole::User, "image", &image),
            Part::text(PartRole::Thinking, "A file."),
            Part::text(PartRole::Assistant, "I look.\nNow."),
            call,
            result,
        ];
        let entries = Message { parts, ..Message::default() }.entries();
        let covers = vec![Segment::new("019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(), 0, 4)];
        let summary = Compaction { covers, summary: "A file.".to_owned(), metadata: Default::default() };
        let all = entries.into_iter().chain([summary.entry()]);
        let told: String = all.map(|(entry, text)| entry_told(entry, &text)).collect();
        insta::assert_snapshot!(told, @r#"
        7 user
            What is this?
        7 user
            [image, 34 bytes]
        7 thinking
            A file.
        7 assistant
            I look.
            Now.
        7 tool call read
            {"path":"a.txt"}
        7 tool result read, failed
            no such file
        7 summary of 4 entries
            A file.
        "#);
    }
}
