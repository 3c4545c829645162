//! What compilers and msbuild print, read as diagnostics: `FILE(line,column): error FS0039: what it says [PROJECT]`.

use std::path::Path;

use mainstay_model::{Diagnostic, Severity, TextPosition};

/// How many remarks are kept of one step of a build.
const MOST: usize = 500;
const START: TextPosition = TextPosition { line: 1, column: 1 };

/// The remarks in what was printed, each once, in order, the errors first: many warnings leave none of them out. Relative files count from
/// `folder`.
pub(super) fn remarks(printed: &str, folder: &Path) -> Vec<Diagnostic> {
    let (mut errors, mut others): (Vec<Diagnostic>, Vec<Diagnostic>) = Default::default();
    for remark in printed.lines().filter_map(|line| remark(line.trim(), folder)) {
        let found = if is_error(&remark) { &mut errors } else { &mut others };
        if found.len() < MOST && !found.contains(&remark) {
            found.push(remark);
        }
    }
    errors.append(&mut others);
    errors.truncate(MOST);
    errors
}

/// Whether a line is read as a remark.
pub(super) fn is_remark(line: &str) -> bool {
    split(line.trim()).is_some()
}

pub(super) fn is_error(remark: &Diagnostic) -> bool {
    remark.severity == Severity::Error
}

fn remark(line: &str, folder: &Path) -> Option<Diagnostic> {
    let (origin, severity, code, rest) = split(line)?;
    let (file, start, end) = place(origin);
    let message = match rest.rsplit_once(" [") {
        Some((message, project)) if project.ends_with("proj]") => message,
        _ => rest,
    };
    // A tool that is named where a file stands (`FSC`, `MSBUILD`) has no extension.
    let file = Path::new(file);
    let file = file.extension().is_some().then(|| folder.join(file).display().to_string());
    // The compiler of SDK 3.1 parts its suggestions by this, so that they stay on the line.
    let message = message.trim().replace('\u{1d}', "\n");
    Some(Diagnostic { severity, code: code.to_owned(), message, file, start, end })
}

/// Cuts a line at `: error CODE:`; a word may stand before `error`, as in `typecheck error`.
fn split(line: &str) -> Option<(&str, Severity, &str, &str)> {
    for (index, _) in line.match_indices(':') {
        let after = line[index + 1..].trim_start();
        let Some((head, message)) = after.split_once(':') else { continue };
        let mut words = head.split_whitespace().rev();
        let (Some(code), Some(severity)) = (words.next(), words.next()) else { continue };
        let severity = match severity {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => continue,
        };
        let is_code = code.starts_with(|c: char| c.is_ascii_alphabetic())
            && code.ends_with(|c: char| c.is_ascii_digit())
            && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_code && words.count() <= 1 {
            return Some((line[..index].trim(), severity, code, message));
        }
    }
    None
}

/// The file and the range of `FILE(1,2)` or `FILE(1,2,3,4)`; without one, the beginning.
fn place(origin: &str) -> (&str, TextPosition, TextPosition) {
    let placed = || {
        let (file, numbers) = origin.strip_suffix(')')?.rsplit_once('(')?;
        let numbers: Vec<u32> =
            numbers.split(',').map(|number| number.trim().parse()).collect::<Result<_, _>>().ok()?;
        let at = |line: u32, column: u32| TextPosition { line: line.max(1), column: column.max(1) };
        match numbers[..] {
            [line] => Some((file, at(line, 1), at(line, 1))),
            [line, column] => Some((file, at(line, column), at(line, column))),
            [line, column, end_line, end_column] => Some((file, at(line, column), at(end_line, end_column))),
            _ => None,
        }
    };
    placed().unwrap_or((origin, START, START))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Remarks as short texts.
    fn read(printed: &str) -> Vec<String> {
        let shown = |remark: Diagnostic| {
            let Diagnostic { severity, code, message, file, start, end } = remark;
            let file = file.unwrap_or_else(|| "-".to_owned());
            format!(
                "{file} {}:{}-{}:{} {} {code}: {message}",
                start.line,
                start.column,
                end.line,
                end.column,
                severity.name()
            )
        };
        remarks(printed, Path::new("/shop")).into_iter().map(shown).collect()
    }

    #[test]
    fn remarks_are_read_once_with_their_places() {
        let printed = "  Restore completed in 24.5 ms for /shop/A.fsproj.
/shop/A.fs(2,19): error FS0039: The value 'y' is not defined: look. [/shop/A.fsproj]
/shop/A.fs(2,19): error FS0039: The value 'y' is not defined: look. [/shop/A.fsproj]
B.fs(3,5,3,9): typecheck warning FS0025 : Incomplete matches [1; 2]
/shop/A.fsproj : error NU1101: Unable to find package P. [/shop/A.fsproj]
FSC : error FS0225: Source file 'C.fs' could not be found [/shop/A.fsproj]
MSBUILD : error MSB1009: Project file does not exist.
  A -> /shop/bin/A.dll
    1 Error(s)
";
        insta::assert_snapshot!(read(printed).join("\n"), @"
        /shop/A.fs 2:19-2:19 error FS0039: The value 'y' is not defined: look.
        /shop/A.fsproj 1:1-1:1 error NU1101: Unable to find package P.
        - 1:1-1:1 error FS0225: Source file 'C.fs' could not be found
        - 1:1-1:1 error MSB1009: Project file does not exist.
        /shop/B.fs 3:5-3:9 warning FS0025: Incomplete matches [1; 2]
        ");
    }

    #[test]
    fn many_warnings_leave_no_error_out() {
        let warnings = (1..=2 * MOST).map(|line| format!("A.fs({line},1): warning FS0025: incomplete\n"));
        let printed =
            warnings.chain(["A.fs(9,1): error FS0039: not defined\n".to_owned()]).collect::<String>();
        let found = read(&printed);
        assert_eq!(found.len(), MOST);
        assert_eq!(found[0], "/shop/A.fs 9:1-9:1 error FS0039: not defined");
    }

    #[test]
    fn other_lines_are_no_remarks() {
        for line in [
            "",
            "error",
            "a: error: no code",
            "the error CS: was",
            "note: error handling 5: x",
            "a : error FS: b",
        ] {
            assert_eq!(read(line), Vec::<String>::new(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_printed_reading_it_ends(text in "([ :(),A-Z0-9é]|error|warning|\\.fs|\n){0,60}") {
            let _ = read(&text);
        }
    }
}
