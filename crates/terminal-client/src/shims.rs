//! The shims of the home: what hosts runners that outlive the daemon, read from the home and from the system, so also where no daemon runs.

use mainstay_home::{Home, VERSION};
use mainstay_model::{Error, SessionId, SessionKind};
use mainstay_os::system::{is_suspended, usage_of};
use mainstay_shim::{ShimFolder, ShimRecord, StandbyRecord, living};
use mainstay_terminal::{Paint, Tone, bytes, counted};
use rustix::process::Pid;
use serde::Serialize;

/// A shim, as people and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShimView {
    /// The session that it is for.
    pub session: SessionId,
    /// The kind of the session.
    pub kind: SessionKind,
    /// The process of the shim.
    pub pid: u32,
    /// The version of Mainstay that it is of.
    pub version: String,
    /// The version of the runner protocol that it speaks.
    pub protocol: u32,
    /// Whether it lives. One that does not was killed, and its session is replayed when it is next used.
    pub is_alive: bool,
    /// Whether it lives and is suspended by a signal, so that it does not answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_suspended: bool,
    /// The memory of the shim's own process, without its worker's, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// The shims of a home, by their sessions.
///
/// # Errors
/// The folder cannot be used.
pub fn shims(home: &Home) -> Result<Vec<ShimView>, Error> {
    let folder = home.shims()?;
    let alive = living(&folder);
    let view = |record: ShimRecord| {
        let ShimRecord { session, kind, pid, version, protocol, .. } = record;
        let is_alive = alive.contains(&session);
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| is_alive);
        let resident_bytes = process.and_then(usage_of).map(|usage| usage.resident_bytes);
        let is_suspended = process.is_some_and(is_suspended);
        ShimView { session, kind, pid, version, protocol, is_alive, is_suspended, resident_bytes }
    };
    let mut shims: Vec<ShimView> = ShimFolder::records(&folder).into_iter().map(view).collect();
    shims.sort_by_key(|shim| shim.session);
    Ok(shims)
}

/// A process that was started ahead of its session, as people and scripts see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StandbyView {
    /// The kind of session that it is for.
    pub kind: SessionKind,
    /// The process that waits.
    pub pid: u32,
    /// The process of its shim.
    pub shim_pid: u32,
    /// The memory of the process that waits, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

/// The standby of a home, where one lives.
///
/// # Errors
/// The folder cannot be used.
pub fn standby(home: &Home) -> Result<Option<StandbyView>, Error> {
    let view = |StandbyRecord { kind, pid: shim_pid, worker_pid: pid, .. }| {
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let resident_bytes = process.and_then(usage_of).map(|usage| usage.resident_bytes);
        StandbyView { kind, pid, shim_pid, resident_bytes }
    };
    Ok(mainstay_shim::standby(&home.shims()?).map(view))
}

/// What is to be said of a standby; empty where there is none.
pub fn standby_text(standby: Option<&StandbyView>) -> String {
    let text = |StandbyView { kind, resident_bytes, .. }: &StandbyView| {
        let cost = resident_bytes.map_or_else(String::new, |memory| format!(", which has {}", bytes(memory)));
        format!("  1 {kind} worker stands by for the next session{cost}\n")
    };
    standby.map(text).unwrap_or_default()
}

/// How many shims there are, and what is to be said of single ones. Empty where there are none.
pub fn shims_text(shims: &[ShimView], has_daemon: bool, paint: Paint) -> String {
    let alive: Vec<&ShimView> = shims.iter().filter(|shim| shim.is_alive).collect();
    let mut text = String::new();
    if !alive.is_empty() {
        let memory = alive.iter().filter_map(|shim| shim.resident_bytes).sum();
        let runners = counted(alive.len() as u64, "runner");
        text.push_str(&match has_daemon {
            true => format!("  {runners} in shims, which have {}\n", bytes(memory)),
            false => paint.tone(
                Tone::Warning,
                &format!(
                    "  {runners} without a daemon: the next command adopts them, `mainstay stop` ends them\n"
                ),
            ),
        });
    }
    for ShimView { session, kind, pid, .. } in alive.iter().filter(|shim| shim.is_suspended) {
        let id = session.short();
        let silent = format!(
            "    {id} {kind}: its shim is suspended and does not answer; `kill -CONT {pid}` continues it\n"
        );
        text.push_str(&paint.tone(Tone::Warning, &silent));
    }
    for shim in alive.iter().filter(|shim| shim.version != VERSION) {
        let id = shim.session.short();
        let older = format!(
            "    {id} {}: its shim is of version {} (pid {}); `mainstay session stop {id}` and its next use renew it\n",
            shim.kind, shim.version, shim.pid
        );
        text.push_str(&paint.tone(Tone::Faint, &older));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shim(number: u128, version: &str, is_alive: bool) -> ShimView {
        ShimView {
            session: SessionId::from_uuid(uuid::Uuid::from_u128(number)),
            kind: SessionKind::fsharp(),
            pid: 4711,
            version: version.to_owned(),
            protocol: 1,
            is_alive,
            is_suspended: false,
            resident_bytes: is_alive.then_some(3_000_000),
        }
    }

    #[test]
    fn it_is_told_how_many_there_are_and_which_are_of_another_version() {
        let shims = [shim(1, VERSION, true), shim(2, "0.0.1", true), shim(3, VERSION, false)];
        insta::assert_snapshot!(shims_text(&shims, true, Paint::plain()), @"
          2 runners in shims, which have 6.0 MB
            00000002 fsharp: its shim is of version 0.0.1 (pid 4711); `mainstay session stop 00000002` and its next use renew it
        ");
        insta::assert_snapshot!(shims_text(&shims[..1], false, Paint::plain()), @"  1 runner without a daemon: the next command adopts them, `mainstay stop` ends them
");
        assert_eq!(shims_text(&shims[2..], true, Paint::plain()), "");
    }

    #[test]
    fn a_standby_is_told_with_what_it_costs() {
        let of =
            |resident_bytes| StandbyView { kind: SessionKind::fsharp(), pid: 7, shim_pid: 6, resident_bytes };
        insta::assert_snapshot!(standby_text(Some(&of(Some(257_000_000)))), @"  1 fsharp worker stands by for the next session, which has 257.0 MB
");
        insta::assert_snapshot!(standby_text(Some(&of(None))), @"  1 fsharp worker stands by for the next session
");
        assert_eq!(standby_text(None), "");
    }

    #[test]
    fn one_that_is_suspended_is_told_with_what_continues_it() {
        let shims = [ShimView { is_suspended: true, ..shim(1, VERSION, true) }];
        insta::assert_snapshot!(shims_text(&shims, true, Paint::plain()), @"
          1 runner in shims, which have 3.0 MB
            00000001 fsharp: its shim is suspended and does not answer; `kill -CONT 4711` continues it
        ");
    }
}
