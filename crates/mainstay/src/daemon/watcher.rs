//! Watches the files that live sessions rest on: assemblies, scripts they loaded, and what their projects are made of. Where one changes,
//! its sessions are looked at, so that everybody hears at once what is out of date; and where settings say so, they are brought up to date.
//!
//! Folders are watched and not files: editors and builds replace files.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_engine::{Client, Engine};
use mainstay_log::SessionFilter;
use mainstay_model::{
    Access, Admission, Command, CommandId, Error, EventFilter, EventKind, JobKind, Session, SessionCommand,
    SessionId, SessionState, Source, Work,
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::config::Watch;

/// How long files must be left alone before what changed is looked at: a build writes many.
const QUIET: Duration = Duration::from_millis(300);
/// How long that may be put off by files that go on changing.
const LONGEST: Duration = Duration::from_secs(5);
/// How many folders are watched at most.
const FOLDERS: usize = 1024;
/// Its name as a client.
const NAME: &str = "watch";

/// The events after which other files may matter.
const KINDS: [&str; 5] =
    ["warmUpCompleted", "environmentChanged", "sessionStopped", "sessionDeleted", "sessionFaulted"];

/// Watches until the daemon ends.
pub(super) async fn watch(engine: Engine, how: Watch) {
    let reloads = match how {
        Watch::Off => return,
        Watch::Mark => false,
        Watch::Reload => true,
    };
    let (changed_in, changed) = mpsc::unbounded_channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event.inspect_err(|error| tracing::debug!(%error, "a change is missed"))
            && !event.kind.is_access()
        {
            // Who listens ends with the daemon.
            changed_in.send(event.paths).ok();
        }
    });
    match watcher {
        Ok(watcher) => {
            let folders = Folders { watcher, watched: BTreeSet::new() };
            if let Err(error) =
                (Watching { engine, reloads, folders, files: Files::default() }).run(changed).await
            {
                tracing::warn!(%error, "files are watched no more");
            }
        }
        Err(error) => {
            tracing::warn!(%error, "files cannot be watched; what changes is seen at the next look")
        }
    }
}

struct Watching {
    engine: Engine,
    reloads: bool,
    folders: Folders,
    files: Files,
}

/// The folders that are watched.
struct Folders {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

/// The files that matter, by session.
#[derive(Default, PartialEq, Eq, Debug)]
struct Files(BTreeMap<SessionId, FilesOf>);

/// Those of one session.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct FilesOf {
    /// What its worker has of them.
    loaded: BTreeSet<PathBuf>,
    /// What its project is made of.
    sources: BTreeSet<PathBuf>,
}

/// What is to be done for a session.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
struct Due {
    /// What its worker has may be another.
    look: bool,
    /// What its project is made of and was written.
    written: Vec<String>,
}

impl FilesOf {
    fn new(session: &Session) -> Self {
        let paths = session.surroundings.iter().flat_map(|known| known.present.values());
        let project = session.startup.as_ref().and_then(|startup| startup.project.as_ref());
        Self {
            loaded: paths.filter_map(|reference| reference.path.as_ref().map(PathBuf::from)).collect(),
            sources: project.iter().flat_map(|project| &project.sources).map(PathBuf::from).collect(),
        }
    }
}

impl Files {
    fn folders(&self) -> BTreeSet<PathBuf> {
        let all = self.0.values().flat_map(|files| files.loaded.iter().chain(&files.sources));
        all.filter_map(|file| file.parent().map(Path::to_owned)).take(FOLDERS).collect()
    }

    /// What is to be done once these have changed.
    fn due(&self, changed: &HashSet<PathBuf>) -> Vec<(SessionId, Due)> {
        let has_changed = |files: &BTreeSet<PathBuf>| files.iter().any(|file| changed.contains(file));
        let written = |files: &FilesOf| -> Vec<String> {
            let written = files.sources.iter().filter(|file| changed.contains(*file));
            written.map(|file| file.to_string_lossy().into_owned()).collect()
        };
        let due = |files: &FilesOf| Due { look: has_changed(&files.loaded), written: written(files) };
        let all = self.0.iter().map(|(session, files)| (*session, due(files)));
        all.filter(|(_, due)| *due != Due::default()).collect()
    }
}

impl Folders {
    /// Watches these, and no others.
    fn set(&mut self, wanted: BTreeSet<PathBuf>) {
        for gone in self.watched.difference(&wanted) {
            // One that is gone has taken its watch with it.
            self.watcher.unwatch(gone).ok();
        }
        let watched = wanted.into_iter().filter(|folder| {
            let is_watched = self.watched.contains(folder);
            is_watched || self.watcher.watch(folder, RecursiveMode::NonRecursive).is_ok()
        });
        self.watched = watched.collect();
    }
}

impl Watching {
    async fn run(mut self, mut changes: mpsc::UnboundedReceiver<Vec<PathBuf>>) -> Result<(), Error> {
        let kinds = KINDS.iter().map(|kind| kind.parse::<EventKind>()).collect::<Result<_, _>>()?;
        let filter = EventFilter { kinds, ..EventFilter::default() };
        let mut events = self.engine.happenings(filter).await?;
        self.refresh_files().await?;
        let (mut changed, mut due, mut latest) = (HashSet::new(), None, None);
        loop {
            tokio::select! {
                event = events.next() => {
                    event?;
                    self.refresh_files().await?;
                }
                Some(paths) = changes.recv() => {
                    changed.extend(paths);
                    let now = Instant::now();
                    let until = *latest.get_or_insert(now + LONGEST);
                    due = Some((now + QUIET).min(until));
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    (due, latest) = (None, None);
                    let changed = std::mem::take(&mut changed);
                    for (session, due) in self.files.due(&changed) {
                        self.attend_to(session, due).await;
                    }
                }
            }
        }
    }

    fn client(&self) -> Client {
        self.engine.attach(Access::local(), NAME)
    }

    async fn refresh_files(&mut self) -> Result<(), Error> {
        let live = SessionFilter { live: true, ..SessionFilter::default() };
        let sessions = self.client().sessions(live).await?;
        let files = sessions.iter().filter(|session| !session.kind.is_agent());
        self.files = Files(files.map(|session| (session.id, FilesOf::new(session))).collect());
        self.folders.set(self.files.folders());
        Ok(())
    }

    async fn attend_to(&self, session: SessionId, due: Due) {
        if let Err(error) = self.bring_up_to_date(session, due).await {
            tracing::debug!(%session, %error, "a change of a session's files came to nothing");
        }
    }

    async fn bring_up_to_date(&self, session: SessionId, Due { look, written }: Due) -> Result<(), Error> {
        let builds = self.reloads && !written.is_empty();
        if !written.is_empty() {
            self.engine.files_written(session, written).await?;
        }
        match (look, self.reloads) {
            _ if builds => self.submit(session, SessionCommand::Work(Work::Build)).await,
            (true, true) => self.refresh(session).await,
            (true, false) => self.client().validity(session).await.map(drop),
            (false, _) => Ok(()),
        }
    }

    /// Runs the definitions again, where that brings anything up to date.
    async fn refresh(&self, session: SessionId) -> Result<(), Error> {
        let outlook = self.client().outlook(session).await?;
        match outlook.gone.is_empty() && outlook.is_due() {
            true => self.submit(session, SessionCommand::Refresh).await,
            false => Ok(()),
        }
    }

    /// Has it carried out once its turn has come; what comes of it is in the session's events.
    async fn submit(&self, session: SessionId, body: SessionCommand) -> Result<(), Error> {
        let client = self.client();
        if !is_waiting_for_it(&client.status(session).await?.session) {
            return Ok(());
        }
        let source = Source::Client { principal: Access::local().principal, name: NAME.to_owned() };
        let id = CommandId::from_uuid(uuid::Uuid::now_v7());
        let command = Command { admission: Admission::Queue, ..Command::new(id, source, body) };
        tokio::spawn(async move {
            if let Err(error) = client.submit(session, command).await {
                tracing::debug!(%session, %error, "a session is not brought up to date");
            }
        });
        Ok(())
    }
}

/// Whether a session would not be brought up to date anyway by what it does now.
fn is_waiting_for_it(session: &Session) -> bool {
    let builds = session.running().is_some_and(|running| match running.kind {
        JobKind::Build | JobKind::Rebuild => true,
        JobKind::Eval | JobKind::Turn | JobKind::Compaction | JobKind::Shell | JobKind::Setting => false,
    });
    match session.state() {
        SessionState::Ready | SessionState::Evaluating | SessionState::Waiting(_) => !builds,
        SessionState::Uninitialized | SessionState::WarmingUp | SessionState::Faulted => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(loaded: &[&str], sources: &[&str]) -> FilesOf {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        FilesOf { loaded: paths(loaded), sources: paths(sources) }
    }

    #[test]
    fn what_is_due_is_told_by_session() {
        let session = |number: u128| SessionId::from_uuid(uuid::Uuid::from_u128(number));
        let all = Files(BTreeMap::from([
            (session(1), files(&["/p/bin/a.dll"], &["/p/a.fs"])),
            (session(2), files(&["/p/bin/a.dll", "/q/b.fsx"], &[])),
            (session(3), files(&[], &[])),
        ]));
        let due = |changed: &[&str]| all.due(&changed.iter().map(PathBuf::from).collect());
        let look = Due { look: true, written: Vec::new() };
        let written = Due { look: false, written: vec!["/p/a.fs".to_owned()] };
        assert_eq!(due(&["/p/bin/a.dll"]), [(session(1), look.clone()), (session(2), look)]);
        assert_eq!(due(&["/p/a.fs", "/p/other.fs"]), [(session(1), written)]);
        assert_eq!(due(&["/q"]), []);
        let folders: Vec<_> = all.folders().into_iter().collect();
        assert_eq!(folders, ["/p", "/p/bin", "/q"].map(PathBuf::from));
    }
}
