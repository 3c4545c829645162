//! Streams over WebSocket: the same as over server-sent events, a frame each, in JSON or BARE.

use futures::{SinkExt, StreamExt};
use mainstay_model::Limits;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::Response;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::bare::{other_implementation, same};
use crate::support::{Home, PATIENCE, answer};

const TOKEN: (&str, &str) = ("authorization", "Bearer secret");
const BARE: (&str, &str) = ("accept", "application/bare");

/// A client's end of a web socket.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What a request for a socket comes to.
pub(crate) async fn request(
    home: &Home,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Response<Option<Vec<u8>>>> {
    let mut request = format!("ws://127.0.0.1:{}{path}", home.port).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(Socket(socket)),
        Err(Error::Http(response)) => Err(*response),
        Err(other) => panic!("{other}"),
    }
}

async fn open(home: &Home, path: &str) -> Socket {
    request(home, path, &[TOKEN]).await.unwrap_or_else(|refused| panic!("{refused:?}"))
}

async fn open_bare(home: &Home, path: &str) -> Socket {
    request(home, path, &[TOKEN, BARE]).await.unwrap_or_else(|refused| panic!("{refused:?}"))
}

impl Socket {
    async fn message(&mut self) -> Option<Message> {
        let told = async {
            loop {
                match self.0.next().await?.unwrap() {
                    Message::Ping(_) | Message::Pong(_) => {}
                    message => return Some(message),
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("nothing comes")
    }

    /// The next frame in JSON.
    async fn json(&mut self) -> Value {
        let Some(Message::Text(text)) = self.message().await else { panic!("it is no text") };
        serde_json::from_str(&text).unwrap()
    }

    /// The next frame in BARE.
    async fn bare(&mut self) -> Vec<u8> {
        let Some(Message::Binary(bytes)) = self.message().await else { panic!("it is not binary") };
        bytes.to_vec()
    }

    /// The frames in JSON up to one that is so, with it.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let frame = self.json().await;
            let is_last = is_it(&frame["signals"]);
            all.push(frame);
            if is_last {
                return all;
            }
        }
    }

    /// The code with which it is closed.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            match self.message().await {
                Some(Message::Close(Some(close))) => return close.code.into(),
                Some(Message::Text(_) | Message::Binary(_)) => {}
                other => panic!("{other:?} closes nothing"),
            }
        }
    }
}

#[tokio::test]
async fn a_stream_tells_in_bare_what_it_tells_in_json_and_as_events() {
    let home = Home::new().await;
    home.session("demo").await;
    for code in ["printfn \"hé\"", "show \"it\"", "failwith \"x\"", "let a = 3"] {
        answer(home.post("/exec", &json!({ "code": code, "file": "/a.fsx" }))).await;
    }
    answer(home.post("/diagnostics", &json!({ "code": "unused" }))).await;
    let mut compare = Vec::new();
    for (of, frames) in [("eval", 11), ("events", 14), ("status", 1), ("diagnostics", 1), ("completions", 1)]
    {
        let query = if of == "eval" { "?after=1" } else { "" };
        let path = format!("/stream?of={of}{}", query.replace('?', "&"));
        let mut events = home.stream(&format!("/{of}{query}")).await;
        let (mut json, mut bare) = (open(&home, &path).await, open_bare(&home, &path).await);
        for _ in 0..frames {
            let mut frame = json.json().await;
            let mut told = events.next().await.unwrap();
            let id = events.id.take().map(|id| id.parse::<u64>().unwrap());
            assert_eq!(frame["id"].as_u64(), id);
            let bytes = bare.bare().await;
            if of == "status" {
                // The time goes on between them.
                assert!(bytes.len() < frame.to_string().len() / 2);
                frame["signals"]["status"]["uptime"] = Value::Null;
                told["status"]["uptime"] = Value::Null;
            } else {
                compare.push(same("Frame", &bytes, &frame));
            }
            assert_eq!(frame["signals"], told);
        }
    }
    assert_eq!(compare.len(), 27);
    other_implementation(&compare, &[]).await;
}

#[tokio::test]
async fn the_state_comes_first_then_what_changes() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let mut status = open(&home, &format!("/sessions/{session}/stream?of=status")).await;
    assert_eq!(status.json().await["signals"]["status"]["state"], "Ready");
    let mut completions = open(&home, "/stream?of=completions").await;
    assert_eq!(completions.json().await, json!({ "signals": { "completions": null } }));
    answer(home.post_async("/exec", &json!({ "code": "wait" }))).await;
    status.until(|signals| signals["status"]["state"] == "Evaluating").await;
    answer(home.post("/cancel", &json!({}))).await;
    status.until(|signals| signals["status"]["state"] == "Ready").await;
    answer(home.post("/completions", &json!({ "code": "na", "commandId": "mine" }))).await;
    assert_eq!(completions.json().await["signals"]["completions"]["commandId"], "mine");
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_frame_that_was_heard() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut first = open(&home, "/stream?of=events").await;
    let heard = first.until(|signals| signals["event"]["kind"] == "warmUpCompleted").await;
    drop(first);
    for _ in 0..3 {
        answer(home.post("/exec", &json!({ "code": "1 + 1" }))).await;
    }
    let id = heard.last().unwrap()["id"].to_string();
    let by_query = open(&home, &format!("/stream?of=events&after={id}")).await;
    let by_header = request(&home, "/stream?of=events", &[TOKEN, ("last-event-id", &id)]).await;
    for mut second in [by_query, by_header.unwrap_or_else(|refused| panic!("{refused:?}"))] {
        let mut ids: Vec<u64> = heard.iter().map(|frame| frame["id"].as_u64().unwrap()).collect();
        while ids.len() < heard.len() + 6 {
            ids.push(second.json().await["id"].as_u64().unwrap());
        }
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn only_who_shows_a_token_from_this_machine_and_asks_for_what_there_is_is_let_in() {
    let home = Home::with(Limits { streams: 1, ..Limits::default() }).await;
    let session = home.session("demo").await;
    let path = "/stream?of=eval";
    for (path, headers, status, code) in [
        (path, vec![], 401, "unauthorized"),
        (path, vec![("authorization", "Bearer wrong")], 401, "unauthorized"),
        ("/stream?of=eval&token=secret", vec![], 401, "unauthorized"),
        (path, vec![TOKEN, ("origin", "http://evil.example")], 403, "forbidden_origin"),
        (path, vec![TOKEN, ("host", "evil.example")], 403, "forbidden_origin"),
        (path, vec![TOKEN, ("accept", "text/html")], 406, "bad_request"),
        (path, vec![TOKEN, ("accept", "application/bare; version=2")], 406, "bad_request"),
        ("/stream", vec![TOKEN], 400, "bad_request"),
        ("/stream?of=nothing", vec![TOKEN], 400, "bad_request"),
        ("/stream?of=eval&after=999", vec![TOKEN], 400, "invalid_argument"),
        ("/stream?of=events&kinds=nothing", vec![TOKEN], 400, "invalid_argument"),
        ("/stream?of=eval&session=nothing", vec![TOKEN], 404, "session_not_found"),
    ] {
        let Err(refused) = request(&home, path, &headers).await else {
            panic!("{path} {headers:?} is let in")
        };
        let problem: Value = serde_json::from_slice(refused.body().as_deref().unwrap()).unwrap();
        assert_eq!(
            (refused.status().as_u16(), &problem["code"]),
            (status, &json!(code)),
            "{path} {headers:?}"
        );
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
    }
    // Another's session is not there.
    let hers =
        request(&home, &format!("/stream?of=eval&session={session}"), &[("authorization", "Bearer hers")])
            .await;
    assert_eq!(hers.err().map(|refused| refused.status().as_u16()), Some(404));
    let plain = home.get(path).send().await.unwrap();
    assert_eq!(
        (plain.status(), &plain.headers()["upgrade"]),
        (StatusCode::UPGRADE_REQUIRED, &"websocket".parse().unwrap())
    );

    let mut only = open(&home, path).await;
    let refused = request(&home, path, &[TOKEN]).await.err().expect("there is no place");
    assert_eq!(refused.status().as_u16(), 429);
    only.0.close(None).await.unwrap();
    while only.message().await.is_some() {}
    // Its place is free once the daemon has seen it go.
    let again = async {
        while request(&home, path, &[TOKEN]).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("the place is not given back");
}

#[tokio::test]
async fn a_client_that_says_something_is_closed() {
    let home = Home::new().await;
    home.session("demo").await;
    for said in [Message::text("{}"), Message::binary(vec![0; 3]), Message::text("x".repeat(1 << 20))] {
        let mut socket = open(&home, "/stream?of=eval").await;
        socket.0.send(said).await.ok();
        assert_eq!(socket.closed().await, 1003);
    }
}

#[tokio::test]
async fn a_slow_client_misses_nothing_and_holds_nobody_up() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut slow = open(&home, "/stream?of=eval").await;
    for _ in 0..4 {
        let (_, eval) = answer(home.post("/exec", &json!({ "code": "flood 900000" }))).await;
        assert_eq!(eval["success"], true, "{eval}");
    }
    let mut printed = 0;
    for _ in 0..4 {
        let told = slow.until(|signals| signals.get("evalResult").is_some()).await;
        let texts = told.iter().filter_map(|frame| frame["signals"]["evalOutput"]["text"].as_str());
        printed += texts.map(str::len).sum::<usize>();
    }
    assert_eq!(printed, 4 * ("x".repeat(900_000) + " end").len());
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_with_the_daemon() {
    let home = Home::new().await;
    home.session("first").await;
    home.session("second").await;
    let mut of_session = open(&home, "/stream?of=events&session=first").await;
    let mut of_other = open_bare(&home, "/stream?of=status&session=second").await;
    home.request(reqwest::Method::DELETE, "/sessions/first").bearer_auth("secret").send().await.unwrap();
    of_session.until(|signals| signals["event"]["kind"] == "sessionDeleted").await;
    assert_eq!(of_session.closed().await, 1000);
    home.daemon.stop.cancel();
    home.daemon.shut_down().await;
    assert_eq!(of_other.closed().await, 1001);
}
