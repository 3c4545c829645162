//! A server for tests that has what Microsoft's feed has: an index, a channel's releases, and the archive of one small SDK.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha512};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::rid::this_machine;
use super::testing::{NET_8, Tree};

const INDEX: &str = "/releases-index.json";
const RELEASES: &str = "/10.0/releases.json";
const ARCHIVE: &str = "/dotnet-sdk.tar.gz";

/// The server. It ends when this is dropped.
pub(super) struct FeedServer {
    /// Where its metadata lies.
    pub(super) address: String,
    state: Arc<Mutex<State>>,
    serving: AbortHandle,
}

#[derive(Default)]
struct State {
    files: HashMap<&'static str, Vec<u8>>,
    /// After how many bytes an answer with the archive breaks off, in order.
    cuts: Vec<usize>,
    /// From which byte on the archive was asked for, each time.
    asked: Vec<usize>,
}

impl FeedServer {
    /// Its only SDK is a small one of this version.
    pub(super) async fn with_sdk(version: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, Arc::clone(&served)));
            }
        });
        let server = Self { address, state, serving: serving.abort_handle() };
        server.offer(version);
        server
    }

    /// Its only SDK from now on is a small one of this version.
    pub(super) fn offer(&self, version: &str) {
        let archive = archive_of(version);
        let hash: String = Sha512::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        let index = serde_json::json!({ "releases-index": [{
            "channel-version": "10.0", "latest-sdk": version, "support-phase": "active", "release-type": "lts",
            "releases.json": format!("{}{RELEASES}", self.address),
        }] });
        let file = serde_json::json!({
            "name": "dotnet-sdk.tar.gz", "rid": this_machine(), "hash": hash,
            "url": format!("{}{ARCHIVE}", self.address),
        });
        let releases = serde_json::json!({ "releases": [{
            "sdk": { "version": version, "files": [] }, "sdks": [{ "version": version, "files": [file] }],
        }] });
        let mut state = self.state.lock().unwrap();
        // The entry without files is the other of the two places in which an SDK can stand.
        let releases =
            releases.to_string().replacen(&format!("\"version\":\"{version}\""), "\"version\":\"10.0.1\"", 1);
        state.files = HashMap::from([
            (INDEX, index.to_string().into_bytes()),
            (RELEASES, releases.into_bytes()),
            (ARCHIVE, archive),
        ]);
    }

    /// The next answers with the archive break off after so many bytes each.
    pub(super) fn cut_off_after(&self, cuts: &[usize]) {
        self.state.lock().unwrap().cuts = cuts.to_vec();
    }

    /// Changes a byte of the archive, which keeps the hash that the metadata gives it.
    pub(super) fn spoil(&self) {
        if let Some(archive) = self.state.lock().unwrap().files.get_mut(ARCHIVE) {
            archive[20] ^= 1;
        }
    }

    /// From which byte on the archive was asked for, each time.
    pub(super) fn asked(&self) -> Vec<usize> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl Drop for FeedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The archive of an SDK with the files of SDK 8, under another version.
fn archive_of(version: &str) -> Vec<u8> {
    let line = version.rsplit_once('.').unwrap().0;
    let files =
        NET_8.replace("8.0.404", version).replace("8.0.", &format!("{line}.")).replace("net8.0", "net10.0");
    let tree = Tree::of("");
    for file in files.lines().map(str::trim).filter(|line| !line.is_empty()) {
        tree.write(&format!("sdk/{file}"), file);
    }
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(tree.path("archive")).arg("-C").arg(tree.path("sdk")).arg(".");
    assert!(tar.status().unwrap().success());
    fs::read(tree.path("archive")).unwrap()
}

async fn answer(mut connection: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let (reader, mut writer) = connection.split();
    let mut lines = BufReader::new(reader).lines();
    let request = lines.next_line().await.ok()??;
    let path = request.split(' ').nth(1)?.to_owned();
    let mut start = 0;
    while let Some(line) = lines.next_line().await.ok()?.filter(|line| !line.is_empty()) {
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().ok()?;
        }
    }
    let (head, body) = state.lock().unwrap().response(&path, start);
    writer.write_all(head.as_bytes()).await.ok()?;
    writer.write_all(&body).await.ok()?;
    writer.shutdown().await.ok()
}

impl State {
    /// The head of an answer and the part of its body that is sent.
    fn response(&mut self, path: &str, start: usize) -> (String, Vec<u8>) {
        let Some(file) = self.files.get(path) else {
            return ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), Vec::new());
        };
        let total = file.len();
        let mut body = file.get(start..).unwrap_or_default().to_vec();
        let length = body.len();
        if path == ARCHIVE {
            self.asked.push(start);
            if !self.cuts.is_empty() {
                body.truncate(self.cuts.remove(0));
            }
        }
        let status = match start {
            0 => "200 OK".to_owned(),
            _ if length == 0 => "416 Range Not Satisfiable".to_owned(),
            _ => format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}", total - 1),
        };
        (format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"), body)
    }
}
