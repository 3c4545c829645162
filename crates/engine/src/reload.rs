//! Which submissions of a session run again in the worker that has them, once scripts that they loaded have changed. The rule is
//! `model`'s; here is what it is told, and the worker is asked whether it may be so.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_log::Log;
use mainstay_model::reload::{Candidate, FullReplayReason, plan};
use mainstay_model::replay::ReplayItem;
use mainstay_model::validity::Records;
use mainstay_model::{Environment, Error, Limits, Seq, Session, SessionId};

use crate::sync::time::timeout;
use crate::warm_up::what_to_replay;
use crate::watch::Watch;
use mainstay_runner::{CodeText, Kernel};

/// How many events are read from the log at once.
const PAGE: usize = 512;

/// What runs again in a worker.
pub(crate) struct Planned {
    /// The submissions, in order.
    pub(crate) items: Vec<Part>,
    /// How many a rebuilding would run.
    pub(crate) of: u32,
}

/// One part of the session's code that a reload may run again.
pub(crate) struct Part {
    pub(crate) item: ReplayItem,
    /// The names that this part used.
    pub(crate) touched: Vec<String>,
}

/// What of a session runs again in its worker, or why that cannot be.
pub(crate) async fn plan_reload(
    log: &dyn Log,
    watch: &Watch,
    limits: &Limits,
    session: &Session,
    kernel: &dyn Kernel,
) -> Result<Result<Planned, FullReplayReason>, Error> {
    let Some(known) = &session.surroundings else { return Ok(Err(FullReplayReason::Unused)) };
    let replay = what_to_replay(log, session).await?;
    if !replay.withheld.is_empty() {
        return Ok(Err(FullReplayReason::Withheld));
    }
    let mut present = known.present();
    let found = watch.look_at(present.references.clone()).await;
    present.references.extend(found);
    let records = records_of(log, session.id).await?;
    let changed = match changed_in(session, &replay.items, &records, &present) {
        Ok(changed) => changed,
        Err(name) => return Ok(Err(FullReplayReason::Gone { name })),
    };
    let codes = replay.items.iter().map(|item| CodeText { code: item.code.clone(), file: item.file.clone() });
    let limit = Duration::from_millis(limits.query_ms);
    let descriptions = match timeout(limit, kernel.describe(codes.collect())).await {
        Ok(Ok(Some(descriptions))) if descriptions.len() == replay.items.len() => descriptions,
        Ok(Ok(_)) => return Ok(Err(FullReplayReason::Undescribed)),
        Ok(Err(error)) => {
            tracing::warn!(session = %session.id, %error, "a worker does not describe code");
            return Ok(Err(FullReplayReason::Undescribed));
        }
        Err(_) => return Ok(Err(FullReplayReason::Undescribed)),
    };
    let described = replay.items.iter().zip(&descriptions);
    let candidates: Vec<_> =
        described.map(|(item, known)| Candidate::of(item, known, &records, &present)).collect();
    let part = match plan(&candidates, &changed) {
        Ok(part) => part,
        Err(why) => return Ok(Err(why)),
    };
    let runs_again = |item: &&ReplayItem| part.binary_search(&item.requested).is_ok();
    let of = u32::try_from(replay.items.len()).unwrap_or(u32::MAX);
    let part = |item: ReplayItem| {
        let touched = records.live(item.requested, &present).and_then(|(_, touched)| touched);
        Part { touched: touched.unwrap_or_default().to_vec(), item }
    };
    let items = replay.items.iter().filter(runs_again).cloned().map(part).collect();
    Ok(Ok(Planned { items, of }))
}

/// The names of what is otherwise than the worker has it, or than what the session has of a submission is of.
///
/// # Errors
/// The name of what is gone.
fn changed_in(
    session: &Session,
    items: &[ReplayItem],
    records: &Records,
    present: &Environment,
) -> Result<BTreeSet<String>, String> {
    let hash = |name: &str| present.references.get(name).and_then(|now| now.hash.as_ref());
    let loaded = session.surroundings.iter().flat_map(|known| &known.loaded);
    let differing = loaded.filter(|(name, had)| hash(name) != had.hash.as_ref());
    let used = items.iter().flat_map(|item| records.changed(item.requested, present));
    let changed: BTreeSet<_> = differing.map(|(name, _)| name.clone()).chain(used).collect();
    match changed.iter().find(|name| hash(name).is_none()) {
        Some(gone) => Err(gone.clone()),
        None => Ok(changed),
    }
}

async fn records_of(log: &dyn Log, session: SessionId) -> Result<Records, Error> {
    let (mut after, mut records) = (Seq::default(), Records::default());
    loop {
        let page = log.events(session, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(records) };
        after = last.seq;
        page.iter().for_each(|event| records.push(event));
    }
}
