//! The command `mainstay session label`.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::operations::{LabelEntry, ListLabels};
use mainstay_protocol::view::LabelView;

use super::conditions::SentArgs;
use mainstay_terminal::{Paint, Tone, ago, note, printable};

/// Gives an entry of a session's transcript a label, takes it off, or lists them.
///
/// The entry itself never changes. Forks that are made then, and exported files, have the label too.
#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("what").args(["text", "remove"]),
    after_help = "Examples:\n  mainstay session label lab 4 'the good one'   # see `session transcript` for the number\n  mainstay session label lab 4 --remove\n  mainstay session label lab                    # what there is"
)]
pub(super) struct Label {
    /// The session with the entry
    session: String,

    /// The number of the entry [default: all that have a label are listed]
    #[arg(value_parser = clap::value_parser!(u64).range(1..), requires = "what")]
    entry: Option<u64>,

    /// What to call it; an empty text takes the label off
    text: Option<String>,

    /// Take the label off
    #[arg(long, requires = "entry")]
    remove: bool,

    /// Print the labels as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sent: SentArgs,
}

impl Label {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let Self { session, entry, text, remove: _, json, sent } = self;
        let Some(entry) = entry else {
            let labels = client.call(ListLabels { session }).await?;
            match json {
                true => super::print_json(&labels)?,
                false => print!("{}", labels_text(&labels, Paint::stdout(), Timestamp::now())),
            }
            return Ok(ExitCode::SUCCESS);
        };
        let label = given(text);
        let told = told(entry, label.as_deref());
        let labeled = client.call(LabelEntry { session, entry: entry - 1, label, sent: sent.sent() }).await?;
        match json {
            true => super::print_json(&labeled)?,
            false => note(&told),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A label that says something; none takes off what is there.
pub(crate) fn given(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What became of an entry's label.
pub(crate) fn told(entry: u64, label: Option<&str>) -> String {
    match label {
        Some(label) => format!("entry {entry} is called {}", printable(label)),
        None => format!("entry {entry} has no label"),
    }
}

/// The labels of a session, one a line.
pub(crate) fn labels_text(labels: &[LabelView], paint: Paint, now: Timestamp) -> String {
    if labels.is_empty() {
        return "no entry has a label\n".to_owned();
    }
    let line = |LabelView { index, label, at }: &LabelView| {
        let since = paint.tone(Tone::Faint, &ago(*at, now));
        format!("{:>4}  {}  {since}\n", index + 1, paint.tone(Tone::Name, &printable(label)))
    };
    labels.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_listed_by_the_numbers_of_their_entries() {
        let label = |index, label: &str| LabelView {
            index,
            label: label.to_owned(),
            at: "2026-02-13T13:30:20Z".parse().unwrap(),
        };
        let now = "2026-02-13T13:32:20Z".parse().unwrap();
        let labels = [label(3, "the good one"), label(11, "\u{1b}[2J")];
        insta::assert_snapshot!(labels_text(&labels, Paint::plain(), now), @"
         4  the good one  2 min ago
        12  ␛[2J  2 min ago
        ");
        assert_eq!(labels_text(&[], Paint::plain(), now), "no entry has a label\n");
    }

    #[test]
    fn nothing_takes_a_label_off() {
        assert_eq!(given(Some(" good ".to_owned())), Some("good".to_owned()));
        assert_eq!((given(Some(" ".to_owned())), given(None)), (None, None));
        assert_eq!(told(4, Some("good")), "entry 4 is called good");
        assert_eq!(told(4, None), "entry 4 has no label");
    }
}
