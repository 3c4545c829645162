//! Bytes of what streams tell: as it is, each event compressed alone, and each in a compressed stream.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_model::{Access, Admission, Command, SessionCommand};
use tokio::io::AsyncReadExt;

use super::clients::{Coding, Text, subscribe};
use super::{create, id, print_events, start};

/// Events of each kind.
const EVENTS: usize = 100;

/// Prints the table.
pub(crate) async fn run() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (daemon, port) = start(folder.path()).await;
    let client = daemon.engine.attach(Access::local(), "bench");
    let session = create(&client).await;
    println!("\n| an event of | as it is | compressed alone | in a compressed stream |\n|---|---|---|---|");
    print_events(&client, session, "print", EVENTS as u64).await;
    for path in ["/eval", "/events"] {
        row(path, &events(subscribe(port, path, Coding::Identity).await, EVENTS).await);
    }
    let stream = subscribe(port, "/status", Coding::Identity).await;
    let told = tokio::spawn(events(stream, EVENTS / 2));
    for number in 0.. {
        if told.is_finished() {
            break;
        }
        let rename = SessionCommand::Rename { name: format!("name {number}") };
        let rename = Command {
            admission: Admission::Now,
            ..Command::new(id(&format!("rename-{number}")), client.source(), rename)
        };
        client.submit(session, rename).await.unwrap();
    }
    row("/status", &told.await.unwrap());
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

fn row(path: &str, events: &[String]) {
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
    println!("| `{path}` | {} | {} | {} |", each(plain), each(alone), each(stream.finish().unwrap().len()));
}
