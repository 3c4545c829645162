//! The order after a decision: durable first, then visible, then answered. A runner's notices are acknowledged in the same
//! order, once what they led to is durable.
//!
//! A session's task hands over what it decided and goes on; the committer waits for each append in turn. While the store
//! cannot take an append, those behind it wait in order, and it is tried again ([`Retry`]): jobs run on, and what they end
//! with is answered once it is durable. An append that is fenced or refused, or that the store could not take for too long,
//! ends the session's task, since what the task believes is no longer what the log says. Who hears of the failure hears of
//! it when the task is gone, and so may send the command again at once.

use std::sync::Arc;

use futures::future::join_all;
use mainstay_log::{AppendError, Appended};
use mainstay_model::{Error, NoticeNumber, Outcome, Session, SessionId, Version};
use mainstay_runner::Runner;
use tokio::sync::{mpsc, oneshot, watch};

use crate::claims::{Claims, CommandKey};
use crate::hub::{Hub, publish_stored};
use crate::metering;
use crate::open_tasks::Delegations;
use crate::pending_commands::Reply;
use crate::retry::Retry;
use crate::session::Ending;
use crate::shared::Shared;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::task::spawn;
use crate::sync::time::Instant;
use crate::trace::CommitTrace;

/// One decision on its way to the disk.
pub(crate) struct Commit {
    /// When it was decided.
    pub(crate) decided: Instant,
    /// Done when the append is durable.
    pub(crate) appended: Appended,
    /// The session after it.
    pub(crate) after: Arc<Session>,
    /// The commands that end with it.
    pub(crate) ended: Vec<CommandKey>,
    /// Who is told what.
    pub(crate) replies: Vec<(Reply, Outcome)>,
    /// The session's version once their commands had ended.
    pub(crate) version: Version,
    /// What of it is traced.
    pub(crate) trace: CommitTrace,
    /// Where it deletes the session: whose environments have one of it. It is removed before anyone hears of the deletion.
    pub(crate) forgets: Option<Arc<Shared>>,
    /// Where it changes which tasks the session's jobs gave to others, or which are to stop: who looks at them.
    pub(crate) delegates: Option<Arc<Delegations>>,
}

/// What the committer does next.
pub(crate) enum Step {
    /// Waits for an append, publishes and answers.
    Commit(Box<Commit>),
    /// Tells the runner that its notices up to this one are durable, since all commits before are.
    Acknowledge { runner: Runner, up_to: NoticeNumber },
}

/// The channel that takes steps to the committer.
pub(crate) type Commits = mpsc::UnboundedSender<Step>;

/// What a session's task hears of its commits.
pub(crate) struct CommitReceivers {
    /// The session as committed.
    pub(crate) visible: watch::Sender<Arc<Session>>,
    /// How many commits are on their way: the session as committed lacks them.
    pub(crate) on_their_way: Arc<AtomicU64>,
    /// How many commits are durable.
    pub(crate) durable: Arc<AtomicU64>,
    /// Of how many all have heard.
    pub(crate) through: watch::Sender<u64>,
    /// That one has failed.
    pub(crate) failed: oneshot::Sender<()>,
    /// Why the task ends then.
    pub(crate) ending: Ending,
}

/// Commits, publishes and answers, in order, until an append fails or the session's task is gone.
pub(crate) async fn commit_in_order(
    session: SessionId,
    hub: Arc<Hub>,
    claims: Arc<Claims>,
    heard: CommitReceivers,
    mut retry: Retry,
    mut steps: mpsc::UnboundedReceiver<Step>,
) {
    let CommitReceivers { visible, on_their_way, durable, through, failed, ending } = heard;
    while let Some(step) = steps.recv().await {
        let commit = match step {
            Step::Commit(commit) => *commit,
            Step::Acknowledge { runner, up_to } => {
                let stored = visible.borrow().last_seq;
                runner.process().acknowledge(up_to, stored);
                continue;
            }
        };
        match retry.stored(commit.appended).await {
            Ok(events) => {
                if let Some(shared) = &commit.forgets {
                    shared.environments.forget(session);
                }
                // Before the task forgets them: then they are its own again.
                commit.ended.iter().for_each(|key| claims.release(key, session));
                durable.fetch_add(1, Ordering::Release);
                let took = commit.decided.elapsed();
                metering::committed(&commit.after.kind, &events, took);
                hub.activity.committed(&events, took);
                let after = Arc::clone(&commit.after);
                visible.send_replace(commit.after);
                on_their_way.fetch_sub(1, Ordering::Release);
                if let Some(delegations) = &commit.delegates {
                    delegations.have_changed(&after);
                }
                hub.publish(session, events);
                // Whoever hears of the end has what went before it in the trace.
                commit.trace.ended();
                for (reply, outcome) in commit.replies {
                    reply.answer(outcome, commit.version);
                }
                through.send_modify(|through| *through += 1);
            }
            Err(failure) => {
                let fenced = matches!(failure, AppendError::Fenced { .. });
                let may_be_stored = matches!(failure, AppendError::Unavailable { .. });
                tracing::error!(%session, %failure, fenced, "an append failed; the session is read anew on its next use");
                let error = Error::from(failure);
                if error == Error::SessionOwned {
                    ending.note_owned();
                }
                failed.send(()).ok();
                commit.trace.failed(&error);
                let mut refused = commit.replies;
                let mut under_way = Vec::new();
                while let Some(later) = steps.recv().await {
                    if let Step::Commit(later) = later {
                        refused.extend(later.replies);
                        under_way.push(later.appended);
                    }
                }
                if may_be_stored {
                    // It may be there all the same, and with it what was on its way behind it. Those who follow the session are to hear of it.
                    let (log, hub, published) =
                        (retry.log(), Arc::downgrade(&hub), visible.borrow().last_seq);
                    spawn(async move {
                        join_all(under_way).await;
                        publish_stored(log, hub, session, published).await;
                    });
                }
                return refuse(refused, &error);
            }
        }
    }
}

fn refuse(replies: Vec<(Reply, Outcome)>, error: &Error) {
    for (reply, _) in replies {
        reply.refuse(error.clone());
    }
}
