//! A worker that has no session and never gets one: it makes assemblies, and is the faster the more it has made.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use mainstay_model::Error;
use mainstay_os::process::{Group, Launch};
use mainstay_runner::ResourceUsage;
use tokio::io::{AsyncRead, copy, sink};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{Attached, attach};
use crate::channel::{HELLO_ID, Incoming, Outgoing};
use crate::fsharp::project::{Compiled, WarmCompiler};
use crate::protocol::{FromWorker, ToWorker, decode, encode};

/// How long one assembly may take. A build would have taken longer by then.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// A process that makes assemblies. It ends when this is dropped, and with a compilation that nobody waits for any more.
pub struct CompilerProcess {
    channel: Mutex<Channel>,
    group: Group,
    pid: Option<u32>,
    has_ended: Arc<AtomicBool>,
}

struct Channel {
    incoming: Incoming,
    outgoing: Outgoing,
    last: u64,
}

/// Starts a process that makes assemblies. Its socket is made in `socket_folder`, which must be the user's alone.
///
/// # Errors
/// As [`launch`](super::launch).
pub async fn launch_compiler(launch: &Launch, socket_folder: &Path) -> Result<CompilerProcess, Error> {
    let Attached { mut child, group, unready, incoming, outgoing, pipes } =
        attach(launch, Path::new("/"), socket_folder).await?;
    let pid = child.id();
    // What it prints is nobody's, and must not fill the pipes.
    child.stdout.take().map(|pipe| tokio::spawn(drained(pipe)));
    child.stderr.take().map(|pipe| tokio::spawn(drained(pipe)));
    unready.is_ready();
    let has_ended = Arc::new(AtomicBool::new(false));
    let (ended, its_group) = (Arc::clone(&has_ended), group.clone());
    tokio::spawn(async move {
        child.wait().await.ok();
        drop(pipes);
        its_group.leader_is_gone();
        ended.store(true, Ordering::Release);
    });
    let channel = Mutex::new(Channel { incoming, outgoing, last: HELLO_ID });
    Ok(CompilerProcess { channel, group, pid, has_ended })
}

async fn drained(mut pipe: impl AsyncRead + Unpin) {
    copy(&mut pipe, &mut sink()).await.ok();
}

impl CompilerProcess {
    /// The number of the process.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether the process is gone.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// What the process uses now.
    pub fn usage(&self) -> Option<ResourceUsage> {
        crate::runner_process::usage(&self.group)
    }

    /// Whether it makes an assembly just now.
    pub fn is_busy(&self) -> bool {
        self.channel.try_lock().is_err()
    }
}

impl Drop for CompilerProcess {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// Kills the process where its answer is not waited for.
struct Unanswered<'a>(Option<&'a Group>);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            group.kill();
        }
    }
}

#[async_trait]
impl WarmCompiler for CompilerProcess {
    async fn compile(&self, folder: &Path, arguments: Vec<String>) -> Result<Compiled, Error> {
        let mut channel = self.channel.lock().await;
        let mut unanswered = Unanswered(Some(&self.group));
        let compiled = timeout(LIMIT, channel.compile(folder, arguments)).await;
        let compiled = compiled.unwrap_or_else(|_| Err(failed("it took too long")));
        if compiled.is_ok() {
            unanswered.0 = None;
        }
        compiled
    }
}

impl Channel {
    async fn compile(&mut self, folder: &Path, arguments: Vec<String>) -> Result<Compiled, Error> {
        self.last += 1;
        let id = self.last;
        let request = ToWorker::Compile { id, folder: folder.display().to_string(), arguments };
        self.outgoing.send(encode(&request)?).await.map_err(failed)?;
        while let Some(frame) = self.incoming.next().await {
            match decode(&frame.map_err(failed)?)? {
                FromWorker::Compiled { id: answered, is_made, diagnostics } if answered == id => {
                    return Ok(Compiled { is_made, diagnostics });
                }
                FromWorker::Failed { message, .. } => return Err(failed(message)),
                _ => {}
            }
        }
        Err(failed("it ended"))
    }
}

fn failed(reason: impl ToString) -> Error {
    Error::WorkerFailed { reason: format!("the warm compiler: {}", reason.to_string()) }
}
