//! Dialect A §16: artifacts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::session::Session;
use crate::json::{short, text};
use crate::probe::{Behaviour, Probe, fresh};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.16.1.ref" Must
        "artifact.put is answered with artifact.ref: artifact_id, uri, media_type, size and sha256."
        => put_ref;
    "a.16.1.hash" Must
        "The size and sha256 of the reference are those of the bytes."
        => hash;
    "a.16.1.result" Must
        "Where a job ends with a result_ref, artifact.fetch returns bytes of the size and sha256 that it has."
        => result;
    "a.16.2.fetch" Must
        "artifact.fetch returns the bytes, or where they are."
        => fetch;
    "a.16.2.unknown" Must
        "artifact.fetch of an unknown artifact is answered with NOT_FOUND."
        => unknown;
    "a.16.2.release" Must
        "artifact.release is accepted."
        => release;
    "a.16.2.bad-data" Must
        "artifact.put with data that is no base64 is answered with INVALID_ARGUMENT."
        => bad_data;
    "a.16.2.other-principal" Must
        "An artifact is not returned to another principal."
        => other_principal;
    "a.16.3.retention" Must
        "capabilities.artifact_retention has default_seconds and max_seconds."
        => retention;
}

async fn ready(probe: &Probe) -> Result<Session, Stop> {
    let session = Session::open(probe).await?;
    session.needs("artifacts")?;
    Ok(session)
}

/// Uploads a text that nobody has uploaded before, and returns the text and the reference.
async fn put(session: &mut Session) -> Result<(String, Value), Stop> {
    let body = fresh("artifact");
    let payload = json!({ "media_type": "text/plain", "data": STANDARD.encode(&body), "encoding": "base64" });
    let id = session.send("artifact.put", payload).await?;
    let answer = session.answer(&id, &["artifact.ref"]).await?;
    Ok((body, answer))
}

/// A field of a reference, which stands in the payload or in an object of it.
fn field<'a>(reference: &'a Value, name: &str) -> &'a Value {
    let outer = &reference["payload"][name];
    if outer.is_null() { &reference["payload"]["artifact"][name] } else { outer }
}

fn artifact_id(reference: &Value) -> &str {
    field(reference, "artifact_id").as_str().unwrap_or_default()
}

async fn put_ref(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (_, reference) = put(&mut session).await?;
    let texts = ["artifact_id", "uri", "media_type", "sha256"];
    let whole =
        texts.iter().all(|name| field(&reference, name).is_string()) && field(&reference, "size").is_u64();
    expect(whole, "artifact_id, uri, media_type, size and sha256", || short(&reference))
}

async fn hash(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (body, reference) = put(&mut session).await?;
    let hash: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let got = field(&reference, "sha256").as_str().unwrap_or_default();
    let got = got.strip_prefix("sha256:").unwrap_or(got);
    let sized = field(&reference, "size").as_u64() == u64::try_from(body.len()).ok();
    expect(sized && got == hash, &format!("size {} and sha256 {hash}", body.len()), || short(&reference))
}

async fn fetch(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (body, reference) = put(&mut session).await?;
    let id = session.send("artifact.fetch", json!({ "artifact_id": artifact_id(&reference) })).await?;
    let expected = "an answer with the bytes as data, or with another uri";
    let answered = |message: &Value| text(message, "/correlation_id") == id;
    let answer = session.peer.take(expected, answered).await?;
    let data = field(&answer, "data").as_str().and_then(|data| STANDARD.decode(data).ok());
    let elsewhere = field(&answer, "uri").as_str().is_some_and(|uri| !uri.starts_with("arcp://"));
    let holds = data.as_deref() == Some(body.as_bytes()) || (data.is_none() && elsewhere);
    expect(holds, expected, || short(&answer))
}

async fn result(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (command, job) = session.start(probe, Behaviour::Succeeds).await?;
    let end = session.end(&command, &job).await?;
    let reference = &end["payload"]["result_ref"];
    if !reference.is_object() {
        return Err(Stop::not_applicable("the job has no result_ref"));
    }
    let id = session.send("artifact.fetch", json!({ "artifact_id": reference["artifact_id"] })).await?;
    let answer = session.answer(&id, &["artifact.ref"]).await?;
    let Some(bytes) = field(&answer, "data").as_str().and_then(|data| STANDARD.decode(data).ok()) else {
        let elsewhere = field(&answer, "uri").as_str().is_some_and(|uri| !uri.starts_with("arcp://"));
        return expect(elsewhere, "the bytes as data, or another uri", || short(&answer));
    };
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let said = text(reference, "/sha256");
    let holds = reference["size"].as_u64() == u64::try_from(bytes.len()).ok()
        && said.strip_prefix("sha256:").unwrap_or(said) == hash;
    expect(holds, &format!("result_ref with size {} and sha256 {hash}", bytes.len()), || short(reference))
}

async fn unknown(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let id = session.send("artifact.fetch", json!({ "artifact_id": "art_nobody" })).await?;
    session.refusal(&id, &["NOT_FOUND"]).await.map(drop)
}

async fn release(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let (_, reference) = put(&mut session).await?;
    let id = session.send("artifact.release", json!({ "artifact_id": artifact_id(&reference) })).await?;
    session.round_trip().await?;
    let refused = session
        .peer
        .received()
        .find(|message| text(message, "/correlation_id") == id && message["payload"]["code"].is_string());
    expect(refused.is_none(), "no error", || refused.map(short).unwrap_or_default())
}

async fn bad_data(probe: &Probe) -> Verdict {
    let mut session = ready(probe).await?;
    let payload = json!({ "media_type": "text/plain", "data": "no base64!", "encoding": "base64" });
    let id = session.send("artifact.put", payload).await?;
    session.refusal(&id, &["INVALID_ARGUMENT"]).await.map(drop)
}

async fn other_principal(probe: &Probe) -> Verdict {
    probe.needs_connections()?;
    let mut other = Session::open_other(probe).await?;
    let mut session = ready(probe).await?;
    let (_, reference) = put(&mut session).await?;
    let id = other.send("artifact.fetch", json!({ "artifact_id": artifact_id(&reference) })).await?;
    other.refusal(&id, &["NOT_FOUND", "PERMISSION_DENIED"]).await.map(drop)
}

async fn retention(probe: &Probe) -> Verdict {
    let session = ready(probe).await?;
    let retention = &session.accepted["payload"]["capabilities"]["artifact_retention"];
    let whole = retention["default_seconds"].is_number() && retention["max_seconds"].is_number();
    expect(whole, "artifact_retention with default_seconds and max_seconds", || short(&session.accepted))
}
