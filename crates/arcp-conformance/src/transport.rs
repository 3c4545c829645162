//! Connections to the runtime under test: text frames of a WebSocket, or lines over the standard streams of a
//! child process (dialect A §22, dialect B §4).

use std::process::Stdio;

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Request, Uri};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::tls::TlsClient;

/// Where the runtime under test is reached.
#[derive(Debug, Clone)]
pub enum Target {
    /// A WebSocket address, `ws://HOST:PORT/PATH` or `wss://HOST:PORT/PATH`, and headers for the upgrade.
    WebSocket {
        /// The address of the runtime.
        url: String,
        /// Headers that each connection sends.
        headers: Vec<(HeaderName, HeaderValue)>,
        /// What `wss://` is spoken with.
        tls: Option<TlsClient>,
    },
    /// A command that speaks over its standard streams; each connection starts it anew.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

/// Why a connection could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The WebSocket could not be opened or written.
    #[error(transparent)]
    WebSocket(#[from] tungstenite::Error),
    /// The address is none of a WebSocket, or one over TLS where there is nothing to speak it with.
    #[error("`{0}` is no address that begins with `ws://` or `wss://` and can be reached")]
    Address(String),
    /// The connection could not be opened.
    #[error("no connection: {0}")]
    Connection(std::io::Error),
    /// The process could not be started or written to.
    #[error(transparent)]
    Process(#[from] std::io::Error),
    /// The command is empty, or its streams are not there.
    #[error("the command has no program or no streams")]
    NoStreams,
}

/// What a connection yields next.
#[derive(Debug)]
pub(crate) enum Incoming {
    Text(String),
    Binary(usize),
    Closed(String),
}

/// What carries a WebSocket: a connection of TCP, or one of TLS over it.
pub(crate) trait Carrier: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Carrier for T {}

/// One open connection to the runtime.
pub(crate) enum Link {
    WebSocket(Box<WebSocketStream<Box<dyn Carrier>>>),
    Stdio { stdin: ChildStdin, lines: Lines<BufReader<ChildStdout>>, _child: Child },
}

impl Link {
    pub(crate) async fn open(target: &Target) -> Result<Self, TransportError> {
        match target {
            Target::WebSocket { url, headers, tls } => {
                let mut request = url.as_str().into_client_request()?;
                request.headers_mut().extend(headers.iter().cloned());
                Self::connect(request, tls.as_ref()).await
            }
            Target::Stdio { command } => Self::start(command),
        }
    }

    async fn connect(request: Request<()>, tls: Option<&TlsClient>) -> Result<Self, TransportError> {
        let unusable = || TransportError::Address(request.uri().to_string());
        let (host, port) = host_of(request.uri()).ok_or_else(unusable)?;
        let tls = match (request.uri().scheme_str(), tls) {
            (Some("wss"), Some(tls)) => Some(tls),
            (Some("ws"), _) => None,
            _ => return Err(unusable()),
        };
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(TransportError::Connection)?;
        let carrier: Box<dyn Carrier> = match tls {
            Some(tls) => Box::new(tls.connect(&host, stream).await.map_err(TransportError::Connection)?),
            None => Box::new(stream),
        };
        let (stream, _) = client_async(request, carrier).await?;
        Ok(Self::WebSocket(Box::new(stream)))
    }

    fn start(command: &[String]) -> Result<Self, TransportError> {
        let (program, arguments) = command.split_first().ok_or(TransportError::NoStreams)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().ok_or(TransportError::NoStreams)?;
        let stdout = child.stdout.take().ok_or(TransportError::NoStreams)?;
        Ok(Self::Stdio { stdin, lines: BufReader::new(stdout).lines(), _child: child })
    }

    pub(crate) async fn send(&mut self, text: String) -> Result<(), TransportError> {
        match self {
            Self::WebSocket(stream) => Ok(stream.send(Message::text(text)).await?),
            Self::Stdio { stdin, .. } => {
                stdin.write_all(text.as_bytes()).await?;
                stdin.write_all(b"\n").await?;
                Ok(stdin.flush().await?)
            }
        }
    }

    /// Sends a binary frame, which the standard streams of a process do not have.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), TransportError> {
        match self {
            Self::WebSocket(stream) => Ok(stream.send(Message::binary(bytes)).await?),
            Self::Stdio { .. } => Err(TransportError::NoStreams),
        }
    }

    /// Waits for the next frame or line; nothing is lost where the wait is given up.
    pub(crate) async fn next(&mut self) -> Incoming {
        match self {
            Self::WebSocket(stream) => loop {
                match stream.next().await {
                    Some(Ok(Message::Text(text))) => return Incoming::Text(text.as_str().to_owned()),
                    Some(Ok(Message::Binary(bytes))) => return Incoming::Binary(bytes.len()),
                    Some(Ok(Message::Close(frame))) => {
                        let why = frame.map(|frame| format!("{} {}", frame.code, frame.reason));
                        return Incoming::Closed(why.unwrap_or_else(|| "without a close code".to_owned()));
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Incoming::Closed(error.to_string()),
                    None => return Incoming::Closed("end of the stream".to_owned()),
                }
            },
            Self::Stdio { lines, .. } => match lines.next_line().await {
                Ok(Some(line)) => Incoming::Text(line),
                Ok(None) => Incoming::Closed("end of the output".to_owned()),
                Err(error) => Incoming::Closed(error.to_string()),
            },
        }
    }
}

/// The host and the port of an address.
fn host_of(address: &Uri) -> Option<(String, u16)> {
    let host = address.host()?.trim_start_matches('[').trim_end_matches(']');
    let usual = if address.scheme_str() == Some("wss") { 443 } else { 80 };
    Some((host.to_owned(), address.port_u16().unwrap_or(usual)))
}
