//! Sessions: finding, creating, changing and deleting them.

use crate::Sent;
use crate::view::{RelativeView, SessionView, StatisticsView};
use mainstay_model::{
    CommandId, Error, ProjectChoice, Seq, SessionId, SessionKind, SessionSearch, SessionWork, Startup,
};
use serde::{Deserialize, Serialize};

operations! {
    /// The sessions, most recently active first.
    "session/list" ListSessions {
        /// Only those that run in this folder.
        #[serde(default)]
        working_directory: Option<String>,
        /// Only those that run in this folder or below it, or are for a project that lies there.
        #[serde(default)]
        within: Option<String>,
        /// Only those that are not idle.
        #[serde(default)]
        live: bool,
        /// At most so many.
        #[serde(default)]
        limit: Option<usize>,
    } -> Vec<SessionView>;

    /// Finds the session that a folder, a kind, a project or a name means: of the caller's own the one that was active last.
    "session/find" FindSession {
        /// Which one is meant.
        #[serde(flatten)]
        search: Search,
    } -> SessionView;

    /// Finds the session that is meant, and creates it where there is none.
    "session/open" OpenSession {
        /// Its id, the end of it, or its name: then nothing is looked for, or created.
        #[serde(default)]
        session: Option<String>,
        /// Which one is meant where none is named, and what a new one is for.
        #[serde(flatten)]
        search: Search,
        /// Create it also where what runs its kind has to be installed or built first.
        #[serde(default)]
        even_unready: bool,
        /// Start it where it is idle, and wait at most so long until it takes commands, in milliseconds. Without this it is left as it is.
        #[serde(default)]
        timeout_ms: Option<u64>,
    } -> Opened;

    /// Creates a session and starts it.
    "session/create" CreateSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// What does its work.
        kind: SessionKind,
        /// The folder its code runs in, absolute.
        working_directory: String,
        /// The project it is for, or the folder that one lies in, absolute; that of its own folder where it does not say.
        #[serde(default)]
        project: Option<String>,
        /// For no project, whatever lies in its folder.
        #[serde(default)]
        no_project: bool,
        /// Options of the F# compiler, parted by spaces.
        #[serde(default)]
        fsi_args: Option<String>,
        /// What people call it.
        #[serde(default)]
        name: Option<String>,
    } -> SessionView;

    /// Creates a session that begins with entries of another, and has its values once it is ready.
    "session/fork" ForkSession {
        /// The client's name for the command.
        #[serde(default)]
        command: Option<CommandId>,
        /// The other: its id, the end of it, or its name.
        session: String,
        /// How many entries of its transcript, from the first; all where it does not say.
        #[serde(default)]
        entries: Option<u64>,
        /// What people call the new one; by default the other's name, numbered.
        #[serde(default)]
        name: Option<String>,
        /// With what there was before the other's last reset, instead of a number of entries.
        #[serde(default)]
        before_reset: bool,
    } -> Forked;

    /// All sessions that have an ancestor with this one in common, each after the one it was forked off.
    "session/lineage" GetLineage {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<RelativeView>;

    /// Returns one session with its state.
    "session/get" GetSession {
        /// Its id, the end of it, or its name.
        session: String,
    } -> SessionView;

    /// Waits until a session is neither idle nor warming up.
    "session/settle" SettleSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// How long at most, in milliseconds.
        timeout_ms: u64,
    } -> SessionView;

    /// Starts an idle session.
    "session/start" StartSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Puts a session to rest.
    "session/stop" StopSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Deletes a session. What other sessions have of it stays there for them; the rest goes with the next collection.
    "session/delete" DeleteSession {
        /// Its id, the end of it, or its name; once it was deleted only its id.
        session: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Deleted;

    /// What a session holds, in numbers.
    "session/statistics" GetSessionStatistics {
        /// Its id, the end of it, or its name.
        session: String,
    } -> StatisticsView;

    /// Gives a session another name.
    "session/rename" RenameSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// The new name of the session.
        name: String,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Drops a session's definitions.
    "session/reset" ResetSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Whether to start a new worker too.
        #[serde(default)]
        hard: bool,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> SessionView;

    /// Runs a session's definitions again, where what they rest on has changed: those that depend on scripts that changed in the worker
    /// that is there, or where that cannot be, all in a new one. Nothing runs where nothing has changed, or where something is gone. A
    /// session that is idle takes in what has changed when it is next used.
    "session/refresh" RefreshSession {
        /// Its id, the end of it, or its name.
        session: String,
        /// Run all of them in a new worker, also where nothing has changed.
        #[serde(default)]
        all: bool,
        /// Only say what it would be for.
        #[serde(default)]
        dry_run: bool,
        /// Under what name and conditions it is sent.
        #[serde(flatten)]
        sent: Sent,
    } -> Refreshed;

    /// Tells what a session's worker brought in before the session's own code: its project, and the scripts of its user.
    "session/startup" GetStartup {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Startup;
}

/// Lists all sessions, without a filter.
impl Default for ListSessions {
    fn default() -> Self {
        Self { working_directory: None, within: None, live: false, limit: None }
    }
}

/// Which session is meant where none is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Search {
    /// The folder that its code runs in, absolute; any folder where it does not say.
    pub working_directory: Option<String>,
    /// What it is used for, where no kind is named.
    pub work: SessionWork,
    /// The kinds that are as good, the preferred one first.
    pub kinds: Vec<SessionKind>,
    /// The project it is for, or the folder that one lies in, absolute; any where it does not say.
    pub project: Option<String>,
    /// Whether it is for no project.
    pub no_project: bool,
    /// What people call it.
    pub name: Option<String>,
}

impl Search {
    /// What the engine looks for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it names a project and wants none.
    pub fn wanted(self) -> Result<SessionSearch, Error> {
        let Self { working_directory, work, kinds, project, no_project, name } = self;
        let project = ProjectChoice::of(project, no_project)?;
        Ok(SessionSearch { working_directory, work, kinds, language: None, project, name })
    }
}

/// What came of looking for a session that is created where there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Opened {
    /// The session was there already.
    Found {
        /// The session that was found.
        session: Box<SessionView>,
        /// Whether it had to be started, or was still warming up.
        was_idle: bool,
    },
    /// There was none, and this one was created.
    Created {
        /// The session that was created.
        session: Box<SessionView>,
    },
    /// There is none, and none was created: what runs this kind has to be installed or built first.
    Unready {
        /// The kind that it would be of.
        kind: SessionKind,
        /// The folder that its code would run in.
        working_directory: String,
    },
}

/// A session that was forked off another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The session that the fork created.
    pub session: SessionView,
    /// How many entries of the other it begins with.
    pub entries: u64,
    /// How many were asked for, where that would have parted an answer from what it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// A session whose definitions run again, where there is a reason for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refreshed {
    /// The session. How many of its evals were out of date before is its `validity`.
    pub session: SessionView,
    /// The names of what has changed since its worker took it in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The names of what is gone: nothing runs while something is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// Whether there is a reason for it.
    pub is_due: bool,
    /// What would run again, where that is only asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<WouldRun>,
    /// The event behind which they run again; none where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
}

/// What a refresh would run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WouldRun {
    /// How many submissions would run.
    pub count: u32,
    /// How many a rebuilding runs.
    pub of: u32,
    /// Why a new worker would run them; without it the one that is there would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A session that was deleted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The session that was deleted.
    pub session: SessionId,
    /// The session's last event, which records the deletion.
    pub seq: Seq,
}
