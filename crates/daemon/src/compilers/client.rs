//! Asks the warm compilers. Where there are none, or they do not answer, a build is the way.

use std::path::Path;

use mainstay_kernel::fsharp::project::{Built, OnStep, Resolved};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::{Answer, BuiltProject, Question, SOCKET};

/// A question on its way. What is asked is given up with it.
struct Conversation {
    answers: Lines<BufReader<OwnedReadHalf>>,
    _asking: OwnedWriteHalf,
}

impl Conversation {
    /// Asks those whose daemon has its sockets in this folder.
    async fn begin(sockets: &Path, question: &Question) -> Option<Self> {
        let stream = UnixStream::connect(sockets.join(SOCKET)).await.ok()?;
        let (reading, mut writing) = stream.into_split();
        let mut line = serde_json::to_vec(question).ok()?;
        line.push(b'\n');
        writing.write_all(&line).await.ok()?;
        Some(Self { answers: BufReader::new(reading).lines(), _asking: writing })
    }

    async fn next(&mut self) -> Option<Answer> {
        let line = self.answers.next_line().await.ok()??;
        serde_json::from_str(&line)
            .inspect_err(|error| tracing::warn!(%error, "an answer is not understood"))
            .ok()
    }
}

/// Builds a project again; none where a build is due.
pub(crate) async fn recompile(sockets: &Path, project: BuiltProject, say: OnStep<'_>) -> Option<Built> {
    let mut conversation = Conversation::begin(sockets, &Question::Recompile(project)).await?;
    loop {
        match conversation.next().await? {
            Answer::Says(step) => say(step),
            Answer::Recompiled(built) => return Some(*built),
            Answer::Unready(reason) => {
                tracing::info!(reason, "a project is built, and not by the warm compiler");
                return None;
            }
            Answer::Resolved(_) | Answer::Noted => return None,
        }
    }
}

/// What a project consists of; none where that is to be found out.
pub(crate) async fn resolved(sockets: &Path, project: BuiltProject) -> Option<Resolved> {
    match Conversation::begin(sockets, &Question::Resolve(project)).await?.next().await? {
        Answer::Resolved(resolved) => Some(*resolved),
        Answer::Says(_) | Answer::Recompiled(_) | Answer::Unready(_) | Answer::Noted => None,
    }
}

/// Tells that a project was built: it will be built again.
pub(crate) async fn note_built(sockets: &Path, project: BuiltProject) {
    note(sockets, &Question::Built(project)).await;
}

/// Tells that a project is loaded as it was built: it may be built again.
pub(crate) async fn note_loaded(sockets: &Path, project: BuiltProject) {
    note(sockets, &Question::Loaded(project)).await;
}

async fn note(sockets: &Path, question: &Question) {
    if let Some(mut conversation) = Conversation::begin(sockets, question).await {
        conversation.next().await;
    }
}
