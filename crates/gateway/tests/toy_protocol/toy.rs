//! A protocol of lines: each is code, and each answer is what came of it. Over the local socket a connection is one session's; on the daemon's port
//! `POST /toy` runs its body in a session of its own, and on a port of its own the same path does.
//!
//! It is all that a protocol needs. It has nothing of the gateway but what is public, and nothing of the gateway knows it.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::post;
use futures::{SinkExt, StreamExt};
use mainstay_engine::Client;
use mainstay_gateway::Daemon;
use mainstay_gateway::admission::Admission as Admitted;
use mainstay_gateway::command::anonymous;
use mainstay_gateway::local_socket::LocalStream;
use mainstay_gateway::problem::Problem;
use mainstay_gateway::protocol::{Attachment, Paths, Protocol};
use mainstay_gateway::view::eval_view;
use mainstay_model::{
    Access, Admission, Command, CreateSession, Error, Outcome, Response, SessionCommand, SessionId,
    SessionKind, command,
};
use mainstay_protocol::json_rpc::{Method, Request};
use mainstay_protocol::operations::Attached;
use serde::{Deserialize, Serialize};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

/// Shows the token, and turns a connection of the local socket into one of this protocol.
#[derive(Serialize, Deserialize)]
pub(crate) struct AttachToy {
    token: String,
}

impl Method for AttachToy {
    const NAME: &'static str = "toy/attach";
    type Answer = Attached;
}

/// The protocol, whose sessions work in this folder.
#[derive(Clone)]
pub(crate) struct Toy {
    pub(crate) folder: Arc<Path>,
}

impl Protocol for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn paths(&self, daemon: &Daemon) -> Paths {
        Paths { guarded: self.at("/toy", daemon), public: Router::new() }
    }

    fn paths_of_own_port(&self, daemon: &Daemon) -> Option<Router> {
        Some(self.at("/", daemon))
    }

    fn attach(&self, request: &Request) -> Option<Result<Attachment, Error>> {
        let toy = self.clone();
        Attachment::of(request, |AttachToy { token }| {
            Attachment::new(token, move |daemon, admission, stream| async move {
                // The end of the connection says that something failed.
                toy.converse(&daemon, admission, stream).await.ok();
            })
        })
    }
}

impl Toy {
    fn at(&self, path: &str, daemon: &Daemon) -> Router {
        Router::new().route(path, post(run)).with_state((self.clone(), daemon.clone()))
    }

    /// Runs line after line in one session, until the client goes or the daemon stops.
    async fn converse(
        &self,
        daemon: &Daemon,
        admission: Admitted,
        (read, write): LocalStream,
    ) -> Result<(), Error> {
        let client = daemon.engine.attach(admission.access.clone(), "toy").as_connection();
        let session = self.create(&client).await?;
        let mut lines = FramedRead::new(read, LinesCodec::new());
        let mut answers = FramedWrite::new(write, LinesCodec::new());
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = daemon.stopped.cancelled() => None,
                () = admission.expired() => None,
            };
            let Some(Ok(code)) = line else { return Ok(()) };
            let answer = eval(&client, session, code).await.unwrap_or_else(|error| error.to_string());
            if answers.send(answer).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn create(&self, client: &Client) -> Result<SessionId, Error> {
        let create = CreateSession {
            kind: SessionKind::fsharp(),
            working_directory: self.folder.display().to_string(),
            project: Default::default(),
            arguments: Vec::new(),
            name: None,
            alias: None,
        };
        match client.create(anonymous(), create).await? {
            Outcome::Done { response: Response::Created { session } } => Ok(session),
            Outcome::Done { .. } => Err(Error::BadRequest { reason: "nothing was created".to_owned() }),
            Outcome::Failed { error } => Err(error),
        }
    }
}

/// Runs the body of a request in a session of its own.
async fn run(
    State((toy, daemon)): State<(Toy, Daemon)>,
    Extension(access): Extension<Access>,
    code: String,
) -> Result<String, Problem> {
    let client = daemon.engine.attach(access, "toy");
    let session = toy.create(&client).await?;
    Ok(eval(&client, session, code).await?)
}

async fn eval(client: &Client, session: SessionId, code: String) -> Result<String, Error> {
    let eval = command::Eval { code, file: None, command_line: None, origin: None, withheld: false };
    let id = anonymous();
    // It waits until the session's worker is ready.
    let command = Command {
        admission: Admission::Queue,
        ..Command::new(id.clone(), client.source(), SessionCommand::Eval(eval))
    };
    match client.submit(session, command).await?.outcome {
        Outcome::Done { response: Response::Evaluated(eval) } => {
            let view = eval_view(client, session, id, eval).await?;
            Ok(view.value.unwrap_or(view.ending))
        }
        Outcome::Done { .. } => Err(Error::BadRequest { reason: "nothing ran".to_owned() }),
        Outcome::Failed { error } => Err(error),
    }
}
