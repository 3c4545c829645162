//! Watches the files that live sessions rest on: assemblies, scripts they loaded, and what their projects are made of. Where one changes,
//! its sessions are looked at, so that everybody hears at once what is out of date; and where settings say so, they are brought up to date.
//!
//! Folders are watched (`folders`) and not files: editors and builds replace files. `files` says what a change means for whom, `held` keeps
//! what cannot be done while a session builds.

mod build_questions;
mod changes;
mod deferred;
mod files;
mod folders;
mod swaps;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_engine::{Client, Engine};
use mainstay_home::config::{OnObstacle, Watch};
use mainstay_log::SessionFilter;
use mainstay_model::command;
use mainstay_model::{
    Access, Admission, Command, CommandId, Error, EventFilter, EventKind, JobSpec, Limits, Session,
    SessionCommand, SessionId, SessionState, Source, Timestamp, WrittenFile,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use self::build_questions::BuildQuestions;
use self::changes::Changes;
use self::deferred::Deferred;
use self::files::{DueWork, Files};
use self::folders::{Folders, PathChange};
use self::swaps::{EndedSwap, Swaps, is_code};

/// How long after an error files are watched again.
const AGAIN: Duration = Duration::from_secs(1);
/// Its name as a client.
const NAME: &str = "watch";

/// The events after which other files may matter, or after which what waits can be done.
const KINDS: [&str; 6] = [
    "warmUpCompleted",
    "environmentChanged",
    "jobEnded",
    "sessionStopped",
    "sessionDeleted",
    "sessionFaulted",
];

/// Watches until the daemon ends.
pub(crate) async fn watch(engine: Engine, how: Watch, on_obstacle: OnObstacle, limits: Limits) {
    if how == Watch::Off {
        return;
    }
    let (told_in, mut told) = mpsc::unbounded_channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event.inspect_err(|error| tracing::debug!(%error, "a change is missed"))
            && !event.kind.is_access()
        {
            // Who listens ends with the daemon.
            told_in.send(PathChange::of(event)).ok();
        }
    });
    let watcher = match watcher {
        Ok(watcher) => watcher,
        Err(error) => {
            return tracing::warn!(%error, "files cannot be watched; what changes is seen at the next look");
        }
    };
    let mut watching = WatcherTask {
        engine,
        how,
        on_obstacle,
        folders: Folders::new(watcher, limits.watch_folders),
        files: Files::default(),
        changes: Changes::new(&limits),
        in_new_folders: HashSet::new(),
        held: Deferred::default(),
        submitted: BTreeMap::new(),
        swaps: Swaps::default(),
        questions: BuildQuestions::default(),
    };
    while let Err(error) = watching.run(&mut told).await
        && goes_on(&error, AGAIN).await
    {}
}

/// Whether files are watched again after an error, once some time has passed. The daemon's end is the only one that ends it.
async fn goes_on(error: &Error, after: Duration) -> bool {
    if *error == Error::DaemonStopping {
        return false;
    }
    tracing::warn!(%error, "files are not watched for a moment");
    sleep(after).await;
    true
}

struct WatcherTask {
    engine: Engine,
    how: Watch,
    on_obstacle: OnObstacle,
    folders: Folders,
    files: Files,
    changes: Changes,
    /// Those of them whose folder is another one. When they were written says nothing of when they came there.
    in_new_folders: HashSet<PathBuf>,
    held: Deferred,
    /// What each session was given last.
    submitted: BTreeMap<SessionId, Submitted>,
    /// What is being put into workers.
    swaps: Swaps,
    questions: BuildQuestions,
}

/// A command that brings a session up to date.
struct Submitted {
    command: CommandId,
    builds: bool,
}

/// What a session does, for who would bring it up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionActivity {
    /// The session takes commands, and nothing else goes on.
    Other,
    /// It builds or warms up, with what was there when it began that.
    Renews,
    /// It has no worker, and the next one has all that is there then.
    Nothing,
}

impl WatcherTask {
    async fn run(&mut self, told: &mut mpsc::UnboundedReceiver<PathChange>) -> Result<(), Error> {
        let kinds = KINDS.iter().map(|kind| kind.parse::<EventKind>()).collect::<Result<_, _>>()?;
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let mut events = self.engine.subscribe_system(filter).await?;
        self.take_in().await?;
        self.catch_up();
        loop {
            let due = self.changes.due;
            tokio::select! {
                event = events.next() => {
                    let event = event?;
                    self.take_in().await?;
                    if event.body.kind() == "warmUpCompleted" {
                        self.look_at_unbuilt(event.session).await;
                    }
                }
                Some(told) = told.recv() => {
                    let anew = self.folders.hear(&told);
                    self.changed(told.paths, &anew);
                }
                () = self.folders.suspected() => {
                    let anew = self.folders.look();
                    self.changed(Vec::new(), &anew);
                }
                Some(ended) = self.swaps.next() => self.swap_ended(ended).await,
                Some(answered) = self.questions.next() => {
                    if let Some(session) = answered {
                        self.build(session).await;
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let changed = self.changes.take_written(Instant::now(), is_empty_code);
                    for (session, due) in self.files.due(&changed) {
                        self.attend_to(session, due).await;
                    }
                    self.in_new_folders.clear();
                }
            }
        }
    }

    /// Takes in that files changed, and that these folders are watched anew: of what happened in them meanwhile nothing is known.
    fn changed(&mut self, paths: Vec<PathBuf>, anew: &[PathBuf]) {
        let missed: Vec<_> = anew.iter().flat_map(|folder| self.files.within(folder)).cloned().collect();
        self.in_new_folders.extend(missed.iter().cloned());
        let changed: Vec<_> = paths.into_iter().chain(missed).collect();
        if changed.is_empty() {
            return;
        }
        match self.how == Watch::Swap && changed.iter().any(|path| self.files.is_source(path)) {
            true => self.changes.add_sources(changed, Instant::now()),
            false => self.changes.add(changed, Instant::now()),
        }
    }

    async fn swap_ended(&mut self, EndedSwap { session, more, is_applied, to_build }: EndedSwap) {
        if is_applied {
            self.questions.withdraw(&self.client(), session);
        }
        if let Some(more) = more {
            return self.attend_to(session, more).await;
        }
        let Some(what) = to_build else { return };
        match self.on_obstacle {
            OnObstacle::Tell => {}
            OnObstacle::Ask => self.questions.ask(self.client(), session, &what),
            OnObstacle::Build => self.build(session).await,
        }
    }

    async fn build(&mut self, session: SessionId) {
        let built = self.submit(session, SessionCommand::Work(JobSpec::Build)).await;
        told(session, built);
    }

    /// Takes back the questions to sessions that are built anyway, or are no more.
    async fn withdraw_questions(&mut self) {
        for session in self.questions.sessions() {
            if !matches!(self.doing(session).await, Ok(SessionActivity::Other)) {
                self.questions.withdraw(&self.client(), session);
            }
        }
    }

    /// Compares what a session with a new worker holds to be unbuilt with what its worker runs. It may have been taken back while nobody watched.
    async fn look_at_unbuilt(&mut self, session: SessionId) {
        // A session that is gone by now has nothing to be looked at.
        let (true, Ok(status)) = (self.how == Watch::Swap, self.client().status(session).await) else {
            return;
        };
        let unbuilt = status.session.unbuilt.keys();
        let code: BTreeSet<String> = unbuilt.filter(|path| is_code(path)).cloned().collect();
        if !code.is_empty() {
            let files = code.iter().map(|path| self.written_file(path)).collect();
            self.swaps.begin(&self.engine, session, code, files);
        }
    }

    /// Looks at what was saved while no daemon ran.
    fn catch_up(&mut self) {
        if self.how != Watch::Swap {
            return;
        }
        for (session, sources) in self.files.sources() {
            let code: BTreeSet<String> = sources.filter(|path| is_code(path)).collect();
            if !code.is_empty() {
                let files = code.iter().map(|path| self.written_file(path)).collect();
                self.swaps.begin(&self.engine, session, code, files);
            }
        }
    }

    fn client(&self) -> Client {
        self.engine.attach(Access::local(), NAME)
    }

    /// Takes in what has happened in sessions: other files may matter, and what waited may be done.
    async fn take_in(&mut self) -> Result<(), Error> {
        let live = SessionFilter { live: true, ..SessionFilter::default() };
        let sessions = self.client().sessions(live).await?;
        self.files = Files::of(sessions.iter().filter(|session| !session.is_agent()));
        self.folders.set(self.files.folders());
        let is_live = |session| sessions.iter().any(|live| live.id == session);
        self.held.retain(is_live);
        self.submitted.retain(|session, _| is_live(*session));
        self.withdraw_questions().await;
        for session in self.held.sessions() {
            let brought = self.bring_held(session).await;
            told(session, brought);
        }
        Ok(())
    }

    async fn attend_to(&mut self, session: SessionId, due: DueWork) {
        let attended = self.attend(session, due).await;
        told(session, attended);
    }

    async fn attend(&mut self, session: SessionId, due: DueWork) -> Result<(), Error> {
        if !due.written.is_empty() {
            let files: Vec<_> = due.written.iter().map(|path| self.written_file(path)).collect();
            if self.how == Watch::Swap && due.written.iter().all(|path| is_code(path)) {
                self.swaps.begin(&self.engine, session, due.written.clone(), files);
            } else {
                self.engine.files_written(session, files).await?;
            }
        }
        if self.how != Watch::Reload {
            return match due.look {
                true => self.client().validity(session).await.map(drop),
                false => Ok(()),
            };
        }
        match self.doing(session).await? {
            SessionActivity::Other => {
                self.held.written_at_rest(session, &due.written);
                self.bring_up_to_date(session, &due).await
            }
            SessionActivity::Renews => {
                self.held.keep(session, due);
                Ok(())
            }
            SessionActivity::Nothing => Ok(()),
        }
    }

    /// A file as it is now. A file that takes the place of another may keep the time at which it was modified; its inode is changed then.
    fn written_file(&self, path: &str) -> WrittenFile {
        let is_placed = self.in_new_folders.contains(Path::new(path));
        let metadata = std::fs::symlink_metadata(path).ok().filter(|_| !is_placed);
        let changed = metadata.and_then(|metadata| {
            let nanoseconds = i32::try_from(metadata.ctime_nsec()).ok()?;
            Timestamp::new(metadata.ctime(), nanoseconds).ok()
        });
        WrittenFile { path: path.to_owned(), written: changed }
    }

    async fn bring_held(&mut self, session: SessionId) -> Result<(), Error> {
        match self.doing(session).await? {
            SessionActivity::Other => {
                let due = self.held.take(session);
                self.bring_up_to_date(session, &due).await
            }
            SessionActivity::Renews => Ok(()),
            SessionActivity::Nothing => {
                self.held.take(session);
                Ok(())
            }
        }
    }

    async fn doing(&self, session: SessionId) -> Result<SessionActivity, Error> {
        Ok(SessionActivity::of(&self.client().status(session).await?.session))
    }

    async fn bring_up_to_date(&mut self, session: SessionId, due: &DueWork) -> Result<(), Error> {
        if !due.written.is_empty() {
            return self.submit(session, SessionCommand::Work(JobSpec::Build)).await;
        }
        let outlook = self.client().outlook(session).await?;
        // Nothing runs where nothing would be brought up to date by it.
        match outlook.gone.is_empty() && outlook.is_due() {
            true => self.submit(session, SessionCommand::Refresh(command::Refresh { all: false })).await,
            false => Ok(()),
        }
    }

    /// Has it carried out once its turn has come, unless one that does as much waits for that; what comes of it is in the session's events.
    async fn submit(&mut self, session: SessionId, body: SessionCommand) -> Result<(), Error> {
        let client = self.client();
        let builds = matches!(body, SessionCommand::Work(_));
        let lane = client.status(session).await?.session.lane;
        let waits = |submitted: &Submitted| {
            (submitted.builds || !builds) && lane.iter().any(|waiting| waiting.command == submitted.command)
        };
        if self.submitted.get(&session).is_some_and(waits) {
            return Ok(());
        }
        let source = Source::Client { principal: Access::local().principal, name: NAME.to_owned() };
        let id = CommandId::from_uuid(uuid::Uuid::now_v7());
        self.submitted.insert(session, Submitted { command: id.clone(), builds });
        let command = Command { admission: Admission::Queue, ..Command::new(id, source, body) };
        tokio::spawn(async move {
            if let Err(error) = client.submit(session, command).await {
                tracing::debug!(%session, %error, "a session is not brought up to date");
            }
        });
        Ok(())
    }
}

/// Whether a file is code, and nothing is in it.
fn is_empty_code(path: &Path) -> bool {
    path.to_str().is_some_and(is_code) && path.metadata().is_ok_and(|metadata| metadata.len() == 0)
}

fn told(session: SessionId, attended: Result<(), Error>) {
    if let Err(error) = attended {
        tracing::debug!(%session, %error, "a change of a session's files came to nothing");
    }
}

impl SessionActivity {
    fn of(session: &Session) -> Self {
        let builds = session.running().is_some_and(|running| running.kind.is_build());
        match session.state() {
            SessionState::WarmingUp => Self::Renews,
            SessionState::Ready | SessionState::Evaluating | SessionState::Waiting(_) if builds => {
                Self::Renews
            }
            SessionState::Ready | SessionState::Evaluating | SessionState::Waiting(_) => Self::Other,
            SessionState::Uninitialized | SessionState::Faulted => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_error_of_the_store_ends_watching_for_a_moment_only() {
        let failed = Error::StoreFailed { reason: "the disk cannot be read".to_owned() };
        assert!(goes_on(&failed, Duration::ZERO).await);
        assert!(!goes_on(&Error::DaemonStopping, Duration::ZERO).await);
    }
}
