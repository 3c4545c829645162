//! What the evals of a session ran against, and which of them hold at present.

use std::collections::{BTreeMap, BTreeSet};

use super::{Validity, ValidityCounts, assess, compare};
use crate::event::{Event, EventBody, JobPart};
use crate::fingerprint::{Environment, EnvironmentFingerprint, References};
use crate::id::{JobId, Seq};
use crate::replay::{Divergence, DivergenceKind};

/// What every eval of a session ran against and touched, from the session's events in order. It keeps a few words for each.
#[derive(Clone, Debug, Default)]
pub struct Records {
    runtime: Option<String>,
    references: References,
    /// What there was to run against, by name.
    environments: BTreeMap<EnvironmentFingerprint, Environment>,
    /// What evals ran against and touched; each is there once.
    grounds: Vec<Ground>,
    /// The job that runs, the event that accepted it, and how many swaps there had been.
    running: Option<(JobId, Seq, usize)>,
    /// In the order of their events.
    evals: Vec<Record>,
    /// The names of the assemblies of which each swap changed the code.
    swaps: Vec<Vec<String>>,
    /// The evals before this one were dropped by a reset.
    since: usize,
}

/// What an eval ran against, and what of it it touched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ground {
    environment: Option<EnvironmentFingerprint>,
    /// How many swaps there had been.
    swaps: usize,
    touched: Option<Vec<String>>,
}

/// An eval that ended by itself.
#[derive(Clone, Copy, Debug)]
struct Record {
    requested: Seq,
    ended: Seq,
    /// What the result that is in the log was given on: its index among the grounds.
    said: usize,
    /// What the session has of it is of: what it ran on, or the last rebuilding.
    live: usize,
    /// Whether every rebuilding runs it again.
    is_replayed: bool,
}

impl Records {
    /// Takes in the next event.
    pub fn push(&mut self, event: &Event) {
        match &event.body {
            EventBody::EnvironmentChanged { references } => {
                self.references.clone_from(references);
                self.note_environment();
            }
            EventBody::WarmUpCompleted { runtime, diverged, replayed, reload, .. } => {
                self.runtime = event.metadata.environment.as_ref().map(|_| runtime.clone());
                self.note_environment();
                if let Some(environment) = self.known(event).filter(|_| *replayed > 0) {
                    let in_place = reload.as_ref().and_then(|reload| reload.in_place.as_deref());
                    self.rebuilt(&environment, diverged, in_place);
                }
            }
            EventBody::SourcesSwapped(swap) if !swap.assemblies.is_empty() => {
                self.swaps.push(swap.assemblies.clone());
            }
            EventBody::SessionReset | EventBody::SessionHardReset => self.since = self.evals.len(),
            EventBody::EvalCompleted { result, changes_state, .. }
            | EventBody::EvalFailed { result, changes_state, .. } => {
                // What was exchanged while it ran, it may have run before.
                let swaps = self.running.map_or(self.swaps.len(), |(_, _, swaps)| swaps);
                let ground =
                    Ground { environment: self.known(event), swaps, touched: result.touched.clone() };
                self.end(event, ground, *changes_state);
            }
            _ => {
                if let Some((job, JobPart::Requested { withheld, .. })) = event.body.job_part() {
                    self.running = (!withheld).then_some((job, event.seq, self.swaps.len()));
                }
            }
        }
    }

    /// How far what the eval gave still holds that ended with this event; none where none did.
    pub fn of(&self, ended: Seq, present: &Environment) -> Option<Validity> {
        let index = self.evals.binary_search_by_key(&ended, |record| record.ended).ok()?;
        Some(self.assess(self.grounds.get(self.evals.get(index)?.said)?, present))
    }

    /// How many evals since the last reset do not surely hold. What a rebuilding has brought up to date in the session counts as what
    /// it is now, whatever was said of it.
    pub fn counts(&self, present: &Environment) -> ValidityCounts {
        let validities: Vec<_> = self.grounds.iter().map(|ground| self.assess(ground, present)).collect();
        let mut counts = ValidityCounts::default();
        let live = self.evals.iter().skip(self.since);
        live.filter_map(|record| validities.get(record.live)).for_each(|validity| counts.add(*validity));
        counts
    }

    /// Whether a rebuilding would run something again that has changed since it last ran.
    pub fn is_outdated(&self, present: &Environment) -> bool {
        let replayed = self.evals.iter().skip(self.since).filter(|record| record.is_replayed);
        let mut grounds = replayed.filter_map(|record| self.grounds.get(record.live));
        grounds.any(|ground| self.assess(ground, present) == Validity::Stale)
    }

    /// How far what the session has of an eval still holds that this event accepted, and what it touched, where that can be told.
    pub fn live(&self, requested: Seq, present: &Environment) -> Option<(Validity, Option<&[String]>)> {
        let ground = self.ground(requested)?;
        Some((self.assess(ground, present), ground.touched.as_deref()))
    }

    /// The names of what an eval touched, that this event accepted, and that is otherwise than what the session has of it is of.
    pub fn changed(&self, requested: Seq, present: &Environment) -> Vec<String> {
        let ground = self.ground(requested);
        let recorded = ground.and_then(|ground| self.environments.get(ground.environment.as_ref()?));
        let touched = ground.and_then(|ground| ground.touched.as_ref());
        let (Some(recorded), Some(touched)) = (recorded, touched) else { return Vec::new() };
        let swapped = ground.map(|ground| self.swapped_since(ground)).unwrap_or_default();
        let is_other = |name: &&String| {
            let of = |environment: &Environment| environment.references.get(*name).cloned();
            swapped.contains(*name) || !compare(of(present).as_ref(), of(recorded).as_ref()).is_valid()
        };
        touched.iter().filter(is_other).cloned().collect()
    }

    fn ground(&self, requested: Seq) -> Option<&Ground> {
        let index = self.evals.binary_search_by_key(&requested, |record| record.requested).ok()?;
        self.grounds.get(self.evals.get(index)?.live)
    }

    fn assess(&self, ground: &Ground, present: &Environment) -> Validity {
        let recorded = ground.environment.as_ref().and_then(|name| self.environments.get(name));
        let assessed = assess(present, recorded, ground.touched.as_deref());
        let swapped = self.swapped_since(ground);
        let has_touched = |touched: &Vec<String>| touched.iter().any(|name| swapped.contains(name));
        match &ground.touched {
            _ if swapped.is_empty() => assessed,
            Some(touched) if has_touched(touched) => assessed.max(Validity::Stale),
            Some(_) => assessed,
            None => assessed.max(Validity::Unknown),
        }
    }

    /// The names of the assemblies whose code was swapped after something ran on this.
    fn swapped_since(&self, ground: &Ground) -> BTreeSet<&String> {
        self.swaps.iter().skip(ground.swaps).flatten().collect()
    }

    fn end(&mut self, event: &Event, ground: Ground, is_replayed: bool) {
        let ended = event.body.job_end().map(|(job, _)| job);
        let Some((_, requested, _)) = self.running.take_if(|(job, ..)| Some(*job) == ended) else { return };
        let ground = self.index_of(ground);
        self.evals.push(Record { requested, ended: event.seq, said: ground, live: ground, is_replayed });
    }

    /// What the session has is of the new environment; so is what was said of code that ran again, where that was the same again. Of a
    /// reload in the worker that was there only what ran again (`in_place`), unless it failed: then the session has what it had.
    fn rebuilt(
        &mut self,
        environment: &EnvironmentFingerprint,
        diverged: &[Divergence],
        in_place: Option<&[Seq]>,
    ) {
        let own = diverged.iter().filter(|divergence| divergence.session.is_none());
        let diverged: BTreeMap<Seq, &DivergenceKind> =
            own.map(|divergence| (divergence.requested, &divergence.kind)).collect();
        let mut evals = std::mem::take(&mut self.evals);
        for record in evals.iter_mut().skip(self.since) {
            let Some(ground) = self.grounds.get(record.said).cloned() else { continue };
            let (environment, swaps) = (Some(environment.clone()), self.swaps.len());
            let ground = self.index_of(Ground { environment, swaps, ..ground });
            let is_kept = in_place.is_some_and(|ran| record.is_replayed && !ran.contains(&record.requested));
            match diverged.get(&record.requested) {
                _ if is_kept => {}
                Some(DivergenceKind::Ending { error: Some(_) }) if in_place.is_some() => {}
                None if record.is_replayed => (record.said, record.live) = (ground, ground),
                // The session has nothing of what only looked.
                None | Some(DivergenceKind::Ending { .. } | DivergenceKind::Values { .. }) => {
                    record.live = ground
                }
                // It was not run.
                Some(DivergenceKind::LeftOut | DivergenceKind::Withheld | DivergenceKind::Secret) => {}
            }
        }
        self.evals = evals;
    }

    fn index_of(&mut self, ground: Ground) -> usize {
        // What ran last ran mostly against the same.
        self.grounds.iter().rposition(|known| *known == ground).unwrap_or_else(|| {
            self.grounds.push(ground);
            self.grounds.len() - 1
        })
    }

    fn note_environment(&mut self) {
        if let Some(runtime) = self.runtime.clone() {
            let environment = Environment { runtime, references: self.references.clone() };
            self.environments.insert(environment.fingerprint(), environment);
        }
    }

    /// What the event names as its environment, where that is known.
    fn known(&self, event: &Event) -> Option<EnvironmentFingerprint> {
        event.metadata.environment.clone().filter(|name| self.environments.contains_key(name))
    }
}
