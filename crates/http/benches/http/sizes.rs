//! Bytes of what streams tell: as it is, each event compressed alone, each in a compressed stream, and as frames of a WebSocket, in JSON and
//! in BARE.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use mainstay_model::command;
use mainstay_model::{Access, Admission, Command, SessionCommand};
use tokio::io::AsyncReadExt;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::clients::{Coding, Text, subscribe};
use super::{TOKEN, create, id, print_events, start};

/// Events of each kind.
const EVENTS: usize = 100;

const JSON: &str = "application/json";
const BARE: &str = "application/bare";

/// Measures the sizes and prints the table.
pub(crate) async fn run() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (daemon, port) = start(folder.path()).await;
    let client = daemon.engine.attach(Access::local(), "bench");
    let session = create(&client).await;
    println!(
        "\n| an event of | as it is | compressed alone | in a compressed stream | as a frame in JSON | in BARE |\n|---|---|---|---|---|---|"
    );
    print_events(&client, session, "print", EVENTS as u64).await;
    for path in ["/eval", "/events"] {
        let told = events(subscribe(port, path, Coding::Identity).await, EVENTS).await;
        row(path, &told, frames(port, path, JSON, EVENTS).await, frames(port, path, BARE, EVENTS).await);
    }
    let stream = subscribe(port, "/status", Coding::Identity).await;
    let told = tokio::spawn(async move {
        tokio::join!(
            events(stream, EVENTS / 2),
            frames(port, "/status", JSON, EVENTS / 2),
            frames(port, "/status", BARE, EVENTS / 2),
        )
    });
    for number in 0.. {
        if told.is_finished() {
            break;
        }
        let rename = SessionCommand::Rename(command::Rename { name: format!("name {number}") });
        let rename = Command {
            admission: Admission::Now,
            ..Command::new(id(&format!("rename-{number}")), client.source(), rename)
        };
        client.submit(session, rename).await.unwrap();
    }
    let (told, json, bare) = told.await.unwrap();
    row("/status", &told, json, bare);
}

/// Bytes of the first frames of the same stream over WebSocket, without the 2 to 4 of each frame's head.
async fn frames(port: u16, path: &str, media: &str, count: usize) -> usize {
    let address = format!("ws://127.0.0.1:{port}/stream?of={}", path.trim_start_matches('/'));
    let mut request = address.into_client_request().unwrap();
    for (name, value) in [("authorization", format!("Bearer {TOKEN}")), ("accept", media.to_owned())] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let (socket, _) = connect_async(request).await.unwrap();
    let frames = socket.map(|frame| frame.unwrap()).filter(|frame| {
        let is_told = frame.is_text() || frame.is_binary();
        async move { is_told }
    });
    frames.take(count).fold(0, |bytes, frame| async move { bytes + frame.len() }).await
}

/// The first events of a stream.
async fn events((mut stream, early): (tokio::net::TcpStream, Vec<u8>), count: usize) -> Vec<String> {
    let (mut text, mut read) = (Text::new(Coding::Identity), early);
    let (mut events, mut begun) = (Vec::new(), String::new());
    while events.len() < count {
        text.push(&read, |line| {
            let line = std::str::from_utf8(line).unwrap();
            if line.starts_with("id: ") || line.starts_with("event: ") {
                begun.push_str(&format!("{line}\n"));
            } else if line.starts_with("data: ") {
                events.push(std::mem::take(&mut begun) + line + "\n\n");
            }
        });
        read.clear();
        stream.read_buf(&mut read).await.unwrap();
    }
    events
}

fn row(path: &str, events: &[String], json: usize, bare: usize) {
    let compressed = |text: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().len()
    };
    let mut stream = GzEncoder::new(Vec::new(), Compression::fast());
    for event in events {
        stream.write_all(event.as_bytes()).unwrap();
        stream.flush().unwrap();
    }
    let plain: usize = events.iter().map(String::len).sum();
    let alone: usize = events.iter().map(|event| compressed(event.as_bytes())).sum();
    let each = |bytes: usize| bytes / events.len();
    let streamed = stream.finish().unwrap().len();
    let [plain, alone, streamed, json, bare] = [plain, alone, streamed, json, bare].map(each);
    println!("| `{path}` | {plain} | {alone} | {streamed} | {json} | {bare} |");
}
