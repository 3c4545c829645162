//! The model behind a coding agent: a server on loopback that says what the test tells it to, in the format in which it is asked. It answers no
//! request by itself but those that are beside the conversation (titles, counts of tokens, lists of models), so a test is the model: it takes a
//! request, looks at what the model is shown there, and says what the model does next.

use std::convert::Infallible;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::agent_clients::wire::{Format, Move};

/// A model's server that answers from a script.
pub(crate) struct Model {
    port: u16,
    asked: Receiver<Asked>,
    _runtime: Runtime,
}

/// A request of the conversation, which waits for the model's next move.
pub(crate) struct Asked {
    pub(crate) format: Format,
    pub(crate) body: Value,
    answer: oneshot::Sender<Move>,
}

impl Asked {
    /// Says what the model does. The agent may have gone.
    pub(crate) fn answer(self, next: Move) {
        self.answer.send(next).ok();
    }
}

impl Model {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (asks, asked) = mpsc::channel();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asks = asks.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| serve(request, asks.clone()));
                    // An agent that ends closes its connections as it likes.
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await
                        .ok();
                });
            }
        });
        Self { port, asked, _runtime: runtime }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The next request of the conversation, where it comes in time.
    pub(crate) fn next(&self, limit: Duration) -> Result<Asked, RecvTimeoutError> {
        self.asked.recv_timeout(limit)
    }
}

async fn serve(request: Request<Incoming>, asks: Sender<Asked>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let Ok(body) = request.into_body().collect().await else {
        return Ok(with_json(StatusCode::BAD_REQUEST, &json!({})));
    };
    let body: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    let Some(format) = Format::at(&path).filter(|_| method == Method::POST) else {
        return Ok(beside_the_conversation(&path));
    };
    if format.offered(&body).is_empty() {
        return Ok(with_events(format.events(&Move::Say("a title".to_owned()))));
    }
    let (answer, next) = oneshot::channel();
    // The test has ended, where nobody takes it.
    asks.send(Asked { format, body, answer }).ok();
    Ok(match next.await {
        Ok(next) => with_events(format.events(&next)),
        Err(_) => with_json(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({ "error": { "message": "the test has ended" } }),
        ),
    })
}

fn beside_the_conversation(path: &str) -> Response<Full<Bytes>> {
    let answer = match path {
        _ if path.ends_with("countTokens") => json!({ "totalTokens": 10 }),
        _ if path.ends_with("count_tokens") => json!({ "input_tokens": 10 }),
        _ if path.ends_with("models") => json!({ "object": "list", "data": [], "models": [] }),
        _ => {
            return with_json(
                StatusCode::NOT_FOUND,
                &json!({ "error": { "message": "there is no such thing" } }),
            );
        }
    };
    with_json(StatusCode::OK, &answer)
}

fn with_json(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    response(status, "application/json", body.to_string())
}

fn with_events(events: String) -> Response<Full<Bytes>> {
    response(StatusCode::OK, "text/event-stream", events)
}

fn response(status: StatusCode, kind: &str, body: String) -> Response<Full<Bytes>> {
    let head = Response::builder().status(status).header("content-type", kind);
    head.body(Full::new(Bytes::from(body))).unwrap()
}
