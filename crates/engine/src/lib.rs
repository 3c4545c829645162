//! Sessions at run time: admission, the serial lane and the immediate one, jobs, supervision of workers, subscriptions.
//!
//! [`Engine::attach`] is the way in, and a [`Client`] what comes of it. Each session that is not idle is one task ([`session`]), the sole owner of its state
//! and its worker; what it decides is committed, published and answered in order by [`commit`]. The engine knows
//! no protocol and no language: languages come in through [`mainstay_runner::RunnerFactory`], protocols call [`Engine`].

mod adoption;
mod breakers;
mod claims;
mod client;
mod clock;
mod commit;
mod compaction;
mod context;
mod creation;
mod delegations;
mod dependencies;
mod directory;
mod engine;
mod entries;
mod environments;
mod fork;
mod history;
mod hub;
mod import_export;
mod inherited;
mod insertion;
mod kind_rules;
mod labels;
mod lane;
mod lease;
mod lineage;
mod loading;
mod measuring;
mod merge;
mod metering;
mod mirror;
mod named_prompts;
mod naming;
mod open_tasks;
mod output;
mod pending_commands;
mod presence;
mod refusal;
mod reload;
mod reserved_names;
mod retry;
mod schedules;
mod search;
mod server_lane;
mod session;
mod shared;
mod single_process;
mod store;
mod stream;
mod swapping;
mod sync;
mod system_subscription;
mod trace;
mod units;
mod unsaved;
mod validity;
mod warm_up;
mod warm_up_progress;
mod watch;
mod worker;

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod interleavings;

pub use client::{
    ArtifactContent, Client, ClientSubscription, CoverageQuestion, CreationTurn, GivenTask, LiveSubscription,
    NewSchedule, Reloading, SessionChoice, WaitingAsk,
};
pub use creation::{Creation, CreationSource};
pub use directory::{Directory, DirectoryChange, DirectoryChangeKind};
pub use engine::{AcceptedCommand, CommandStatus, Engine, LostJob, SessionStatus};
pub use environments::Environments;
pub use hub::Cursor;
pub use import_export::{ExportPage, ImportSession};
pub use insertion::Inserted;
pub use kind_rules::{KindResolver, KindRules};
pub use lineage::Relative;
pub use merge::{Merge, MergeStop, Merged, MergedInput};
pub use metering::ActivityCounts;
pub use mirror::{BufferTerms, NewBuffer};
pub use refusal::{Reading, Refusal};
pub use search::SearchHit;
pub use store::Statistics;
pub use system_subscription::SystemSubscription;
pub use validity::RefreshOutlook;
pub use warm_up_progress::FollowedWarmUp;
