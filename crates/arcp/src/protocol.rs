//! What ARCP enters in the registry of protocols.

use std::time::Duration;

use axum::Router;
use futures::future::{BoxFuture, FutureExt};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_gateway::protocol::{Attachment, Paths, Protocol};
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::json_rpc::{Method, Request};
use mainstay_protocol::operations::Attached;
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

use crate::settings::Settings;
use crate::socket::routes;
use crate::stdio::serve_stream;

/// How often what can no longer be resumed is removed, at least.
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// Shows the token, and turns a connection of the local socket into one of ARCP, an envelope a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachArcp {
    /// The token of the principal that the client stands for.
    pub token: String,
    /// The folder the client works in, absolute: where sessions work whose job names no folder.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// What the client has in its environment: the sessions that it creates get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

impl Method for AttachArcp {
    const NAME: &'static str = "arcp/attach";
    type Answer = Attached;
}

/// ARCP, both dialects: over WebSocket at `/arcp`, and as lines over the local socket.
#[derive(Clone, Default)]
pub struct Arcp {
    settings: Settings,
}

impl Arcp {
    /// Its name among the protocols.
    pub const NAME: &'static str = "arcp";
    /// The path at which it is served.
    pub const PATH: &'static str = "/arcp";

    /// With these settings.
    pub const fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

impl Protocol for Arcp {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The path wants no token of HTTP: a client shows its token in the first envelope.
    fn paths(&self, daemon: &Daemon) -> Paths {
        Paths { guarded: Router::new(), public: routes(daemon.clone(), self.settings) }
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        let settings = self.settings;
        Attachment::of(request, move |AttachArcp { token, working_directory, environment }| {
            let context = ClientContext { working_directory, environment, session: None };
            Attachment::new(token, move |daemon, access, (read, write)| {
                serve_stream(read, write, daemon, settings, access, context)
            })
        })
    }

    /// Removes what can no longer be resumed, from time to time.
    fn run(&self, daemon: Daemon) -> Option<BoxFuture<'static, ()>> {
        let every = self.settings.resume_window().min(SWEEP);
        let sweep = async move {
            loop {
                if let Err(error) = daemon.engine.remove_expired_connections(Timestamp::now()).await {
                    tracing::warn!(%error, "expired connections are not removed");
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
