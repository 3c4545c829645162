//! Which lines tests reach, as text.

use std::fmt::Write as _;
use std::path::Path;

use mainstay_model::{CallingDeclaration, Coverage, CoveredRange, LineCounts, LineState, TestEnding};
use mainstay_terminal::{Paint, Tone, counted, printable};

/// What somebody asks the coverage of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageSubject {
    /// A file, by its path or the end of it.
    File(String),
    /// A function, value or member, by the end of its name.
    Declaration(String),
}

impl CoverageSubject {
    /// What a text means that was typed in a folder: a file where there is one, or where it has a file's name.
    pub fn read(text: &str, folder: &Path) -> Self {
        let path = folder.join(text);
        let is_file = path.is_file() || text.ends_with(".fs") || text.contains(['/', '\\']);
        match (is_file, path.canonicalize()) {
            (true, Ok(path)) => Self::File(path.display().to_string()),
            (true, Err(_)) => Self::File(text.trim_start_matches("./").to_owned()),
            (false, _) => Self::Declaration(text.to_owned()),
        }
    }

    /// The file and the name that are asked for.
    pub fn parts(subject: Option<&Self>) -> (Option<String>, Option<String>) {
        match subject {
            None => (None, None),
            Some(Self::File(file)) => (Some(file.clone()), None),
            Some(Self::Declaration(name)) => (None, Some(name.clone())),
        }
    }
}

/// The text for what was asked: of everything a line for each file, of a file a line for each range of its lines, of a declaration its tests
/// too.
pub fn coverage_text(
    coverage: &Coverage,
    subject: Option<&CoverageSubject>,
    folder: &Path,
    paint: Paint,
) -> String {
    let mut text = String::new();
    match subject {
        None => summary(&mut text, coverage, folder, paint),
        Some(subject) => {
            let names = matches!(subject, CoverageSubject::Declaration(_));
            ranges(&mut text, coverage, folder, paint, names);
            calling(&mut text, "called by", &coverage.callers, folder, paint);
            calling(&mut text, "calls", &coverage.callees, folder, paint);
        }
    }
    text
}

/// What is to be said besides.
pub fn coverage_notes(coverage: &Coverage) -> Vec<String> {
    let mut notes = coverage.notes.clone();
    if coverage.unknown > 0 {
        notes.push(format!(
            "{} not counted: it is not known what they reach",
            counted(coverage.unknown, "test")
        ));
    }
    if coverage.measured > 0 && coverage.measured < coverage.tests {
        notes.push(format!(
            "{} measured: of the others the lines count that they may reach by the calls in the code",
            counted(coverage.measured, "test")
        ));
    }
    if coverage.measuring {
        notes.push("the lines that the tests run are being measured: ask again for them".to_owned());
    }
    if coverage.lines.not_run > 0 {
        notes.push("`mainstay test` runs the tests that have not run since a change".to_owned());
    }
    notes
}

fn summary(text: &mut String, coverage: &Coverage, folder: &Path, paint: Paint) {
    let ratio = |lines: LineCounts| format!("{}/{}", lines.passing, lines.total);
    let width = ratio(coverage.lines).chars().count();
    let mut line = |lines: LineCounts, name: &str| {
        let share = (lines.passing * 100).checked_div(lines.total).unwrap_or(0);
        let others = [
            (lines.failing, "failing", Tone::Error),
            (lines.not_run, "not run", Tone::Warning),
            (lines.unreached, "not reached", Tone::Faint),
        ];
        let others = others.iter().filter(|(count, ..)| *count > 0);
        let others: Vec<_> =
            others.map(|(count, word, tone)| paint.tone(*tone, &format!("{count} {word}"))).collect();
        let others = if others.is_empty() { String::new() } else { format!("  {}", others.join(", ")) };
        let _ = writeln!(text, "{share:>3} %  {:>width$}  {}{others}", ratio(lines), printable(name));
    };
    for file in &coverage.files {
        line(file.lines, &shown_path(&file.path, folder));
    }
    line(coverage.lines, "all lines");
}

fn ranges(text: &mut String, coverage: &Coverage, folder: &Path, paint: Paint, names: bool) {
    for file in &coverage.files {
        let _ = writeln!(text, "{}", paint.tone(Tone::Name, &printable(&shown_path(&file.path, folder))));
        let lines = |range: &CoveredRange| match range.first == range.last {
            true => range.first.to_string(),
            false => format!("{}-{}", range.first, range.last),
        };
        let width = file.ranges.iter().map(|range| lines(range).len()).max().unwrap_or_default();
        let name_width = file.ranges.iter().map(|range| range.name.chars().count()).max().unwrap_or_default();
        for range in &file.ranges {
            let (tone, words) = range_words(range);
            let name = printable(&range.name);
            let _ =
                writeln!(text, "{:>width$}  {name:<name_width$}  {}", lines(range), paint.tone(tone, &words));
            if names {
                covering(text, range, paint);
            }
        }
    }
}

/// How a range stands, in words.
pub fn range_words(range: &CoveredRange) -> (Tone, String) {
    let tests = counted(range.tests, "test");
    let (tone, words) = match range.state {
        LineState::Passing => (Tone::Good, tests),
        LineState::Failing => {
            let fail = if range.failing == 1 { "fails" } else { "fail" };
            (Tone::Error, format!("{tests}, {} {fail}", range.failing))
        }
        LineState::NotRun => (Tone::Warning, format!("{tests}, not run since the change")),
        LineState::Unreached => (Tone::Faint, "no test".to_owned()),
    };
    match range.moved {
        true => (Tone::Warning, format!("{words} (moved: what is saved is not what runs)")),
        false => (tone, words),
    }
}

fn covering(text: &mut String, range: &CoveredRange, paint: Paint) {
    for test in &range.names {
        let (tone, word) = match test.ending {
            Some(TestEnding::Passed) => (Tone::Good, "passed"),
            Some(TestEnding::Failed) => (Tone::Error, "failed"),
            Some(TestEnding::Skipped) | None => (Tone::Warning, "not run"),
        };
        let _ = writeln!(text, "  {}  {}", paint.tone(tone, &format!("{word:<7}")), printable(&test.name));
    }
    let left = range.tests.saturating_sub(range.names.len() as u64);
    if left > 0 {
        let _ = writeln!(text, "  {}", paint.tone(Tone::Faint, &format!("… {left} more")));
    }
}

fn calling(text: &mut String, word: &str, all: &[CallingDeclaration], folder: &Path, paint: Paint) {
    for CallingDeclaration { name, file, line } in all {
        let place = match (file, line) {
            (Some(file), Some(line)) => format!("  {}:{line}", shown_path(file, folder)),
            _ => String::new(),
        };
        let _ = writeln!(text, "{word} {}{}", printable(name), paint.tone(Tone::Faint, &printable(&place)));
    }
}

/// A path as it is from a folder, where it is in it.
fn shown_path(path: &str, folder: &Path) -> String {
    let path = Path::new(path);
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use mainstay_model::{CoveringTest, FileCoverage};

    use super::*;

    fn range(first: u32, last: u32, state: LineState, tests: u64) -> CoveredRange {
        let failing = u64::from(state == LineState::Failing);
        let ending = if failing > 0 { TestEnding::Failed } else { TestEnding::Passed };
        let names = (0..tests.min(1))
            .map(|_| CoveringTest { name: "Shop.Tests.prices".to_owned(), ending: Some(ending) });
        CoveredRange {
            first,
            last,
            name: "Shop.Cart.price".to_owned(),
            state,
            tests,
            failing,
            names: names.collect(),
            moved: state == LineState::NotRun,
        }
    }

    fn coverage() -> Coverage {
        let lines = LineCounts { total: 12, passing: 6, failing: 3, not_run: 2, unreached: 1 };
        let ranges = vec![
            range(9, 9, LineState::Passing, 1),
            range(12, 18, LineState::Failing, 3),
            range(20, 21, LineState::NotRun, 2),
            range(30, 30, LineState::Unreached, 0),
        ];
        Coverage {
            lines,
            files: vec![FileCoverage { path: "/shop/src/Cart.fs".to_owned(), lines, ranges }],
            callers: vec![CallingDeclaration {
                name: "Shop.Cart.total".to_owned(),
                file: Some("/shop/src/Cart.fs".to_owned()),
                line: Some(40),
            }],
            callees: vec![CallingDeclaration { name: "Shop.Tax.rate".to_owned(), file: None, line: None }],
            tests: 3,
            unknown: 1,
            measured: 2,
            measuring: true,
            notes: Vec::new(),
        }
    }

    #[test]
    fn coverage_is_told_of_all_files_of_a_file_and_of_a_function() {
        let text = |subject: Option<CoverageSubject>| {
            coverage_text(&coverage(), subject.as_ref(), Path::new("/shop"), Paint::plain())
        };
        insta::assert_snapshot!(text(None));
        insta::assert_snapshot!(text(Some(CoverageSubject::File("Cart.fs".to_owned()))));
        insta::assert_snapshot!(text(Some(CoverageSubject::Declaration("price".to_owned()))));
        insta::assert_snapshot!(coverage_notes(&coverage()).join("\n"));
    }

    #[test]
    fn a_file_is_told_from_a_name() {
        let read = |text: &str| CoverageSubject::read(text, Path::new("/nowhere"));
        assert_eq!(read("./Cart.fs"), CoverageSubject::File("Cart.fs".to_owned()));
        assert_eq!(read("src/Cart.fsi"), CoverageSubject::File("src/Cart.fsi".to_owned()));
        assert_eq!(read("Cart.price"), CoverageSubject::Declaration("Cart.price".to_owned()));
    }
}
