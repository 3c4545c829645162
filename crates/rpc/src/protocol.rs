//! What JSON-RPC enters in the registry of protocols.

use mainstay_model::Error;

use super::connection;
use mainstay_gateway::protocol::{Attachment, Protocol};
use mainstay_protocol::json_rpc::Request;
use mainstay_protocol::operations::Attach;

/// The protocol of the command line: JSON-RPC on the local socket.
#[derive(Debug, Default)]
pub struct Rpc;

impl Protocol for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        Attachment::of(request, |Attach { token, name, environment }| {
            Attachment::new(token, move |daemon, admission, stream| async move {
                let client = daemon.engine.attach(admission.access.clone(), &shown_name(&name));
                let client = client.as_connection().with_environment(environment);
                connection::serve(stream, daemon, client, &admission).await;
            })
        })
    }
}

/// What a client calls itself, as far as it can be shown.
fn shown_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}
