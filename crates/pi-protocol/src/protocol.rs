//! What the pi protocol enters in the registry of protocols.

use std::sync::Arc;

use axum::Router;
use mainstay_model::Error;
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

use super::socket::routes;
use super::{PiDaemon, Shared, serve_stream};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_gateway::protocol::{Attachment, Paths, Protocol};
use mainstay_protocol::json_rpc::{Method, Request};
use mainstay_protocol::operations::Attached;

/// Shows the token, and turns a connection of the local socket into one of the pi protocol, a frame a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachPi {
    /// The token of the principal that the client stands for.
    pub token: String,
    /// The folder the client works in, absolute: where sessions work whose creator does not say.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// What the client has in its environment: the sessions that it creates get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

impl Method for AttachPi {
    const NAME: &'static str = "pi/attach";
    type Answer = Attached;
}

/// The pi protocol: over WebSocket at `/pi`, at the root of a port of its own, and as lines over the local socket.
#[derive(Clone, Default)]
pub struct PiProtocol {
    shared: Arc<Shared>,
}

impl PiProtocol {
    /// Its name among the protocols.
    pub const NAME: &'static str = "pi";

    /// With state that other connections have too.
    pub const fn sharing(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The protocol at this path.
    fn at(&self, path: &str, daemon: &Daemon) -> Router {
        routes(path).with_state(PiDaemon::new(daemon.clone(), Arc::clone(&self.shared)))
    }
}

impl Protocol for PiProtocol {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn paths(&self, daemon: &Daemon) -> Paths {
        Paths { guarded: self.at("/pi", daemon), public: Router::new() }
    }

    fn paths_of_own_port(&self, daemon: &Daemon) -> Option<Router> {
        Some(self.at("/", daemon))
    }

    fn token_in_address(&self) -> &'static [&'static str] {
        &["/pi", "/"]
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        Attachment::of(request, |AttachPi { token, working_directory, environment }| {
            let (shared, context) =
                (Arc::clone(&self.shared), ClientContext { working_directory, environment, session: None });
            Attachment::new(token, move |daemon, admission, (read, write)| {
                serve_stream(read, write, PiDaemon::new(daemon, shared), admission, context)
            })
        })
    }
}
