//! From the first connection to a runner that takes work. A daemon that is lost meanwhile takes the start along: nothing ran yet.

use std::future::pending;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use mainstay_model::Error;
use mainstay_runner::{Report, RunnerFactory, RunnerSpec, StartLines, StartObserver, StartedRunner};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};

use super::visitor::{Visitor, common_protocol};
use super::{FAREWELL, FIRST_MESSAGE, MakeFactory, standby};
use crate::folder::{ShimFolder, ShimRecord};
use crate::messages::{FromShim, Hello, PROTOCOL, Purpose, Refusal, Terms, Welcome};
use crate::stream::{Incoming, Outgoing};

/// How often it is looked what the runner said while it starts.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// A runner that came up, and the daemon that had it started.
pub(super) struct Started {
    pub(super) hello: Hello,
    pub(super) terms: Terms,
    pub(super) runner: StartedRunner,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
}

/// Waits for the daemon and has the runner started; none where there is none to host. Gives also the session's folder, which is another
/// than the first where the process was started ahead.
pub(super) async fn started(
    listener: &UnixListener,
    folder: ShimFolder,
    version: &str,
    make: &MakeFactory,
) -> Option<(Started, ShimFolder)> {
    let first = async {
        loop {
            let (stream, _) = listener.accept().await.ok()?;
            if let Some(visitor) = Visitor::of(stream).await {
                return Some(visitor);
            }
        }
    };
    let mut visitor = timeout(FIRST_MESSAGE, first).await.ok()??;
    let protocol = match common_protocol(&visitor.hello) {
        Ok(protocol) => protocol,
        Err(refusal) => {
            visitor.refuse(refusal).await;
            return None;
        }
    };
    let (folder, ahead) = match visitor.hello.purpose {
        Purpose::StandBy { .. } => {
            let (taker, folder, factory) = standby::taken(visitor, protocol, folder, make).await?;
            visitor = taker;
            (folder, Some(factory))
        }
        _ => (folder, None),
    };
    let Purpose::Start { spec, settings, terms } = &visitor.hello.purpose else {
        visitor.refuse(Refusal::NoRunner).await;
        return None;
    };
    let (spec, terms) = (spec.as_ref().clone(), *terms);
    let factory = ahead.or_else(|| make(settings, &spec.kind));
    if let Err(error) = record(listener, &folder, &visitor.hello, &spec, version) {
        tracing::error!(%error, "the shim cannot be found again, and so does not begin");
        return None;
    }
    let pid = std::process::id();
    visitor.outgoing.send(&Welcome::Obeys { protocol, pid }).await.ok()?;
    let Visitor { mut hello, mut incoming, mut outgoing } = visitor;
    // It may be large, and holds the environment of the user.
    hello.purpose = Purpose::End;
    let runner = tokio::select! {
        started = start(factory, spec, &mut outgoing) => started,
        // The daemon that is lost, and any other that comes, find nothing that is worth keeping.
        _ = incoming.next::<serde_json::Value>() => {
            folder.remove_of(&hello.token);
            return None;
        }
        () = refuse_others(listener, &hello.token) => {
            folder.remove_of(&hello.token);
            return None;
        }
    };
    match runner {
        Ok(runner) => Some((Started { hello, terms, runner, incoming, outgoing }, folder)),
        Err(error) => {
            timeout(FAREWELL, outgoing.send(&FromShim::NotStarted { error })).await.ok();
            folder.remove_of(&hello.token);
            None
        }
    }
}

async fn start(
    factory: Option<Arc<dyn RunnerFactory>>,
    spec: RunnerSpec,
    outgoing: &mut Outgoing,
) -> Result<StartedRunner, Error> {
    let Some(factory) = factory else { return Err(Error::KernelUnknown { kind: spec.kind }) };
    let (progress_in, mut progress) = mpsc::unbounded_channel();
    let last_lines = StartLines::default();
    let report = Report::to(move |so_far| {
        progress_in.send(so_far).ok();
    });
    let observer = StartObserver { report, last_lines: last_lines.clone() };
    let mut starting = factory.start(spec, observer);
    let mut look = interval(LOOK);
    let mut said = None;
    loop {
        tokio::select! {
            started = &mut starting => return started,
            Some(progress) = progress.recv() => {
                outgoing.send(&FromShim::Progress { progress }).await?;
            }
            _ = look.tick() => {
                let lines = last_lines.text();
                if lines != said {
                    outgoing.send(&FromShim::StartLines { lines: lines.clone() }).await?;
                    said = lines;
                }
            }
        }
    }
}

/// Refuses who connects while the runner is being started. The first that knows the token has the start undone.
async fn refuse_others(listener: &UnixListener, token: &str) {
    let mut visitors = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => visitors.push(Visitor::of(stream)),
                Err(_) => pending().await,
            },
            Some(visitor) = visitors.next() => {
                let Some(visitor) = visitor else { continue };
                let is_of_home = visitor.hello.token == token;
                visitor.refuse(if is_of_home { Refusal::NoRunner } else { Refusal::Stranger }).await;
                if is_of_home {
                    return;
                }
            }
        }
    }
}

fn record(
    listener: &UnixListener,
    folder: &ShimFolder,
    hello: &Hello,
    spec: &RunnerSpec,
    version: &str,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    let socket = address.as_pathname().ok_or(std::io::ErrorKind::AddrNotAvailable)?.to_owned();
    folder.write_record(&ShimRecord {
        session: hello.session,
        kind: spec.kind.clone(),
        pid: std::process::id(),
        started: mainstay_os::system::started_at(rustix::process::getpid()),
        folder: folder.path().to_owned(),
        socket,
        token: hello.token.clone(),
        epoch: hello.epoch,
        protocol: PROTOCOL,
        version: version.to_owned(),
    })
}
