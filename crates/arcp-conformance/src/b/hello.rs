//! Dialect B §6.1 and §6.2: authentication, hello and welcome.

use serde_json::{Value, json};

use super::session::{FEATURES, Session, hello, is_terminal, job};
use crate::json::{items, kind, short, text};
use crate::peer::Peer;
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "b.6.1.wrong-token" Must
        "A session.hello with a wrong token is answered with session.error UNAUTHENTICATED."
        => wrong_token;
    "b.6.1.wrong-token-closes" Must
        "After a wrong token the runtime closes the transport (draft-02)."
        => wrong_token_closes;
    "b.6.1.no-token" Must
        "A session.hello without a token is answered with session.error UNAUTHENTICATED."
        => no_token;
    "b.6.2.before-hello" Must
        "What comes before session.hello is not carried out."
        => before_hello;
    "b.6.2.welcome" Must
        "session.welcome has session_id, runtime, resume_token, resume_window_sec and capabilities."
        => welcome;
    "b.6.2.heartbeat-interval" Must
        "session.welcome names heartbeat_interval_sec where heartbeat is negotiated."
        => heartbeat_interval;
    "b.6.2.unknown-feature" Must
        "A feature that the runtime does not know is no part of the welcome."
        => unknown_feature;
    "b.6.2.unused-features" Must
        "The runtime does not use a feature that the client did not offer."
        => unused_features;
    "b.6.2.agents" Must
        "The welcome lists agents with name, versions and a default that is among them, where \
        agent_versions is negotiated."
        => agents;
    "b.6.2.no-capabilities" Should
        "A session.hello without capabilities is accepted, with no features."
        => no_capabilities;
    "b.6.2.token-entropy" Must
        "resume_token has at least 128 bits of randomness (draft-02 §14)."
        => token_entropy;
    "b.6.2.sessions-differ" Must
        "Two sessions have two session_ids and two resume_tokens."
        => sessions_differ;
}

/// A token that no runtime has given out.
const WRONG: &str = "arcp-conformance-wrong-token";

async fn greeted(probe: &Probe, token: Option<&str>) -> Result<Peer, Stop> {
    if probe.settings.token.is_none() {
        return Err(Stop::skipped("no --token, so the runtime may accept anybody"));
    }
    let mut peer = probe.connect().await?;
    peer.send(hello(token, &FEATURES)).await?;
    Ok(peer)
}

async fn unauthenticated(peer: &mut Peer) -> Verdict {
    let expected = "session.error with the code UNAUTHENTICATED";
    let answered = |message: &Value| kind(message).starts_with("session.");
    let answer = peer.take(expected, answered).await?;
    let holds = kind(&answer) == "session.error" && text(&answer, "/payload/code") == "UNAUTHENTICATED";
    expect(holds, expected, || short(&answer))
}

async fn wrong_token(probe: &Probe) -> Verdict {
    unauthenticated(&mut greeted(probe, Some(WRONG)).await?).await
}

async fn wrong_token_closes(probe: &Probe) -> Verdict {
    greeted(probe, Some(WRONG)).await?.take_close("the end of the connection").await
}

async fn no_token(probe: &Probe) -> Verdict {
    unauthenticated(&mut greeted(probe, None).await?).await
}

async fn before_hello(probe: &Probe) -> Verdict {
    let payload = job(probe, Behaviour::Succeeds).unwrap_or_else(|_| json!({ "agent": "echo" }));
    let mut peer = probe.connect().await?;
    peer.send(json!({ "arcp": "1.1", "type": "job.submit", "payload": payload })).await?;
    peer.send(json!({ "arcp": "1.1", "type": "session.list_jobs", "payload": {} })).await?;
    peer.settle().await;
    let done = peer.received().find(|message| {
        matches!(kind(message), "job.accepted" | "job.event" | "job.result" | "session.jobs")
    });
    expect(done.is_none(), "an error or nothing", || done.map(short).unwrap_or_default())
}

async fn welcome(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    let welcome = &session.welcome;
    let texts = ["/session_id", "/payload/resume_token", "/payload/runtime/name", "/payload/runtime/version"];
    for pointer in texts {
        expect(!text(welcome, pointer).is_empty(), &format!("a text at {pointer}"), || short(welcome))?;
    }
    let window = welcome.pointer("/payload/resume_window_sec").and_then(Value::as_u64);
    expect(window.is_some(), "resume_window_sec as a whole number", || short(welcome))?;
    let features = welcome.pointer("/payload/capabilities/features");
    expect(features.is_some_and(Value::is_array), "capabilities.features as a list", || short(welcome))
}

async fn heartbeat_interval(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    session.needs("heartbeat")?;
    let interval = session.welcome.pointer("/payload/heartbeat_interval_sec").and_then(Value::as_f64);
    let holds = interval.is_some_and(|seconds| seconds > 0.0);
    expect(holds, "heartbeat_interval_sec above 0", || short(&session.welcome))
}

async fn unknown_feature(probe: &Probe) -> Verdict {
    let hello = hello(probe.settings.token.as_deref(), &["ack", "x-conformance.nobody"]);
    let session = Session::open_with(probe, hello).await?;
    expect(!session.has("x-conformance.nobody"), "a welcome without x-conformance.nobody", || {
        short(&session.welcome)
    })
}

async fn unused_features(probe: &Probe) -> Verdict {
    let token = probe.settings.token.as_deref();
    let payload = job(probe, Behaviour::Chatty).or_else(|_| job(probe, Behaviour::Succeeds))?;
    let mut session = Session::open_with(probe, hello(token, &[])).await?;
    let accepted = session.submit(payload).await?;
    let job = super::session::job_id(&accepted)?;
    session.peer.take("the end of the job", |message| is_terminal(message, &job)).await?;
    session.peer.settle().await;
    let used = session.peer.received().find(|message| {
        kind(message) == "session.ping"
            || matches!(text(message, "/payload/kind"), "progress" | "result_chunk")
            || message.pointer("/payload/credentials").is_some()
    });
    expect(used.is_none(), "no heartbeat, progress, result_chunk or credentials", || {
        used.map(short).unwrap_or_default()
    })
}

async fn agents(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    session.needs("agent_versions")?;
    let expected = "agents as objects of name, versions and a default among them";
    let agents = items(&session.welcome, "/payload/capabilities/agents");
    expect(!agents.is_empty(), expected, || short(&session.welcome))?;
    for agent in agents {
        let versions = agent.get("versions").and_then(Value::as_array);
        let default = agent.get("default").filter(|default| !default.is_null());
        let known = default.is_none_or(|default| versions.is_some_and(|each| each.contains(default)));
        let holds = !text(agent, "/name").is_empty() && versions.is_some() && known;
        expect(holds, expected, || short(agent))?;
    }
    Ok(())
}

async fn no_capabilities(probe: &Probe) -> Verdict {
    let mut hello = hello(probe.settings.token.as_deref(), &[]);
    if let Some(payload) = hello.pointer_mut("/payload").and_then(Value::as_object_mut) {
        payload.remove("capabilities");
    }
    Session::open_with(probe, hello).await?;
    Ok(())
}

async fn token_entropy(probe: &Probe) -> Verdict {
    let session = Session::open(probe).await?;
    let token = session.resume_token();
    let random = token.rsplit_once('_').map_or(token, |(_, random)| random).chars();
    let random = random.filter(char::is_ascii_alphanumeric).count();
    // 128 bits take 22 characters of base64, and more of every smaller alphabet.
    expect(random >= 20, "at least 20 random characters", || token.to_owned())
}

async fn sessions_differ(probe: &Probe) -> Verdict {
    let one = Session::open(probe).await?;
    let two = Session::open(probe).await?;
    expect(one.id != two.id, "two session_ids", || one.id.clone())?;
    expect(one.resume_token() != two.resume_token(), "two resume_tokens", || one.resume_token().to_owned())
}
