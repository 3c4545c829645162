//! The settings of ARCP, `[arcp]` in `config.toml`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much is kept of what a client calls itself, in characters.
pub(crate) const NAME_CHARS: usize = 200;

/// How many seconds a day has.
const DAY_SEC: u64 = 24 * 60 * 60;

/// How ARCP is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// How long a session can be resumed after its connection was lost, in seconds.
    pub resume_window_sec: u32,
    /// How often an idle connection is asked whether its client is there, and a job of dialect A gives a sign of life, in seconds.
    pub heartbeat_interval_sec: u32,
    /// How long a client has to show who it is, in milliseconds.
    pub handshake_ms: u32,
    /// How long before its credentials expire a client of dialect A is asked for new ones, in seconds.
    pub refresh_sec: u32,
    /// How many jobs of other sessions one session may be told of.
    pub subscriptions: usize,
    /// How many observers one session may have.
    pub observers: usize,
    /// How many events an observer may lie behind. Then its subscription is closed, and says where to go on; at 0 it never is.
    pub observer_lag: u64,
    /// How many messages a session of dialect A is told again at most where it resumes.
    pub retained_messages: u64,
    /// How many submissions of one connection may wait for their answer. Then no more is read of it until one is answered.
    pub unanswered_submissions: usize,
    /// How many sessions of one principal can be resumed. Then the first of those that nobody has is given up for a new one.
    pub sessions: usize,
    /// How many days an artifact is kept whose client does not say.
    pub artifact_days: u32,
    /// How many days an artifact is kept at most.
    pub artifact_most_days: u32,
    /// How many bytes the artifacts of one principal may have together.
    pub artifact_bytes: u64,
    /// The largest part of a result that is sent as one, in bytes of text. A larger result is sent in parts.
    pub chunk_bytes: usize,
}

impl Settings {
    pub(crate) fn resume_window(&self) -> Duration {
        Duration::from_secs(self.resume_window_sec.max(1).into())
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.heartbeat_interval_sec.max(1).into())
    }

    /// How long a client may be silent, or leave what it is sent unread. Source: draft-arcp-1.1, 6.4.
    pub(crate) fn patience(&self) -> Duration {
        self.heartbeat() * 2
    }

    /// How many seconds an artifact is kept whose client does not say.
    pub(crate) fn artifact_sec(&self) -> u64 {
        u64::from(self.artifact_days).saturating_mul(DAY_SEC).min(self.artifact_most_sec())
    }

    /// How many seconds an artifact is kept at most.
    pub(crate) fn artifact_most_sec(&self) -> u64 {
        u64::from(self.artifact_most_days.max(1)).saturating_mul(DAY_SEC)
    }

    /// How long before its credentials expire a client is asked for new ones.
    pub(crate) fn refresh(&self) -> Duration {
        Duration::from_secs(self.refresh_sec.into())
    }

    pub(crate) fn handshake(&self) -> Duration {
        Duration::from_millis(self.handshake_ms.into())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            resume_window_sec: 24 * 60 * 60,
            heartbeat_interval_sec: 30,
            handshake_ms: 10_000,
            refresh_sec: 60,
            subscriptions: 1000,
            observers: 100,
            observer_lag: 0,
            retained_messages: 100_000,
            unanswered_submissions: 1000,
            sessions: 1000,
            artifact_days: 7,
            artifact_most_days: 90,
            artifact_bytes: 1 << 30,
            chunk_bytes: 256 * 1024,
        }
    }
}
