//! Whether code that was typed is finished, where its kernel knows the language and we do not.

use std::sync::mpsc;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_protocol::operations::IsComplete;
use mainstay_runner::query::Completeness;
use tokio::runtime::Handle;

use crate::completion::{CompletionContext, Source};

/// How long Enter waits for a kernel's word, which one that runs code may not give.
const PATIENCE: Duration = Duration::from_millis(250);
/// A line that ends like this goes on in most languages.
const OPEN_ENDS: [&str; 12] = ["{", "(", "[", ",", "\\", ":", "=", "=>", "do", "then", "else", "|"];

/// Asks the session's kernel.
pub(crate) struct CompletenessCheck {
    source: Source,
    runtime: Handle,
}

impl CompletenessCheck {
    /// Asks whom `source` names, on `runtime`.
    pub(crate) const fn new(source: Source, runtime: Handle) -> Self {
        Self { source, runtime }
    }

    /// What the next line begins with; none where there is none, and the code runs.
    pub(crate) fn next_line(&self, code: &str) -> Option<String> {
        let code = without_mere_indentation(code);
        if code.trim().is_empty() {
            return None;
        }
        let asked = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match asked.and_then(|asked| self.ask(asked, code)).unwrap_or(Completeness::Unknown) {
            Completeness::Complete | Completeness::Invalid => None,
            Completeness::Incomplete { indent } => Some(indent),
            Completeness::Unknown => goes_on(code).then(|| indentation(code).to_owned()),
        }
    }

    fn ask(&self, asked: CompletionContext, code: &str) -> Option<Completeness> {
        let (sender, answer) = mpsc::channel();
        let request = IsComplete { session: asked.session.to_string(), code: code.to_owned() };
        let client = Arc::clone(&asked.client);
        self.runtime.spawn(async move {
            // Nobody waits for it any more where it takes too long.
            client.call(request).await.map(|told| sender.send(told)).ok();
        });
        answer.recv_timeout(PATIENCE).ok()
    }
}

/// The editor begins a line with its indentation; a line of nothing else is an empty one.
fn without_mere_indentation(code: &str) -> &str {
    let trimmed = code.trim_end_matches([' ', '\t']);
    if trimmed.ends_with('\n') { trimmed } else { code }
}

/// As far as can be told of any language: several lines end with an empty one.
fn goes_on(code: &str) -> bool {
    match code.rsplit_once('\n') {
        Some((_, last)) => !last.is_empty(),
        None => {
            let line = code.trim_end();
            let ends_with = |end: &str| match end.starts_with(char::is_alphabetic) {
                true => line.split_whitespace().next_back() == Some(end),
                false => line.ends_with(end),
            };
            OPEN_ENDS.iter().any(|end| ends_with(end))
        }
    }
}

/// What the last line of some code begins with.
pub(crate) fn indentation(code: &str) -> &str {
    let line = code.rsplit('\n').next().unwrap_or_default();
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_kernel_a_line_runs_unless_it_is_open_and_several_end_with_an_empty_one() {
        for code in ["f(1,", "for x in xs:", "if true; then", "function f() {", "a = \\", "for (;;) {\n  x"] {
            assert!(goes_on(code), "{code}");
        }
        for code in ["f(1)", "x = 1", "undo", "ls -l", "for x in xs:\n    f(x)\n"] {
            assert!(!goes_on(code), "{code}");
        }
    }

    #[test]
    fn a_line_of_blanks_is_an_empty_one() {
        assert_eq!(without_mere_indentation("def f():\n    1\n    "), "def f():\n    1\n");
        assert_eq!(without_mere_indentation("x = 1  "), "x = 1  ");
        assert_eq!(indentation("def f():\n    1"), "    ");
    }
}
