//! One breaker for each kind of runner: where starts fail again and again, none is made for a while. And one for each provider of models:
//! where agents' turns fail with it again and again, whichever sessions they are of, none begins with it for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mainstay_model::breaker::{Attempt, Breaker, BreakerStatus, Refusal};
use mainstay_model::{Error, Limits, SessionKind};
use tokio::sync::watch;

use crate::clock::now;
use crate::sync::time::timeout;
use crate::sync::{Mutex, MutexGuard};

/// The circuit breakers of all kinds of sessions.
pub(crate) struct Breakers {
    limits: Limits,
    breakers: Mutex<BTreeMap<SessionKind, Breaker>>,
    providers: Mutex<BTreeMap<String, Breaker>>,
    /// Said whenever one may let through what it did not before.
    changed: watch::Sender<()>,
}

impl Breakers {
    /// Creates the table with every breaker closed.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            breakers: Mutex::default(),
            providers: Mutex::default(),
            changed: watch::channel(()).0,
        }
    }

    /// Waits until a runner of this kind may be started.
    pub(crate) async fn permit(self: &Arc<Self>, kind: &SessionKind) -> Permit {
        let mut changed = self.changed.subscribe();
        loop {
            let admitted = self.lock().entry(kind.clone()).or_default().admit(now(), &self.limits);
            let (retry_after_ms, reason) = match admitted {
                Err(Refusal { retry_after_ms, reason }) => (retry_after_ms, reason),
                Ok(of) => {
                    return Permit { breakers: Arc::clone(self), kind: kind.clone(), of, is_settled: false };
                }
            };
            tracing::info!(%kind, reason, retry_after_ms, "a start has to wait");
            // Whether it changed or the time is over, it is asked again.
            timeout(Duration::from_millis(retry_after_ms), changed.changed()).await.ok();
        }
    }

    /// Refuses while runners of this kind are not started.
    pub(crate) fn check(&self, kind: &SessionKind) -> Result<(), Error> {
        let checked = self.lock().get(kind).map_or(Ok(()), |breaker| breaker.check(now(), &self.limits));
        checked.map_err(|Refusal { reason, retry_after_ms }| Error::RunnerUnavailable {
            kind: kind.clone(),
            provider: None,
            reason,
            retry_after_ms,
        })
    }

    /// Refuses turns of agents of this kind while none begins with the provider. Once it may be tried again, all may try.
    pub(crate) fn check_provider(&self, kind: &SessionKind, provider: &str) -> Result<(), Error> {
        let providers = self.providers();
        let checked = providers.get(provider).map_or(Ok(()), |breaker| breaker.check(now(), &self.limits));
        checked.map_err(|Refusal { reason, retry_after_ms }| Error::RunnerUnavailable {
            kind: kind.clone(),
            provider: Some(provider.to_owned()),
            reason,
            retry_after_ms,
        })
    }

    /// Notes how a turn with a provider ended: well, or with this error.
    pub(crate) fn turn_ended(&self, provider: &str, ended: Result<(), String>) {
        let mut providers = self.providers();
        let breaker = providers.entry(provider.to_owned()).or_default();
        match ended {
            Ok(()) => breaker.succeeded(),
            Err(reason) => breaker.failed(now(), reason, &self.limits),
        }
    }

    /// Those of the providers that were used, as people see them.
    pub(crate) fn list_providers(&self) -> BTreeMap<String, BreakerStatus> {
        let status = |(provider, breaker): (&String, &Breaker)| {
            (provider.clone(), breaker.status(now(), &self.limits))
        };
        self.providers().iter().map(status).collect()
    }

    fn providers(&self) -> MutexGuard<'_, BTreeMap<String, Breaker>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of the kinds that were started, as people see them.
    pub(crate) fn list(&self) -> BTreeMap<SessionKind, BreakerStatus> {
        let status =
            |(kind, breaker): (&SessionKind, &Breaker)| (kind.clone(), breaker.status(now(), &self.limits));
        self.lock().iter().map(status).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionKind, Breaker>> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// That a runner may be started. Dropped without a word it says nothing of the runner: the start was slow, or no longer wanted.
pub(crate) struct Permit {
    breakers: Arc<Breakers>,
    kind: SessionKind,
    of: Attempt,
    is_settled: bool,
}

impl Permit {
    /// Records that the start succeeded.
    pub(crate) fn succeeded(mut self) {
        self.settle(Breaker::succeeded);
    }

    /// Records that the start failed, with the reason.
    pub(crate) fn failed(mut self, reason: String) {
        let limits = self.breakers.limits.clone();
        self.settle(|breaker| breaker.failed(now(), reason, &limits));
    }

    fn settle(&mut self, settle: impl FnOnce(&mut Breaker)) {
        self.is_settled = true;
        if let Some(breaker) = self.breakers.lock().get_mut(&self.kind) {
            settle(breaker);
        }
        self.breakers.changed.send_replace(());
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.is_settled {
            let of = self.of;
            self.settle(|breaker| breaker.abandoned(of));
        }
    }
}
