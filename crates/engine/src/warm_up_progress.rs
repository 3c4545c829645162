//! How far sessions are that warm up. That is no fact: it is stored nowhere, known while a worker comes up, and of what is said of it a
//! slow follower hears only the newest.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_model::SessionId;
use mainstay_runner::progress::WarmUpProgress;
use tokio::sync::watch;

use crate::sync::time::{Instant, sleep_until};
use crate::sync::{Mutex, MutexGuard};

/// A follower hears no more often of it.
const INTERVAL: Duration = Duration::from_millis(100);

type Channels = HashMap<SessionId, watch::Sender<Option<WarmUpProgress>>>;

/// The sessions that warm up, and those whose followers would hear of it.
#[derive(Default)]
pub(crate) struct WarmUps {
    channels: Mutex<Channels>,
}

impl WarmUps {
    /// A session warms up; it does so until what this gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>, session: SessionId) -> WarmingUp {
        WarmingUp { session, warm_ups: Arc::clone(self) }
    }

    /// How far a session is.
    pub(crate) fn of(&self, session: SessionId) -> Option<WarmUpProgress> {
        *self.lock().get(&session)?.borrow()
    }

    /// Follows what is said of a session from how it is now.
    pub(crate) fn follow(self: &Arc<Self>, session: SessionId) -> FollowedWarmUp {
        let mut said = self.lock().entry(session).or_default().subscribe();
        said.mark_changed();
        FollowedWarmUp {
            session,
            said: Some(said),
            heard: None,
            not_before: None,
            warm_ups: Arc::clone(self),
        }
    }

    fn say(&self, session: SessionId, progress: Option<WarmUpProgress>) {
        self.lock().entry(session).or_default().send_replace(progress);
    }

    /// Drops a session's channel where there is neither something to say nor someone to hear it.
    fn leave(&self, session: SessionId) {
        let mut channels = self.lock();
        let is_over = |said: &watch::Sender<Option<_>>| said.receiver_count() == 0 && said.borrow().is_none();
        if channels.get(&session).is_some_and(is_over) {
            channels.remove(&session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that warms up.
pub(crate) struct WarmingUp {
    session: SessionId,
    warm_ups: Arc<WarmUps>,
}

impl WarmingUp {
    /// It is so far now.
    pub(crate) fn has_come_to(&self, progress: WarmUpProgress) {
        self.warm_ups.say(self.session, Some(progress));
    }
}

impl Drop for WarmingUp {
    fn drop(&mut self) {
        self.warm_ups.say(self.session, None);
        self.warm_ups.leave(self.session);
    }
}

/// What there is to hear of how far a session is.
pub struct FollowedWarmUp {
    session: SessionId,
    /// None once it is dropped.
    said: Option<watch::Receiver<Option<WarmUpProgress>>>,
    /// What it heard last.
    heard: Option<WarmUpProgress>,
    not_before: Option<Instant>,
    warm_ups: Arc<WarmUps>,
}

impl FollowedWarmUp {
    /// Returns the session that warms up.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Waits until there is something new to hear: how far it is, or that it warms up no more. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<WarmUpProgress> {
        loop {
            if let Some(not_before) = self.not_before {
                sleep_until(not_before).await;
            }
            let Some(said) = &mut self.said else { return std::future::pending().await };
            // The other end stays as long as someone follows.
            if said.changed().await.is_err() {
                return std::future::pending().await;
            }
            let progress = *said.borrow_and_update();
            if progress != self.heard {
                self.heard = progress;
                self.not_before = Some(Instant::now() + INTERVAL);
                return progress;
            }
        }
    }
}

impl Drop for FollowedWarmUp {
    fn drop(&mut self) {
        self.said = None;
        self.warm_ups.leave(self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_runner::progress::WarmUpPhase;
    use uuid::Uuid;

    const SESSION: SessionId = SessionId::from_uuid(Uuid::nil());

    fn progress(done: u32) -> WarmUpProgress {
        WarmUpProgress { phase: WarmUpPhase::Replay, done, total: 9 }
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_hears_how_it_is_then_the_newest_and_not_too_often() {
        let warm_ups = Arc::new(WarmUps::default());
        let replaying = warm_ups.begin(SESSION);
        replaying.has_come_to(progress(1));
        let mut followed = warm_ups.follow(SESSION);
        let began = Instant::now();
        assert_eq!(followed.next().await, Some(progress(1)));
        assert_eq!(began.elapsed(), Duration::ZERO);
        replaying.has_come_to(progress(2));
        replaying.has_come_to(progress(3));
        assert_eq!(followed.next().await, Some(progress(3)));
        assert_eq!(began.elapsed(), INTERVAL);
        drop(replaying);
        assert_eq!((warm_ups.of(SESSION), followed.next().await), (None, None));
        drop(warm_ups.begin(SESSION));
        warm_ups.begin(SESSION).has_come_to(progress(4));
        let again = warm_ups.begin(SESSION);
        again.has_come_to(progress(0));
        assert_eq!(followed.next().await, Some(progress(0)), "that nothing goes on is said once");
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_session_that_nobody_replays_or_follows() {
        let warm_ups = Arc::new(WarmUps::default());
        let kept = || warm_ups.lock().len();
        let followed = warm_ups.follow(SESSION);
        let replaying = warm_ups.begin(SESSION);
        replaying.has_come_to(progress(1));
        drop(followed);
        assert_eq!(kept(), 1);
        drop(replaying);
        assert_eq!(kept(), 0);
        drop(warm_ups.follow(SESSION));
        assert_eq!(kept(), 0);
    }
}
