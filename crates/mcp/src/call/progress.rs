//! What the client of a call hears before the answer, and whether it still waits for one.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use rmcp::model::ProgressNotificationParam;

use super::Call;

impl Call {
    /// Waits until the client's user cancels the call.
    pub(crate) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Its client's user has cancelled it.
    pub(crate) fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Why it was cancelled, where its client says it.
    pub(crate) async fn reason_of_cancel(&self) -> Option<String> {
        // It is said by a notification, which the newest protocol has none of over HTTP: its connection ends.
        if self.is_of_newest() && !self.server.is_connection() {
            return None;
        }
        self.server.cancelled_by_client(self.request()).await?
    }

    /// Waits until the client takes no answer any more, because it cancelled the call or gave it up. That it goes is neither: what it began
    /// then goes on.
    pub(crate) async fn is_unwanted(&self) {
        self.context.ct.cancelled().await;
        // One that cancelled its call and went at once has cancelled it all the same.
        if self.server.has_lost_client(self.context.extensions.get::<Parts>())
            && self.server.cancelled_by_client(self.request()).await.is_none()
        {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the client wants to hear how the call gets on.
    pub(crate) fn wants_progress(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    /// How long ago the client heard of the call.
    pub(crate) fn silence(&self) -> Duration {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Tells the client how far the call has come, where it wants to hear it.
    pub(crate) async fn say(&self, message: impl Into<String>) {
        let message = message.into();
        self.under_way.note_progress(&message);
        self.tell(message).await;
    }

    /// Tells the client what its code prints, or that it still runs, where it wants to hear it.
    pub(crate) async fn tell(&self, message: impl Into<String>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        // Nothing is said of a request that is answered, or cancelled.
        let token = self.context.meta.get_progress_token().filter(|_| !self.context.ct.is_cancelled());
        let Some(token) = token else { return };
        let nth = self.said.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = ProgressNotificationParam::new(token, f64::from(nth)).with_message(message);
        if let Err(error) = self.context.peer.notify_progress(progress).await {
            tracing::debug!(%error, "a client did not hear of progress");
        }
    }
}
