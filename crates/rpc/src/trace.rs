//! Where traces begin: a request is a span, which goes along with the [`Client`] that carries it out.

use mainstay_engine::Client;
use mainstay_log::trace::{TARGET, ended};
use mainstay_model::Error;
use tracing::field::Empty;
use tracing::{Span, info_span};

/// A request over the local socket.
pub(super) struct Call(Span);

impl Call {
    /// One that has come in.
    pub(super) fn begin(method: &str) -> Self {
        Self(info_span!(
            target: TARGET,
            parent: None,
            "rpc",
            otel.name = method,
            otel.kind = "server",
            rpc.system = "jsonrpc",
            rpc.method = method,
            "error.type" = Empty,
            otel.status_code = Empty,
        ))
    }

    /// A client that carries it out.
    pub(super) fn client(&self, client: &Client) -> Client {
        client.clone().traced(self.0.clone())
    }

    /// Records how the call was answered.
    pub(super) fn answered<T>(self, answer: &Result<T, Error>) {
        if let Err(error) = answer {
            self.0.record("error.type", error.code().0);
            self.0.record("otel.status_code", "ERROR");
        }
        ended(&self.0);
    }
}
