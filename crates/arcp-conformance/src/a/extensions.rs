//! Dialect A §21: extensions and unknown messages.

use serde_json::json;

use super::session::Session;
use crate::json::{short, text};
use crate::probe::Probe;
use crate::scenario::{Verdict, expect, scenarios};

scenarios! {
    "a.21.2.advertised" Must
        "An extension that the runtime does not advertise is refused with UNIMPLEMENTED, also where the \
        client asked for it."
        => advertised;
    "a.21.3.core" Must
        "An unknown type with a core prefix is answered with a nack UNIMPLEMENTED."
        => core;
    "a.21.3.namespaced" Must
        "An unknown namespaced type is answered with a nack UNIMPLEMENTED."
        => namespaced;
    "a.21.3.optional" Must
        "An unknown namespaced type with extensions.optional is dropped without an answer."
        => optional;
    "a.21.3.not-optional" Must
        "An unknown namespaced type with extensions.optional: false is answered with a nack."
        => not_optional;
    "a.21.3.core-optional" Must
        "extensions.optional does not silence the nack for an unknown core type."
        => core_optional;
    "a.21.3.session-goes-on" Must
        "Unknown types do not end the session."
        => session_goes_on;
    "a.21.3.unknown-fields" Must
        "Unknown extension fields of an envelope change nothing."
        => unknown_fields;
}

const UNKNOWN: &str = "arcpx.conformance.nobody.v1";

async fn sent(
    probe: &Probe,
    kind: &str,
    optional: Option<bool>,
) -> Result<(Session, String), crate::scenario::Stop> {
    let mut session = Session::open(probe).await?;
    let mut message = session.envelope(kind, json!({ "conformance": true }));
    if let Some(optional) = optional {
        message["extensions"] = json!({ "optional": optional });
    }
    let id = session.peer.send(message).await?;
    Ok((session, id))
}

async fn refused(probe: &Probe, kind: &str, optional: Option<bool>) -> Verdict {
    let (mut session, id) = sent(probe, kind, optional).await?;
    let refused = session.refusal(&id, &["UNIMPLEMENTED"]).await?;
    expect(text(&refused, "/type") == "nack", "a nack", || short(&refused))?;
    session.round_trip().await
}

async fn core(probe: &Probe) -> Verdict {
    refused(probe, "job.no_such_type", None).await
}

async fn core_optional(probe: &Probe) -> Verdict {
    refused(probe, "job.no_such_type", Some(true)).await
}

async fn namespaced(probe: &Probe) -> Verdict {
    refused(probe, UNKNOWN, None).await
}

async fn not_optional(probe: &Probe) -> Verdict {
    refused(probe, UNKNOWN, Some(false)).await
}

async fn optional(probe: &Probe) -> Verdict {
    let (mut session, id) = sent(probe, UNKNOWN, Some(true)).await?;
    session.round_trip().await?;
    let answer = session.peer.received().find(|message| text(message, "/correlation_id") == id);
    expect(answer.is_none(), "no answer", || answer.map(short).unwrap_or_default())
}

async fn session_goes_on(probe: &Probe) -> Verdict {
    let (mut session, _) = sent(probe, UNKNOWN, None).await?;
    session.send("no_such_type", json!({})).await?;
    session.send("", json!({})).await?;
    session.round_trip().await
}

async fn advertised(probe: &Probe) -> Verdict {
    let mut offered = super::session::capabilities();
    offered["extensions"] = json!([UNKNOWN]);
    let open = super::session::open(probe.settings.token.as_deref(), offered);
    let mut session = Session::open_with(probe, open).await?;
    expect(!session.lists("extensions", UNKNOWN), "capabilities without the extension", || {
        short(&session.accepted)
    })?;
    let id = session.send(UNKNOWN, json!({})).await?;
    session.refusal(&id, &["UNIMPLEMENTED"]).await.map(drop)
}

async fn unknown_fields(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut ping = session.envelope("ping", json!({}));
    ping["extensions"] = json!({ "arcpx.conformance.field.v1": { "a": 1 } });
    let id = session.peer.send(ping).await?;
    session.answer(&id, &["pong"]).await.map(drop)
}
