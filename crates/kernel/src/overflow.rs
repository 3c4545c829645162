//! What .NET prints when the stack overflows, made short: of the frames, those of the session's own code.

use std::fmt::Write as _;

/// How the runtime begins its report.
const HEAD: &str = "Stack overflow.\n";
/// The most frames of the session's code that are told.
const FRAMES: usize = 20;
/// Whose frames are not the session's: as in `Faults.fs`, and what the runtime makes while it runs.
const FOREIGN: [&str; 9] = [
    "System.",
    "Microsoft.FSharp.",
    "FSharp.Compiler.",
    "Mainstay.Worker.",
    "MainstayDisplay.",
    "Internal.",
    "InvokeStub_",
    "DynamicClass.",
    "<StartupCode$",
];

/// A worker's standard error, from which such reports are cut as it comes.
#[derive(Debug, Default)]
pub(crate) struct OverflowFilter {
    report: Option<Report>,
}

/// A report under way.
#[derive(Debug, Default)]
struct Report {
    /// The line that has no end yet.
    begun: String,
    shown: usize,
    left_out: usize,
}

impl OverflowFilter {
    /// The next piece of text as it is to be told; nothing while a line of a report has no end.
    pub(crate) fn shorten(&mut self, text: String) -> String {
        match &mut self.report {
            Some(report) => {
                let (told, rest) = report.take(&text);
                match rest {
                    None => told,
                    Some(rest) => {
                        self.report = None;
                        told + &self.shorten(rest)
                    }
                }
            }
            None => match text.find(HEAD).filter(|at| *at == 0 || text[..*at].ends_with('\n')) {
                None => text,
                Some(at) => {
                    self.report = Some(Report::default());
                    let (before, report) = text.split_at(at + HEAD.len());
                    before.to_owned() + &self.shorten(report.to_owned())
                }
            },
        }
    }

    /// What is to be told behind the last piece.
    pub(crate) fn finish(&mut self) -> String {
        self.report.take().map_or_else(String::new, |report| report.end())
    }
}

impl Report {
    /// What is told of the report's next lines; where it has ended, what stands behind it too.
    fn take(&mut self, text: &str) -> (String, Option<String>) {
        let text = std::mem::take(&mut self.begun) + text;
        let mut told = String::new();
        for (at, line) in lines_of(&text) {
            if !line.ends_with('\n') {
                line.clone_into(&mut self.begun);
            } else if let Some(frame) = line.strip_prefix("   at ") {
                if FOREIGN.iter().any(|start| frame.starts_with(start)) || self.shown == FRAMES {
                    self.left_out += 1;
                } else {
                    self.shown += 1;
                    let _ = write!(told, "   at {}", without_submission(frame));
                }
            } else if line.starts_with("Repeat") || line.starts_with("---") {
                told.push_str(line);
            } else {
                told.push_str(&std::mem::take(self).end());
                return (told, Some(text[at..].to_owned()));
            }
        }
        (told, None)
    }

    fn end(self) -> String {
        match self.left_out {
            0 => self.begun,
            1 => format!("   … and 1 more frame\n{}", self.begun),
            count => format!("   … and {count} more frames\n{}", self.begun),
        }
    }
}

/// The lines of a text, with their ends, and where they begin.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |next, line| {
        let at = *next;
        *next += line.len();
        Some((at, line))
    })
}

/// A frame without the module that a submission is: `FSI_0031.f(Int32)` is `f(Int32)`.
fn without_submission(frame: &str) -> &str {
    let rest = frame.strip_prefix("FSI_").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix(['.', '+'])).unwrap_or(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "before\nStack overflow.\nRepeated 83 times:\n--------------------------------\n   at FSI_0031.f(Int32)\n--------------------------------\n   at FSI_0031+it@3-2.Invoke(Int32)\n   at Microsoft.FSharp.Collections.ListModule.Map(x)\n   at <StartupCode$FSI_0031>.$FSI_0031.main@()\n   at Shop.Order.total(Int32)\n   at System.Threading.Thread+StartHelper.Callback(System.Object)\n";

    fn told(pieces: &[&str]) -> String {
        let mut filter = OverflowFilter::default();
        let mut text: String = pieces.iter().map(|piece| filter.shorten((*piece).to_owned())).collect();
        text.push_str(&filter.finish());
        text
    }

    #[test]
    fn a_report_has_the_frames_of_the_sessions_code_and_how_many_more_there_were() {
        insta::assert_snapshot!(told(&[REPORT]), @"
        before
        Stack overflow.
        Repeated 83 times:
        --------------------------------
           at f(Int32)
        --------------------------------
           at it@3-2.Invoke(Int32)
           at Shop.Order.total(Int32)
           … and 3 more frames
        ");
    }

    #[test]
    fn it_does_not_matter_in_what_pieces_a_report_comes() {
        let (head, tail) = REPORT.split_at("before\n".len() + HEAD.len());
        for at in 0..=tail.len() {
            let (first, second) = tail.split_at(at);
            assert_eq!(told(&[head, first, second]), told(&[REPORT]), "{at}");
        }
    }

    #[test]
    fn what_is_no_report_is_told_as_it_is() {
        for text in [
            "a Stack overflow.\n   at System.Object.x()\n",
            "Stack overflow.\nsaid the code\n   at System.X\n",
            "",
        ] {
            assert_eq!(told(&[text]), text);
        }
    }
}
