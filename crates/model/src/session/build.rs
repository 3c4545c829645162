//! What a session knows of the builds of its project.

use super::Session;
use super::running_job::RunningJob;
use crate::agent::JobKind;
use crate::fingerprint::Reference;
use crate::id::Seq;

impl Session {
    /// What its project is made of and no build has taken in yet, in a sentence; none where there is nothing.
    pub fn unbuilt_words(&self) -> Option<String> {
        const NAMED: usize = 3;
        let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut names: Vec<String> = self.unbuilt.keys().take(NAMED).map(name).collect();
        let more = self.unbuilt.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let last = names.pop()?;
        let all = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
        Some(format!("changed and not built yet: {all}; methods that are loaded are not exchanged in place"))
    }

    /// The job that builds its project, where one does.
    pub(crate) fn build_under_way(&self) -> Option<&RunningJob> {
        let running = self.running()?;
        match running.kind {
            JobKind::Build | JobKind::Rebuild => Some(running),
            JobKind::Eval
            | JobKind::Turn
            | JobKind::Compaction
            | JobKind::Shell
            | JobKind::Setting
            | JobKind::Comm => None,
        }
    }

    /// Whether it is known of a file of its project that the next build is to take it in. One that is under way may have missed it.
    pub(crate) fn is_known_unbuilt(&self, file: &str) -> bool {
        let since = self.build_under_way().map_or(Seq::ZERO, |build| build.requested);
        self.unbuilt.get(file).is_some_and(|told| *told > since)
    }

    pub(super) fn is_of_project(&self, reference: &Reference) -> bool {
        let project = self.startup.as_ref().and_then(|startup| startup.project.as_ref());
        let mut assemblies = project.iter().flat_map(|project| &project.assemblies);
        assemblies.any(|assembly| reference.path.as_ref() == Some(&assembly.path))
    }
}
