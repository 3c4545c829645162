//! Handlers of what is asked about the daemon itself: its status, its link, its stop.

use std::path::PathBuf;

use super::call::Call;
use mainstay_gateway::browser;
use mainstay_gateway::view::orphaned_view;
use mainstay_log::SessionFilter;
use mainstay_model::Error;
use mainstay_protocol::operations::{
    DaemonStatus, Discover, GetLink, GetStatus, Link, Nothing, RestartDaemon, StopDaemon,
};
use mainstay_protocol::view::SessionView;

pub(crate) async fn discover(_: Call, _: Discover) -> Result<serde_json::Value, Error> {
    Ok(mainstay_protocol::openrpc::document())
}

pub(crate) async fn status(call: Call, _: GetStatus) -> Result<DaemonStatus, Error> {
    let Call { daemon, client } = &call;
    let engine = &daemon.engine;
    let live = client.sessions(SessionFilter { live: true, ..SessionFilter::default() }).await?;
    let mut views = Vec::with_capacity(live.len());
    for session in live {
        let usage = client.usage(session.id).await;
        // One that was deleted meanwhile has none.
        let validity = client.validity(session.id).await.unwrap_or_default();
        let warm_up = client.warm_up(&session);
        let orphaned = orphaned_view(client, &session);
        views.push(SessionView { validity, warm_up, orphaned, ..SessionView::new(&session, usage) });
    }
    Ok(DaemonStatus {
        version: daemon.version.to_owned(),
        pid: std::process::id(),
        port: daemon.port,
        pi_port: daemon.own_ports.get("pi").copied(),
        started_at: daemon.started_at,
        home: daemon.home.display().to_string(),
        fingerprint: Some(daemon.fingerprint.to_string()),
        resident_bytes: mainstay_os::system::own_resident_bytes(),
        limits: engine.limits().clone(),
        commands: engine.commands_under_way(),
        creations: engine.creations_under_way(),
        asks: client.asks().await?.len(),
        subscribers: engine.subscribers(),
        clients: client.clients(),
        breakers: client.breakers(),
        providers: client.provider_breakers(),
        live: views,
        stored: client.count_sessions(SessionFilter::default()).await?,
    })
}

pub(crate) async fn link(call: Call, asked: GetLink) -> Result<Link, Error> {
    let session = call.optional(asked.session).await?;
    let to = session.map_or("/ui".to_owned(), |session| format!("/ui/sessions/{session}"));
    Ok(Link { url: browser::link(&call.daemon, call.client.principal().clone(), &to) })
}

pub(crate) async fn stop(call: Call, _: StopDaemon) -> Result<Nothing, Error> {
    call.client.require_all("stop the daemon")?;
    call.daemon.stop().map(|()| Nothing {})
}

pub(crate) async fn restart(call: Call, asked: RestartDaemon) -> Result<Nothing, Error> {
    call.client.require_all("restart the daemon")?;
    let named = asked.program.map(PathBuf::from);
    if let Some(program) = named.as_ref().filter(|program| !program.is_absolute() || !program.is_file()) {
        return Err(Error::InvalidArgument {
            argument: "program".to_owned(),
            reason: format!("`{}` is not the absolute path of a file", program.display()),
        });
    }
    call.daemon.restart(named);
    Ok(Nothing {})
}
