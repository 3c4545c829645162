//! Markdown shown while it comes. What stands on a terminal stays: a word is shown once nothing that may follow changes how it looks, so a
//! line of code when it has ended, a table when it has, and what an unclosed `**` may yet embrace once it is closed.

use std::ops::Range;

use pulldown_cmark::{Event, Tag};

use crate::{is_blank_before, markdown_events, printable, rendered_markdown};

/// Blocks that are longer are shown as they are written, in bytes: with each piece they are read again.
const LONGEST_BLOCK: usize = 128 * 1024;

/// Markdown that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct MarkdownStream {
    /// From the beginning of the first block that may still change.
    source: String,
    /// The line of that block which was shown last, with its number.
    line: usize,
    begun: String,
    /// How many lines must end between what was shown and this block.
    gap: usize,
    /// How wide the terminal was when the block began: what is shown of it does not change with that.
    columns: usize,
    /// Something else was shown since, and ended the line.
    is_apart: bool,
}

impl MarkdownStream {
    /// What can be shown now that this has come, on a terminal with so many columns.
    pub(super) fn push(&mut self, piece: &str, columns: usize) -> String {
        if self.line == 0 && self.begun.is_empty() {
            self.columns = columns;
        }
        self.source.push_str(piece);
        let mut shown = String::new();
        // What stands on the last line may still belong to the block before.
        let whole = self.source.rfind('\n').map_or(0, |end| end + 1);
        let last = blocks(&self.source[..whole]).last().map_or(0, |block| block.start);
        if last > 0 {
            self.pass(last, columns, &mut shown);
        }
        if self.source.len() <= LONGEST_BLOCK {
            shown.push_str(&self.show(sure(&self.source)));
        }
        shown
    }

    /// Goes on to the block that begins there: what stands above it changes no more.
    fn pass(&mut self, start: usize, columns: usize, shown: &mut String) {
        let is_below_blank = is_blank_before(&self.source, start);
        let rest = self.source.split_off(start);
        shown.push_str(&self.show(self.source.len()));
        let rendering = rendered_markdown(&self.source, self.columns);
        let lines = rendering.split('\n').count() + usize::from(is_below_blank);
        self.source = rest;
        // Its first words may be shown already.
        match self.line.checked_sub(lines) {
            Some(line) => self.line = line,
            None => {
                self.gap = lines - self.line;
                self.line = 0;
                self.begun.clear();
                self.columns = columns;
            }
        }
    }

    /// What is left to be shown for now: something else follows, on a line of its own.
    pub(super) fn pause(&mut self) -> String {
        let shown = self.show(self.source.len());
        if shown.is_empty() {
            self.gap = self.gap.saturating_sub(1);
        }
        self.is_apart = true;
        shown
    }

    /// What comes next is another text.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::default();
    }

    /// What has not been shown of the block as far as this, as it looks now.
    fn show(&mut self, end: usize) -> String {
        let text = &self.source[..end];
        if text.trim().is_empty() {
            return String::new();
        }
        let rendering = match text.len() <= LONGEST_BLOCK {
            true => rendered_markdown(text, self.columns),
            false => printable(text.trim_end()).into_owned(),
        };
        let mut news = "\n".repeat(std::mem::take(&mut self.gap));
        for (number, line) in rendering.split('\n').enumerate().skip(self.line) {
            if number > self.line {
                news.push('\n');
                self.begun.clear();
            }
            match rest_of(line, &self.begun) {
                Some(rest) => news.push_str(rest),
                // It has become something else, which is said rather than lost.
                None => news.extend(["\n", line]),
            }
            self.line = number;
            line.clone_into(&mut self.begun);
        }
        if news.is_empty() || !std::mem::take(&mut self.is_apart) {
            return news;
        }
        news.strip_prefix(['\n', ' ']).map(str::to_owned).unwrap_or(news)
    }
}

/// The blocks of a text, those inside others left out.
fn blocks(source: &str) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    for (event, place) in markdown_events(source) {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    blocks.push(place);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => blocks.push(place),
            _ => {}
        }
    }
    blocks
}

/// How much of a text looks the same whatever follows, in bytes.
fn sure(source: &str) -> usize {
    let mut end = after_last(source, char::is_whitespace);
    while let Some(before) = doubt(&source[..end]).filter(|before| *before < end) {
        end = before;
    }
    end
}

/// The place from which on a text may look otherwise once more has come.
fn doubt(text: &str) -> Option<usize> {
    let is_over = text.ends_with("\n\n");
    let (mut open, mut leaf) = (None, 0);
    for (event, place) in markdown_events(text) {
        let is_last = place.end >= text.trim_end().len();
        match event {
            // Only whole lines of code, and whole tables.
            Event::Start(Tag::CodeBlock(_)) if is_last => {
                return Some(after_last(text, |c| c == '\n').max(place.start));
            }
            Event::Start(Tag::Table(_)) if is_last && !is_over => return Some(place.start),
            Event::Start(
                Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. },
            ) => {}
            Event::Start(_) => (open, leaf) = (None, place.start),
            Event::Text(_) if open.is_none() => open = opening(text, place),
            _ => {}
        }
    }
    if is_over {
        return None;
    }
    let word = open.map(|at| after_last(&text[..at], char::is_whitespace));
    word.into_iter().chain(header(text, leaf)).min()
}

/// The place behind the last such character.
fn after_last(text: &str, is_it: impl Fn(char) -> bool) -> usize {
    let last = text.char_indices().rfind(|(_, c)| is_it(*c));
    last.map_or(0, |(at, c)| at + c.len_utf8())
}

/// Where in a piece of text something may begin that changes how what follows looks.
fn opening(text: &str, place: Range<usize>) -> Option<usize> {
    let begins = |at: usize, c: char| {
        let before = text[..at].chars().next_back();
        let after = text[at + c.len_utf8()..].chars().next();
        let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let stands_alone = after.is_some() && is_space(before) && is_space(after);
        let is_in_word = is_word(before) && is_word(after);
        match c {
            '`' => true,
            '*' => !stands_alone,
            '_' => !stands_alone && !is_in_word,
            '~' => before == Some('~') || after == Some('~'),
            '[' => !is_no_link(&text[at..]),
            '<' => after.is_none_or(|after| after.is_alphabetic() || matches!(after, '/' | '!' | '?')),
            _ => false,
        }
    };
    text[place.clone()]
        .char_indices()
        .map(|(at, c)| (place.start + at, c))
        .find(|(at, c)| begins(*at, *c))
        .map(|(at, _)| at)
}

/// Brackets that something stands behind which makes them no link.
fn is_no_link(text: &str) -> bool {
    let behind = text.split_once(']').and_then(|(_, behind)| behind.chars().next());
    behind.is_some_and(|c| !matches!(c, '(' | '[' | ':'))
}

/// Where the lines begin of which one may be the head of a table: those with bars, up to the end.
fn header(text: &str, leaf: usize) -> Option<usize> {
    let start = |line: &str| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut lines = text[leaf..].rsplit('\n');
    let last = lines.next()?;
    let has_bar = |line: &&str| line.contains('|');
    let is_delimiter = last.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    let above = if has_bar(&last) || is_delimiter { lines.take_while(has_bar).last() } else { None };
    above.or(Some(last).filter(has_bar)).map(start)
}

/// What of a line stands behind the words of `begun`, whatever colours either has.
fn rest_of<'a>(line: &'a str, begun: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix(begun) {
        return Some(rest);
    }
    let mut rest = line;
    for c in Visible(begun) {
        let mut visible = Visible(rest);
        if visible.next() != Some(c) {
            return None;
        }
        rest = visible.0;
    }
    // The end of the last word's colour.
    Some(rest.strip_prefix("\u{1b}[0m").unwrap_or(rest))
}

/// The characters of a text that are seen.
struct Visible<'a>(&'a str);

impl Iterator for Visible<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        while let Some(escape) = self.0.strip_prefix("\u{1b}[") {
            self.0 = escape.split_once('m').map_or("", |(_, rest)| rest);
        }
        let c = self.0.chars().next()?;
        self.0 = &self.0[c.len_utf8()..];
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: usize = 40;

    /// What was shown after each piece, and all of it.
    fn streamed<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (Vec<String>, String) {
        let mut stream = MarkdownStream::default();
        let mut shown: Vec<String> = pieces.into_iter().map(|piece| stream.push(piece, COLUMNS)).collect();
        shown.push(stream.pause());
        let all = shown.concat();
        (shown, all)
    }

    fn seen(text: &str) -> String {
        Visible(text).collect()
    }

    /// Pieces of a text, with what each adds to what is seen.
    fn story(pieces: &[&str]) -> String {
        let (shown, _) = streamed(pieces.iter().copied());
        pieces
            .iter()
            .chain([&"(end)"])
            .zip(shown)
            .map(|(piece, shown)| format!("{piece:?} → {:?}\n", seen(&shown)))
            .collect()
    }

    #[test]
    fn words_are_shown_as_they_come_and_what_is_open_when_it_is_closed() {
        insta::assert_snapshot!(story(&["One two", " three ", "**four ", "five", "** six", " seven.\n", "\nNext"]), @r#"
        "One two" → "One"
        " three " → " two three"
        "**four " → ""
        "five" → ""
        "** six" → " four five"
        " seven.\n" → " six seven."
        "\nNext" → ""
        "(end)" → "\n\nNext"
        "#);
    }

    #[test]
    fn code_comes_by_lines_and_a_table_whole() {
        insta::assert_snapshot!(story(&["So:\n```py", "thon\nx = ", "1\ny", " = 2\n``", "`\n| a | b", " |\n|---|--", "-|\n| 1 | 2 |\n", "\nend\n"]), @r#"
        "So:\n```py" → "So:"
        "thon\nx = " → "\n"
        "1\ny" → "  x = 1"
        " = 2\n``" → "\n  y = 2"
        "`\n| a | b" → ""
        " |\n|---|--" → ""
        "-|\n| 1 | 2 |\n" → ""
        "\nend\n" → "\na │ b\n──┼──\n1 │ 2\n\nend"
        "(end)" → ""
        "#);
    }

    #[test]
    fn items_come_one_after_the_other() {
        insta::assert_snapshot!(story(&["- one", " two\n-", " three\n", "  - `fo", "ur` five\n", "\n1. six [sev", "en](u) 2*3 | 4\n"]), @r#"
        "- one" → "- "
        " two\n-" → "one two"
        " three\n" → "\n- three"
        "  - `fo" → ""
        "ur` five\n" → "\n  - four five"
        "\n1. six [sev" → "\n\n1. six"
        "en](u) 2*3 | 4\n" → ""
        "(end)" → " seven (u) 2*3 | 4"
        "#);
    }

    #[test]
    fn what_is_shown_in_between_does_not_change_what_the_rest_is() {
        let mut stream = MarkdownStream::default();
        assert_eq!(seen(&stream.push("One:\n\n```py\nx = 1\ny", COLUMNS)), "One:\n\n  x = 1");
        assert_eq!(seen(&stream.pause()), "\n  y");
        assert_eq!(seen(&stream.push(" = 2\nz = 3\n```\n\nTwo", COLUMNS)), "= 2\n  z = 3");
        assert_eq!(seen(&stream.pause()), "\n\nTwo");
        assert_eq!(seen(&stream.push(" words", COLUMNS)), "");
        assert_eq!(seen(&stream.pause()), "words");
    }

    #[test]
    fn a_block_is_as_wide_to_its_end_as_the_terminal_was_at_its_beginning() {
        let mut stream = MarkdownStream::default();
        let mut shown = stream.push("one two three four ", 20);
        shown.push_str(&stream.push("five six seven\n\neight\n\n", 80));
        shown.push_str(&stream.push("nine ten eleven twelve ", 80));
        assert_eq!(shown, "one two three four\nfive six seven\n\neight\n\nnine ten eleven twelve");
    }

    #[test]
    fn what_was_said_is_never_lost() {
        let text = "Title and more\n===\ntext `open\n\n[a]: b\n\n* x\n";
        let (_, all) = streamed(text.split_inclusive(' '));
        for word in ["Title", "more", "text", "open", "[a]:", "x"] {
            assert!(all.contains(word), "{word} in {all:?}");
        }
    }

    #[test]
    fn what_comes_in_pieces_looks_as_the_whole() {
        let text = "# A title\n\nSome **bold words** and `code`, a [link](https://a.b) and words that are wrapped, *all* of them.\nNext line.\n\n\
                    1. first\n   ```bash\n   ls -l\n   ```\n2. second\n\n   - deep\n\n> quoted\n> on\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n\ny = 2\n```\nend\n";
        let whole = seen(&rendered_markdown(text, COLUMNS));
        for size in [1, 2, 3, 5, 7, 11, 1000] {
            let pieces: Vec<&str> =
                text.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
            assert_eq!(seen(&streamed(pieces).1), whole, "in pieces of {size}");
        }
    }

    const WORDS: [&str; 24] = [
        "one", "two", "漢字", " ", " ", " ", "\n", "\n", "\n\n", "**", "*", "`", "`x`", "- ", "1. ", "> ",
        "```\n", "[a](b)", "[", "<", "|", "|---|\n", "# ", "~~",
    ];

    proptest! {
        /// However it is cut, every word that was said is shown, in order, and none twice but where a line has become another.
        #[test]
        fn all_words_are_shown_in_order(pieces in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..40)) {
            let text = pieces.concat();
            let (_, all) = streamed(pieces);
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).collect::<Vec<_>>();
            let whole = seen(&rendered_markdown(&text, COLUMNS));
            let (shown, wanted) = (letters(&seen(&all)), letters(&whole));
            let mut rest = shown.iter();
            prop_assert!(wanted.iter().all(|c| rest.any(|shown| shown == c)), "{text:?}\nshown {all:?}\nwhole {whole:?}");
        }
    }
}
