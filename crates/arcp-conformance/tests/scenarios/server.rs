//! What both scripted runtimes share: a WebSocket listener, one writer a connection, and the clock's words.

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// The field of a payload that is sent in a binary frame behind the message.
pub(crate) const BYTES: &str = "(bytes)";

/// Where a connection's messages go; none closes it.
pub(crate) type Out = mpsc::UnboundedSender<Option<Value>>;

/// A runtime that answers one message after the other.
pub(crate) trait Scripted: Send + Sync + 'static {
    /// What it knows of one connection.
    type Connection: Default + Send;

    /// Carries out one frame; returns false where the connection ends.
    fn receive(self: &Arc<Self>, frame: &str, connection: &mut Self::Connection, out: &Out) -> bool;

    /// Hears that a connection is gone.
    fn lost(&self, connection: &Self::Connection, out: &Out);

    /// Whether a frame of bytes ends the connection.
    fn closes_on_bytes(&self) -> bool {
        false
    }

    /// Changes what is sent, as its fault demands.
    fn spoil(&self, message: Value) -> Vec<Value>;
}

/// Serves a scripted runtime on a port of its own, and returns its address.
pub(crate) async fn serve<S: Scripted>(runtime: Arc<S>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(Arc::clone(&runtime), stream));
        }
    });
    format!("ws://{address}/arcp")
}

/// Serves a scripted runtime over TLS as `localhost`, and returns its address.
pub(crate) async fn serve_tls<S: Scripted>(runtime: Arc<S>, acceptor: TlsAcceptor) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (runtime, acceptor) = (Arc::clone(&runtime), acceptor.clone());
            tokio::spawn(async move {
                // One that trusts somebody else, or shows nothing, goes.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                converse(runtime, stream).await;
            });
        }
    });
    format!("wss://localhost:{port}/arcp")
}

async fn converse<S: Scripted>(
    runtime: Arc<S>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let Ok(socket) = accept_async(stream).await else { return };
    let (mut sink, mut source) = socket.split();
    let (out, mut outgoing) = mpsc::unbounded_channel::<Option<Value>>();
    let writer = Arc::clone(&runtime);
    let writer = tokio::spawn(async move {
        while let Some(Some(message)) = outgoing.recv().await {
            for mut message in writer.spoil(message) {
                let bytes = message["payload"].as_object_mut().and_then(|payload| payload.remove(BYTES));
                let bytes = bytes.map(|bytes| Message::binary(bytes.to_string()));
                for frame in [Message::text(message.to_string())].into_iter().chain(bytes) {
                    if sink.send(frame).await.is_err() {
                        return;
                    }
                }
            }
        }
        let _ = sink.close().await;
    });
    let mut connection = S::Connection::default();
    while let Some(Ok(message)) = source.next().await {
        let Message::Text(text) = message else {
            if message.is_binary() && runtime.closes_on_bytes() {
                break;
            }
            continue;
        };
        if !runtime.receive(text.as_str(), &mut connection, &out) {
            break;
        }
    }
    runtime.lost(&connection, &out);
    let _ = out.send(None);
    let _ = writer.await;
}

/// The time now, as both dialects write it.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// The text at a pointer, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Removes a field of a message, wherever the pointer leads to it.
pub(crate) fn remove(message: &mut Value, parent: &str, field: &str) {
    if let Some(fields) = message.pointer_mut(parent).and_then(Value::as_object_mut) {
        fields.remove(field);
    }
}
