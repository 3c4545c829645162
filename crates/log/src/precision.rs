//! Moments as stores keep them: to the microsecond. What is handed in finer is cut before anything else is done with it,
//! so that what an append answers, what is read back, and what the events fold to are the same.

use mainstay_model::{Activity, Session, Timestamp};

use crate::Append;

/// The append with all its moments cut to the microsecond.
pub(crate) fn to_microseconds(mut append: Append) -> Append {
    for event in &mut append.events {
        cut(&mut event.at);
    }
    cut_session(&mut append.projection);
    append
}

fn cut_session(session: &mut Session) {
    cut(&mut session.created_at);
    cut(&mut session.last_activity);
    session.losses.iter_mut().for_each(cut);
    if let Some(worker) = &mut session.worker {
        cut(&mut worker.ready_at);
    }
    match &mut session.life {
        Activity::Evaluating { running } | Activity::Waiting { running, .. } => {
            cut(&mut running.requested_at)
        }
        Activity::Uninitialized | Activity::WarmingUp { .. } | Activity::Ready | Activity::Faulted { .. } => {
        }
    }
}

fn cut(moment: &mut Timestamp) {
    // The last moment there is lies in no whole microsecond; the last whole one does.
    let last = Timestamp::MAX.as_microsecond() - 1;
    *moment = Timestamp::from_microsecond(moment.as_microsecond().min(last)).unwrap_or(Timestamp::UNIX_EPOCH);
}
