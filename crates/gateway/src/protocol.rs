//! The registry of protocols. A protocol enters itself by implementing [`Protocol`]; the program makes the list, and nothing else here knows
//! which protocols there are.
//!
//! A protocol can serve paths on the daemon's loopback port, the same or others at the root of a port of its own, and connections of the local
//! socket whose first request names it. It stops with the daemon: what it serves ends once [`Daemon::stopped`] is cancelled and what was asked is
//! answered.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use futures::future::{BoxFuture, join_all};
use mainstay_model::Error;
use mainstay_protocol::json_rpc::{Method, Request, params};

use crate::admission::Admission;
use crate::daemon::Daemon;
use crate::local_socket::LocalStream;

/// A protocol that clients speak with the daemon.
pub trait Protocol: Send + Sync + 'static {
    /// The name of the protocol, which no other has.
    fn name(&self) -> &'static str;

    /// What it serves on the daemon's port.
    fn paths(&self, daemon: &Daemon) -> Paths {
        let _ = daemon;
        Paths::default()
    }

    /// What it serves on a port of its own, behind the token; `None` for a protocol that is never given one.
    fn paths_of_own_port(&self, daemon: &Daemon) -> Option<Router> {
        let _ = daemon;
        None
    }

    /// Paths at which a WebSocket may show its token in the address (`?token=`), for clients that can send no header.
    fn token_in_address(&self) -> &'static [&'static str] {
        &[]
    }

    /// Takes a connection of the local socket, whose first request this is; `None` where the request is for another protocol.
    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        let _ = request;
        None
    }

    /// What people see in a browser where a program would see an error. Those of the first protocol that has some are used.
    fn pages(&self) -> Option<Pages> {
        None
    }

    /// What the protocol does beside answering, from the start of the daemon until [`Daemon::stop`] is cancelled.
    fn run(&self, daemon: Daemon) -> Option<BoxFuture<'static, ()>> {
        let _ = daemon;
        None
    }
}

/// What a protocol serves on the daemon's port.
#[derive(Default)]
pub struct Paths {
    /// Paths that want a token. Their requests have the [`Access`](mainstay_model::Access) of its principal and the [`Admission`] as extensions. A
    /// connection that is upgraded ends once the admission has expired. One protocol at most may bring a fallback.
    pub guarded: Router,
    /// Paths that want none: what they answer is the same for everybody.
    pub public: Router,
}

/// What people see in a browser that shows no token.
#[derive(Clone, Copy)]
pub struct Pages {
    /// The path of the page, without a slash at its end: all below it belongs to the page too.
    pub path: &'static str,
    /// What a browser is given that opens an address of the page: it has no content, and fetches it with the token.
    pub shell: fn() -> Response,
    /// Why a request was refused.
    pub refused: fn(Error) -> Response,
}

/// A connection of the local socket that a protocol takes.
pub struct Attachment {
    /// The token that the client shows. Only once it is accepted is the connection served.
    pub token: String,
    serve: Serve,
}

type Serve = Box<dyn FnOnce(Daemon, Admission, LocalStream) -> BoxFuture<'static, ()> + Send>;

impl Attachment {
    /// Of a client that shows this token; `serve` has the connection from then on, and ends it once the [`Admission`] has expired.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        token: String,
        serve: impl FnOnce(Daemon, Admission, LocalStream) -> F + Send + 'static,
    ) -> Self {
        let serve: Serve = Box::new(|daemon, admission, stream| Box::pin(serve(daemon, admission, stream)));
        Self { token, serve }
    }

    /// Made of the first request, where that is the method `M`.
    pub fn of<M: Method>(
        request: &Request,
        attachment: impl FnOnce(M) -> Self,
    ) -> Option<Result<Self, Error>> {
        (request.method == M::NAME).then(|| params::<M>(request).map(attachment))
    }

    /// Serves the connection to its end, for a client that was admitted so. It ends with the credentials at the latest.
    pub(crate) async fn serve(self, daemon: Daemon, admission: Admission, stream: LocalStream) {
        (self.serve)(daemon, admission, stream).await;
    }
}

/// The protocols of a daemon.
#[derive(Clone, Default)]
pub struct Protocols(Arc<[Arc<dyn Protocol>]>);

impl Protocols {
    /// Collects these protocols into a list.
    pub fn new(protocols: impl IntoIterator<Item = Arc<dyn Protocol>>) -> Self {
        Self(protocols.into_iter().collect())
    }

    /// Does what the protocols do beside answering, until the daemon stops.
    pub async fn run(&self, daemon: &Daemon) {
        join_all(self.iter().filter_map(|protocol| protocol.run(daemon.clone()))).await;
    }

    /// The protocol of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&dyn Protocol> {
        self.iter().find(|protocol| protocol.name() == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn Protocol> {
        self.0.iter().map(AsRef::as_ref)
    }
}

impl<P: Protocol> From<P> for Protocols {
    /// A list of this one protocol alone.
    fn from(protocol: P) -> Self {
        Self::new([Arc::new(protocol) as Arc<dyn Protocol>])
    }
}
