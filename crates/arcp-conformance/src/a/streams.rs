//! Dialect A §11.3: streams of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::session::{Session, capabilities, concerns, is_terminal, open};
use crate::json::{clip, kind, short, text};
use crate::peer::BINARY;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.11.2.taken" Must
        "backpressure of a stream is not refused."
        => taken;
    "a.11.2.lossless" Must
        "A stream that was slowed down is told whole, and before the end of its job."
        => lossless;
    "a.11.3.base64" Must
        "A chunk of a binary stream has base64 data and a content_type, for a client that reads base64 alone."
        => base64;
    "a.11.3.hash" Must
        "Where a chunk of a binary stream has a sha256, it is that of its bytes."
        => hash;
    "a.11.3.sequence" Must
        "The chunks of a binary stream have a sequence, which grows."
        => sequence;
    "a.11.3.sidecar" Must
        "A chunk without data is followed by a binary frame, for a client that reads sidecar frames."
        => sidecar;
    "a.11.3.unannounced" Must
        "A binary frame that nobody announced does not end the session (§21.3)."
        => unannounced;
}

/// The chunks of the binary streams of a job that publishes as much as it can.
async fn chunks(probe: &Probe) -> Result<Vec<Value>, Stop> {
    let mut session = Session::open(probe).await?;
    shown(&mut session, probe).await
}

/// The same in this session.
async fn shown(session: &mut Session, probe: &Probe) -> Result<Vec<Value>, Stop> {
    session.needs("binary_streams")?;
    let (command, job) = session.start(probe, Behaviour::Chatty).await?;
    session.end(&command, &job).await?;
    session.peer.settle().await;
    let is_binary =
        |message: &&Value| kind(message) == "stream.open" && text(message, "/payload/kind") == "binary";
    let streams: Vec<_> = session.peer.received().filter(is_binary).collect();
    let is_of_them = |message: &&Value| {
        let stream = text(message, "/stream_id");
        kind(message) == "stream.chunk" && streams.iter().any(|opened| text(opened, "/stream_id") == stream)
    };
    let chunks: Vec<_> = session.peer.received().filter(is_of_them).cloned().collect();
    if chunks.is_empty() { Err(Stop::not_applicable("the job shows no bytes")) } else { Ok(chunks) }
}

fn bytes_of(chunk: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(chunk["payload"]["data"].as_str()?).ok()
}

async fn base64(probe: &Probe) -> Verdict {
    for chunk in chunks(probe).await? {
        let whole = bytes_of(&chunk).is_some() && !text(&chunk, "/payload/content_type").is_empty();
        expect(whole, "stream.chunk with data in base64 and content_type", || short(&chunk))?;
    }
    Ok(())
}

async fn hash(probe: &Probe) -> Verdict {
    let chunks = chunks(probe).await?;
    let hashed: Vec<_> = chunks.iter().filter(|chunk| chunk["payload"]["sha256"].is_string()).collect();
    if hashed.is_empty() {
        return Err(Stop::not_applicable("no chunk has a sha256"));
    }
    for chunk in hashed {
        let bytes = bytes_of(chunk).unwrap_or_default();
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let got = text(chunk, "/payload/sha256");
        let got = got.strip_prefix("sha256:").unwrap_or(got);
        expect(got == hash, &format!("sha256 {hash}"), || short(chunk))?;
    }
    Ok(())
}

async fn sequence(probe: &Probe) -> Verdict {
    let chunks = chunks(probe).await?;
    let streams: std::collections::BTreeSet<_> =
        chunks.iter().map(|chunk| text(chunk, "/stream_id")).collect();
    for stream in streams {
        let of_it = chunks.iter().filter(|chunk| text(chunk, "/stream_id") == stream);
        let numbers: Vec<_> = of_it.map(|chunk| chunk["payload"]["sequence"].as_u64()).collect();
        let grows = numbers.iter().all(Option::is_some) && numbers.is_sorted_by(|one, next| one < next);
        expect(grows, "a sequence that grows", || format!("{numbers:?}"))?;
    }
    Ok(())
}

/// A session of a client that reads sidecar frames.
async fn with_frames(probe: &Probe) -> Result<Session, Stop> {
    let mut offered = capabilities();
    offered["binary_encoding"] = json!(["base64", "sidecar"]);
    let session = Session::open_with(probe, open(probe.settings.token.as_deref(), offered)).await?;
    match session.lists("binary_encoding", "sidecar") {
        true => Ok(session),
        false => Err(Stop::not_applicable("the runtime has no sidecar frames")),
    }
}

async fn sidecar(probe: &Probe) -> Verdict {
    let mut session = with_frames(probe).await?;
    let chunks = shown(&mut session, probe).await?;
    let bare: Vec<_> = chunks.iter().filter(|chunk| chunk["payload"]["data"].is_null()).collect();
    if bare.is_empty() {
        return Err(Stop::not_applicable("every chunk has its data"));
    }
    for chunk in bare {
        let next = session.peer.received().skip_while(|message| *message != chunk).nth(1);
        let follows = next.is_some_and(|message| message[BINARY].is_u64());
        expect(follows, "a binary frame behind the chunk", || format!("{}, then {next:?}", short(chunk)))?;
    }
    Ok(())
}

async fn unannounced(probe: &Probe) -> Verdict {
    let mut session = with_frames(probe).await?;
    session.peer.send_bytes(b"nobody announced this".to_vec()).await?;
    session.round_trip().await
}

/// A session in which a job has opened a stream that was slowed down, with the ids of the command, of the job and of
/// the `backpressure`.
async fn slowed_down(probe: &Probe) -> Result<(Session, [String; 3]), Stop> {
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Chatty).await?;
    let is_opened_or_over = |message: &Value| {
        kind(message) == "stream.open" || (is_terminal(message) && concerns(message, &command, &job))
    };
    let first = session.peer.take("stream.open, or the end of the job", is_opened_or_over).await?;
    if kind(&first) != "stream.open" {
        return Err(Stop::not_applicable("the job opens no stream"));
    }
    let wish =
        json!({ "desired_rate_per_second": 500, "buffer_remaining_bytes": 65536, "reason": "queue_full" });
    let mut slower = session.envelope("backpressure", wish);
    slower["stream_id"] = first["stream_id"].clone();
    let slower = session.peer.send(slower).await?;
    Ok((session, [command, job, slower]))
}

async fn taken(probe: &Probe) -> Verdict {
    let (mut session, [_, _, slower]) = slowed_down(probe).await?;
    session.round_trip().await?;
    let refused = session.peer.received().find(|message| {
        text(message, "/correlation_id") == slower && text(message, "/payload/code") == "UNIMPLEMENTED"
    });
    expect(refused.is_none(), "no refusal of backpressure", || refused.map(short).unwrap_or_default())
}

async fn lossless(probe: &Probe) -> Verdict {
    let (mut session, [command, job, _]) = slowed_down(probe).await?;
    let is_end = |message: &Value| is_terminal(message) && concerns(message, &command, &job);
    session.peer.take("the terminal event of the job", is_end).await?;
    session.peer.settle().await;
    let behind = session.peer.received().skip_while(|message| !is_end(message));
    let late =
        behind.skip(1).find(|message| kind(message) == "stream.chunk" && text(message, "/job_id") == job);
    expect(late.is_none(), "no chunk behind the end of its job", || late.map(short).unwrap_or_default())?;
    let slowed = data(&session);
    let mut session = Session::open(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Chatty).await?;
    session.end(&command, &job).await?;
    session.peer.settle().await;
    let plain = data(&session);
    expect(
        slowed == plain,
        &format!("what a job tells that is not slowed down: {}", clip(&plain, 100)),
        || clip(&slowed, 100),
    )
}

/// What the chunks of a session have, joined.
fn data(session: &Session) -> String {
    let chunks = session.peer.received().filter(|message| kind(message) == "stream.chunk");
    chunks.map(|chunk| text(chunk, "/payload/data")).collect()
}
