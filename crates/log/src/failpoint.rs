//! Places at which a test kills the process as a crash would: no destructor runs, nothing is flushed. Only with the feature
//! `failpoints`; [`VARIABLE`] chooses the place, and at which time of passing it.

use std::env;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// The variable of the environment that chooses: `NAME:TIME`, counted from 1.
pub const VARIABLE: &str = "MAINSTAY_LOG_FAILPOINT";

/// A place in the writer where a test can stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failpoint {
    /// All of a transaction is written, and it is not committed.
    BeforeCommit,
    /// A transaction is durable, and nobody has been answered.
    AfterCommit,
    /// Between two appends of one transaction.
    DuringBatch,
    /// Between an append's session and its events.
    DuringProjection,
    /// A step of the schema is made, and its version is not yet written.
    DuringMigration,
    /// A backup is copied and found sound; its copy has its last name but not the store's place; it has that.
    DuringRestore,
}

impl Failpoint {
    /// Returns the name of the place.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
            Self::DuringBatch => "during-batch",
            Self::DuringProjection => "during-projection",
            Self::DuringMigration => "during-migration",
            Self::DuringRestore => "during-restore",
        }
    }

    /// Passes the place: the process ends here where that was chosen.
    pub(crate) fn pass(self) {
        static PASSED: AtomicU64 = AtomicU64::new(0);
        if let Some(ArmedFailpoint { name, time }) = &*CHOSEN
            && name == self.name()
            && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *time
        {
            // Nothing can refuse it to a process of one's own, and nothing runs after it.
            kill_process(getpid(), Signal::KILL).ok();
        }
    }
}

struct ArmedFailpoint {
    name: String,
    time: u64,
}

static CHOSEN: LazyLock<Option<ArmedFailpoint>> = LazyLock::new(|| {
    let value = env::var(VARIABLE).ok()?;
    let (name, time) = value.split_once(':')?;
    Some(ArmedFailpoint { name: name.to_owned(), time: time.parse().ok()? })
});
