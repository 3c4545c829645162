//! Reading what a shim tells: notices go to the session, which takes them in its own time; answers go to who asked, and never wait
//! behind more notices than the window has.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use mainstay_model::{Error, NoticeNumber, RunnerNotice, WorkerExit};
use tokio::sync::mpsc;

use super::link::Questions;
use crate::activity::Work;
use crate::messages::{FromShim, ToShim, WINDOW, encode};
use crate::stream::Incoming;

/// The signal that a worker gets when its shim ends.
const SIGKILL: i32 = 9;

/// After so many notices that were taken the shim is told.
const TOLD_AFTER: u64 = WINDOW / 4;

/// Where what a shim tells goes.
pub(crate) struct Told {
    pub(super) tell: mpsc::Sender<RunnerNotice>,
    /// Weak, so that the connection ends with the last handle of the runner.
    pub(super) frames: mpsc::WeakUnboundedSender<Bytes>,
    pub(super) questions: Arc<Questions>,
    pub(super) work: Arc<Work>,
}

impl Drop for Told {
    fn drop(&mut self) {
        self.work.is_over();
    }
}

/// Reads until the shim is gone, or nobody listens any more.
pub(crate) async fn read(mut incoming: Incoming, told: Told) {
    let mut waiting: VecDeque<(NoticeNumber, RunnerNotice)> = VecDeque::new();
    let mut said_consumed = None;
    let mut has_exited = false;
    let mut is_open = true;
    while is_open || !waiting.is_empty() {
        tokio::select! {
            room = told.tell.reserve(), if !waiting.is_empty() => {
                let Ok(room) = room else { continue };
                let Some((number, notice)) = waiting.pop_front() else { continue };
                has_exited |= matches!(notice, RunnerNotice::Exited { .. });
                room.send(notice);
                told.consumed(number, &mut said_consumed);
            }
            () = told.tell.closed() => {
                told.questions.end();
                if told.questions.is_killed() {
                    // What it still says nobody wants; its end is waited for.
                    while let Ok(Some(_)) = incoming.next::<FromShim>().await {}
                    told.questions.is_closed();
                }
                return;
            }
            message = incoming.next::<FromShim>(), if is_open => match message {
                Ok(Some(FromShim::Notice { number, notice })) => {
                    told.work.hears(&notice);
                    waiting.push_back((number, notice));
                }
                Ok(Some(FromShim::Answer { id, answer })) => told.questions.answer(id, answer),
                Ok(Some(
                    FromShim::Progress { .. }
                    | FromShim::StartLines { .. }
                    | FromShim::StandsBy { .. }
                    | FromShim::Started { .. },
                )) => {}
                Ok(Some(FromShim::NotStarted { error })) => tracing::warn!(%error, "a runner ended as it began"),
                Ok(None) => is_open = false,
                Err(error) => {
                    log(&error);
                    is_open = false;
                }
            },
        }
    }
    told.questions.is_closed();
    if !has_exited && !is_open {
        // The shim is gone, and its worker was killed with it; or another daemon has the session.
        let exited = RunnerNotice::Exited { exit: WorkerExit::Signal(SIGKILL), last_words: None };
        told.tell.send(exited).await.ok();
    }
}

fn log(error: &Error) {
    tracing::warn!(%error, "the connection to a shim is lost");
}

impl Told {
    /// The session has taken a notice.
    fn consumed(&self, number: NoticeNumber, said: &mut Option<NoticeNumber>) {
        let first = *said.get_or_insert(number.previous());
        if number.0 - first.0 < TOLD_AFTER {
            return;
        }
        *said = Some(number);
        if let Some(frames) = self.frames.upgrade()
            && let Ok(frame) = encode(&ToShim::Consumed { up_to: number })
        {
            frames.send(frame).ok();
        }
    }
}
