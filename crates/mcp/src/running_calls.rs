//! Calls under way. A call goes on when it was answered before its end, when its client gave it up at a limit, or is gone: what comes of it is
//! kept until it was told. This is a convenience of one daemon's life: what a call was for is a command, whose outcome is in the log.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use mainstay_model::{AskId, CommandId, Principal, SessionId, Source};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, RequestId};
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What comes of a call.
pub(super) type CallResult = Result<CallToolResult, ErrorData>;

/// Where a call came from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Which connection it came by.
    pub(super) connection: Uuid,
    /// The id of the client's request.
    pub(super) request: RequestId,
    /// Cancelled when the client goes.
    pub(super) closing: CancellationToken,
}

/// One call that is still running.
pub(super) struct RunningCall {
    /// Its id, and that of the command it is for, where it does not go on with another's.
    pub(super) id: CommandId,
    /// The command it goes on with.
    continues: OnceLock<CommandId>,
    /// The client that sent the call.
    source: Source,
    /// What its client called.
    pub(super) tool: String,
    origin: Origin,
    pub(super) began: Instant,
    session: SetOnce<SessionId>,
    /// How far it has come, in the words its client heard last.
    progress: Mutex<Option<String>>,
    /// What its code asks and its client's user has on the screen as a form.
    forms: Mutex<BTreeSet<AskId>>,
    /// Counts what its code asks that its client cannot be shown, or does not show to a person.
    asks: watch::Sender<u64>,
    ended: SetOnce<CallResult>,
    /// Whether its client had no answer when it ended, or another than its end.
    is_left: AtomicBool,
    /// Whether its client gave it up, and its connection is to be told that it goes on.
    is_given_up: AtomicBool,
    /// Whether its connection was told that it has ended.
    is_announced: AtomicBool,
    /// Whether someone was told what came of it.
    is_told: AtomicBool,
}

impl RunningCall {
    /// A call that begins.
    pub(super) fn new(id: CommandId, source: Source, tool: &str, origin: Origin) -> Self {
        Self {
            id,
            continues: OnceLock::new(),
            source,
            tool: tool.to_owned(),
            origin,
            began: Instant::now(),
            session: SetOnce::new(),
            progress: Mutex::new(None),
            forms: Mutex::default(),
            asks: watch::Sender::default(),
            ended: SetOnce::new(),
            is_left: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            is_announced: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
        }
    }

    /// Returns the client that sent the call.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The command it is for.
    pub(super) fn command(&self) -> &CommandId {
        self.continues.get().unwrap_or(&self.id)
    }

    /// Notes the command that it goes on with.
    pub(super) fn go_on_with(&self, command: CommandId) {
        self.continues.get_or_init(|| command);
    }

    /// The session it is about, once that is known.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.session.get().copied()
    }

    /// Notes the session that it is about, where that is not known yet.
    pub(super) fn set_session(&self, session: SessionId) {
        self.session.set(session).ok();
    }

    /// Waits until the session that it is about is known, or it has ended.
    pub(super) async fn has_session(&self) {
        tokio::select! {
            _ = self.session.wait() => {}
            _ = self.ended.wait() => {}
        }
    }

    /// Whether its client has gone.
    pub(super) fn is_client_gone(&self) -> bool {
        self.origin.closing.is_cancelled()
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> Option<String> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes how far it has come.
    pub(super) fn note_progress(&self, progress: &str) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.to_owned());
    }

    /// Word that it is still under way.
    pub(super) fn heartbeat(&self) -> String {
        let seconds = self.began.elapsed().as_secs();
        match self.progress() {
            Some(progress) => format!("{progress} ({seconds} s)"),
            None => format!("{} runs for {seconds} s", self.tool),
        }
    }

    /// Notes that its client's user is shown a form for an ask, until what this gives is dropped.
    pub(super) fn shows_form(&self, ask: AskId) -> Form<'_> {
        self.forms().insert(ask);
        Form { call: self, ask }
    }

    /// Whether its client's user has a form for an ask on the screen, and may be typing.
    pub(super) fn has_form(&self, ask: AskId) -> bool {
        self.forms().contains(&ask)
    }

    fn forms(&self) -> MutexGuard<'_, BTreeSet<AskId>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that its code asks something that only its model, or other people, can answer.
    pub(super) fn note_ask(&self) {
        self.asks.send_modify(|count| *count += 1);
    }

    /// Word of what it asks so from now on.
    pub(super) fn asks(&self) -> watch::Receiver<u64> {
        self.asks.subscribe()
    }

    /// What came of it, once something has.
    pub(super) async fn ended(&self) -> &CallResult {
        self.ended.wait().await
    }

    /// What came of it, where it has ended.
    pub(super) fn end(&self) -> Option<&CallResult> {
        self.ended.get()
    }

    /// Notes that its client has given it up without an answer.
    pub(super) fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        self.leave();
    }

    /// Notes that it was answered before its end.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }
}

/// A form on a person's screen.
pub(super) struct Form<'a> {
    call: &'a RunningCall,
    ask: AskId,
}

impl Drop for Form<'_> {
    fn drop(&mut self) {
        self.call.forms().remove(&self.ask);
    }
}

/// All of them, and those that ended untold.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    by_id: HashMap<Key, Arc<RunningCall>>,
    /// Those that ended and were not told, oldest first.
    untold: VecDeque<Key>,
}

/// Whose call, and which.
type Key = (Principal, CommandId);

fn key_of(call: &RunningCall) -> Key {
    (call.source.principal(), call.id.clone())
}

impl Calls {
    /// Nobody is to be told of a call any more.
    fn forget(&mut self, call: &RunningCall) {
        let key = key_of(call);
        self.by_id.remove(&key);
        self.untold.retain(|untold| *untold != key);
    }
}

impl RunningCalls {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. One that is sent again while it is under way takes its place: their command makes them one.
    pub(super) fn begin(&self, call: &Arc<RunningCall>) {
        self.calls().by_id.insert(key_of(call), Arc::clone(call));
    }

    /// The call has ended so. Of those that nobody was told of, `most` are kept.
    pub(super) fn end(&self, call: &Arc<RunningCall>, ended: CallResult, most: usize) {
        let mut calls = self.calls();
        // It ends once. Who waits for that looks for it only after this.
        call.ended.set(ended).ok();
        let key = key_of(call);
        if calls.by_id.get(&key).is_some_and(|kept| Arc::ptr_eq(kept, call)) {
            calls.untold.push_back(key);
        }
        while calls.untold.len() > most {
            if let Some(oldest) = calls.untold.pop_front() {
                calls.by_id.remove(&oldest);
            }
        }
    }

    /// Notes that what came of the call was told over this connection. Where that is another than the call's, its own client may still ask for it.
    pub(super) fn mark_told(&self, call: &RunningCall, connection: Uuid) {
        call.is_told.store(true, Ordering::Relaxed);
        if call.origin.connection == connection {
            self.calls().forget(call);
        }
    }

    /// Notes that the answer to a request has come to its client.
    pub(super) fn mark_delivered(&self, connection: Uuid, request: &RequestId) {
        let mut calls = self.calls();
        let is_it = |call: &&Arc<RunningCall>| {
            call.origin.connection == connection && call.origin.request == *request && call.end().is_some()
        };
        if let Some(call) = calls.by_id.values().find(is_it).cloned() {
            call.is_told.store(true, Ordering::Relaxed);
            calls.forget(&call);
        }
    }

    /// The call of this principal with this id, or the one that goes on with the command of this id.
    pub(super) fn find(&self, principal: &Principal, id: &CommandId) -> Option<Arc<RunningCall>> {
        let calls = self.calls();
        let is_own = |call: &&Arc<RunningCall>| call.source.principal() == *principal && call.command() == id;
        let key = (principal.clone(), id.clone());
        calls.by_id.get(&key).or_else(|| calls.by_id.values().find(is_own)).cloned()
    }

    /// The calls of a connection that its client gave up, and that go on; each once.
    pub(super) fn given_up(&self, connection: Uuid) -> Vec<Arc<RunningCall>> {
        let calls = self.calls();
        let goes_on = |call: &&Arc<RunningCall>| {
            call.origin.connection == connection
                && call.end().is_none()
                && call.is_given_up.swap(false, Ordering::Relaxed)
        };
        calls.by_id.values().filter(goes_on).cloned().collect()
    }

    /// The calls of a connection that were left and have ended since; each once, and so many at a time.
    pub(super) fn news(&self, connection: Uuid, most: usize) -> Vec<Arc<RunningCall>> {
        let calls = self.calls();
        let of_connection = |call: &&Arc<RunningCall>| {
            call.origin.connection == connection
                && call.is_left.load(Ordering::Relaxed)
                && call.end().is_some()
                && !call.is_announced.load(Ordering::Relaxed)
        };
        let untold = calls.untold.iter().filter_map(|key| calls.by_id.get(key));
        let news: Vec<_> = untold.filter(of_connection).take(most).cloned().collect();
        news.iter().for_each(|call| call.is_announced.store(true, Ordering::Relaxed));
        news
    }

    /// The calls of a principal whose clients have gone, and that have ended and were told to nobody, oldest first.
    pub(super) fn left_by_gone(&self, principal: &Principal) -> Vec<Arc<RunningCall>> {
        let calls = self.calls();
        let is_left = |call: &&Arc<RunningCall>| {
            call.source.principal() == *principal
                && call.is_left.load(Ordering::Relaxed)
                && call.is_client_gone()
                && call.end().is_some()
                && !call.is_told.load(Ordering::Relaxed)
        };
        let untold = calls.untold.iter().filter_map(|key| calls.by_id.get(key));
        untold.filter(is_left).cloned().collect()
    }

    /// The calls of a principal about a session that were left, under way or not told of.
    pub(super) fn left(&self, principal: &Principal, session: SessionId) -> Vec<Arc<RunningCall>> {
        let calls = self.calls();
        let is_left = |call: &&Arc<RunningCall>| {
            call.source.principal() == *principal
                && call.session() == Some(session)
                && call.is_left.load(Ordering::Relaxed)
                && !call.is_told.load(Ordering::Relaxed)
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

    fn ended() -> CallResult {
        Ok(CallToolResult::success(vec![ContentBlock::text("ok")]))
    }

    fn id(number: u128) -> CommandId {
        CommandId::from_uuid(Uuid::from_u128(number))
    }

    fn begun(calls: &RunningCalls, number: u128, connection: Uuid) -> Arc<RunningCall> {
        let origin = Origin {
            connection,
            request: RequestId::Number(i64::try_from(number).unwrap()),
            closing: CancellationToken::new(),
        };
        let call = Arc::new(RunningCall::new(id(number), Source::System, "send_code", origin));
        calls.begin(&call);
        call
    }

    #[test]
    fn who_left_a_call_hears_of_its_end_once_and_finds_what_came_of_it_until_it_was_told() {
        let calls = RunningCalls::default();
        let [here, there] = [1, 2].map(Uuid::from_u128);
        let (local, other) = (Principal::local(), Principal::new("ada").unwrap());
        let call = begun(&calls, 1, here);
        calls.end(&call, ended(), 8);
        assert!(calls.news(here, 9).is_empty(), "its client waits for it");
        call.leave();
        assert!(calls.news(there, 9).is_empty());
        assert_eq!(calls.news(here, 9).len(), 1);
        assert!(calls.news(here, 9).is_empty());
        assert!(calls.find(&other, &id(1)).is_none());
        assert!(calls.find(&local, &id(1)).unwrap().end().is_some());
        calls.mark_told(&call, there);
        assert!(calls.find(&local, &id(1)).is_some(), "its own client was not told");
        calls.mark_told(&call, here);
        assert!(calls.find(&local, &id(1)).is_none());
    }

    #[test]
    fn what_ended_behind_a_client_that_has_gone_is_told_to_others_unless_its_answer_came_through() {
        let calls = RunningCalls::default();
        let here = Uuid::from_u128(1);
        let [lost, delivered] = [begun(&calls, 1, here), begun(&calls, 2, here)];
        for call in [&lost, &delivered] {
            call.origin.closing.cancel();
            calls.end(call, ended(), 8);
            call.leave();
        }
        calls.mark_delivered(here, &RequestId::Number(2));
        calls.mark_delivered(Uuid::from_u128(2), &RequestId::Number(1));
        let left =
            || calls.left_by_gone(&Principal::local()).iter().map(|call| call.id.clone()).collect::<Vec<_>>();
        assert_eq!(left(), [id(1)]);
        assert!(calls.left_by_gone(&Principal::new("ada").unwrap()).is_empty());
        calls.mark_told(&lost, Uuid::from_u128(3));
        assert!(left().is_empty());
    }

    #[test]
    fn what_nobody_asks_for_is_kept_up_to_a_limit() {
        let calls = RunningCalls::default();
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
