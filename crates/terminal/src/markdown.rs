//! Markdown for people at a terminal: [`rendered`] lays out a text. What the words are decides nothing here but how they look: control
//! characters are shown as signs, also those that Markdown itself spells (`&#27;`), and nothing is loaded from anywhere.

mod table;

use std::ops::Range;

use mainstay_model::Language;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use self::table::Table;
use super::printable;
use super::syntax::coloured_lines;

/// What of Markdown is understood beside CommonMark.
const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);
/// Words get so many columns, however deep they stand.
const FEWEST_COLUMNS: usize = 20;
/// The longest line across.
const RULE_COLUMNS: usize = 40;
/// More code than this is shown without colours, in bytes: while it comes it is read again with each line.
const COLOURED_BYTES: usize = 16 * 1024;

/// The events of a text, with the places they come from.
pub fn events(source: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(source, OPTIONS).into_offset_iter()
}

/// A text as a terminal shows it that is so many columns wide: lines without an end behind the last one. Blank lines between blocks, and line
/// ends in paragraphs, stand where the author has them.
pub fn rendered(source: &str, columns: usize) -> String {
    let mut page = Page::new(source, columns);
    events(source).for_each(|(event, place)| page.take(event, place));
    page.end_paragraph();
    page.pass(source.len());
    page.lines.join("\n")
}

/// How a word looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    bold: bool,
    italic: bool,
    struck: bool,
    underlined: bool,
    code: bool,
    faint: bool,
}

impl Style {
    fn paint(self, text: &str) -> String {
        let codes = [
            (self.bold, "1"),
            (self.italic, "3"),
            (self.underlined, "4"),
            (self.struck, "9"),
            // A name that can be typed back.
            (self.code, "36"),
            (self.faint, "90"),
        ];
        let codes: Vec<&str> = codes.iter().filter(|(is_on, _)| *is_on).map(|(_, code)| *code).collect();
        match codes.is_empty() || text.trim().is_empty() {
            true => text.to_owned(),
            false => format!("\u{1b}[{}m{text}\u{1b}[0m", codes.join(";")),
        }
    }
}

fn faint(text: &str) -> String {
    Style { faint: true, ..Style::default() }.paint(text)
}

/// Words that are laid out together.
#[derive(Clone, Debug, Default)]
struct Words {
    words: Vec<Word>,
    /// Whether what comes next belongs to the last word.
    is_open: bool,
}

#[derive(Clone, Debug)]
enum Word {
    /// With its colours, and how wide it is without.
    Text { shown: String, width: usize },
    /// The author begins a new line.
    Break,
}

impl Words {
    fn push(&mut self, text: &str, style: Style) {
        for (index, piece) in printable(text).split([' ', '\t', '\n']).enumerate() {
            self.is_open &= index == 0;
            if piece.is_empty() {
                continue;
            }
            let (painted, piece_width) = (style.paint(piece), piece.width());
            match self.words.last_mut() {
                Some(Word::Text { shown, width }) if self.is_open => {
                    shown.push_str(&painted);
                    *width += piece_width;
                }
                _ => self.words.push(Word::Text { shown: painted, width: piece_width }),
            }
            self.is_open = true;
        }
    }

    fn end_line(&mut self) {
        self.words.push(Word::Break);
        self.is_open = false;
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How wide it is on one line.
    fn width(&self) -> usize {
        self.lines(usize::MAX).iter().map(|(_, width)| *width).max().unwrap_or(0)
    }

    /// Lines of at most so many columns, each with its width. A word that is longer has a line of its own, whole, so that an address can be
    /// copied.
    fn lines(&self, columns: usize) -> Vec<(String, usize)> {
        let mut lines = Vec::new();
        let mut line: Option<(String, usize)> = None;
        for word in &self.words {
            match (word, &mut line) {
                (Word::Break, _) => lines.push(line.take().unwrap_or_default()),
                (Word::Text { shown, width }, Some((begun, at)))
                    if at.saturating_add(1 + width) <= columns =>
                {
                    begun.push(' ');
                    begun.push_str(shown);
                    *at += 1 + width;
                }
                (Word::Text { shown, width }, line) => {
                    lines.extend(line.replace((shown.clone(), *width)));
                }
            }
        }
        lines.extend(line);
        lines
    }
}

/// What stands before the lines of a block that is inside another.
struct Margin {
    /// Before the first line: the mark of an item.
    first: Option<String>,
    rest: String,
    columns: usize,
}

impl Margin {
    fn of(mark: &str, rest: &str) -> Self {
        Self { first: Some(faint(mark)), rest: faint(rest), columns: mark.width() }
    }
}

/// What has been laid out.
struct Page<'a> {
    source: &'a str,
    columns: usize,
    lines: Vec<String>,
    margins: Vec<Margin>,
    /// The end of what has been read.
    end: usize,
    /// For each block that is open, whether something stands in it.
    filled: Vec<bool>,
    /// The lists that are open, with the number of the next item.
    lists: Vec<Option<u64>>,
    words: Words,
    styles: Vec<Style>,
    /// The links that are open: where each leads, and what it says.
    links: Vec<(String, String)>,
    code: Option<Code>,
    table: Option<Table>,
}

/// Code that is being read.
struct Code {
    language: String,
    text: String,
}

impl<'a> Page<'a> {
    fn new(source: &'a str, columns: usize) -> Self {
        Self {
            source,
            columns,
            lines: Vec::new(),
            margins: Vec::new(),
            end: 0,
            filled: vec![false],
            lists: Vec::new(),
            words: Words::default(),
            styles: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>, place: Range<usize>) {
        if self.filled.len() == 1 && matches!(event, Event::Start(_) | Event::Rule) {
            self.pass(place.start);
        }
        self.end = self.end.max(place.end);
        match event {
            Event::Start(tag) => self.begin(tag, place.start),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.say(&text, self.style()),
            Event::Code(text) => self.say(&text, Style { code: true, ..self.style() }),
            Event::SoftBreak | Event::HardBreak => self.words.end_line(),
            Event::Rule => {
                self.block(place.start);
                let line = faint(&"─".repeat(self.room().min(RULE_COLUMNS)));
                self.line(&line);
            }
            Event::TaskListMarker(is_done) => {
                self.say(if is_done { "[x] " } else { "[ ] " }, Style::default());
            }
            // They are not asked for.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.say(&text, self.style());
            }
        }
    }

    /// What stands between blocks is the definition of a link: nothing to Markdown, and something that was said.
    fn pass(&mut self, start: usize) {
        let between = self.source.get(self.end..start).unwrap_or_default();
        if !between.trim().is_empty() {
            let from = self.end + between.len() - between.trim_start().len();
            self.block(from);
            printable(between.trim()).lines().for_each(|line| self.line(line));
        }
    }

    fn begin(&mut self, tag: Tag<'_>, start: usize) {
        let style = self.style();
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(start),
            Tag::Heading { level, .. } => {
                self.block(start);
                let underlined = level == HeadingLevel::H1;
                self.styles.push(Style { bold: true, underlined, ..style });
            }
            Tag::BlockQuote(_) => {
                self.block(start);
                self.open(Margin::of("│ ", "│ "));
            }
            Tag::CodeBlock(kind) => {
                self.block(start);
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
            }
            Tag::List(first) => {
                self.block(start);
                self.lists.push(first);
                self.filled.push(false);
            }
            Tag::Item => {
                self.block(start);
                let mark = match self.lists.last_mut().and_then(Option::as_mut) {
                    Some(number) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    None => "- ".to_owned(),
                };
                self.open(Margin::of(&mark, &" ".repeat(mark.width())));
            }
            Tag::Table(sides) => {
                self.block(start);
                self.table = Some(Table::new(sides));
            }
            Tag::TableRow => self.table.iter_mut().for_each(Table::begin_row),
            Tag::Emphasis => self.styles.push(Style { italic: true, ..style }),
            Tag::Strong => self.styles.push(Style { bold: true, ..style }),
            Tag::Strikethrough => self.styles.push(Style { struck: true, ..style }),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(Style { underlined: true, ..style });
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::TableHead => {
                self.table.iter_mut().for_each(Table::begin_row);
                self.styles.push(Style { bold: true, ..style });
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => self.close(),
            TagEnd::Item => {
                self.end_paragraph();
                // An item that says nothing is one all the same.
                if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
                    self.line("");
                }
                self.close();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.filled.pop();
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    code_lines(&code).iter().for_each(|line| self.line(line));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    table.lines(self.room()).iter().for_each(|line| self.line(line));
                }
            }
            TagEnd::TableHead => {
                self.styles.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.words);
                self.table.iter_mut().for_each(|table| table.push(cell.clone()));
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((address, said)) = self.links.pop()
                    && address.strip_prefix("mailto:").unwrap_or(&address) != said
                    && !address.is_empty()
                {
                    let style = Style { faint: true, ..Style::default() };
                    self.say(&format!(" ({address})"), style);
                }
            }
            TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn say(&mut self, text: &str, style: Style) {
        if let Some(code) = &mut self.code {
            code.text.push_str(text);
            return;
        }
        self.links.iter_mut().for_each(|(_, said)| said.push_str(text));
        // HTML comes with its line ends.
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 && !self.words.is_empty() {
                self.words.end_line();
            }
            self.words.push(line, style);
        }
    }

    /// A block begins, below a blank line where the author has one before it.
    fn block(&mut self, start: usize) {
        self.end_paragraph();
        let is_below = self.filled.last_mut().is_some_and(|is_filled| std::mem::replace(is_filled, true));
        if is_below && is_blank_before(self.source, start) {
            self.line("");
        }
    }

    fn open(&mut self, margin: Margin) {
        self.margins.push(margin);
        self.filled.push(false);
    }

    fn close(&mut self) {
        self.end_paragraph();
        self.margins.pop();
        self.filled.pop();
    }

    fn end_paragraph(&mut self) {
        let mut words = std::mem::take(&mut self.words);
        while matches!(words.words.last(), Some(Word::Break)) {
            words.words.pop();
        }
        if words.is_empty() {
            return;
        }
        self.filled.iter_mut().for_each(|is_filled| *is_filled = true);
        words.lines(self.room()).iter().for_each(|(line, _)| self.line(line));
    }

    fn room(&self) -> usize {
        let taken: usize = self.margins.iter().map(|margin| margin.columns).sum();
        self.columns.saturating_sub(taken).max(FEWEST_COLUMNS)
    }

    fn line(&mut self, text: &str) {
        let mut line = String::new();
        // Behind the first line of what is inside, the mark of an item has been shown; a blank line before it shows none.
        for margin in &mut self.margins {
            let first = if text.is_empty() && margin.first.is_none() { None } else { margin.first.take() };
            line.push_str(first.as_ref().unwrap_or(&margin.rest));
        }
        line.push_str(text);
        self.lines.push(line.trim_end().to_owned());
    }
}

/// Whether a blank line stands above the line with this place.
pub fn is_blank_before(source: &str, place: usize) -> bool {
    let above = source.get(..place).unwrap_or_default();
    let above = above.rsplit_once('\n').map_or("", |(above, _)| above);
    let last = above.rsplit('\n').next().unwrap_or_default();
    !above.is_empty() && last.chars().all(|c| c.is_whitespace() || c == '>')
}

/// Code is not wrapped, so that it can be copied.
fn code_lines(code: &Code) -> Vec<String> {
    let text = printable(&code.text).replace('\t', "    ");
    let name = code.language.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
    if name == "diff" || name == "patch" {
        return text.lines().map(|line| format!("  {}", diff_line(line))).collect();
    }
    let language = match name.as_str() {
        "sh" | "shell" | "zsh" | "console" => Language::named("bash"),
        "py" | "python3" => Language::named("python"),
        "ts" | "tsx" => Language::named("typescript"),
        "jsx" | "mjs" => Language::named("javascript"),
        "fsx" | "fsi" => Language::named("fsharp"),
        name => Language::named(name),
    };
    let language = Some(&language).filter(|_| text.len() <= COLOURED_BYTES);
    coloured_lines(&text, language).iter().map(|line| format!("  {line}")).collect()
}

/// A line of a difference: what is new is green, what is gone red, and where it stands grey.
fn diff_line(line: &str) -> String {
    use super::{Paint, Tone};
    let paint = Paint { is_on: true };
    match line.chars().next() {
        Some('+') => paint.tone(Tone::Good, line),
        Some('-') => paint.tone(Tone::Error, line),
        Some('@') => paint.tone(Tone::Faint, line),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
