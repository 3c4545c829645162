//! What the clients of the protocol have sent in this daemon's life: the answers that the log does not have as they were given, and what
//! their commands were, so that a conflict can name the earlier one. Bounded: the oldest are forgotten.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mainstay_model::Principal;

use super::command::PiCommand;
use super::frames::Response;

/// How many are known. Source: protocols/pi.md, "Limits".
const KNOWN: usize = 2000;

/// Bytes of all answers that are kept; those of the oldest are forgotten first.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// What the name of a key begins with.
const KEY: &str = "key ";

/// Whose, and under which id or key.
type Name = (Principal, String);

/// What was sent before.
#[derive(Default)]
pub(super) struct AnswerCache {
    known: HashMap<Name, KnownCommand>,
    order: VecDeque<Name>,
    /// The answers that are kept, and their bytes.
    answers: VecDeque<(Name, usize)>,
    bytes: usize,
}

struct KnownCommand {
    kind: String,
    fingerprint: String,
    /// The answer, where the log does not have it as it was given.
    answer: Option<Arc<Response>>,
}

/// What is known of a command before it is given to anyone.
#[derive(Debug, PartialEq)]
pub(super) enum CachedAnswer {
    /// Nothing is known of the command.
    New,
    /// It was answered so.
    Answered(Box<Response>),
    /// Its id, or its key, belongs to another command of this kind.
    Taken { by: String, is_key: bool },
}

impl AnswerCache {
    /// What is known of a command.
    pub(super) fn before(&self, principal: &Principal, command: &PiCommand) -> CachedAnswer {
        for (name, is_key) in names(command) {
            let Some(known) = self.known.get(&(principal.clone(), name)) else { continue };
            if known.fingerprint != command.fingerprint {
                return CachedAnswer::Taken { by: known.kind.clone(), is_key };
            }
            if let Some(answer) = &known.answer {
                let id = command.id.as_ref().map(|id| id.as_str().to_owned());
                return CachedAnswer::Answered(Box::new(Response {
                    id,
                    replayed: true,
                    ..Response::clone(answer)
                }));
            }
        }
        CachedAnswer::New
    }

    /// How many commands are known, and under how many keys.
    pub(super) fn counts(&self) -> (usize, usize) {
        let keys = self.known.keys().filter(|(_, name)| name.starts_with(KEY)).count();
        (self.known.len().saturating_sub(keys), keys)
    }

    /// Keeps what was sent, and the answer where that is kept nowhere else.
    pub(super) fn keep(&mut self, principal: &Principal, command: &PiCommand, answer: Option<&Response>) {
        let bytes = answer.and_then(|answer| answer.data.as_ref()).map_or(0, |data| data.to_string().len());
        let answer = answer.filter(|_| bytes <= ANSWER_BYTES).cloned().map(Arc::new);
        for (name, _) in names(command) {
            let name = (principal.clone(), name);
            let known = KnownCommand {
                kind: command.kind.clone(),
                fingerprint: command.fingerprint.clone(),
                answer: answer.clone(),
            };
            if self.known.insert(name.clone(), known).is_none() {
                self.order.push_back(name.clone());
            }
            if answer.is_some() {
                self.answers.push_back((name, bytes));
                self.bytes = self.bytes.saturating_add(bytes);
            }
        }
        while self.order.len() > KNOWN {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
        while self.bytes > ANSWER_BYTES || self.answers.len() > KNOWN {
            let Some((oldest, bytes)) = self.answers.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(bytes);
            if let Some(known) = self.known.get_mut(&oldest) {
                known.answer = None;
            }
        }
    }
}

/// A key is looked up before an id; it is of its session alone.
fn names(command: &PiCommand) -> impl Iterator<Item = (String, bool)> {
    // What creates sessions has keys of its own.
    let session = match command.body.is_creation() {
        true => "",
        false => command.session.as_deref().unwrap_or_default(),
    };
    let key = command.key.as_ref().map(|key| (format!("{KEY}{session} {key}"), true));
    let id = command.id.as_ref().map(|id| (format!("id {id}"), false));
    key.into_iter().chain(id)
}

#[cfg(test)]
mod tests {
    use super::super::decode::decode;
    use super::*;
    use serde_json::json;

    fn command(id: &str, kind: &str) -> PiCommand {
        decode(&json!({ "id": id, "type": kind, "sessionId": "s" })).unwrap()
    }

    #[test]
    fn what_was_read_is_answered_again_and_another_command_under_its_id_is_refused() {
        let (mut seen, local) = (AnswerCache::default(), Principal::local());
        let state = command("1", "get_state");
        assert_eq!(seen.before(&local, &state), CachedAnswer::New);
        let answer = Response::success(Some("1".to_owned()), "get_state", Some(json!({ "x": 1 })));
        seen.keep(&local, &state, Some(&answer));
        let CachedAnswer::Answered(again) = seen.before(&local, &state) else { panic!("it is known") };
        assert!(again.replayed && again.data == answer.data);
        let taken = CachedAnswer::Taken { by: "get_state".to_owned(), is_key: false };
        assert_eq!(seen.before(&local, &command("1", "abort")), taken);
        assert_eq!(seen.before(&Principal::new("ann").unwrap(), &command("1", "abort")), CachedAnswer::New);
    }

    #[test]
    fn only_so_much_is_known() {
        let (mut seen, local) = (AnswerCache::default(), Principal::local());
        for number in 0..=KNOWN {
            seen.keep(&local, &command(&number.to_string(), "abort"), None);
        }
        assert_eq!((seen.known.len(), seen.order.len()), (KNOWN, KNOWN));
        assert_eq!(seen.before(&local, &command("0", "get_state")), CachedAnswer::New);
    }
}
