//! Dialect A §7, §8 and §9: capabilities, authentication, the end of a session.

use serde_json::{Value, json};

use super::session::{Session, capabilities, concerns, envelope, is_terminal, open};
use crate::json::{kind, short, text};
use crate::peer::Peer;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.7.capabilities" Must
        "session.accepted has the runtime's capabilities."
        => negotiated;
    "a.7.absent-is-false" Must
        "A client that did not offer human_input is not asked."
        => absent_is_false;
    "a.7.required-unsupported" Must
        "A capability that the client requires and the runtime lacks leads to session.rejected \
        UNIMPLEMENTED."
        => required_unsupported;
    "a.7.heartbeat-recovery" Must
        "capabilities.heartbeat_recovery is fail or block (§10.3)."
        => heartbeat_recovery;
    "a.7.binary-encoding" Must
        "capabilities.binary_encoding lists base64, sidecar or both, where there are binary streams \
        (§11.3)."
        => binary_encoding;
    "a.8.1.accepted" Must
        "session.open with good credentials leads to session.accepted, with a session_id."
        => accepted;
    "a.8.1.challenge" Must
        "A challenge that is answered wrongly leads to a rejected session."
        => challenge;
    "a.8.1.before-open" Must
        "A command before session.open is not carried out."
        => before_open;
    "a.8.1.after-rejection" Must
        "A command after session.rejected is not carried out."
        => after_rejection;
    "a.8.2.wrong-token" Must
        "session.open with a wrong token leads to UNAUTHENTICATED."
        => wrong_token;
    "a.8.2.none-refused" Must
        "The scheme none is refused where anonymous is not advertised."
        => none_refused;
    "a.8.2.unknown-scheme" Must
        "An unknown scheme is refused."
        => unknown_scheme;
    "a.8.2.mtls-fingerprint" Must
        "The scheme mtls without a fingerprint is refused."
        => mtls_fingerprint;
    "a.8.3.identity" Should
        "session.accepted has the runtime's kind, version and trust_level."
        => identity;
    "a.8.3.sessions-differ" Must
        "Two sessions have two session_ids."
        => sessions_differ;
    "a.9.close" Must
        "After session.close no command is carried out."
        => close;
}

async fn accepted(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    expect(!session.id.is_empty(), "session.accepted with a session_id", || short(&session.accepted))
}

async fn negotiated(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    let capabilities = session.accepted.pointer("/payload/capabilities");
    expect(capabilities.is_some_and(Value::is_object), "payload.capabilities", || short(&session.accepted))
}

async fn absent_is_false(probe: &Probe) -> Verdict {
    let work = Session::work(probe, Behaviour::Asks)?;
    let offered = json!({ "streaming": true, "durable_jobs": true });
    let open = open(probe.settings.token.as_deref(), offered);
    let mut session = Session::open_with(probe, open).await?;
    let command = session.send("tool.invoke", work).await?;
    session.peer.settle().await;
    let asked = session
        .peer
        .received()
        .find(|message| matches!(kind(message), "human.input.request" | "human.choice.request"));
    let asked = asked.cloned();
    let job = session
        .about(&command, "")
        .iter()
        .map(|each| text(each, "/job_id").to_owned())
        .find(|job| !job.is_empty());
    if let Some(job) = job {
        session.clean_up(&job).await?;
    }
    expect(asked.is_none(), "no human.input.request", || asked.as_ref().map(short).unwrap_or_default())
}

/// Fails unless the session is refused, with one of these codes.
async fn rejected(peer: &mut Peer, codes: &[&str]) -> Verdict {
    let expected = format!("session.rejected or session.unauthenticated with {}", codes.join(" or "));
    let decided = |message: &Value| {
        matches!(kind(message), "session.accepted" | "session.rejected" | "session.unauthenticated" | "nack")
    };
    let answer = peer.take(&expected, decided).await?;
    let refused = matches!(kind(&answer), "session.rejected" | "session.unauthenticated");
    expect(refused && codes.contains(&text(&answer, "/payload/code")), &expected, || short(&answer))
}

async fn required_unsupported(probe: &Probe) -> Verdict {
    let mut offered = capabilities();
    offered["required"] = json!(["arcpx.conformance.nobody.v1"]);
    let mut peer = probe.connect().await?;
    peer.send(open(probe.settings.token.as_deref(), offered)).await?;
    rejected(&mut peer, &["UNIMPLEMENTED"]).await
}

async fn heartbeat_recovery(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    session.needs("durable_jobs")?;
    let recovery = text(&session.accepted, "/payload/capabilities/heartbeat_recovery");
    expect(matches!(recovery, "fail" | "block"), "heartbeat_recovery of fail or block", || {
        short(&session.accepted)
    })
}

async fn binary_encoding(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    session.needs("binary_streams")?;
    let listed = session.lists("binary_encoding", "base64") || session.lists("binary_encoding", "sidecar");
    expect(listed, "binary_encoding with base64 or sidecar", || short(&session.accepted))
}

/// The name of a token that no runtime has given out.
const WRONG: &str = "arcp-conformance-wrong-token";

async fn attempt(probe: &Probe, auth: Value) -> Result<Peer, Stop> {
    if probe.settings.token.is_none() {
        return Err(Stop::skipped("no --token, so the runtime may accept anybody"));
    }
    let mut open = open(None, capabilities());
    open["payload"]["auth"] = auth;
    let mut peer = probe.connect().await?;
    peer.send(open).await?;
    Ok(peer)
}

async fn wrong_token(probe: &Probe) -> Verdict {
    let mut peer = attempt(probe, json!({ "scheme": "bearer", "token": WRONG })).await?;
    rejected(&mut peer, &["UNAUTHENTICATED"]).await
}

async fn unknown_scheme(probe: &Probe) -> Verdict {
    let mut peer = attempt(probe, json!({ "scheme": "handshake", "token": WRONG })).await?;
    rejected(&mut peer, &["UNAUTHENTICATED", "UNIMPLEMENTED", "INVALID_ARGUMENT"]).await
}

async fn mtls_fingerprint(probe: &Probe) -> Verdict {
    let mut open = open(None, capabilities());
    open["payload"]["auth"] = json!({ "scheme": "mtls" });
    if let Some(client) = open.pointer_mut("/payload/client").and_then(Value::as_object_mut) {
        client.remove("fingerprint");
    }
    let mut peer = probe.connect().await?;
    peer.send(open).await?;
    rejected(&mut peer, &["UNAUTHENTICATED", "UNIMPLEMENTED", "INVALID_ARGUMENT"]).await
}

async fn none_refused(probe: &Probe) -> Verdict {
    let known = Session::open(probe).await?;
    if known.has("anonymous") {
        return Err(Stop::not_applicable("the runtime advertises anonymous"));
    }
    let mut peer = probe.connect().await?;
    peer.send(open(None, capabilities())).await?;
    rejected(&mut peer, &["UNAUTHENTICATED", "PERMISSION_DENIED"]).await
}

async fn challenge(probe: &Probe) -> Verdict {
    let mut peer = attempt(probe, json!({ "scheme": "bearer" })).await?;
    let decided = |message: &Value| kind(message).starts_with("session.") || kind(message) == "nack";
    let answer = peer.take("session.challenge or a refusal", decided).await?;
    if kind(&answer) != "session.challenge" {
        return Err(Stop::not_applicable(format!("the runtime answers with {}", kind(&answer))));
    }
    let auth = json!({ "scheme": "bearer", "token": WRONG });
    let mut reply = envelope("session.authenticate", json!({ "auth": auth, "token": WRONG }));
    reply["correlation_id"] = answer["id"].clone();
    peer.send(reply).await?;
    rejected(&mut peer, &["UNAUTHENTICATED"]).await
}

/// Whether a message shows that a command was carried out.
fn carried_out(message: &Value) -> bool {
    is_terminal(message) && kind(message) != "tool.error"
        || matches!(kind(message), "job.accepted" | "job.started" | "pong" | "subscribe.accepted")
}

fn command(probe: &Probe) -> Value {
    Session::work(probe, Behaviour::Succeeds).unwrap_or_else(|_| json!({ "tool": "echo", "arguments": {} }))
}

async fn dropped(mut peer: Peer, probe: &Probe) -> Verdict {
    let before = peer.count();
    // A connection that is closed already has carried out nothing.
    let _ = peer.send(envelope("tool.invoke", command(probe))).await;
    let _ = peer.send(envelope("subscribe", json!({ "filter": {} }))).await;
    peer.settle().await;
    let done = peer.received().skip(before).find(|message| carried_out(message));
    expect(done.is_none(), "no sign that the command was carried out", || done.map(short).unwrap_or_default())
}

async fn before_open(probe: &Probe) -> Verdict {
    let mut peer = probe.connect().await?;
    let id = peer.send(envelope("tool.invoke", command(probe))).await?;
    peer.settle().await;
    let early = peer.received().find(|message| carried_out(message)).cloned();
    expect(early.is_none(), "no sign that the command was carried out", || {
        early.as_ref().map(short).unwrap_or_default()
    })?;
    if peer.is_closed() {
        return Ok(());
    }
    // A runtime that drops the command must not carry it out once the session is accepted.
    peer.send(open(probe.settings.token.as_deref(), capabilities())).await?;
    let mut session = Session::decided(peer, probe).await?;
    session.peer.settle().await;
    let late = session.peer.received().find(|message| concerns(message, &id, "") && carried_out(message));
    expect(late.is_none(), "a command that was dropped", || late.map(short).unwrap_or_default())
}

async fn after_rejection(probe: &Probe) -> Verdict {
    let mut peer = attempt(probe, json!({ "scheme": "bearer", "token": WRONG })).await?;
    peer.settle().await;
    dropped(peer, probe).await
}

async fn identity(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    let fields = ["/payload/runtime/kind", "/payload/runtime/version", "/payload/runtime/trust_level"];
    let named = fields.iter().all(|field| !text(&session.accepted, field).is_empty());
    expect(named, "runtime.kind, runtime.version and runtime.trust_level", || short(&session.accepted))
}

async fn sessions_differ(probe: &Probe) -> Verdict {
    let one = Session::open(probe).await?;
    let two = Session::open(probe).await?;
    expect(one.id != two.id, "two session_ids", || one.id.clone())
}

async fn close(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    session.round_trip().await?;
    session.send("session.close", json!({ "reason": "the scenario is over" })).await?;
    session.peer.settle().await;
    let before = session.peer.count();
    // The connection may be gone already, which is an end as well.
    let _ = session.send("tool.invoke", command(probe)).await;
    let _ = session.send("ping", json!({})).await;
    session.peer.settle().await;
    let done = session.peer.received().skip(before).find(|message| carried_out(message));
    expect(done.is_none(), "no answer after session.close", || done.map(short).unwrap_or_default())
}
