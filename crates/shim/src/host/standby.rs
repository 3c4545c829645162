//! A shim that belongs to no session yet: it has a process started ahead, and waits for the session that takes it. It ends with the
//! connection of the daemon that wanted it.

use std::sync::Arc;

use mainstay_model::Error;
use mainstay_runner::RunnerFactory;

use super::MakeFactory;
use super::visitor::Visitor;
use crate::folder::ShimFolder;
use crate::messages::{FromShim, Hello, Purpose, Welcome};
use crate::stream::Incoming;

/// Has a process started ahead, and waits for the session that takes it. Gives who takes it, the folder of the session, and the factory
/// that has the process; none where nobody does.
pub(super) async fn taken(
    visitor: Visitor,
    protocol: u32,
    folder: ShimFolder,
    make: &MakeFactory,
) -> Option<(Visitor, ShimFolder, Arc<dyn RunnerFactory>)> {
    let (taker, factory) = wait(visitor, protocol, make).await?;
    match folder.given_to(taker.hello.session) {
        Ok(folder) => Some((taker, folder, factory)),
        Err(error) => {
            tracing::error!(%error, "the folder of the shim cannot become that of its session");
            None
        }
    }
}

async fn wait(
    mut visitor: Visitor,
    protocol: u32,
    make: &MakeFactory,
) -> Option<(Visitor, Arc<dyn RunnerFactory>)> {
    let Purpose::StandBy { kind, plan, settings } = &visitor.hello.purpose else { return None };
    let (factory, plan) = (make(settings, kind)?, plan.clone());
    let pid = std::process::id();
    visitor.outgoing.send(&Welcome::Obeys { protocol, pid }).await.ok()?;
    let started = tokio::select! {
        started = factory.stand_by(plan) => started,
        // Nothing is to be said meanwhile: the daemon is gone, or wants it no more.
        _ = visitor.incoming.next::<serde_json::Value>() => return None,
    };
    let said = match &started {
        Ok(pid) => FromShim::StandsBy { pid: *pid },
        Err(error) => FromShim::NotStarted { error: error.clone() },
    };
    visitor.outgoing.send(&said).await.ok()?;
    started.ok()?;
    let hello = tokio::select! {
        hello = next_hello(&mut visitor.incoming) => hello,
        () = factory.standby_ended() => {
            tracing::warn!("the process that stood by has ended");
            return None;
        }
    };
    let hello = hello.inspect_err(|error| tracing::warn!(%error, "who takes the process is not understood"));
    Some((Visitor { hello: hello.ok()??, ..visitor }, factory))
}

async fn next_hello(incoming: &mut Incoming) -> Result<Option<Hello>, Error> {
    incoming.next().await
}
