//! What the load was told: every command it sent, and what came of it. A command's second answer must be its first.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::random::Random;

/// How much of an answer is kept to be shown.
const SHOWN: usize = 300;

/// What an eval gives wherever it runs to its end, and whether it may end by itself otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// The code returns this value.
    Value(String),
    /// The code defines a name.
    Defines,
    /// The value that a definition gave, unless the session was reset between; then an error.
    Recalls {
        /// The command that defined it.
        defined_by: String,
        /// The value that the name must have.
        value: String,
    },
    /// So many bytes on its standard output.
    Prints(usize),
    /// The code raises an exception.
    Raises,
    /// It never runs to its end.
    Endless,
    /// It is refused with this code once its turn has come.
    Fails(&'static str),
}

/// An answer, in the form in which two can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    digest: u64,
    shown: String,
    /// How the eval ended, or the code of the error.
    pub(super) ending: String,
}

impl Answer {
    /// Of what `session/eval` gave. The command's own name is left out: under its key it has others.
    pub(super) fn of_eval(view: &Value) -> Self {
        let mut view = view.clone();
        if let Some(members) = view.as_object_mut() {
            members.remove("replayed");
            members.remove("command");
        }
        Self::new(&view, view["ending"].as_str().unwrap_or_default())
    }

    /// Of an error that is the command's outcome.
    pub(super) fn of_error(code: &str, error: &Value) -> Self {
        Self::new(error, code)
    }

    fn new(said: &Value, ending: &str) -> Self {
        let text = said.to_string();
        Self { digest: digest(&text), shown: text.chars().take(SHOWN).collect(), ending: ending.to_owned() }
    }
}

/// A number that is another for another text.
pub(super) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A command that was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// What `session/eval` was called with, its id among it.
    pub(super) params: Value,
    /// What was expected of it.
    pub(super) promise: Promise,
    /// What was answered, once something was.
    pub(super) answer: Option<Answer>,
    outcome: Option<u64>,
}

/// All of them, by id.
#[derive(Default)]
pub(super) struct Book {
    commands: HashMap<String, Sent>,
    ids: Vec<String>,
}

impl Book {
    /// Notes a command before it is sent.
    pub(super) fn send(&mut self, id: &str, params: Value, promise: Promise) {
        self.commands.insert(id.to_owned(), Sent { params, promise, answer: None, outcome: None });
        self.ids.push(id.to_owned());
    }

    /// Notes an answer. Says what is wrong with it: it is another than before, or than was promised.
    pub(super) fn answer(&mut self, id: &str, answer: Answer, view: Option<&Value>) -> Result<(), String> {
        let Some(sent) = self.commands.get_mut(id) else { return Ok(()) };
        if let Some(first) = &sent.answer {
            return if *first == answer {
                Ok(())
            } else {
                Err(format!("`{id}` was answered {}, and then {}", first.shown, answer.shown))
            };
        }
        let kept = keeps(&sent.promise, &answer.ending, view);
        let code = sent.params["code"].clone();
        let said = answer.shown.clone();
        sent.answer = Some(answer);
        kept.map_err(|expected| format!("`{id}` ({code}) should have {expected}, and was answered {said}"))
    }

    /// Notes what the daemon has stored for a command. Says where that has changed.
    pub(super) fn outcome(&mut self, id: &str, stored: &Value) -> Result<(), String> {
        let Some(sent) = self.commands.get_mut(id) else { return Ok(()) };
        let text = stored.to_string();
        let known = *sent.outcome.get_or_insert(digest(&text));
        if known == digest(&text) {
            Ok(())
        } else {
            Err(format!("`{id}` has another outcome than before: {text}"))
        }
    }

    /// Whether a command was answered.
    pub(super) fn is_answered(&self, id: &str) -> bool {
        self.commands.get(id).is_some_and(|sent| sent.answer.is_some())
    }

    /// Forgets a command that was refused before it was accepted: its id is free.
    pub(super) fn forget(&mut self, id: &str) {
        self.commands.remove(id);
    }

    /// One of the commands that were sent, a recent one as often as any other.
    pub(super) fn any(&self, random: &mut Random) -> Option<(String, Sent)> {
        let recent = self.ids.len().saturating_sub(50);
        let among = if random.chance(50) { &self.ids[recent..] } else { &self.ids[..] };
        let id = random.pick(among)?;
        Some((id.clone(), self.commands.get(id)?.clone()))
    }

    /// The ids of all that were not refused, in the order in which they were sent.
    pub(super) fn ids(&self) -> Vec<String> {
        self.ids.iter().filter(|id| self.commands.contains_key(*id)).cloned().collect()
    }

    /// Returns what was sent under the id.
    pub(super) fn get(&self, id: &str) -> Option<&Sent> {
        self.commands.get(id)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.commands.len()
    }
}

/// Endings that any eval may have: someone cancelled it, or its worker or the daemon was lost; or, before it began, its session was
/// stopped, or what it depended on did not end well, or waits behind it.
const FROM_OUTSIDE: [&str; 9] = [
    "cancelled",
    "interrupted",
    "workerExited",
    "session_stopped",
    "dependency_failed",
    "dependency_pending",
    "dependency_unknown",
    "dependency_in_lane",
    "dependency_cycle",
];

/// Says what was promised where an answer does not keep it.
fn keeps(promise: &Promise, ending: &str, view: Option<&Value>) -> Result<(), String> {
    let has = |member: &str| view.and_then(|view| view[member].as_str()).unwrap_or_default().to_owned();
    let (is_kept, expected) = match promise {
        Promise::Value(value) => (ending == "completed" && has("value") == *value, format!("given {value}")),
        Promise::Defines => (ending == "completed", "defined a value".to_owned()),
        Promise::Recalls { value, .. } => {
            let gave = ending == "completed" && has("value") == *value;
            (gave || ending == "rejected", format!("given {value}, or an error after a reset"))
        }
        Promise::Prints(bytes) => {
            (ending == "completed" && has("stdout").len() == *bytes, format!("printed {bytes} bytes"))
        }
        Promise::Raises => (ending == "raised", "thrown".to_owned()),
        Promise::Endless => (ending == "timed_out", "been cancelled, or timed out".to_owned()),
        Promise::Fails(code) => (ending == *code, format!("failed with {code}")),
    };
    if is_kept || FROM_OUTSIDE.contains(&ending) { Ok(()) } else { Err(expected) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn completed(value: &str) -> Value {
        json!({ "command": "a", "ending": "completed", "value": value, "stdout": "12\n" })
    }

    fn book(promise: Promise) -> Book {
        let mut book = Book::default();
        book.send("a", json!({ "code": "1 + 1" }), promise);
        book
    }

    fn answer(book: &mut Book, view: &Value) -> Result<(), String> {
        book.answer("a", Answer::of_eval(view), Some(view))
    }

    #[test]
    fn the_second_answer_must_be_the_first() {
        let mut book = book(Promise::Value("2".to_owned()));
        answer(&mut book, &completed("2")).unwrap();
        let mut replay = completed("2");
        replay["replayed"] = json!(true);
        replay["command"] = json!("of the same key");
        answer(&mut book, &replay).unwrap();
        assert!(answer(&mut book, &completed("3")).unwrap_err().contains("and then"));
        let lost = Answer::of_error("session_stopped", &json!({ "error": "session_stopped" }));
        assert!(book.answer("a", lost, None).is_err());
    }

    #[test]
    fn a_stored_outcome_must_stay() {
        let mut book = book(Promise::Defines);
        book.outcome("a", &json!(1)).unwrap();
        book.outcome("a", &json!(1)).unwrap();
        assert!(book.outcome("a", &json!(2)).is_err());
    }

    #[test]
    fn an_answer_must_keep_the_promise_unless_something_came_from_outside() {
        let ending = |ending: &str| json!({ "ending": ending });
        let cases = [
            (Promise::Value("2".to_owned()), completed("2"), completed("3")),
            (Promise::Value("2".to_owned()), ending("interrupted"), ending("rejected")),
            (Promise::Prints(3), completed(""), ending("completed")),
            (Promise::Raises, ending("raised"), completed("2")),
            (Promise::Endless, ending("cancelled"), completed("2")),
            (Promise::Endless, ending("timed_out"), ending("raised")),
            (Promise::Defines, ending("session_stopped"), ending("timed_out")),
            (Promise::Fails("version_mismatch"), ending("version_mismatch"), completed("2")),
            (Promise::Defines, completed(""), ending("rejected")),
        ];
        for (promise, good, bad) in cases {
            answer(&mut book(promise.clone()), &good).unwrap();
            assert!(answer(&mut book(promise.clone()), &bad).is_err(), "{promise:?}");
        }
    }

    #[test]
    fn what_was_refused_is_forgotten() {
        let mut book = book(Promise::Defines);
        assert!(!book.is_answered("a"));
        book.forget("a");
        assert!(book.ids().is_empty());
        assert_eq!(book.count(), 0);
    }
}
