//! Texts of sources that an editor has not saved, on their way to the mirror of their session. Nobody commands the session anything.

use std::path::Path;
use std::sync::Arc;

use mainstay_model::command::validate_code;
use mainstay_model::{Action, BufferRun, Epoch, Error, Session, SessionId, UnsavedBuffer};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::mirror::{Beginning, BufferTerms, MirrorHandle, Mirrors, NewBuffer};
use crate::session::Request;

impl Engine {
    /// Says how unsaved texts are dealt with, before the first comes.
    pub fn keep_buffers(&self, terms: BufferTerms) {
        if !self.shared.mirrors.set_terms(terms) {
            tracing::error!("how unsaved texts are dealt with was said too late");
        }
    }

    /// Runs the tests that reach what an unsaved text has otherwise than the saved file.
    pub(crate) async fn put_buffer(&self, session: SessionId, buffer: NewBuffer) -> Result<BufferRun, Error> {
        validate_code(&buffer.text, &self.shared.limits)?;
        if !Path::new(&buffer.path).is_absolute() {
            let reason = format!("`{}` must be absolute", buffer.path);
            return Err(Error::InvalidArgument { argument: "path".to_owned(), reason });
        }
        self.mirror(session).await?.put(buffer).await
    }

    /// Throws an unsaved text away, where it is there.
    pub(crate) async fn discard_buffer(&self, session: SessionId, path: String) {
        if let Some(mirror) = self.shared.mirrors.of(session) {
            mirror.discard(path).await;
        }
    }

    /// The unsaved texts of a session.
    pub(crate) async fn buffers(&self, session: SessionId) -> Vec<UnsavedBuffer> {
        match self.shared.mirrors.of(session) {
            Some(mirror) => mirror.list().await,
            None => Vec::new(),
        }
    }

    /// Files that a session depends on were written: an unsaved text that is not newer is thrown away.
    pub(crate) async fn buffers_saved(&self, session: SessionId, paths: Vec<String>) {
        let Some(mirror) = self.shared.mirrors.of(session) else { return };
        let mut files = Vec::new();
        for path in paths {
            let text = tokio::fs::read(&path).await.ok().map(|bytes| text_of(&bytes));
            files.push((path, text));
        }
        mirror.saved(files);
    }

    /// The mirror of a session, which is there from then on.
    async fn mirror(&self, session: SessionId) -> Result<MirrorHandle, Error> {
        let mirrors = &self.shared.mirrors;
        let most = mirrors.terms().mirrors;
        if most == 0 {
            let reason = "`mirrors` in `[tests]` is 0, so unsaved texts are not run".to_owned();
            return Err(Error::MirrorUnavailable { reason });
        }
        let (beginning, visible) = self.mirror_beginning(session).await?;
        let terms = &beginning.terms;
        if mirrors.of(session).is_none() && terms.has_less_than(terms.memory_bytes) {
            return Err(memory_is_short());
        }
        Ok(mirrors.used(session, most, || Mirrors::begin(beginning, visible)))
    }

    /// What a process beside that of a session is started with. The session must have a worker whose code tests may reach.
    pub(crate) async fn mirror_beginning(
        &self,
        session: SessionId,
    ) -> Result<(Beginning, watch::Receiver<Arc<Session>>), Error> {
        let shared = &self.shared;
        let terms = shared.mirrors.terms();
        self.request(session, |reply| Request::Offers { action: Action::Test, reply }).await??;
        let visible = self.handle(session).await?.visible;
        let about = Arc::clone(&visible.borrow());
        let factory = shared.factory_of(&about.kind).cloned();
        let beginning = Beginning {
            factory: factory.ok_or_else(|| Error::KernelUnknown { kind: about.kind.clone() })?,
            spec: shared.runner_spec(&about, Epoch(0)),
            limits: shared.limits.clone(),
            starts: Arc::clone(&shared.starts),
            terms,
        };
        Ok((beginning, visible))
    }
}

/// There is no memory for another process.
pub(crate) fn memory_is_short() -> Error {
    Error::MirrorUnavailable { reason: "memory is short (`mirror-memory-bytes` in `[tests]`)".to_owned() }
}

/// What a file says, as editors have it: without the mark of its encoding.
fn text_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}
