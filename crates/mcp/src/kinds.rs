//! The kinds of sessions that there are, in the answer to a call that names another: what can start, and what installs Python where it is
//! not there.

use mainstay_model::{Capabilities, Capability, Error, SessionKind};

use super::call::Call;
use mainstay_gateway::KnownKind;

/// The language that most who name an unknown kind look for.
const PYTHON: &str = "python";

/// What to do about a kind that nothing here runs. Where the kinds cannot be told, the error's own words.
pub(super) async fn instead_of(call: &Call, kind: &SessionKind) -> String {
    let kinds = &call.server().daemon.kinds;
    match kinds.known(call.client(), Some(call.meant().folder())).await {
        Ok(known) => next_step(kind, &known, |kind| call.client().capabilities_of(kind)),
        Err(_) => Error::KernelUnknown { kind: kind.clone() }.next_step(),
    }
}

/// What to do about a kind that nothing here runs, where these can be started. Those that run no code are not named.
fn next_step(
    kind: &SessionKind,
    known: &[KnownKind],
    capabilities_of: impl Fn(&SessionKind) -> Capabilities,
) -> String {
    let known = known.iter().filter(|known| capabilities_of(&known.kind).has(Capability::Code));
    let (there, missing): (Vec<_>, Vec<_>) = known.partition(|known| known.missing.is_none());
    let listed = |known: &&KnownKind| match &known.language {
        Some(language) if *language != known.kind.as_str() => format!("{} ({language})", known.kind),
        Some(_) | None => known.kind.to_string(),
    };
    let there_are: Vec<String> = there.iter().map(listed).collect();
    let mut sentences = vec![match there_are.as_slice() {
        [] => "No kind can start here yet.".to_owned(),
        kinds => format!("The kinds that can start here: {}.", kinds.join(", ")),
    }];
    let lacks = |known: &&KnownKind| Some(format!("{}: {}", known.kind, known.missing.as_ref()?.next_step));
    sentences.extend(missing.iter().filter_map(lacks));
    let is_python = |known: &&KnownKind| known.language.as_deref() == Some(PYTHON);
    if !there.iter().chain(&missing).any(is_python) {
        sentences.push("`mainstay kernel install python` installs Python.".to_owned());
    } else if there.iter().any(is_python) && kind.as_str().contains("py") {
        sentences.push("The kind `python` takes any of Python.".to_owned());
    }
    sentences.push("Other languages come with the Jupyter kernels of this machine.".to_owned());
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_gateway::Missing;

    fn known(kind: &str, language: &str, next_step: Option<&str>) -> KnownKind {
        KnownKind {
            kind: SessionKind::new(kind).unwrap(),
            name: kind.to_owned(),
            language: Some(language.to_owned()),
            missing: next_step
                .map(|step| Missing { reason: "it is not there".to_owned(), next_step: step.to_owned() }),
            tools: None,
        }
    }

    #[test]
    fn the_kinds_that_there_are_are_listed_and_what_installs_python_is_said_where_it_is_not_there() {
        let cobol = SessionKind::new("cobol").unwrap();
        let install = "Run `mainstay kernel install python`.";
        let without = [known("fsharp", "fsharp", None), known("python", "python", Some(install))];
        assert_eq!(
            next_step(&cobol, &without, Capabilities::of_kind),
            "The kinds that can start here: fsharp. python: Run `mainstay kernel install python`. Other languages come with the Jupyter \
             kernels of this machine."
        );
        let pi = KnownKind { language: None, ..known("pi", "", None) };
        let with = [known("fsharp", "fsharp", None), pi, known("research", "python", None)];
        assert_eq!(
            next_step(&SessionKind::new("python3").unwrap(), &with, Capabilities::of_kind),
            "The kinds that can start here: fsharp, research (python). The kind `python` takes any of Python. Other languages come with the \
             Jupyter kernels of this machine."
        );
        assert!(
            next_step(&cobol, &[], Capabilities::of_kind)
                .contains("`mainstay kernel install python` installs Python.")
        );
    }
}
