//! The examination of a store: its counts, its findings, and how far it has come while it runs.

use std::fmt;

use mainstay_model::Principal;
use serde::Serialize;

use crate::finding::{Finding, Weight};

/// How many findings an examination keeps; the others are counted.
pub const FINDINGS_KEPT: usize = 1000;

/// A store that was examined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Examination {
    /// Whether a daemon had it open meanwhile.
    pub in_use: bool,
    /// The version of its schema.
    pub schema: i64,
    /// How many sessions could be read.
    pub sessions: u64,
    /// How many events could be read.
    pub events: u64,
    /// How many outcomes could be read.
    pub outcomes: u64,
    /// How many objects are whole.
    pub objects: u64,
    /// How many entries are whole.
    pub entries: u64,
    /// How many lines of the history are whole.
    pub history: u64,
    /// How many schedules are whole.
    pub schedules: u64,
    /// The schedules that have not ended, and whose they are.
    #[serde(skip)]
    pub open_schedules: Vec<(String, Principal)>,
    /// The size of the database's file.
    pub database_bytes: u64,
    /// What the disk has left.
    pub free_bytes: u64,
    /// How many findings are damages.
    pub damages: u64,
    /// How many findings are not.
    pub notes: u64,
    /// What is not as it should be; the first [`FINDINGS_KEPT`] of it.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Takes in what was found.
    pub(crate) fn add(&mut self, finding: Finding) {
        match finding.weight() {
            Weight::Note => self.notes += 1,
            Weight::Damage => self.damages += 1,
        }
        if self.findings.len() < FINDINGS_KEPT {
            self.findings.push(finding);
        }
    }

    /// Notes the schedules of principals that are not known, who can neither list nor remove them.
    pub fn note_unknown_principals(&mut self, is_known: impl Fn(&Principal) -> bool) {
        for (schedule, principal) in std::mem::take(&mut self.open_schedules) {
            if !is_known(&principal) {
                self.add(Finding::ScheduleOfUnknown { schedule, principal: principal.to_string() });
            }
        }
    }

    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damages == 0
    }

    /// How many findings are not among those kept.
    pub fn further(&self) -> u64 {
        (self.damages + self.notes).saturating_sub(self.findings.len() as u64)
    }
}

/// How far an examination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is looked at.
    pub stage: Stage,
    /// How many of them are done.
    pub done: u64,
}

/// What is looked at, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Files, their modes, and the room on the disk.
    Files,
    /// The database's pages, by SQLite itself.
    Pages,
    /// Every event is read.
    Events,
    /// Every session, with the index of its events and what they fold to.
    Sessions,
    /// Every outcome is read.
    Outcomes,
    /// Every object is read.
    Objects,
    /// Every entry of the transcripts.
    Entries,
    /// Every line of the history.
    History,
    /// Every schedule is read.
    Schedules,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Pages => "pages of the database",
            Self::Events => "events",
            Self::Sessions => "sessions",
            Self::Outcomes => "outcomes",
            Self::Objects => "objects",
            Self::Entries => "entries",
            Self::History => "lines of the history",
            Self::Schedules => "schedules",
        })
    }
}
