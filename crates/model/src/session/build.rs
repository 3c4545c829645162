//! What a session knows of the builds of its project, and of the files that its code depends on.

use super::Session;
use super::running_job::RunningJob;
use crate::agent::JobKind;
use crate::fingerprint::{Reference, References};
use crate::id::Seq;
use crate::replay::beginning;
use crate::startup::Startup;
use crate::swap::Swap;

impl Session {
    /// What its project is made of and neither a build nor the worker has taken in yet, in a sentence, with the first reason that is known;
    /// none where there is nothing.
    pub fn unbuilt_words(&self) -> Option<String> {
        const NAMED: usize = 3;
        const REASON_CHARACTERS: usize = 160;
        let name = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut names: Vec<String> = self.unbuilt.keys().take(NAMED).map(name).collect();
        let more = self.unbuilt.len() - names.len();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let last = names.pop()?;
        let all = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
        let obstacle = self.unbuilt.keys().find_map(|file| self.obstacles.get(file));
        let why = obstacle.map(|one| format!("; {}", beginning(&one.to_string(), REASON_CHARACTERS)));
        Some(format!("saved and not what runs: {all}{}", why.unwrap_or_default()))
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

    fn is_of_project(&self, reference: &Reference) -> bool {
        let project = self.startup.as_ref().and_then(|startup| startup.project.as_ref());
        let mut assemblies = project.iter().flat_map(|project| &project.assemblies);
        assemblies.any(|assembly| reference.path.as_ref() == Some(&assembly.path))
    }

    /// Takes in what a worker brought in at its start. Files of its project that no build has taken in are known from then on.
    pub(super) fn take_startup(&mut self, startup: Option<&Startup>, at: Seq) {
        let project = startup.and_then(|startup| startup.project.as_ref());
        let unbuilt = project.iter().flat_map(|project| &project.unbuilt);
        self.unbuilt.extend(unbuilt.map(|file| (file.clone(), at)));
        self.startup = startup.cloned().map(Box::new);
    }

    pub(super) fn change_environment(&mut self, references: &References) {
        let surroundings = self.surroundings.get_or_insert_default();
        surroundings.present = surroundings.present_with(references);
        surroundings.loaded.clone_from(references);
    }

    pub(super) fn change_assemblies(&mut self, new: &References, changed: &[String]) {
        self.surroundings.get_or_insert_default().present.clone_from(new);
        // Whoever built it has built its sources.
        if changed.iter().filter_map(|name| new.get(name)).any(|now| self.is_of_project(now)) {
            self.unbuilt.clear();
            self.obstacles.clear();
        }
    }

    /// Takes in which files' code runs now without a build, or which files wait for one.
    pub(super) fn swap_sources(&mut self, swap: &Swap, at: Seq) {
        for file in swap.saved() {
            self.obstacles.remove(file);
            if swap.is_applied() {
                self.unbuilt.remove(file);
            } else {
                self.unbuilt.insert(file.clone(), at);
            }
            let own = swap.obstacles.iter().find(|obstacle| obstacle.file == *file);
            if let Some(obstacle) = own.or(swap.obstacles.first()) {
                self.obstacles.insert(file.clone(), obstacle.clone());
            }
        }
    }

    /// Takes in that a build has taken in what was known to be unbuilt when it was requested.
    pub(super) fn take_built(&mut self, requested: Seq) {
        self.unbuilt.retain(|_, told| *told > requested);
        self.obstacles.retain(|file, _| self.unbuilt.contains_key(file));
    }

    pub(super) fn change_sources(&mut self, changed: &[String], in_build: bool, at: Seq) {
        let build = self.build_under_way().filter(|_| in_build);
        let told = build.map_or(at, |build| build.requested);
        self.unbuilt.extend(changed.iter().map(|file| (file.clone(), told)));
    }
}
