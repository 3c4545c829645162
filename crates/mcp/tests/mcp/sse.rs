//! The old way in: a stream of server-sent events, and POST for what the client says.

use std::time::Duration;

use futures::stream::unfold;
use futures::{Sink, Stream};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::Served;
use crate::support::Agent;

/// A client's stream of server-sent events.
pub(crate) struct Opened {
    response: reqwest::Response,
    read: Vec<u8>,
    sayer: Sayer,
}

/// Says things to the address that a stream named.
#[derive(Clone)]
struct Sayer {
    address: String,
    token: String,
}

impl Sayer {
    async fn say(&self, body: String) -> Result<reqwest::Response, reqwest::Error> {
        let post = reqwest::Client::new().post(&self.address).bearer_auth(&self.token);
        post.header("Content-Type", "application/json").body(body).send().await
    }
}

/// Opens a stream, and reads where it wants to be told things.
pub(crate) async fn open(served: &Served, token: &str) -> Opened {
    let base = format!("http://127.0.0.1:{}", served.port);
    let response = reqwest::Client::new().get(format!("{base}/sse")).bearer_auth(token).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let sayer = Sayer { address: String::new(), token: token.to_owned() };
    let mut opened = Opened { response, read: Vec::new(), sayer };
    let (event, address) = opened.event().await.unwrap();
    assert_eq!(event, "endpoint");
    opened.sayer.address = base + &address;
    opened
}

impl Opened {
    /// The next event, and what it says; none at the end.
    async fn event(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(event), Some(data)) = (field("event: "), field("data: ")) {
                    return Some((event.to_owned(), data.to_owned()));
                }
            } else {
                let more = timeout(Duration::from_secs(30), self.response.chunk()).await.unwrap();
                self.read.extend_from_slice(&more.ok()??);
            }
        }
    }

    /// The next message; none at the end.
    pub(crate) async fn hear(&mut self) -> Option<Value> {
        let (event, data) = self.event().await?;
        assert_eq!(event, "message");
        Some(serde_json::from_str(&data).unwrap())
    }

    pub(crate) async fn say(&self, body: &str) -> reqwest::Response {
        self.sayer.say(body.to_owned()).await.unwrap()
    }

    /// As `rmcp` takes it.
    pub(crate) fn transport(
        self,
    ) -> (
        impl Sink<TxJsonRpcMessage<RoleClient>, Error = reqwest::Error> + Send + Unpin + 'static,
        impl Stream<Item = RxJsonRpcMessage<RoleClient>> + Send + Unpin + 'static,
    ) {
        let said = |sayer: Sayer, message: TxJsonRpcMessage<RoleClient>| async move {
            let answer = sayer.say(serde_json::to_string(&message).unwrap()).await?;
            assert_eq!(answer.status(), 202);
            Ok(sayer)
        };
        let sink = futures::sink::unfold(self.sayer.clone(), said);
        let heard = |mut opened: Self| async move {
            let message = opened.hear().await?;
            Some((serde_json::from_value(message).unwrap(), opened))
        };
        (Box::pin(sink), Box::pin(unfold(self, heard)))
    }
}

#[tokio::test]
async fn a_stream_is_only_of_who_opened_it() {
    let served = Served::start().await;
    let mut mine = open(&served, "secret").await;
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    for (address, token, status) in [
        (mine.sayer.address.clone(), "hers", 400),
        (mine.sayer.address.clone(), "guess", 401),
        (format!("http://127.0.0.1:{}/message", served.port), "secret", 400),
        (format!("http://127.0.0.1:{}/message?sessionId=1", served.port), "secret", 400),
    ] {
        let sayer = Sayer { address, token: token.to_owned() };
        assert_eq!(sayer.say(ping.to_owned()).await.unwrap().status(), status, "{token}");
    }
    let foreign =
        reqwest::Client::new().get(format!("http://127.0.0.1:{}/sse", served.port)).bearer_auth("secret");
    let foreign = foreign.header("Origin", "http://evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    assert_eq!(mine.say(ping).await.status(), 202);
    assert_eq!(mine.hear().await.unwrap()["id"], 1, "what others said was not heard");
}

#[tokio::test]
async fn each_principal_works_in_its_own_sessions() {
    let served = Served::start().await;
    let ann = Agent::over(open(&served, "secret").await.transport()).await;
    let ada = Agent::over(open(&served, "hers").await.transport()).await;
    let anns = ann.send("1 + 1").await.session();
    let refused = ada.call("send_code", json!({ "code": "1 + 1", "sessionId": anns })).await;
    assert_eq!(refused.structured["code"], json!("session_not_found"));
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_stream_goes_on() {
    let served = Served::start().await;
    let mut stream = open(&served, "secret").await;
    assert_eq!(stream.say("{").await.status(), 400);
    let long = format!("\"{}\"", "x".repeat(served.home.daemon.engine.limits().message_bytes));
    assert_eq!(stream.say(&long).await.status(), 413);
    assert_eq!(stream.say("[1,\n2]").await.status(), 202);
    assert_eq!(stream.hear().await.unwrap()["error"]["code"], -32600);
    let ping = "{\"jsonrpc\": \"2.0\",\n\"id\": 2,\r\n\"method\": \"ping\"}";
    assert_eq!(stream.say(ping).await.status(), 202);
    assert_eq!(stream.hear().await.unwrap()["id"], 2);
}

#[tokio::test]
async fn a_stream_ends_with_its_connection_and_what_runs_goes_on() {
    let served = Served::start().await;
    let agent = Agent::over(open(&served, "secret").await.transport()).await;
    agent.send("1 + 1").await;
    let gone = open(&served, "secret").await;
    let sayer = gone.sayer.clone();
    let ping = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    assert_eq!(sayer.say(ping.to_owned()).await.unwrap().status(), 202);
    drop(gone);
    let ended = async {
        while sayer.say(ping.to_owned()).await.unwrap().status() != 400 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), ended).await.unwrap();

    agent.begin("send_code", json!({ "code": "wait" })).await;
    served.home.reaches("Evaluating").await;
    drop(agent);
    let other = Agent::over(open(&served, "secret").await.transport()).await;
    assert_eq!(other.call("get_status", json!({})).await.structured["state"], json!("Evaluating"));
    other.call("cancel_eval", json!({})).await;
}

#[tokio::test]
async fn a_stream_ends_with_the_daemon() {
    let served = Served::start().await;
    let mut stream = open(&served, "secret").await;
    served.home.daemon.stop.cancel();
    timeout(Duration::from_secs(30), served.home.daemon.shut_down()).await.unwrap();
    assert_eq!(stream.hear().await, None);
}
