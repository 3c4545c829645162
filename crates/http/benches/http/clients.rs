//! The subscribers: bare sockets that note when each event came, so that they cost little beside what they measure.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzDecoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};

use super::{TOKEN, micros};

/// Subscribers that connect at once.
const CONNECTING: usize = 64;
/// Nothing comes for so long: nothing more comes.
const QUIET: Duration = Duration::from_secs(10);

/// The last event there was, once that is known.
type Ends = watch::Receiver<Option<u64>>;

/// How a subscriber takes its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// The stream is sent uncompressed.
    Identity,
    /// The stream is compressed with gzip.
    Gzip,
    /// As it is, and not before everything was published.
    Unread,
}

impl Coding {
    fn named(name: &str) -> Self {
        match name {
            "identity" => Self::Identity,
            "gzip" => Self::Gzip,
            "unread" => Self::Unread,
            other => panic!("{other} is no way to take a stream"),
        }
    }

    const fn accepted(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Identity | Self::Unread => "identity",
        }
    }
}

/// What one subscriber was told: the seq and the moment of each event, and all the bytes.
struct Told {
    events: Vec<(u32, u64)>,
    bytes: u64,
}

/// Subscribes, says so, hears which events there were, and says how they came.
pub(crate) async fn run(port: u16, path: &str, subscribers: usize, coding: &str) {
    let coding = Coding::named(coding);
    let places = Arc::new(Semaphore::new(CONNECTING));
    let (end, ends) = watch::channel(None);
    let mut connecting = Vec::new();
    for _ in 0..subscribers {
        let (places, path) = (Arc::clone(&places), path.to_owned());
        connecting.push(tokio::spawn(async move {
            let _place = places.acquire().await.unwrap();
            subscribe(port, &path, coding).await
        }));
    }
    let mut receiving = Vec::new();
    for connecting in connecting {
        let (stream, early) = connecting.await.unwrap();
        receiving.push(tokio::spawn(receive(stream, early, coding, ends.clone())));
    }
    println!("ready");
    let published = tokio::task::block_in_place(published);
    end.send_replace(published.keys().next_back().copied());
    let mut late = Vec::new();
    let (mut told, mut bytes) = (0, 0);
    for receiving in receiving {
        let one = receiving.await.unwrap();
        let told_of: Vec<u64> = one.events.iter().map(|(seq, _)| u64::from(*seq)).collect();
        let wanted: Vec<u64> = published.keys().copied().collect();
        assert_eq!(told_of, wanted, "each event once, in order");
        told += told_of.len();
        bytes += one.bytes;
        late.extend(one.events.iter().map(|(seq, at)| at.saturating_sub(published[&u64::from(*seq)])));
    }
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    let each = bytes as f64 / told as f64;
    println!("{told} | {:.1} ms | {:.1} ms | {:.0} ms | {each:.0}", at(0.5), at(0.99), at(1.0));
}

/// Which events there were and when each was published.
fn published() -> BTreeMap<u64, u64> {
    let text = std::io::read_to_string(std::io::stdin()).unwrap();
    let line = |line: &str| {
        let (seq, at) = line.split_once(' ').unwrap();
        (seq.parse().unwrap(), at.parse().unwrap())
    };
    text.lines().map(line).collect()
}

/// A stream behind the head of its answer, and what came with that.
pub(crate) async fn subscribe(port: u16, path: &str, coding: Coding) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\nAccept-Encoding: {}\r\n\r\n",
        coding.accepted()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    loop {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "{}", String::from_utf8_lossy(&read));
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            assert!(read.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&read));
            let early = read.split_off(end + 4);
            return (stream, early);
        }
    }
}

/// Notes every event up to the last, once it is known which that is.
async fn receive(mut stream: TcpStream, early: Vec<u8>, coding: Coding, mut ends: Ends) -> Told {
    let mut told = Told { events: Vec::new(), bytes: 0 };
    let mut text = Text::new(coding);
    if coding == Coding::Unread {
        ends.changed().await.unwrap();
    }
    let mut read = early;
    loop {
        told.bytes += read.len() as u64;
        let now = micros();
        text.push(&read, |line| {
            if let Some(id) = line.strip_prefix(b"id: ") {
                told.events.push((std::str::from_utf8(id).unwrap().parse().unwrap(), now));
            }
        });
        let last = told.events.last().map(|(seq, _)| u64::from(*seq));
        if ends.borrow().is_some_and(|end| last >= Some(end)) {
            return told;
        }
        read.clear();
        read.reserve(4096);
        tokio::select! {
            got = tokio::time::timeout(QUIET, stream.read_buf(&mut read)) => match got {
                Ok(got) => assert!(got.unwrap() > 0, "the stream has ended"),
                Err(_) => return told,
            },
            _ = ends.changed() => {}
        }
    }
}

/// The lines of what comes.
pub(crate) struct Text {
    /// What is not decoded yet, of a chunk whose length has not come whole.
    chunked: Vec<u8>,
    decoder: Option<GzDecoder<Vec<u8>>>,
    /// The line that has not come whole.
    line: Vec<u8>,
}

impl Text {
    pub(crate) fn new(coding: Coding) -> Self {
        let decoder = (coding == Coding::Gzip).then(|| GzDecoder::new(Vec::new()));
        Self { chunked: Vec::new(), decoder, line: Vec::new() }
    }

    pub(crate) fn push(&mut self, read: &[u8], each: impl FnMut(&[u8])) {
        match &mut self.decoder {
            // Each piece is a chunk of whole lines; the lengths between them are lines that nobody looks for.
            None => self.line.extend_from_slice(read),
            Some(decoder) => {
                self.chunked.extend_from_slice(read);
                while let Some((chunk, used)) = first_chunk(&self.chunked) {
                    decoder.write_all(chunk).unwrap();
                    decoder.flush().unwrap();
                    self.line.append(decoder.get_mut());
                    self.chunked.drain(..used);
                }
            }
        }
        let whole = self.line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.line[..whole].split(|byte| *byte == b'\n').for_each(each);
        self.line.drain(..whole);
    }
}

/// The first chunk that has come whole, and how many bytes it takes with its length.
fn first_chunk(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let begin = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let length = std::str::from_utf8(&bytes[..begin - 2]).unwrap();
    let length = usize::from_str_radix(length, 16).unwrap();
    Some((bytes.get(begin..begin + length)?, begin + length + 2)).filter(|(_, used)| *used <= bytes.len())
}
