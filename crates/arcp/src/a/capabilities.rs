//! What this runtime can do in dialect A, and what a session can do of it. Source: draft-arcp-01, 7.

use mainstay_arcp_protocol::a::{ArtifactRetention, Capabilities, HeartbeatRecovery};
use serde_json::Value;

use crate::settings::Settings;

/// The boolean capabilities that both sides must have for a session to have them.
const SHARED: [&str; 11] = [
    "streaming",
    "binary_streams",
    "durable_jobs",
    "human_input",
    "permissions",
    "subscriptions",
    "checkpoints",
    "artifacts",
    "scheduled_jobs",
    "interrupt",
    HANDOFF,
];

/// The boolean capabilities that no session has.
const MISSING: [&str; 0] = [];

/// The capability of sessions that hand jobs over, or are handed some.
pub(super) const HANDOFF: &str = "agent_handoff";

/// The capability of clients without credentials, which only some runtimes have.
pub(super) const ANONYMOUS: &str = "anonymous";

/// The extension by which a client says how many must give the same answer to what a job asks. Source: draft-arcp-01, 12.3 and 21.2.
pub(super) const QUORUM: &str = "arcpx.mainstay.quorum.v1";

/// The capability without which nobody is asked for a permission, and so no extension of that is there.
const PERMISSIONS: &str = "permissions";

/// The encoding of bytes that every transport has: within the envelope. Source: draft-arcp-01, 11.3.
const BASE64: &str = "base64";

/// The encoding of bytes in frames of their own, where the transport has those. Source: draft-arcp-01, 11.3.
const SIDECAR: &str = "sidecar";

/// The field in which clients name what they cannot do without. The draft says that there is such a wish, and not where it stands.
const REQUIRED: &str = "required";

/// The names of the capabilities that a session with this client has.
///
/// # Errors
/// What the client requires and this runtime lacks.
pub(super) fn negotiate(offered: &Capabilities, allows_anonymous: bool) -> Result<Vec<String>, Vec<String>> {
    let anonymous = allows_anonymous.then_some(ANONYMOUS);
    let shared: Vec<&str> = SHARED.into_iter().chain(anonymous).collect();
    let required = offered.others.get(REQUIRED).and_then(Value::as_array).into_iter().flatten();
    let has_quorum = offered.has(PERMISSIONS) && offered.extensions.iter().any(|name| name == QUORUM);
    let is_there = |name: &&str| shared.contains(name) || (has_quorum && *name == QUORUM);
    let lacks = required.filter_map(Value::as_str).filter(|name| !is_there(name)).map(str::to_owned);
    let lacks: Vec<String> = lacks.collect();
    let has = shared.iter().copied().filter(|name| offered.has(name)).chain(has_quorum.then_some(QUORUM));
    match lacks.is_empty() {
        true => Ok(has.map(str::to_owned).collect()),
        false => Err(lacks),
    }
}

/// How often a job is to give a sign of life, in seconds: as the client wishes, where that is more often than by itself.
pub(super) fn heartbeat_sec(offered: &Capabilities, own: u32) -> u64 {
    offered.heartbeat_interval_seconds.unwrap_or(u64::MAX).clamp(1, u64::from(own.max(1)))
}

/// Whether a client takes bytes in frames of their own, over a transport that may have them.
pub(super) fn takes_sidecar(offered: &Capabilities, carries_bytes: bool) -> bool {
    carries_bytes && offered.binary_encoding.iter().any(|encoding| encoding == SIDECAR)
}

/// What a session can do that has these capabilities, over a transport that may have frames of bytes.
pub(super) fn of_session(
    has: &[String],
    heartbeat_sec: u64,
    settings: &Settings,
    carries_bytes: bool,
) -> Capabilities {
    let shared = SHARED.iter().chain([&ANONYMOUS]).map(|name| (*name, has.iter().any(|known| known == name)));
    let all = shared.chain(MISSING.iter().map(|name| (*name, false)));
    let encodings = [BASE64].into_iter().chain(carries_bytes.then_some(SIDECAR));
    Capabilities {
        extensions: has.iter().filter(|name| *name == QUORUM).cloned().collect(),
        binary_encoding: encodings.map(str::to_owned).collect(),
        heartbeat_interval_seconds: Some(heartbeat_sec),
        heartbeat_recovery: Some(HeartbeatRecovery::Fail),
        artifact_retention: Some(ArtifactRetention {
            default_seconds: settings.artifact_sec(),
            max_seconds: settings.artifact_most_sec(),
        }),
        others: all.map(|(name, has)| (name.to_owned(), Value::Bool(has))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    fn offered(names: &[&str], required: &[&str]) -> Capabilities {
        let mut others: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!(true))).collect();
        others.insert(REQUIRED.to_owned(), json!(required));
        Capabilities { others, ..Capabilities::default() }
    }

    proptest! {
        #[test]
        fn a_session_has_what_both_sides_have_and_nothing_else(
            names in proptest::sample::subsequence([SHARED.as_slice(), &MISSING, &[ANONYMOUS]].concat(), 0..=12),
            allows_anonymous: bool,
        ) {
            let has = negotiate(&offered(&names, &[]), allows_anonymous).unwrap();
            let is_shared = |name: &&str| SHARED.contains(name) || allows_anonymous && *name == ANONYMOUS;
            for name in &has {
                prop_assert!(is_shared(&name.as_str()) && names.contains(&name.as_str()));
            }
            let wanted = names.iter().filter(|name| is_shared(name)).count();
            prop_assert_eq!(has.len(), wanted);
            let told = of_session(&has, 30, &Settings::default(), false);
            for name in SHARED.iter().chain(&MISSING).chain([&ANONYMOUS]) {
                prop_assert_eq!(told.has(name), has.iter().any(|known| known == name));
            }
        }

        #[test]
        fn a_heartbeat_is_never_rarer_than_either_side_wants(theirs: Option<u64>, own: u32) {
            let wish = Capabilities { heartbeat_interval_seconds: theirs, ..Capabilities::default() };
            let agreed = heartbeat_sec(&wish, own);
            prop_assert!(agreed >= 1 && agreed <= u64::from(own.max(1)));
            prop_assert!(theirs.is_none_or(|theirs| agreed <= theirs.max(1)));
        }
    }

    #[test]
    fn frames_of_bytes_are_sent_to_who_takes_them_over_a_transport_that_has_them() {
        let offered = |encodings: &[&str]| Capabilities {
            binary_encoding: encodings.iter().map(|name| (*name).to_owned()).collect(),
            ..Capabilities::default()
        };
        assert!(takes_sidecar(&offered(&["base64", "sidecar"]), true));
        assert!(!takes_sidecar(&offered(&["base64", "sidecar"]), false));
        assert!(!takes_sidecar(&offered(&["base64"]), true));
        let told = |carries_bytes| of_session(&[], 30, &Settings::default(), carries_bytes).binary_encoding;
        assert_eq!(
            (told(false), told(true)),
            (vec![BASE64.to_owned()], vec![BASE64.to_owned(), SIDECAR.to_owned()])
        );
    }

    #[test]
    fn a_session_has_an_extension_that_its_client_has_with_what_it_rests_on() {
        let extended = |names: &[&str], extensions: &[&str], required: &[&str]| {
            let extensions = extensions.iter().map(|name| (*name).to_owned()).collect();
            negotiate(&Capabilities { extensions, ..offered(names, required) }, false)
        };
        let told = |has: &[String]| of_session(has, 30, &Settings::default(), false).extensions;
        let has = extended(&["permissions"], &[QUORUM, "com.acme.flow.v2"], &[QUORUM]).unwrap();
        assert_eq!(
            (has.as_slice(), told(&has)),
            (["permissions", QUORUM].map(str::to_owned).as_slice(), vec![QUORUM.to_owned()])
        );
        for (names, extensions) in [(vec!["streaming"], vec![QUORUM]), (vec!["permissions"], vec![])] {
            assert_eq!(told(&extended(&names, &extensions, &[]).unwrap()), Vec::<String>::new());
            assert_eq!(extended(&names, &extensions, &[QUORUM]), Err(vec![QUORUM.to_owned()]));
        }
    }

    #[test]
    fn what_is_required_and_lacks_is_named() {
        assert_eq!(
            negotiate(&offered(&[], &["teleportation", "streaming"]), false),
            Err(vec!["teleportation".to_owned()])
        );
    }
}
