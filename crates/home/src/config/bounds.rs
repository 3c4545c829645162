//! The range of each number in the settings. The daemon checks it, and the reference of the settings shows it.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::{Config, DaemonConfig};

/// The range of a count.
const COUNT: RangeInclusive<u64> = 1..=100_000;
/// The range of a number of processes beside those of sessions; 0 means none.
const FEW: RangeInclusive<u64> = 0..=100;
/// The range of the time of one test in milliseconds: at most a day.
const TEST_TIME: RangeInclusive<u64> = 1..=DAY_MS;
/// The range of a number of events in a row or per minute; 0 means no limit.
const RATE: RangeInclusive<u64> = 0..=100_000_000;
/// The range of a number that only grows; 0 means no limit.
const ANY: RangeInclusive<u64> = 0..=u64::MAX;
/// The range of a size in bytes: at most 1 GiB.
const SIZE: RangeInclusive<u64> = 1..=1024 * 1024 * 1024;
/// The range of a time in milliseconds: at most a day.
const TIME: RangeInclusive<u64> = 0..=DAY_MS;
/// The range of the time that a daemon has for an answer, in milliseconds: with less, each daemon would seem to hang.
const ANSWER_TIME: RangeInclusive<u64> = 1000..=DAY_MS;
/// The range of a time that may span days, in milliseconds: at most a year.
const LONG_TIME: RangeInclusive<u64> = 0..=366 * DAY_MS;
/// The range of a difference between clocks, in seconds.
const LEEWAY: RangeInclusive<u64> = 0..=600;
/// A day in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The range of the setting of this name, which says by its end whether it is a time, a size or a count.
pub fn range_of(name: &str) -> RangeInclusive<u64> {
    match name {
        "session-commands-per-minute" | "commands-per-minute" | "breaker-failures" | "observer-lag" => RATE,
        "outcomes"
        | "history-lines"
        | "snapshot-bytes"
        | "standby-memory-bytes"
        | "warm-compiler-bytes"
        | "warm-compiler-memory-bytes"
        | "mirror-memory-bytes" => ANY,
        "browser-ms" | "orphan-ms" => LONG_TIME,
        "answer-ms" => ANSWER_TIME,
        "mirrors" | "warm-compilers" => FEW,
        "buffer-test-ms" | "measure-ms" | "measure-test-ms" => TEST_TIME,
        "leeway-sec" => LEEWAY,
        _ if name.ends_with("-ms") => TIME,
        _ if name.contains("-bytes") => SIZE,
        _ => COUNT,
    }
}

/// Rejects numbers that the daemon could not work with, and names the first.
pub(super) fn check(config: &Config) -> Result<(), String> {
    let outside = numbers(config).into_iter().find(|(name, value)| !range_of(name).contains(value));
    match outside {
        Some((name, value)) => {
            let range = range_of(&name);
            Err(format!("`{name}` is {value}; it must be from {} to {}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}

/// Every number in the settings that has a range, by its name.
fn numbers(config: &Config) -> Vec<(String, u64)> {
    let DaemonConfig {
        port: _,
        pi_port: _,
        log_bytes,
        environment: _,
        environment_ms,
        session_environment_bytes,
        answer_ms,
        orphan_ms,
        shim_buffer_bytes,
        shim_file_bytes,
    } = config.daemon;
    let own = [
        ("log-bytes", log_bytes),
        ("environment-ms", environment_ms),
        ("answer-ms", answer_ms),
        ("orphan-ms", orphan_ms),
        ("shim-buffer-bytes", shim_buffer_bytes),
        ("shim-file-bytes", shim_file_bytes),
        ("session-environment-bytes", u64::try_from(session_environment_bytes).unwrap_or(u64::MAX)),
        ("dialog-ms", config.pi.dialog_ms),
        ("limited-ms", config.tests.limited_ms),
        ("mirrors", config.tests.mirrors as u64),
        ("mirror-idle-ms", config.tests.mirror_idle_ms),
        ("mirror-memory-bytes", config.tests.mirror_memory_bytes),
        ("buffer-ms", config.tests.buffer_ms),
        ("buffer-test-ms", config.tests.buffer_test_ms),
        ("measure-ms", config.tests.measure_ms),
        ("measure-test-ms", config.tests.measure_test_ms),
        ("application-start-ms", config.fsharp.application_start_ms),
        ("application-stop-ms", config.fsharp.application_stop_ms),
        ("standby-rest-ms", config.fsharp.standby_rest_ms),
        ("standby-memory-bytes", config.fsharp.standby_memory_bytes),
        ("warm-compilers", config.fsharp.warm_compilers),
        ("warm-compiler-idle-ms", config.fsharp.warm_compiler_idle_ms),
        ("warm-compiler-bytes", config.fsharp.warm_compiler_bytes),
        ("warm-compiler-memory-bytes", config.fsharp.warm_compiler_memory_bytes),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let limits = match serde_json::to_value(&config.limits) {
        Ok(Value::Object(limits)) => limits,
        _ => serde_json::Map::new(),
    };
    let limits = limits.into_iter().filter_map(|(name, value)| Some((name, value.as_u64()?)));
    let leeways = config.issuers.values().map(|issuer| ("leeway-sec".to_owned(), issuer.leeway_sec.into()));
    own.into_iter().chain(limits).chain(leeways).collect()
}

#[cfg(test)]
mod tests {
    use mainstay_model::Limits;

    use super::*;

    #[test]
    fn a_limit_outside_of_its_range_is_named() {
        let check = |limits| check(&Config { limits, ..Config::default() });
        assert_eq!(check(Limits::default()), Ok(()));
        for (limits, name) in [
            (Limits { connections: usize::MAX, ..Limits::default() }, "`connections`"),
            (Limits { lane_commands: 0, ..Limits::default() }, "`lane-commands`"),
            (Limits { cancel_grace_ms: u64::MAX, ..Limits::default() }, "`cancel-grace-ms`"),
        ] {
            let refused = check(limits).unwrap_err();
            assert!(refused.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn a_number_of_the_daemon_outside_of_its_range_is_named() {
        let check = |daemon| check(&Config { daemon, ..Config::default() });
        for (daemon, name) in [
            (DaemonConfig { environment_ms: u64::MAX, ..DaemonConfig::default() }, "`environment-ms`"),
            (DaemonConfig { orphan_ms: u64::MAX, ..DaemonConfig::default() }, "`orphan-ms`"),
            (DaemonConfig { shim_file_bytes: 0, ..DaemonConfig::default() }, "`shim-file-bytes`"),
        ] {
            let refused = check(daemon).unwrap_err();
            assert!(refused.starts_with(name), "{refused}");
        }
        let days = DaemonConfig { orphan_ms: 3 * DAY_MS, ..DaemonConfig::default() };
        assert_eq!(check(days), Ok(()));
        assert_eq!(check(DaemonConfig { orphan_ms: 0, ..DaemonConfig::default() }), Ok(()));
    }

    #[test]
    fn every_number_of_the_limits_is_checked() {
        let limits = serde_json::to_value(Limits::default()).unwrap();
        assert_eq!(numbers(&Config::default()).len(), limits.as_object().unwrap().len() + 24);
    }
}
