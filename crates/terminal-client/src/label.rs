//! Labels of entries, as people give and read them.

use mainstay_model::Timestamp;
use mainstay_protocol::view::LabelView;
use mainstay_terminal::{Paint, Tone, ago, printable};

/// A label that says something; none takes off what is there.
pub fn given_label(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What became of an entry's label.
pub fn labeled_text(entry: u64, label: Option<&str>) -> String {
    match label {
        Some(label) => format!("entry {entry} is called {}", printable(label)),
        None => format!("entry {entry} has no label"),
    }
}

/// The labels of a session, one a line.
pub fn labels_text(labels: &[LabelView], paint: Paint, now: Timestamp) -> String {
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
        assert_eq!(given_label(Some(" good ".to_owned())), Some("good".to_owned()));
        assert_eq!((given_label(Some(" ".to_owned())), given_label(None)), (None, None));
        assert_eq!(labeled_text(4, Some("good")), "entry 4 is called good");
        assert_eq!(labeled_text(4, None), "entry 4 has no label");
    }
}
