//! A client of ARCP, dialect B, over the daemon's local socket. It goes on where its daemon is lost: its session is resumed with the next one.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use mainstay_arcp::{AttachArcp, Purpose};
use mainstay_arcp_protocol::b::{
    Capabilities, Close, Envelope, Feature, Hello, Implementation, Message, Ping, Pong, Resume, decode,
};
use mainstay_arcp_protocol::ids::ulid_text;
use mainstay_client::{Stream, attach};
use mainstay_home::environment::client_environment;
use mainstay_home::{Home, VERSION};
use mainstay_model::{Error, Timestamp};
use mainstay_terminal_client::connect::{MOST_LOSSES, answered, connect_again, connect_or_start};
use mainstay_terminal_client::paths::working_directory;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};
use uuid::Uuid;

/// How long a client waits for its session to be closed. It is given up in the end where that is not said.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

/// Connects to the daemon that runs, for this purpose.
pub(super) async fn attached(home: &Home, purpose: Purpose) -> Result<Stream, Error> {
    let record = home.daemon().ok_or(Error::DaemonNotRunning)?;
    let token = home.shown_token().ok_or(Error::Unauthorized)?;
    let working_directory = Some(working_directory()?.display().to_string());
    let attaching = AttachArcp { token, working_directory, environment: client_environment(), purpose };
    let (stream, _) = answered(home, record.pid, attach(&record.socket, attaching)).await?;
    Ok(stream)
}

type Lines = FramedRead<Box<dyn AsyncRead + Send + Unpin>, LinesCodec>;
type Out = FramedWrite<Box<dyn AsyncWrite + Send + Unpin>, LinesCodec>;

/// A client in a session of its own.
pub(super) struct ArcpClient<'h> {
    home: &'h Home,
    lines: Lines,
    out: Out,
    session: String,
    token: String,
    /// The number of the last message that was told.
    last: u64,
    losses: u32,
    /// What was sent and not answered yet, to be sent again where the daemon is lost.
    unanswered: Option<Envelope>,
}

impl<'h> ArcpClient<'h> {
    /// Opens a session with the daemon that runs, or with one that is started.
    pub(super) async fn open(home: &'h Home) -> Result<Self, Error> {
        drop(connect_or_start(home, "arcp").await?);
        let mut losses = 0;
        loop {
            match Self::try_open(home).await {
                // One that has just been reached may be lost before it answers.
                Err(Error::DaemonNotRunning) if losses < MOST_LOSSES => losses += 1,
                opened => return opened.map(|client| Self { losses, ..client }),
            }
            drop(connect_again(home, "arcp").await?);
        }
    }

    async fn try_open(home: &'h Home) -> Result<Self, Error> {
        let (lines, out) = framed(attached(home, Purpose::Serve).await?);
        let (session, token) = (String::new(), String::new());
        let mut client = Self { home, lines, out, session, token, last: 0, losses: 0, unanswered: None };
        let hello = Message::SessionHello(Hello {
            client: Implementation { name: "mainstay".to_owned(), version: VERSION.to_owned() },
            auth: None,
            capabilities: Capabilities {
                encodings: vec!["json".to_owned()],
                features: Feature::ALL.iter().map(ToString::to_string).collect(),
                agents: None,
            },
            resume: None,
        });
        client.greet(hello).await?;
        Ok(client)
    }

    /// Asks for something, which is asked again where the daemon is lost before it is answered.
    pub(super) async fn ask(&mut self, message: Message) -> Result<(), Error> {
        let envelope = envelope(Some(&self.session), message);
        self.unanswered = Some(envelope.clone());
        // A daemon that is lost is noticed as its answer does not come.
        self.out.send(envelope.encode()).await.ok();
        Ok(())
    }

    /// What is told next.
    pub(super) async fn next(&mut self) -> Result<Envelope, Error> {
        loop {
            match self.read().await {
                Ok(envelope) => {
                    self.last = envelope.event_seq.unwrap_or(self.last);
                    let is_answer = matches!(
                        envelope.message,
                        Message::JobAccepted(_) | Message::JobSubscribed(_) | Message::SessionError(_)
                    );
                    if is_answer {
                        self.unanswered = None;
                    }
                    match &envelope.message {
                        Message::SessionPing(ping) => self.answer(ping).await,
                        _ => return Ok(envelope),
                    }
                }
                Err(Error::DaemonNotRunning) if self.losses < MOST_LOSSES => self.resume().await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the session. Its jobs go on.
    pub(super) async fn close(mut self) {
        self.out
            .send(envelope(Some(&self.session), Message::SessionClose(Close::default())).encode())
            .await
            .ok();
        // Whoever goes at once may be gone before that is read.
        let closed = async {
            while let Ok(envelope) = self.read().await {
                if matches!(envelope.message, Message::SessionClosed(_)) {
                    return;
                }
            }
        };
        tokio::time::timeout(CLOSED_WITHIN, closed).await.ok();
    }

    /// Says that it is there.
    async fn answer(&mut self, ping: &Ping) {
        let pong = Pong { ping_nonce: ping.nonce.clone(), received_at: Timestamp::now() };
        self.out.send(envelope(Some(&self.session), Message::SessionPong(pong)).encode()).await.ok();
    }

    async fn resume(&mut self) -> Result<(), Error> {
        loop {
            self.losses += 1;
            drop(connect_again(self.home, "arcp").await?);
            let resumed = async {
                (self.lines, self.out) = framed(attached(self.home, Purpose::Serve).await?);
                let resume = Resume {
                    session_id: Some(self.session.clone()),
                    resume_token: self.token.clone(),
                    last_event_seq: self.last,
                    client: None,
                    auth: None,
                    capabilities: None,
                };
                self.greet(Message::SessionResume(resume)).await
            };
            match resumed.await {
                Err(Error::DaemonNotRunning) if self.losses < MOST_LOSSES => {}
                resumed => break resumed?,
            }
        }
        if let Some(unanswered) = &self.unanswered {
            self.out.send(unanswered.encode()).await.ok();
        }
        Ok(())
    }

    /// Opens or resumes the session, and notes its token.
    async fn greet(&mut self, message: Message) -> Result<(), Error> {
        self.out.send(envelope(None, message).encode()).await.map_err(|_| Error::DaemonNotRunning)?;
        let pid = self.home.daemon().ok_or(Error::DaemonNotRunning)?.pid;
        let home = self.home;
        match answered(home, pid, self.read()).await?.message {
            Message::SessionWelcome(welcome) => {
                (self.session, self.token) = (welcome.session_id, welcome.resume_token);
                Ok(())
            }
            Message::SessionError(refusal) => Err(Error::BadRequest { reason: refusal.message }),
            _ => Err(Error::BadRequest { reason: "the daemon opens no session".to_owned() }),
        }
    }

    async fn read(&mut self) -> Result<Envelope, Error> {
        let line = self.lines.next().await.and_then(Result::ok).ok_or(Error::DaemonNotRunning)?;
        decode(&line).map_err(|error| Error::BadRequest { reason: error.to_string() })
    }
}

fn framed((read, write): Stream) -> (Lines, Out) {
    let (read, write): (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>) =
        (Box::new(read), Box::new(write));
    (FramedRead::new(read, LinesCodec::new()), FramedWrite::new(write, LinesCodec::new()))
}

fn envelope(session: Option<&str>, message: Message) -> Envelope {
    Envelope {
        id: ulid_text(Uuid::now_v7().as_u128()),
        session_id: session.map(str::to_owned),
        trace_id: None,
        job_id: None,
        event_seq: None,
        message,
    }
}
