//! Compression, as a client meets it that decodes what comes, as it comes.

use std::io::{Read, Write};

use flate2::read::GzDecoder;
use flate2::write;
use mainstay_model::Limits;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::support::{Home, answer};

/// A compressed stream, and what was read of it.
struct Compressed {
    response: Response,
    decoder: write::GzDecoder<Vec<u8>>,
}

impl Compressed {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.header("Accept-Encoding", "gzip, deflate, br").send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            [header("content-type"), header("content-encoding"), header("vary")],
            ["text/event-stream", "gzip", "accept-encoding"]
        );
        Self { response, decoder: write::GzDecoder::new(Vec::new()) }
    }

    /// Reads on up to some text, or to the end of the stream.
    async fn until(&mut self, text: &str) -> String {
        loop {
            self.decoder.flush().unwrap();
            let read = String::from_utf8_lossy(self.decoder.get_ref()).into_owned();
            if read.contains(text) {
                return read;
            }
            match self.response.chunk().await.unwrap() {
                Some(piece) => self.decoder.write_all(&piece).unwrap(),
                None => return read,
            }
        }
    }
}

#[tokio::test]
async fn each_event_of_a_compressed_stream_can_be_read_at_once() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut compressed = Compressed::of(home.get("/events")).await;
    let mut plain = home.stream("/events").await;
    for name in ["one", "two", "three"] {
        // Nothing comes after it until it was read.
        answer(home.post("/rename", &json!({ "name": name }))).await;
        let read = compressed.until(&format!("\"name\":\"{name}\"}}")).await;
        assert!(read.ends_with("\n\n"), "{read}");
    }
    home.request(Method::DELETE, "/sessions/three").bearer_auth("secret").send().await.unwrap();
    let read = compressed.until("there is no such text").await;
    compressed.decoder.try_finish().expect("its end is that of a whole file");
    let signals = |event: &str| -> Option<Value> {
        event.lines().find_map(|line| line.strip_prefix("data: signals ")).map(|data| data.parse().unwrap())
    };
    let told: Vec<Value> = read.split("\n\n").filter_map(signals).collect();
    assert_eq!(told, plain.until(|signals| signals["event"]["kind"] == "sessionDeleted").await);
}

#[tokio::test]
async fn only_so_many_streams_are_compressed_at_once() {
    let home = Home::with(Limits { compressed_streams: 1, ..Limits::default() }).await;
    home.session("demo").await;
    let _held = Compressed::of(home.get("/status")).await;
    let other = home.get("/status").header("Accept-Encoding", "gzip").send().await.unwrap();
    assert_eq!(other.headers().get("content-encoding"), None);
    let mut other = crate::support::Stream::of(home.get("/status").header("Accept-Encoding", "gzip")).await;
    assert_eq!(other.next().await.unwrap()["status"]["state"], "Ready");
}

#[tokio::test]
async fn an_answer_is_compressed_where_it_is_large_and_that_is_asked_for() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let value = |accepted: &'static str, path: String| {
        let request = home.get(&path).header("Accept-Encoding", accepted);
        async move {
            let response = request.send().await.unwrap();
            let coding =
                response.headers().get("content-encoding").map(|coding| coding.to_str().unwrap().to_owned());
            let length = response.content_length().unwrap();
            let bytes = response.bytes().await.unwrap();
            assert_eq!(length, bytes.len() as u64);
            let mut text = String::new();
            match &coding {
                Some(_) => GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap(),
                None => (&bytes[..]).read_to_string(&mut text).unwrap(),
            };
            (coding, length, text)
        }
    };
    answer(home.post("/exec", &json!({ "code": "flood 100000" }))).await;
    let entries = || format!("/sessions/{session}/entries");
    let (coding, plain, text) = value("identity", entries()).await;
    assert_eq!(coding, None);
    let (coding, length, decoded) = value("gzip", entries()).await;
    assert_eq!((coding.as_deref(), &decoded), (Some("gzip"), &text));
    assert!(length * 2 < plain, "{length} of {plain}");
    assert_eq!(value("gzip;q=0", entries()).await.0, None);
    assert_eq!(value("gzip", "/asks".to_owned()).await.0, None, "what is small stays as it is");
}
