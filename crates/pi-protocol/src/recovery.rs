//! What the daemon found when it started. All that was accepted is in the log and needs no recovery; what ran when the last daemon was
//! lost has failed by that. Source: protocols/pi.md, `get_startup_recovery`.

use mainstay_engine::{Client, LostJob};
use mainstay_model::JobKind;
use serde_json::{Value, json};

use super::daemon::PiDaemon;
use super::info::name_of;

/// Items of a list at most. Source: protocols/pi.md, "Server commands".
const ITEMS: usize = 100;

/// Why what ran has failed, in upstream's words.
const REASON: &str = "Command did not finish before previous shutdown and was marked failed during recovery";

/// What recovery did to the commands of this principal.
pub(super) async fn told(daemon: &PiDaemon, client: &Client) -> Value {
    let lost = daemon.engine.lost_jobs().iter();
    let lost: Vec<&LostJob> =
        lost.filter(|lost| lost.principal == *client.principal() && !lost.kind.is_eval()).collect();
    let mut items = Vec::new();
    for lost in lost.iter().take(ITEMS) {
        let session = match client.seen_session(lost.session).await {
            Ok(Some(session)) => name_of(&session, client.principal()),
            // It has gone, or the store has.
            Ok(None) | Err(_) => lost.session.to_string(),
        };
        items.push(json!({
            "commandId": lost.command, "commandType": kind_of(lost.kind), "laneKey": format!("session:{session}"),
            "lastPhase": "command_started", "reason": REASON,
        }));
    }
    let ids: Vec<_> = lost.iter().take(ITEMS).map(|lost| &lost.command).collect();
    json!({
        "enabled": true,
        "initialized": true,
        "initState": "ready",
        "journalPath": daemon.home.join("store").display().to_string(),
        "schemaVersion": 1,
        "entriesScanned": 0,
        "malformedEntries": 0,
        "unsupportedVersionEntries": 0,
        "recoveredOutcomes": lost.len(),
        "recoveredOutcomeIds": ids,
        "recoveredOutcomeIdsTruncated": lost.len() > ITEMS,
        "recoveredInFlightFailures": lost.len(),
        "recoveredInFlight": items,
        "recoveredInFlightTruncated": lost.len() > ITEMS,
        "maxItemsReturned": ITEMS,
    })
}

/// The same without what only `get_startup_recovery` tells: where the store is, and the ids of commands.
pub(super) fn redacted(mut recovery: Value) -> Value {
    recovery["journalPath"] = "[redacted]".into();
    let lists = [
        ("recoveredOutcomeIds", "recoveredOutcomeIdsTruncated"),
        ("recoveredInFlight", "recoveredInFlightTruncated"),
    ];
    for (list, truncated) in lists {
        let is_left_out = recovery[list].as_array().is_some_and(|items| !items.is_empty());
        recovery[truncated] = (recovery[truncated] == true || is_left_out).into();
        recovery[list] = json!([]);
    }
    recovery
}

/// The command that such a job comes from; of settings there are several.
const fn kind_of(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Eval => "eval",
        JobKind::Turn => "prompt",
        JobKind::Compaction => "compact",
        JobKind::Shell => "bash",
        JobKind::Setting => "setting",
        JobKind::Build => "build",
        JobKind::Rebuild => "rebuild",
        JobKind::Comm => "comm",
    }
}
