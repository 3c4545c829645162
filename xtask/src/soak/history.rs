//! What was seen of the sessions' events: each session's gapless, each event once to a follower, and the same to everyone, also after
//! the daemon was lost. The whole log, read at the end, is held against what commands were answered.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::book::{Book, Promise, digest};

/// A follower's cursor in one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor(pub(super) u64);

impl Cursor {
    /// Goes on to an event. Says where it is not the next.
    pub(super) fn advance(&mut self, event: &Value) -> Result<(), String> {
        let seq = event["seq"].as_u64().unwrap_or_default();
        let before = self.0;
        // Past a gap too: it is told once.
        self.0 = before.max(seq);
        if seq == before + 1 {
            return Ok(());
        }
        Err(format!("after #{before} of session {} came #{seq}", event["session"]))
    }
}

/// A follower's cursors over all sessions.
#[derive(Default)]
pub(super) struct Cursors {
    position: u64,
    sessions: HashMap<String, Cursor>,
}

impl Cursors {
    /// The cursor of the log.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The cursor in one session.
    pub(super) fn of(&self, session: &str) -> Cursor {
        self.sessions.get(session).copied().unwrap_or_default()
    }

    /// Goes on to an event of whichever session. Says where it is not the next of its session, or not later in the log.
    pub(super) fn advance(&mut self, event: &Value) -> Result<(), String> {
        let position = event["position"].as_u64().unwrap_or_default();
        if position <= self.position {
            return Err(format!("after position {} of the log came {position}", self.position));
        }
        self.position = position;
        self.sessions
            .entry(event["session"].as_str().unwrap_or_default().to_owned())
            .or_default()
            .advance(event)
    }
}

/// Every event that anyone has seen.
#[derive(Default)]
pub(super) struct EventHistory {
    sessions: HashMap<String, Vec<u64>>,
    seen: u64,
}

/// Stands where an event was not seen yet.
const UNSEEN: u64 = 0;

impl EventHistory {
    /// Notes an event. Says where someone has seen it otherwise.
    pub(super) fn see(&mut self, event: &Value) -> Result<(), String> {
        self.seen += 1;
        let session = event["session"].as_str().unwrap_or_default();
        let seq = usize::try_from(event["seq"].as_u64().unwrap_or_default()).unwrap_or_default();
        let events = self.sessions.entry(session.to_owned()).or_default();
        if events.len() <= seq {
            events.resize(seq + 1, UNSEEN);
        }
        let (known, now) = (events[seq], digest(&event.to_string()));
        events[seq] = now;
        if known == UNSEEN || known == now {
            return Ok(());
        }
        Err(format!("#{seq} of session {session} was seen otherwise before: it is {event}"))
    }

    /// The newest event of a session that anyone has seen.
    fn newest(&self, session: &str) -> u64 {
        self.sessions.get(session).map_or(0, |events| events.len().saturating_sub(1) as u64)
    }

    /// How many events were delivered to anyone.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }
}

/// The whole log, read once from its beginning.
#[derive(Default)]
pub(super) struct Transcript {
    cursors: Cursors,
    events: u64,
    requested: HashMap<String, u64>,
    completed: HashMap<String, u64>,
    accepted: HashSet<String>,
    resets: HashMap<String, Vec<u64>>,
    /// The sessions whose workers are being brought up.
    warming_up: HashSet<String>,
    /// Where jobs were interrupted last.
    interrupted: HashMap<String, u64>,
}

impl Transcript {
    /// The cursor of the next page.
    pub(super) fn position(&self) -> u64 {
        self.cursors.position()
    }

    /// How many events there are.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The commands that were accepted.
    pub(super) fn accepted(&self) -> &HashSet<String> {
        &self.accepted
    }

    /// Reads one event more. Says what is wrong with it.
    pub(super) fn read(&mut self, event: &Value, story: &mut EventHistory) -> Result<(), String> {
        self.events += 1;
        self.cursors.advance(event)?;
        story.see(event)?;
        let seq = event["seq"].as_u64().unwrap_or_default();
        let session = event["session"].as_str().unwrap_or_default().to_owned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["kind"].as_str().unwrap_or_default() {
            "commandQueued" => drop(self.accepted.insert(text(&event["body"]["command"]))),
            "evalRequested" => {
                let command = text(&event["body"]["command"]);
                self.accepted.insert(command.clone());
                if let Some(first) = self.requested.insert(command.clone(), seq) {
                    return Err(format!(
                        "`{command}` ran twice in session {session}: at #{first} and at #{seq}"
                    ));
                }
            }
            "evalCompleted" => drop(self.completed.insert(text(&event["correlation"]), seq)),
            "sessionReset" | "sessionHardReset" => self.resets.entry(session).or_default().push(seq),
            _ => {}
        }
        self.go_on(event)
    }

    /// Notes what an event says of the session's worker. Where a daemon was lost, no job is interrupted, and no worker ended that was up.
    fn go_on(&mut self, event: &Value) -> Result<(), String> {
        let seq = event["seq"].as_u64().unwrap_or_default();
        let session = event["session"].as_str().unwrap_or_default();
        match event["kind"].as_str().unwrap_or_default() {
            "warmUpStarted" if event["body"]["reason"] == "daemonLost" => {
                if self.interrupted.get(session) == Some(&(seq - 1)) {
                    return Err(format!(
                        "the loss of a daemon interrupted a job, at #{seq} of session {session}"
                    ));
                }
                if self.warming_up.insert(session.to_owned()) {
                    return Err(format!(
                        "the loss of a daemon cost a worker, at #{seq} of session {session}"
                    ));
                }
            }
            "warmUpStarted" | "sessionReset" | "sessionHardReset" => {
                self.warming_up.insert(session.to_owned());
            }
            "warmUpCompleted" | "sessionStopped" | "sessionFaulted" => {
                self.warming_up.remove(session);
            }
            "evalInterrupted" => drop(self.interrupted.insert(session.to_owned(), seq)),
            _ => {}
        }
        Ok(())
    }

    /// What was seen and is not in the log.
    pub(super) fn lost(&self, story: &EventHistory) -> Vec<String> {
        let newer = |session: &&String| story.newest(session) > self.cursors.of(session).0;
        story
            .sessions
            .keys()
            .filter(newer)
            .map(|session| {
                let (seen, stored) = (story.newest(session), self.cursors.of(session).0);
                format!("#{seen} of session {session} was seen, and its log ends with #{stored}")
            })
            .collect()
    }

    /// The values that were recalled otherwise than the sessions' stories say, and how many were looked at: what a completed command
    /// defined is there until the next reset, and gone after it.
    pub(super) fn recalled(&self, book: &Book) -> (u64, Vec<String>) {
        let (mut looked_at, mut wrong) = (0, Vec::new());
        for id in book.ids() {
            let Some(sent) = book.get(&id) else { continue };
            let Promise::Recalls { defined_by, .. } = &sent.promise else { continue };
            let ending = sent.answer.as_ref().map_or("", |answer| &answer.ending);
            let (Some(defined), Some(asked)) = (self.completed.get(defined_by), self.requested.get(&id))
            else {
                continue;
            };
            let session = sent.params["session"].as_str().unwrap_or_default();
            let is_gone = self
                .resets
                .get(session)
                .is_some_and(|resets| resets.iter().any(|reset| (defined..asked).contains(&reset)));
            looked_at += 1;
            match (ending, is_gone) {
                ("completed", true) => wrong.push(format!("`{id}` found what `{defined_by}` had defined before a reset")),
                ("rejected", false) => wrong.push(format!("`{id}` (#{asked} of session {session}) did not find what `{defined_by}` had defined at #{defined}")),
                _ => {}
            }
        }
        (looked_at, wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::book::Answer;
    use serde_json::json;

    fn event(position: u64, session: &str, seq: u64, kind: &str, command: &str) -> Value {
        json!({ "position": position, "session": session, "seq": seq, "kind": kind, "correlation": command,
                "body": { "command": command } })
    }

    #[test]
    fn a_follower_gets_each_event_of_a_session_once_and_in_order() {
        let at = |seq| event(seq, "s", seq, "", "");
        let mut cursor = Cursor(3);
        cursor.advance(&at(4)).unwrap();
        assert!(cursor.advance(&at(4)).is_err());
        cursor.advance(&at(5)).unwrap();
        assert!(cursor.advance(&at(7)).is_err());
        cursor.advance(&at(8)).unwrap();
    }

    #[test]
    fn over_all_sessions_events_come_in_the_order_of_the_log() {
        let mut cursors = Cursors::default();
        cursors.advance(&event(1, "a", 1, "", "")).unwrap();
        cursors.advance(&event(2, "b", 1, "", "")).unwrap();
        cursors.advance(&event(4, "a", 2, "", "")).unwrap();
        assert!(cursors.advance(&event(3, "b", 2, "", "")).is_err());
        assert!(cursors.advance(&event(5, "b", 3, "", "")).is_err());
    }

    #[test]
    fn an_event_is_the_same_to_everyone() {
        let mut story = EventHistory::default();
        story.see(&event(1, "a", 1, "x", "")).unwrap();
        story.see(&event(1, "a", 1, "x", "")).unwrap();
        assert!(story.see(&event(1, "a", 1, "y", "")).is_err());
    }

    #[test]
    fn what_was_seen_must_be_in_the_log() {
        let (mut story, mut transcript) = (EventHistory::default(), Transcript::default());
        for seq in 1..=2 {
            story.see(&event(seq, "a", seq, "", "")).unwrap();
        }
        transcript.read(&event(1, "a", 1, "", ""), &mut story).unwrap();
        assert_eq!(transcript.lost(&story).len(), 1);
        transcript.read(&event(2, "a", 2, "", ""), &mut story).unwrap();
        assert!(transcript.lost(&story).is_empty());
    }

    #[test]
    fn a_command_runs_once() {
        let (mut story, mut transcript) = (EventHistory::default(), Transcript::default());
        transcript.read(&event(1, "a", 1, "evalRequested", "c"), &mut story).unwrap();
        assert!(transcript.accepted().contains("c"));
        let again = transcript.read(&event(2, "a", 2, "evalRequested", "c"), &mut story);
        assert!(again.unwrap_err().contains("ran twice"));
    }

    #[test]
    fn the_loss_of_a_daemon_interrupts_nothing_and_costs_no_worker_that_is_up() {
        let read = |kinds: &[&str]| {
            let (mut story, mut transcript) = (EventHistory::default(), Transcript::default());
            let read = (1..).zip(kinds).map(|(seq, kind)| {
                let mut event = event(seq, "a", seq, kind, "");
                if *kind == "daemonLost" {
                    event["kind"] = json!("warmUpStarted");
                    event["body"]["reason"] = json!("daemonLost");
                }
                transcript.read(&event, &mut story)
            });
            read.collect::<Result<Vec<_>, _>>().map(drop)
        };
        read(&["warmUpStarted", "daemonLost", "warmUpCompleted"]).unwrap();
        read(&["warmUpCompleted", "evalInterrupted", "workerExited", "warmUpStarted"]).unwrap();
        read(&["warmUpCompleted", "sessionReset", "daemonLost"]).unwrap();
        assert!(read(&["warmUpCompleted", "daemonLost"]).unwrap_err().contains("cost a worker"));
        let interrupted = read(&["warmUpStarted", "evalInterrupted", "daemonLost"]);
        assert!(interrupted.unwrap_err().contains("interrupted a job"));
    }

    /// What is said of a value that was defined at #2 and asked for at #4, with this event at #3.
    fn recalled(between: &str, ending: &str) -> Vec<String> {
        let (mut story, mut transcript, mut book) =
            (EventHistory::default(), Transcript::default(), Book::default());
        let kinds =
            [("evalRequested", "def"), ("evalCompleted", "def"), (between, ""), ("evalRequested", "ask")];
        for (seq, (kind, command)) in (1..).zip(kinds) {
            transcript.read(&event(seq, "a", seq, kind, command), &mut story).unwrap();
        }
        let promise = Promise::Recalls { defined_by: "def".to_owned(), value: "1".to_owned() };
        book.send("ask", json!({ "session": "a" }), promise);
        let view = json!({ "ending": ending, "value": "1" });
        book.answer("ask", Answer::of_eval(&view), Some(&view)).unwrap();
        let (looked_at, wrong) = transcript.recalled(&book);
        assert_eq!(looked_at, 1);
        wrong
    }

    #[test]
    fn what_was_defined_is_there_until_the_next_reset() {
        assert!(recalled("workerExited", "completed").is_empty());
        assert_eq!(recalled("workerExited", "rejected").len(), 1);
        for reset in ["sessionReset", "sessionHardReset"] {
            assert!(recalled(reset, "rejected").is_empty());
            assert_eq!(recalled(reset, "completed").len(), 1);
        }
        assert!(recalled("sessionReset", "cancelled").is_empty());
    }
}
