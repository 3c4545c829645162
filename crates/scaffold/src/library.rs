//! Tests for a project that has a library which makes the values: a file of its own.

use std::fmt::Write;

use super::candidates::Candidate;
use super::{Subject, helpers, module_name, subjects, word};

/// Writes the tests for `FsCheck.Xunit`.
pub(super) fn for_xunit(subject: &Subject<'_>, candidates: &[Candidate]) -> String {
    let word = word(subject.name);
    let tests = candidates.iter().map(|candidate| {
        let inputs: String = candidate
            .inputs
            .iter()
            .fold(String::new(), |all, (name, kind)| format!("{all} ({name}: {})", kind.grounded()));
        format!(
            "\n{}\n[<Property>]\nlet ``{word} {}``{inputs} =\n    {}\n",
            remark(candidate),
            candidate.name,
            candidate.check
        )
    });
    head(subject, candidates, "open FsCheck.Xunit") + &tests.collect::<String>()
}

/// Writes the tests for `Expecto.FsCheck`.
pub(super) fn for_expecto(subject: &Subject<'_>, candidates: &[Candidate]) -> String {
    let word = word(subject.name);
    let mut code = head(subject, candidates, "open Expecto");
    let _ = write!(code, "\n[<Tests>]\nlet candidates =\n    testList \"{word}\" [");
    for candidate in candidates {
        let inputs: Vec<_> =
            candidate.inputs.iter().map(|(name, kind)| format!("({name}: {})", kind.grounded())).collect();
        let _ = write!(
            code,
            "\n        {}\n        testProperty \"{}\" (fun {} -> {})\n",
            remark(candidate).replace("///", "//"),
            candidate.name,
            inputs.join(" "),
            candidate.check
        );
    }
    code + "    ]\n"
}

fn remark(candidate: &Candidate) -> String {
    format!("/// Candidate: {}. Delete it where that is not meant.", candidate.claim)
}

fn head(subject: &Subject<'_>, candidates: &[Candidate], opens: &str) -> String {
    let mut lines = vec![format!("module {}", module_name(subject.name)), String::new(), opens.to_owned()];
    lines.push(String::new());
    lines.extend(subjects(subject));
    lines.extend(helpers(candidates));
    lines.join("\n") + "\n"
}
