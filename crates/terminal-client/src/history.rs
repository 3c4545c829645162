//! Lines of the prompt's history, read and shown.

use mainstay_client::Client;
use mainstay_model::{Content, Error, HistoryLine, Timestamp};
use mainstay_protocol::operations::ListHistory;
use mainstay_terminal::{Paint, Tone, ago, note, printable};

/// How many of a line's own lines are shown.
const LINES: usize = 10;

/// The newest lines, the newest last.
pub async fn newest(client: &Client, list: ListHistory, limit: usize) -> Result<Vec<HistoryLine>, Error> {
    let mut lines: Vec<HistoryLine> = Vec::new();
    while lines.len() < limit {
        let before = lines.last().map(|line| line.number);
        let page = ListHistory { before, limit: Some(limit - lines.len()), ..list.clone() };
        let found = client.call(page).await?.lines;
        if found.is_empty() {
            break;
        }
        lines.extend(found);
    }
    lines.reverse();
    Ok(lines)
}

/// Shows lines of a history.
pub fn show_history(lines: &[HistoryLine], paint: Paint, now: Timestamp) {
    lines.iter().for_each(|line| print!("{}", line_text(line, paint, now)));
    if lines.is_empty() {
        note("nothing was found");
    }
}

/// A line, with its number, and how long ago it was.
fn line_text(line: &HistoryLine, paint: Paint, now: Timestamp) -> String {
    let text = printable(line.content.beginning().trim_end());
    let all: Vec<&str> = text.lines().collect();
    let number = line.number.to_string();
    let mut told = String::new();
    for (index, shown) in all.iter().take(LINES).enumerate() {
        let mark = match index {
            0 => paint.tone(Tone::Name, &format!("{number:>5}")),
            _ => " ".repeat(number.len().max(5)),
        };
        let moment = if index == 0 {
            paint.tone(Tone::Faint, &format!("  {}", ago(line.at, now)))
        } else {
            String::new()
        };
        told.push_str(&format!("{mark}  {shown}{moment}\n"));
    }
    let untold = all.len().saturating_sub(LINES);
    let more = match &line.content {
        Content::Object { bytes, .. } => Some(format!("{bytes} bytes in all")),
        Content::Text(_) if untold > 0 => Some(format!("{untold} lines more")),
        Content::Text(_) => None,
    };
    if let Some(more) = more {
        let blank = " ".repeat(number.len().max(5));
        told.push_str(&format!("{blank}  {}\n", paint.tone(Tone::Faint, &format!("… {more}"))));
    }
    told
}

#[cfg(test)]
mod tests {
    use mainstay_model::LineNumber;

    use super::*;

    fn told(text: &str) -> String {
        let line = HistoryLine {
            number: LineNumber(7),
            at: "2026-02-13T13:29:20Z".parse().unwrap(),
            folder: Some("/lab".to_owned()),
            session: None,
            content: Content::of(text.to_owned()).0,
        };
        line_text(&line, Paint::plain(), "2026-02-13T13:30:20Z".parse().unwrap())
    }

    #[test]
    fn a_line_is_numbered_and_large_ones_are_cut() {
        insta::assert_snapshot!(told("let f x =\n    x + 1"), @"
        7  let f x =  1 min ago
               x + 1
        ");
        insta::assert_snapshot!(told(&"line\n".repeat(12)), @"
        7  line  1 min ago
           line
           line
           line
           line
           line
           line
           line
           line
           line
           … 2 lines more
        ");
        insta::assert_snapshot!(told(&"let x = 1; ".repeat(2000)).lines().last().unwrap(), @"       … 22000 bytes in all");
    }
}
