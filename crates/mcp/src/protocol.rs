//! What MCP enters in the registry of protocols.

use std::sync::Arc;

use axum::Router;
use mainstay_model::{Error, SessionId};
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

use super::{McpDaemon, Settings, Shared, http_routes, serve_stream, sse_routes};
use mainstay_gateway::daemon::Daemon;
use mainstay_gateway::local_socket::ClientContext;
use mainstay_gateway::protocol::{Attachment, Paths, Protocol};
use mainstay_protocol::json_rpc::{Method, Request};
use mainstay_protocol::operations::Attached;

/// Shows the token, and turns a connection of the local socket into one of MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachMcp {
    /// The token of the principal that the client stands for.
    pub token: String,
    /// The folder the client works in, absolute: where its first session is created.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// The session that the client used last, where it had a connection before this one: calls that name no session take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What the client has in its environment: the sessions that it creates get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

impl Method for AttachMcp {
    const NAME: &'static str = "mcp/attach";
    type Answer = Attached;
}

/// The protocol of AI agents: MCP over HTTP, and as lines over the local socket.
#[derive(Clone, Default)]
pub struct Mcp {
    shared: Arc<Shared>,
}

impl Mcp {
    /// With what its user decided.
    pub fn new(settings: Settings) -> Self {
        Self::sharing(Arc::new(Shared::new(settings)))
    }

    /// With state that other connections have too.
    pub const fn sharing(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Protocol for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn paths(&self, daemon: &Daemon) -> Paths {
        let daemon = McpDaemon::new(daemon.clone(), Arc::clone(&self.shared));
        let guarded = http_routes(&daemon).merge(sse_routes(daemon));
        Paths { guarded, public: Router::new() }
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        Attachment::of(request, |AttachMcp { token, working_directory, session, environment }| {
            let (shared, context) =
                (Arc::clone(&self.shared), ClientContext { working_directory, session, environment });
            Attachment::new(token, move |daemon, admission, (read, write)| {
                serve_stream(read, write, McpDaemon::new(daemon, shared), admission, context)
            })
        })
    }
}
