//! A model that says what a test tells it to: an OpenAI-compatible server (`/v1/chat/completions`, streamed) on loopback.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// A step of a reply.
#[derive(Clone, Debug)]
pub enum Step {
    /// Refuses with this status; not to be asked again by whoever speaks HTTP.
    Refuse(u16, &'static str),
    /// Says a piece of text.
    Text(String),
    /// Thinks a piece of text.
    Think(&'static str),
    /// Begins to call a tool: id and name.
    Call(&'static str, &'static str),
    /// Says a piece of the call's arguments.
    Arguments(String),
    /// Ends, for this reason, having taken so many tokens.
    Finish(&'static str, u64),
    /// Goes on once the test says so.
    Wait(Arc<Notify>),
    /// Goes on after so long.
    Pause(Duration),
    /// Says nothing any more, and keeps the connection.
    Hang,
    /// Closes the connection in the middle of things.
    Close,
}

/// A reply that says this.
pub fn say(pieces: &[&str]) -> Vec<Step> {
    let said = pieces.iter().map(|piece| Step::Text((*piece).to_owned()));
    said.chain([Step::Finish("stop", 100)]).collect()
}

/// A reply that calls a tool.
pub fn call(id: &'static str, tool: &'static str, arguments: &Value) -> Vec<Step> {
    let arguments = arguments.to_string();
    let (begin, end) = arguments.split_at(arguments.len() / 2);
    let arguments = [begin, end].map(|piece| Step::Arguments(piece.to_owned()));
    [Step::Call(id, tool)].into_iter().chain(arguments).chain([Step::Finish("tool_calls", 50)]).collect()
}

/// A model's server that answers from a script.
pub struct Model {
    port: u16,
    script: Arc<Mutex<VecDeque<Vec<Step>>>>,
    requests: watch::Receiver<Vec<Value>>,
}

impl Model {
    /// Listens on a free port of loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = Arc::new(Mutex::new(VecDeque::new()));
        let (heard, requests) = watch::channel(Vec::new());
        let (scripted, heard) = (Arc::clone(&script), Arc::new(heard));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Whoever asked may have gone.
                tokio::spawn(serve(stream, Arc::clone(&scripted), Arc::clone(&heard)));
            }
        });
        Self { port, script, requests }
    }

    /// The base URL for clients of the OpenAI API.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// What it says next, once all before is said.
    pub fn will(&self, reply: Vec<Step>) {
        self.script.lock().unwrap().push_back(reply);
    }

    /// Says nothing any more of what it was to say.
    pub fn forget(&self) {
        self.script.lock().unwrap().clear();
    }

    /// Waits until it was asked so many times; gives the last of these requests.
    pub async fn request(&self, number: usize) -> Value {
        let mut requests = self.requests.clone();
        let requests = requests.wait_for(|requests| requests.len() >= number).await.unwrap();
        requests[number - 1].clone()
    }

    /// How many times it was asked.
    pub fn asked(&self) -> usize {
        self.requests.borrow().len()
    }
}

async fn serve(
    stream: TcpStream,
    script: Arc<Mutex<VecDeque<Vec<Step>>>>,
    heard: Arc<watch::Sender<Vec<Value>>>,
) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await?;
    let reply = script.lock().unwrap().pop_front().unwrap_or_else(|| say(&["nothing was scripted"]));
    heard.send_modify(|requests| requests.push(serde_json::from_slice(&body).unwrap()));
    let mut is_begun = false;
    for step in reply {
        let (delta, reason, tokens) = match step {
            Step::Refuse(status, message) => {
                let body = json!({ "error": { "message": message } }).to_string();
                let head = format!(
                    "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\nx-should-retry: false\r\n\
                     content-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                return write.write_all(head.as_bytes()).await;
            }
            Step::Wait(go_on) => {
                go_on.notified().await;
                continue;
            }
            Step::Pause(pause) => {
                tokio::time::sleep(pause).await;
                continue;
            }
            Step::Hang => std::future::pending().await,
            Step::Close => return Ok(()),
            Step::Text(text) => (json!({ "content": text }), None, None),
            Step::Think(text) => (json!({ "reasoning_content": text }), None, None),
            Step::Call(id, name) => {
                let call = json!({ "index": 0, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
                (json!({ "tool_calls": [call] }), None, None)
            }
            Step::Arguments(text) => {
                (json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] }), None, None)
            }
            Step::Finish(reason, tokens) => (json!({}), Some(reason), Some(tokens)),
        };
        if !std::mem::replace(&mut is_begun, true) {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
            write.write_all(head.as_bytes()).await?;
        }
        let mut chunk = json!({
            "id": "reply", "object": "chat.completion.chunk", "model": "m",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        });
        if let Some(tokens) = tokens {
            chunk["usage"] =
                json!({ "prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens });
        }
        write.write_all(in_chunk(&format!("data: {chunk}\n\n")).as_bytes()).await?;
    }
    let end = in_chunk("data: [DONE]\n\n") + &in_chunk("");
    write.write_all(end.as_bytes()).await
}

/// A piece of a body whose end is told: so one that was cut off is known to be.
fn in_chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
