//! The application of a session's project: that it runs, and when a new worker is to start it again.

use super::Session;
use crate::Timestamp;
use crate::application::{Application, SessionApplication};
use crate::event::{Blame, Source};

impl Session {
    /// Whether its application runs in the worker that is there. One that is to run and does not is started again with the next worker.
    pub fn runs_application(&self) -> bool {
        let pid = self.worker.as_ref().and_then(|worker| worker.pid);
        self.application.as_ref().is_some_and(|known| Some(known.application.pid) == pid)
    }

    pub(super) fn start_application(&mut self, application: &Application, at: Timestamp) {
        self.application = Some(Box::new(SessionApplication { application: application.clone(), since: at }));
    }

    /// A client that stops the session stops its application too. A daemon that goes down does not: the next one has it run again.
    pub(super) fn stop_application(&mut self, by: &Source) {
        if let Source::Client { .. } = by {
            self.application = None;
        }
    }

    /// An application whose code ended its worker is not started again: it might do so again.
    pub(super) fn lose_application(&mut self, blame: Option<Blame>) {
        let job = self.application.as_ref().and_then(|known| known.application.job);
        if blame.is_some_and(|blame| blame.is_sure && Some(blame.job) == job) {
            self.application = None;
        }
    }
}
