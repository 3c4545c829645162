//! The daemon's local socket: who may connect, how many, and which protocol a connection speaks.
//!
//! The first line of a connection is a request of JSON-RPC that shows the token. Its method says which protocol follows
//! ([`Protocol::attach`](crate::protocol::Protocol::attach)).

use std::io::Cursor;
use std::path::Path;

use futures::{SinkExt, StreamExt};
use mainstay_model::{Error, Timestamp};
use mainstay_protocol::json_rpc::{Request, answer, failure};
use mainstay_protocol::operations::Attached;
use serde_json::Value;
use tokio::io::{AsyncReadExt, Chain};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{FramedParts, FramedRead, FramedWrite, LinesCodec, LinesCodecError};

use crate::admission::Admission;
use crate::bounded_listener::BoundedListener;
use crate::daemon::Daemon;
use crate::peer_network::PeerNetwork;
use crate::protocol::{Attachment, Protocols};

/// A connection of the local socket behind its first request. What the client sent right after that request is read first.
pub type LocalStream = (Chain<Cursor<BytesMut>, OwnedReadHalf>, OwnedWriteHalf);

/// What is known of a client that attaches to the local socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientContext {
    /// The folder that it works in, absolute.
    pub working_directory: Option<String>,
    /// The session that it used last, where it had a connection before this one.
    pub session: Option<mainstay_model::SessionId>,
    /// What it has in its environment: the sessions that it creates get it.
    pub environment: Option<mainstay_runner::Environment>,
}

/// Opens the socket, the user's alone.
///
/// # Errors
/// [`Error::DaemonFailed`].
pub fn listen(path: &Path) -> Result<UnixListener, Error> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |error: std::io::Error| Error::DaemonFailed {
        reason: format!("the socket `{}` cannot be made: {error}", path.display()),
    };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Serves connections until the daemon stops.
pub async fn serve(listener: UnixListener, daemon: Daemon, protocols: Protocols) {
    let limit = daemon.engine.limits().connections;
    let full = failure(&Value::Null, Error::TooManyConnections { limit });
    let door = BoundedListener::new(listener, limit, format!("{full}\n").into_bytes());
    while let Some((stream, place)) = door.next(&daemon.stop).await {
        let (serving, protocols) = (daemon.clone(), protocols.clone());
        daemon.answering.spawn(async move {
            serve_connection(stream, serving, protocols).await;
            drop(place);
        });
    }
}

/// Serves one connection until the client goes. When the daemon stops it stays open until all is answered, so that its end
/// tells clients that the daemon is gone.
async fn serve_connection(stream: UnixStream, daemon: Daemon, protocols: Protocols) {
    let (read, write) = stream.into_split();
    let limit = daemon.engine.limits().message_bytes;
    let mut requests = FramedRead::new(read, LinesCodec::new_with_max_length(limit));
    let mut answers = FramedWrite::new(write, LinesCodec::new());
    let attached = tokio::select! {
        attached = attach(&mut requests, &mut answers, &daemon, &protocols) => attached,
        () = daemon.stopped.cancelled() => None,
    };
    if let Some((admission, attachment)) = attached {
        // What the client sent right after its token has been read already.
        let FramedParts { io, read_buf, .. } = requests.into_parts();
        let stream = (Cursor::new(read_buf).chain(io), answers.into_inner());
        attachment.serve(daemon, admission, stream).await;
    }
}

/// Waits for the token; anything else ends the connection.
async fn attach(
    requests: &mut FramedRead<OwnedReadHalf, LinesCodec>,
    answers: &mut FramedWrite<OwnedWriteHalf, LinesCodec>,
    daemon: &Daemon,
    protocols: &Protocols,
) -> Option<(Admission, Attachment)> {
    let request = match requests.next().await? {
        Ok(text) => serde_json::from_str::<Request>(&text)
            .map_err(|error| Error::BadRequest { reason: error.to_string() }),
        Err(error) => Err(unreadable(&error)),
    };
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            answers.send(failure(&Value::Null, error)).await.ok();
            return None;
        }
    };
    let id = request.id.clone().unwrap_or(Value::Null);
    match admit(&request, daemon, protocols).await {
        Ok((admission, attachment)) => {
            let attached = Attached {
                version: daemon.version.to_owned(),
                pid: std::process::id(),
                principal: admission.access.principal.clone(),
            };
            answers.send(answer(&id, Ok(attached))).await.ok()?;
            Some((admission, attachment))
        }
        Err(error) => {
            answers.send(failure(&id, error)).await.ok();
            None
        }
    }
}

/// The protocol that takes the connection, and whom its client stands for.
async fn admit(
    request: &Request,
    daemon: &Daemon,
    protocols: &Protocols,
) -> Result<(Admission, Attachment), Error> {
    let taken = protocols.iter().find_map(|protocol| protocol.attach(request));
    let attachment = taken.unwrap_or(Err(Error::Unauthorized))?;
    let admission = daemon.tokens.admit(&attachment.token, PeerNetwork::LOCAL, Timestamp::now()).await;
    Ok((admission.ok_or(Error::Unauthorized)?, attachment))
}

/// Why a line could not be read.
pub fn unreadable(error: &LinesCodecError) -> Error {
    let reason = match error {
        LinesCodecError::MaxLineLengthExceeded => {
            "the message is longer than `message-bytes` allows".to_owned()
        }
        LinesCodecError::Io(error) => error.to_string(),
    };
    Error::BadRequest { reason }
}
