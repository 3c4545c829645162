//! Calls under way. A call goes on when it was answered before its end, when its client gave it up at a limit, or is gone: what comes of it is
//! kept until it was told. This is a convenience of one daemon's life: what a call was for is a command, whose outcome is in the log.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use mainstay_model::{CommandId, Principal, SessionId};
use rmcp::ErrorData;
use rmcp::model::CallToolResult;
use tokio::sync::{Notify, SetOnce};
use uuid::Uuid;

/// What comes of a call.
pub(super) type Ended = Result<CallToolResult, ErrorData>;

/// One call.
pub(super) struct UnderWay {
    /// Its id, and that of the command it is for, where it does not go on with another's.
    pub(super) id: CommandId,
    /// The command it goes on with.
    continues: OnceLock<CommandId>,
    principal: Principal,
    /// What its client called.
    pub(super) tool: String,
    /// Which connection it came by.
    connection: Uuid,
    pub(super) began: Instant,
    session: OnceLock<SessionId>,
    /// How far it has come, in the words its client heard last.
    progress: Mutex<Option<String>>,
    /// Told when its code asks something that its client cannot be shown, or does not show to a person.
    asks: Notify,
    ended: SetOnce<Ended>,
    /// Whether its client had no answer when it ended, or another than its end.
    is_left: AtomicBool,
    /// Whether its connection was told that it has ended.
    is_announced: AtomicBool,
}

impl UnderWay {
    /// A call that begins.
    pub(super) fn new(id: CommandId, principal: Principal, tool: &str, connection: Uuid) -> Self {
        Self {
            id,
            continues: OnceLock::new(),
            principal,
            tool: tool.to_owned(),
            connection,
            began: Instant::now(),
            session: OnceLock::new(),
            progress: Mutex::new(None),
            asks: Notify::new(),
            ended: SetOnce::new(),
            is_left: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
        }
    }

    /// The command it is for.
    pub(super) fn command(&self) -> &CommandId {
        self.continues.get().unwrap_or(&self.id)
    }

    /// It goes on with this command.
    pub(super) fn continues(&self, command: CommandId) {
        self.continues.get_or_init(|| command);
    }

    /// The session it is about, once that is known.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session.get().copied()
    }

    /// It is about this session.
    pub(super) fn is_about(&self, session: SessionId) {
        self.session.get_or_init(|| session);
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> Option<String> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It has come so far.
    pub(super) fn has_come(&self, progress: &str) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.to_owned());
    }

    /// Word that it is still under way.
    pub(super) fn pulse(&self) -> String {
        let seconds = self.began.elapsed().as_secs();
        match self.progress() {
            Some(progress) => format!("{progress} ({seconds} s)"),
            None => format!("{} runs for {seconds} s", self.tool),
        }
    }

    /// Its code asks something that only its model, or other people, can answer.
    pub(super) fn asks(&self) {
        self.asks.notify_one();
    }

    /// Waits until it asks so.
    pub(super) async fn asked(&self) {
        self.asks.notified().await;
    }

    /// What came of it, once something has.
    pub(super) async fn ended(&self) -> &Ended {
        self.ended.wait().await
    }

    /// What came of it, where it has ended.
    pub(super) fn end(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// It was answered before its end, or is given up.
    pub(super) fn is_left(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }
}

/// All of them, and those that ended untold.
#[derive(Default)]
pub(super) struct CallsUnderWay(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    by_id: HashMap<CommandId, Arc<UnderWay>>,
    /// Those that ended and were not told, oldest first.
    untold: VecDeque<CommandId>,
}

impl CallsUnderWay {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. One that is sent again while it is under way takes its place: their command makes them one.
    pub(super) fn begin(&self, call: &Arc<UnderWay>) {
        self.calls().by_id.insert(call.id.clone(), Arc::clone(call));
    }

    /// The call has ended so. Of those that nobody was told of, `most` are kept.
    pub(super) fn end(&self, call: &UnderWay, ended: Ended, most: usize) {
        // It ends once.
        call.ended.set(ended).ok();
        let mut calls = self.calls();
        calls.untold.push_back(call.id.clone());
        while calls.untold.len() > most {
            if let Some(oldest) = calls.untold.pop_front() {
                calls.by_id.remove(&oldest);
            }
        }
    }

    /// What came of the call was told, by this connection. Where that is another than the call's, its own client is still to hear it.
    pub(super) fn is_told(&self, call: &UnderWay, connection: Uuid) {
        if call.connection != connection {
            return;
        }
        let mut calls = self.calls();
        calls.by_id.remove(&call.id);
        calls.untold.retain(|id| *id != call.id);
    }

    /// The call of this principal with this id, or the one that goes on with the command of this id.
    pub(super) fn find(&self, principal: &Principal, id: &CommandId) -> Option<Arc<UnderWay>> {
        let calls = self.calls();
        let going_on = || calls.by_id.values().find(|call| call.command() == id);
        calls.by_id.get(id).or_else(going_on).filter(|call| call.principal == *principal).cloned()
    }

    /// The calls of a connection that were left and have ended since; each once.
    pub(super) fn news(&self, connection: Uuid) -> Vec<Arc<UnderWay>> {
        let calls = self.calls();
        let of_connection = |call: &&Arc<UnderWay>| {
            call.connection == connection
                && call.is_left.load(Ordering::Relaxed)
                && call.end().is_some()
                && !call.is_announced.swap(true, Ordering::Relaxed)
        };
        let untold = calls.untold.iter().filter_map(|id| calls.by_id.get(id));
        untold.filter(of_connection).cloned().collect()
    }

    /// The calls of a principal about a session that were left, under way or not told of.
    pub(super) fn left(&self, principal: &Principal, session: SessionId) -> Vec<Arc<UnderWay>> {
        let calls = self.calls();
        let is_left = |call: &&Arc<UnderWay>| {
            call.principal == *principal
                && call.session() == Some(session)
                && call.is_left.load(Ordering::Relaxed)
        };
        let mut left: Vec<_> = calls.by_id.values().filter(is_left).cloned().collect();
        left.sort_by_key(|call| call.began);
        left
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;

    use super::*;

    fn ended() -> Ended {
        Ok(CallToolResult::success(vec![ContentBlock::text("ok")]))
    }

    fn id(number: u128) -> CommandId {
        CommandId::from_uuid(Uuid::from_u128(number))
    }

    fn begun(calls: &CallsUnderWay, number: u128, connection: Uuid) -> Arc<UnderWay> {
        let call = Arc::new(UnderWay::new(id(number), Principal::local(), "send_code", connection));
        calls.begin(&call);
        call
    }

    #[test]
    fn who_left_a_call_hears_of_its_end_once_and_finds_what_came_of_it_until_it_was_told() {
        let calls = CallsUnderWay::default();
        let [here, there] = [1, 2].map(Uuid::from_u128);
        let (local, other) = (Principal::local(), Principal::new("ada").unwrap());
        let call = begun(&calls, 1, here);
        calls.end(&call, ended(), 8);
        assert!(calls.news(here).is_empty(), "its client waits for it");
        call.is_left();
        assert!(calls.news(there).is_empty());
        assert_eq!(calls.news(here).len(), 1);
        assert!(calls.news(here).is_empty());
        assert!(calls.find(&other, &id(1)).is_none());
        assert!(calls.find(&local, &id(1)).unwrap().end().is_some());
        calls.is_told(&call, there);
        assert!(calls.find(&local, &id(1)).is_some(), "its own client was not told");
        calls.is_told(&call, here);
        assert!(calls.find(&local, &id(1)).is_none());
    }

    #[test]
    fn what_nobody_asks_for_is_kept_up_to_a_limit() {
        let calls = CallsUnderWay::default();
        let local = Principal::local();
        let running = begun(&calls, 0, Uuid::nil());
        for number in 1..=5 {
            let call = begun(&calls, number, Uuid::nil());
            calls.end(&call, ended(), 2);
        }
        let found: Vec<bool> = (0..=5).map(|number| calls.find(&local, &id(number)).is_some()).collect();
        assert_eq!(found, [true, false, false, false, true, true], "{}", running.id);
    }
}
