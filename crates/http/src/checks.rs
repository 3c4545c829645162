//! What checks and completions have found out lately, and who listens. The diagnostics of each file are kept until they are others, so that
//! whoever comes later sees them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_model::{Diagnostic, Error, Principal, Seq, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use super::signals::CompletionsSignal;

/// Results that a subscriber may be behind with; then it is told only the newest.
const BEHIND: usize = 256;
/// Files of a session whose diagnostics are kept.
const FILES: usize = 200;
/// Sessions of whose files they are.
const SESSIONS: usize = 200;
/// Pieces of code that are looked at at once, whoever asks.
const UNDER_WAY: usize = 256;

/// Whose code it is, and the session in which it was looked at: nobody else is told of it.
pub(super) type Place = (Principal, SessionId);

/// The diagnostics of each file.
pub(super) type Files = BTreeMap<String, Vec<Diagnostic>>;

/// What is found out from now on.
pub(super) type Findings = broadcast::Receiver<Arc<(Place, Finding)>>;

/// What was found out about code.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// The diagnostics of a file; of code that is in none, under an empty name.
    Diagnostics { file: String, diagnostics: Vec<Diagnostic> },
    /// What could stand at a cursor.
    Completions { signal: CompletionsSignal },
}

/// What was found out lately, and who listens.
pub(super) struct Checks {
    diagnostics: Mutex<HashMap<Place, SessionDiagnostics>>,
    findings: broadcast::Sender<Arc<(Place, Finding)>>,
    /// Places for what is being found out.
    under_way: Arc<Semaphore>,
}

/// The diagnostics of a session's files, behind its last reset then.
#[derive(Default)]
struct SessionDiagnostics {
    since: Seq,
    files: Files,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            diagnostics: Mutex::default(),
            findings: broadcast::channel(BEHIND).0,
            under_way: Arc::new(Semaphore::new(UNDER_WAY)),
        }
    }
}

impl Checks {
    /// The diagnostics there are behind this reset, and what is found out from now on.
    pub(super) fn listen(&self, place: &Place, since: Seq) -> (Files, Findings) {
        let kept = self.kept();
        let files = kept.get(place).filter(|kept| kept.since == since).map(|kept| kept.files.clone());
        (files.unwrap_or_default(), self.findings.subscribe())
    }

    /// Something was found out, behind this reset.
    pub(super) fn found(&self, place: Place, since: Seq, finding: Finding) {
        let mut all = self.kept();
        if let Finding::Diagnostics { file, diagnostics } = &finding {
            if all.len() >= SESSIONS && !all.contains_key(&place) {
                all.clear();
            }
            let kept = all.entry(place.clone()).or_default();
            if kept.since > since {
                // The session was reset meanwhile.
                return;
            }
            if kept.since < since || kept.files.len() >= FILES && !kept.files.contains_key(file) {
                *kept = SessionDiagnostics { since, files: Files::default() };
            }
            kept.files.insert(file.clone(), diagnostics.clone());
        }
        // There may be nobody.
        self.findings.send(Arc::new((place, finding))).ok();
    }

    /// A place for a check, which has it until it ends.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`].
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        let place = Arc::clone(&self.under_way).try_acquire_owned();
        place.map_err(|_| Error::TooManyRequests { what: "checks".to_owned(), limit: UNDER_WAY })
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Place, SessionDiagnostics>> {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
