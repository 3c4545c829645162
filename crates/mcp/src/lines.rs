//! JSON-RPC messages as lines, both ways. A line that is no message is answered with an error in its place, and those after it
//! are served.

use std::io;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, FramedRead, FramedWrite, LinesCodec, LinesCodecError};

/// A client's stream of JSON lines.
pub(super) struct Lines<R, W> {
    incoming: FramedRead<R, AnyLines>,
    /// None once it is closed.
    outgoing: Arc<Mutex<Option<FramedWrite<W, LinesCodec>>>>,
    reply: Option<Reply>,
}

/// An error on its way to the client. It is kept here since `receive` may be dropped at any point and called again.
enum Reply {
    ToWrite(String),
    ToFlush,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    /// With the longest line that is taken, in bytes.
    pub(super) fn new(read: R, write: W, limit: usize) -> Self {
        Self {
            incoming: FramedRead::new(read, AnyLines::up_to(limit)),
            outgoing: Arc::new(Mutex::new(Some(FramedWrite::new(write, LinesCodec::new())))),
            reply: None,
        }
    }

    /// Sends the error that waits, if there is one; none where the client is gone.
    async fn send_reply(&mut self) -> Option<()> {
        let Some(reply) = &mut self.reply else { return Some(()) };
        let mut outgoing = self.outgoing.lock().await;
        let outgoing = outgoing.as_mut()?;
        if let Reply::ToWrite(text) = reply {
            outgoing.feed(&*text).await.ok()?;
            *reply = Reply::ToFlush;
        }
        SinkExt::<&str>::flush(outgoing).await.ok()?;
        self.reply = None;
        Some(())
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outgoing = Arc::clone(&self.outgoing);
        async move {
            let text = serde_json::to_string(&message)?;
            match outgoing.lock().await.as_mut() {
                Some(outgoing) => outgoing.send(text).await.map_err(io::Error::other),
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.send_reply().await?;
            // A stream that fails has ended.
            let line = self.incoming.next().await?.ok()?;
            match message(line) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(refusal) => self.reply = Some(Reply::ToWrite(refusal)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing.lock().await.take();
        Ok(())
    }
}

/// The message of a line; none where it holds nothing that wants an answer. Else the error to send.
fn message(line: Result<String, LinesCodecError>) -> Result<Option<RxJsonRpcMessage<RoleServer>>, String> {
    let line = line.map_err(|error| unreadable(&error))?;
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(line).map_err(|error| no_json(&error))?;
    match serde_json::from_str(line) {
        Ok(message) => Ok(Some(message)),
        // A notification that is not known, as newer clients send them.
        Err(_) if value.get("method").is_some_and(Value::is_string) && value.get("id").is_none() => Ok(None),
        Err(error) => {
            let id = value.get("id").filter(|id| id.is_string() || id.is_i64()).cloned();
            let said = format!("the line is no message of MCP: {error}");
            Err(refusal(&id.unwrap_or(Value::Null), &ErrorData::invalid_request(said, None)))
        }
    }
}

/// The answer to a line that cannot be read.
pub fn unreadable(error: &LinesCodecError) -> String {
    let error = match error {
        LinesCodecError::MaxLineLengthExceeded => {
            ErrorData::invalid_request("the message is longer than `message-bytes` allows", None)
        }
        LinesCodecError::Io(error) => ErrorData::parse_error(format!("the line is no text: {error}"), None),
    };
    refusal(&Value::Null, &error)
}

fn no_json(error: &serde_json::Error) -> String {
    refusal(&Value::Null, &ErrorData::parse_error(format!("the line is no JSON: {error}"), None))
}

/// The answer to a request whose id may not be known.
fn refusal(id: &Value, error: &ErrorData) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

/// Lines, and those that cannot be taken as what they are: an error of a codec would be the end of the stream.
#[derive(Debug)]
pub struct AnyLines {
    codec: LinesCodec,
}

impl AnyLines {
    /// With the longest line that is taken, in bytes: of a longer one nothing is kept.
    pub fn up_to(limit: usize) -> Self {
        Self { codec: LinesCodec::new_with_max_length(limit) }
    }
}

impl Decoder for AnyLines {
    type Item = Result<String, LinesCodecError>;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        Ok(self.codec.decode(buffer).transpose())
    }

    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        Ok(self.codec.decode_eof(buffer).transpose())
    }
}
