//! Secrets that code was answered: what it gives, prints and shows is kept without them.

use serde_json::Value;

use crate::display::Display;
use crate::runner_notice::{JobEnding, JobReport};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Shorter ones are not looked for: too much that is none would be taken for one.
const SHORTEST_BYTES: usize = 4;

/// The secrets that a job's code was answered. Nothing here leaves the process, and nothing prints it.
#[derive(Default)]
pub struct Secrets {
    /// Each as it is, and as it stands in quotes where that differs; the longest first.
    texts: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.texts.len())
    }
}

impl Secrets {
    /// Takes in an answer.
    pub fn add(&mut self, answer: &Value) {
        let Some(text) = answer.as_str().filter(|text| text.len() >= SHORTEST_BYTES) else { return };
        let quoted = [format!("{text:?}"), answer.to_string()];
        let inner = quoted.iter().map(|quoted| quoted.trim_matches('"').to_owned());
        self.texts.extend(inner.chain([text.to_owned()]));
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.texts.dedup();
    }

    /// Forgets all secrets that were noted.
    pub fn clear(&mut self) {
        self.texts.clear();
    }

    /// Takes them out of a text.
    pub fn mask(&self, text: &mut String) {
        for secret in &self.texts {
            if text.contains(secret) {
                *text = text.replace(secret, MASK);
            }
        }
    }

    /// Takes them out of what a job gave.
    pub fn mask_report(&self, report: &mut JobReport) {
        report.result.texts_mut().for_each(|text| self.mask(text));
        if let JobEnding::Raised(raised) = &mut report.ending {
            let stack = raised.stack.clone();
            [&mut raised.message].into_iter().chain(&mut raised.stack).for_each(|text| self.mask(text));
            // Colours may stand in the middle of a secret.
            raised.coloured_stack = raised.coloured_stack.take().filter(|_| raised.stack == stack);
        }
    }

    /// Takes them out of what is shown.
    pub fn mask_display(&self, display: &mut Display) {
        display.data.for_each_text(&mut |text| self.mask(text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::RaisedError;

    use super::*;

    fn masked(secrets: &[&str], text: &str) -> String {
        let mut known = Secrets::default();
        secrets.iter().for_each(|secret| known.add(&json!(secret)));
        let mut text = text.to_owned();
        known.mask(&mut text);
        text
    }

    #[test]
    fn a_secret_is_masked_as_it_is_and_as_it_stands_in_quotes() {
        assert_eq!(masked(&["hunter2"], "'hunter2' is hunter2"), "'***' is ***");
        assert_eq!(masked(&["a\"b\\c"], "\"a\\\"b\\\\c\", a\"b\\c"), "\"***\", ***");
    }

    #[test]
    fn the_longer_of_two_is_masked_whole_and_one_that_is_too_short_is_not() {
        assert_eq!(masked(&["pass", "password"], "password pass"), "*** ***");
        assert_eq!(masked(&["no"], "nothing"), "nothing");
    }

    #[test]
    fn nobody_is_told_what_they_are() {
        let mut secrets = Secrets::default();
        secrets.add(&json!("hunter2"));
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn a_secret_that_colours_part_is_not_kept() {
        let colours = |stack: &str| {
            let error = RaisedError {
                kind: "E".to_owned(),
                message: "no".to_owned(),
                stack: Some(stack.to_owned()),
                coloured_stack: Some(format!("{}\u{1b}[0m{}", &stack[..3], &stack[3..])),
            };
            let ending = JobEnding::Raised(error);
            let took = std::time::Duration::ZERO;
            let result = crate::EvalResult::default();
            let mut report = JobReport { ending, result, changes_state: true, took, references: None };
            let mut secrets = Secrets::default();
            secrets.add(&json!("hunter2"));
            secrets.mask_report(&mut report);
            match report.ending {
                JobEnding::Raised(error) => (error.stack, error.coloured_stack.is_some()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(colours("hunter2"), (Some("***".to_owned()), false));
        assert_eq!(colours("hunters"), (Some("hunters".to_owned()), true));
    }

    #[test]
    fn every_form_of_what_is_shown_is_masked() {
        let forms = json!({
            "text/plain": "hunter2", "text/html": "<b>hunter2</b>", "application/json": { "a": ["hunter2"] },
        });
        let data = serde_json::from_value(forms).unwrap();
        let mut display = Display { id: None, is_value: true, is_update: false, is_in_place: false, data };
        let mut secrets = Secrets::default();
        secrets.add(&json!("hunter2"));
        secrets.mask_display(&mut display);
        assert!(!serde_json::to_string(&display).unwrap().contains("hunter2"));
    }
}
