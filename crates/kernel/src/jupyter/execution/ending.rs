//! How code ended, and where an error comes from.

use mainstay_model::{JobEnding, RaisedError};

use super::output::plain;
use super::report::Report;
use crate::jupyter::content::ExecuteReply;
use crate::jupyter::python;

/// Returns how code ended.
pub(super) fn ending_of(reply: &ExecuteReply, report: &Report, is_interrupted: bool) -> JobEnding {
    match (reply.status.as_str(), is_interrupted) {
        ("ok", _) => JobEnding::Completed,
        (_, true) => JobEnding::Interrupted { kept: report.kept },
        (_, false) if report.rejected.is_some() => JobEnding::Rejected,
        (_, false) => {
            let kind = named(reply.ename.as_deref().unwrap_or_default());
            let message = reply.evalue.clone().unwrap_or_default();
            let (stack, coloured_stack) = stacks_of(&reply.traceback, &kind, &message);
            JobEnding::Raised(RaisedError { kind, message, stack, coloured_stack })
        }
    }
}

/// Where an error comes from, without what is said of it besides: IPython's rule and title above, the error again below. Without colours,
/// and with them where there are some.
pub(super) fn stacks_of(traceback: &[String], kind: &str, message: &str) -> (Option<String>, Option<String>) {
    let told: Vec<&str> =
        traceback.iter().map(String::as_str).filter(|part| !python::is_own_frame(&plain(part))).collect();
    let coloured = told.join("\n");
    let text = plain(&coloured);
    let mut lines: Vec<&str> = text.lines().collect();
    let mut coloured_lines: Vec<&str> = coloured.lines().collect();
    // An escape that does not end takes lines with it.
    let is_coloured = coloured_lines.len() == lines.len();
    if lines.last().is_some_and(|last| *last == kind || *last == format!("{kind}: {message}")) {
        lines.pop();
        coloured_lines.pop();
    }
    let is_heading = |line: &&&str| {
        let is_rule = !line.is_empty() && line.chars().all(|c| c == '-');
        is_rule || line.starts_with(kind) && line.ends_with("Traceback (most recent call last)")
    };
    let headings = lines.iter().take_while(is_heading).count();
    let whole =
        |lines: &[&str]| Some(lines.join("\n").trim_end().to_owned()).filter(|stack| !stack.is_empty());
    let stack = whole(&lines[headings..]);
    let coloured = coloured_lines.get(headings..).filter(|_| is_coloured).and_then(whole);
    let coloured = coloured.filter(|coloured| stack.as_ref().is_some_and(|stack| stack != coloured));
    (stack, coloured)
}

/// The name of an error; xeus-python says `<class 'ValueError'>`.
fn named(error: &str) -> String {
    let name = error.strip_prefix("<class '").and_then(|rest| rest.strip_suffix("'>")).unwrap_or(error);
    if name.is_empty() { "Error".to_owned() } else { name.to_owned() }
}
