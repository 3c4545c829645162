//! What tasks meet through, and time. With the feature `shuttle` a test decides which task goes on at each lock and counter,
//! and no time passes. The channels of tokio need no runtime and are the same.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

/// Tokio's tasks, or the model checker's.
pub(crate) mod task {
    #[cfg(not(feature = "shuttle"))]
    pub(crate) use tokio::{
        spawn,
        task::{AbortHandle, JoinHandle},
    };

    #[cfg(feature = "shuttle")]
    pub(crate) use shuttle::future::{AbortHandle, JoinHandle, spawn};
}

/// Tokio's clock, or the model checker's.
#[cfg(not(feature = "shuttle"))]
pub(crate) mod time {
    pub(crate) use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
}

/// Time that does not pass: pauses are over at once, and no limit is reached.
#[cfg(feature = "shuttle")]
pub(crate) mod time {
    use std::future::pending;
    use std::time::Duration;

    use shuttle::future::yield_now;
    pub(crate) use tokio::time::Instant;

    /// A limit was reached.
    #[derive(Debug)]
    pub(crate) struct Elapsed;

    pub(crate) async fn sleep(_: Duration) {
        yield_now().await;
    }

    pub(crate) async fn sleep_until(_: Instant) {
        pending().await
    }

    pub(crate) async fn timeout<F: Future>(_: Duration, work: F) -> Result<F::Output, Elapsed> {
        Ok(work.await)
    }

    pub(crate) async fn timeout_at<F: Future>(_: Instant, work: F) -> Result<F::Output, Elapsed> {
        Ok(work.await)
    }
}
