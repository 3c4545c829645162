//! Endpoints: each says where it is, what carries it out, and what it takes and answers. The router and the OpenAPI document are made of the
//! same list, so that neither can lack what the other has.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use mainstay_protocol::{Operation, OperationId};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::bare;
use super::daemon::HttpDaemon;

/// Makes the schema of a type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A message, in both of its forms.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) json: SchemaOf,
    /// Its type in BARE, where it has one.
    pub(super) bare: Option<fn(&mut bare::Schema) -> String>,
}

impl Message {
    pub(super) fn of<T: JsonSchema + bare::Shape>() -> Self {
        Self { json: schema_of::<T>, bare: Some(T::shape) }
    }

    /// A message that has no form in BARE.
    fn in_json<T: JsonSchema>() -> Self {
        Self { json: schema_of::<T>, bare: None }
    }
}

/// What an endpoint answers where all goes well.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// That a command is accepted, or where its client waits, its outcome.
    Command(Message),
    /// A session that came to be.
    Session,
    /// What was asked for.
    Json(SchemaOf),
    /// What was asked for, as text.
    Text,
    /// What the command has created, in JSON alone.
    Created(SchemaOf),
    /// Signals, as they come.
    Stream(SchemaOf),
    /// What any stream tells, over WebSocket.
    Frames,
    /// Nothing more than that it is done.
    Nothing,
}

/// One method of one path.
pub(super) struct Endpoint {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// The operation's documentation, or other words where the endpoint is not quite the operation: the path says which session is meant, a command is
    /// answered before its outcome is there, and some endpoints do part of an operation.
    pub(super) summary: &'static str,
    /// The operations of the list that it carries out.
    pub(super) operations: Vec<OperationId>,
    /// Whether it is about one session, and so is also below that session's own path.
    pub(super) is_of_a_session: bool,
    pub(super) query: Option<SchemaOf>,
    pub(super) body: Option<Message>,
    pub(super) answer: Answer,
    handler: MethodRouter<HttpDaemon>,
}

impl Endpoint {
    fn new<H, T>(method: Method, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self {
            method,
            path,
            summary,
            operations: Vec::new(),
            is_of_a_session: false,
            query: None,
            body: None,
            answer: Answer::Nothing,
            handler: on(filter, handler),
        }
    }

    /// A command: what it says, and what its outcome looks like.
    pub(super) fn command<B: JsonSchema + bare::Decode, O: JsonSchema + bare::Encode, H, T>(
        path: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let command = Self::new(Method::POST, path, summary, handler);
        Self { body: Some(Message::of::<B>()), answer: Answer::Command(Message::of::<O>()), ..command }
    }

    /// A stream of signals.
    pub(super) fn stream<S: JsonSchema, H, T>(path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let stream = Self::new(Method::GET, path, summary, handler);
        Self { answer: Answer::Stream(schema_of::<S>), is_of_a_session: true, ..stream }
    }

    /// A socket on which any stream is told.
    pub(super) fn socket<H, T>(path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let socket = Self::new(Method::GET, path, summary, handler);
        Self { answer: Answer::Frames, is_of_a_session: true, ..socket }
    }

    /// An operation that reads something, with the operation's answer and documentation.
    pub(super) fn query<O: Operation, H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        Self::read::<O::Answer, _, _>(path, summary_of::<O>(), handler).carries_out::<O>()
    }

    /// Something that is read.
    pub(super) fn read<A: JsonSchema, H, T>(path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let read = Self::new(Method::GET, path, summary, handler);
        Self { answer: Answer::Json(schema_of::<A>), ..read }
    }

    /// Something that is read, as text.
    pub(super) fn text<H, T>(path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        Self { answer: Answer::Text, ..Self::new(Method::GET, path, summary, handler) }
    }

    /// A command that creates something, with its body and its answer in JSON alone.
    pub(super) fn creation_in_json<B: JsonSchema, A: JsonSchema, H, T>(
        path: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let creation = Self::new(Method::POST, path, summary, handler);
        Self { body: Some(Message::in_json::<B>()), answer: Answer::Created(schema_of::<A>), ..creation }
    }

    /// What brings a session.
    pub(super) fn creation<B: JsonSchema + bare::Decode, H, T>(
        path: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let creation = Self::new(Method::POST, path, summary, handler);
        Self { body: Some(Message::of::<B>()), answer: Answer::Session, ..creation }
    }

    /// The same, which carries out an operation of the list.
    pub(super) fn carries_out<O: Operation>(mut self) -> Self {
        self.operations.push(OperationId::of::<O>());
        self
    }

    /// The same, in other words than those of the operation.
    pub(super) fn with_summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// The same, about one session.
    pub(super) fn of_a_session(self) -> Self {
        Self { is_of_a_session: true, ..self }
    }

    /// The same, with another method.
    pub(super) fn deletes<H, T>(self, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        Self { method: Method::DELETE, handler: on(MethodFilter::DELETE, handler), ..self }
    }

    /// The same, which puts something there that the body has, in JSON alone.
    pub(super) fn puts<B: JsonSchema, H, T>(self, handler: H) -> Self
    where
        H: Handler<T, HttpDaemon>,
        T: 'static,
    {
        let body = Some(Message::in_json::<B>());
        Self { method: Method::PUT, body, handler: on(MethodFilter::PUT, handler), ..self }
    }

    /// The same, which takes parameters.
    pub(super) fn with_query<Q: JsonSchema>(self) -> Self {
        Self { query: Some(schema_of::<Q>), ..self }
    }

    /// The same, with this answer.
    pub(super) fn answers(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }

    /// Returns every path at which the endpoint is served.
    pub(super) fn paths(&self) -> Vec<String> {
        let of_a_session = self.is_of_a_session.then(|| format!("/sessions/{{session}}{}", self.path));
        [self.path.to_owned()].into_iter().chain(of_a_session).collect()
    }

    /// Adds it to a router.
    pub(super) fn serve(self, router: Router<HttpDaemon>) -> Router<HttpDaemon> {
        self.paths().iter().fold(router, |router, path| router.route(path, self.handler.clone()))
    }
}

/// What an operation does, as a summary of OpenAPI: without the full stop.
pub(super) fn summary_of<O: Operation>() -> &'static str {
    O::DOCUMENTATION.trim_end_matches('.')
}

/// Makes the schema of a type.
pub(super) fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
