//! What ARCP enters in the registry of protocols.

use std::time::Duration;

use axum::Router;
use futures::future::{BoxFuture, FutureExt};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::peer_network::PeerNetwork;
use mainstay_gateway::protocol::{Attachment, Paths, Protocol};
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::json_rpc::Request;

use crate::attach::AttachArcp;
use crate::live_sessions::LiveSessions;
use crate::peer::{Attached, Peer};
use crate::settings::Settings;
use crate::socket::routes;
use crate::stdio::serve_stream;
use crate::stored_session::PROTOCOL;

/// How often what can no longer be resumed is removed, at least.
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// ARCP, both dialects: over WebSocket at `/arcp`, and as lines over the local socket.
#[derive(Clone, Default)]
pub struct Arcp {
    settings: Settings,
    live: LiveSessions,
}

impl Arcp {
    /// Its name among the protocols.
    pub const NAME: &'static str = PROTOCOL;
    /// The protocol with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings, live: LiveSessions::default() }
    }
}

impl Protocol for Arcp {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The path wants no token of HTTP: a client shows its token in the first envelope.
    fn paths(&self, daemon: &Daemon) -> Paths {
        Paths { guarded: Router::new(), public: routes(daemon.clone(), self.settings, self.live.clone()) }
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        let (settings, live) = (self.settings, self.live.clone());
        Attachment::of(request, move |AttachArcp { token, working_directory, environment, purpose }| {
            let attached = move |admission| Attached { admission, folder: working_directory, environment };
            Attachment::new(token, move |daemon, admission, streams| {
                let peer = Peer {
                    daemon,
                    settings,
                    live,
                    attached: Some(attached(admission)),
                    certificate: None,
                    from: PeerNetwork::LOCAL,
                    place: None,
                };
                serve_stream(streams, peer, purpose)
            })
        })
    }

    /// Removes what can no longer be resumed, from time to time.
    fn run(&self, daemon: Daemon) -> Option<BoxFuture<'static, ()>> {
        let every = self.settings.resume_window().min(SWEEP);
        let sweep = async move {
            loop {
                let now = Timestamp::now();
                if let Err(error) = daemon.engine.remove_expired_connections(now).await {
                    tracing::warn!(%error, "expired connections are not removed");
                }
                if let Err(error) = daemon.engine.remove_expired_artifacts(now).await {
                    tracing::warn!(%error, "expired artifacts are not removed");
                }
                tokio::select! {
                    () = daemon.stop.cancelled() => return,
                    () = tokio::time::sleep(every) => {}
                }
            }
        };
        Some(sweep.boxed())
    }
}
