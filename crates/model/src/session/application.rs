//! The application of a session's project: that it runs, and when a new worker is to start it again.

use super::Session;
use crate::application::SessionApplication;
use crate::event::{Event, EventBody, Source};

impl Session {
    /// Whether its application runs in the worker that is there. One that is to run and does not is started again with the next worker.
    pub fn runs_application(&self) -> bool {
        let pid = self.worker.as_ref().and_then(|worker| worker.pid);
        self.application.as_ref().is_some_and(|known| Some(known.application.pid) == pid)
    }

    /// Takes in what an event says of the application, or means for it.
    pub(super) fn note_for_application(&mut self, event: &Event) {
        match &event.body {
            EventBody::ApplicationStarted(application) => {
                let (application, since) = ((**application).clone(), event.at);
                self.application = Some(Box::new(SessionApplication { application, since }));
            }
            EventBody::ApplicationEnded(_)
            | EventBody::SessionDeleted
            | EventBody::SessionUnloaded { .. } => self.application = None,
            // A client that stops the session stops its application too. After a daemon that goes down, the next one has it run again.
            EventBody::SessionStopped if matches!(event.metadata.source, Source::Client { .. }) => {
                self.application = None;
            }
            _ => {}
        }
    }
}
