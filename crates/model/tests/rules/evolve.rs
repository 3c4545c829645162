//! What any sequence of events does to a session.

use crate::support::{any_event, any_history, any_session, any_state};
use mainstay_model::{
    EventBody, PendingAsk, Raiser, Session, SessionState, Transition, WaitReason, WarmUpReason, WorkEnding,
    transition,
};
use proptest::prelude::*;

/// The arrow of the state machine that an event stands for, where it is about the session's present job.
fn arrow(session: &Session, body: &EventBody) -> Option<Transition> {
    let of_running = |job, change| session.running().filter(|running| running.job == job).map(|_| change);
    match body {
        EventBody::WarmUpStarted { reason } => Some(warm_up(*reason)),
        EventBody::WarmUpCompleted { .. } => Some(Transition::WarmUpCompleted),
        EventBody::SessionFaulted { .. } if session.state() == SessionState::WarmingUp => {
            Some(Transition::WarmUpFailed)
        }
        EventBody::SessionFaulted { .. } => Some(Transition::GiveUp),
        EventBody::SessionStopped => Some(Transition::Stop),
        EventBody::EvalRequested { .. } | EventBody::JobRequested { .. } => Some(Transition::StartEval),
        EventBody::JobEnded { job, ending: WorkEnding::Done { .. }, .. } => {
            of_running(*job, Transition::EvalCompleted)
        }
        EventBody::JobEnded { job, ending: WorkEnding::Failed { .. }, .. } => {
            of_running(*job, Transition::EvalFailed)
        }
        EventBody::JobEnded {
            job, ending: WorkEnding::Cancelled { .. } | WorkEnding::Interrupted, ..
        } => of_running(*job, Transition::EvalCancelled),
        EventBody::EvalCompleted { job, .. } => of_running(*job, Transition::EvalCompleted),
        EventBody::EvalFailed { job, .. } => of_running(*job, Transition::EvalFailed),
        EventBody::EvalCancelled { job, .. } | EventBody::EvalInterrupted { job } => {
            of_running(*job, Transition::EvalCancelled)
        }
        EventBody::AskRaised(ask) => match &ask.raiser {
            Raiser::Job { job } => of_running(*job, Transition::StartWait(WaitReason::Ask)),
            Raiser::Command { .. } => None,
        },
        EventBody::AskEnded { ask, .. } => {
            let running = session.running()?;
            let is_left = |pending: &PendingAsk| pending.is_of_job(running.job) && pending.ask.ask != *ask;
            (!session.asks.iter().any(is_left)).then_some(Transition::EndWait)
        }
        EventBody::SessionCreated { .. }
        | EventBody::SessionForked(_)
        | EventBody::EntriesMerged(_)
        | EventBody::SessionImported { .. }
        | EventBody::SessionRenamed { .. }
        | EventBody::SessionDeleted
        | EventBody::SessionUnloaded { .. }
        | EventBody::SessionLoaded { .. }
        | EventBody::SessionReset
        | EventBody::SessionHardReset
        | EventBody::WorkerExited { .. }
        | EventBody::CommandQueued(_)
        | EventBody::AskVoted { .. }
        | EventBody::CommandDequeued { .. }
        | EventBody::EvalTimedOut { .. }
        | EventBody::JobDenied { .. }
        | EventBody::LeaseChanged { .. }
        | EventBody::JobDelegated { .. }
        | EventBody::DelegationEnded { .. }
        | EventBody::JobHandedOver { .. }
        | EventBody::OutputProduced { .. }
        | EventBody::OutputDisplayed { .. }
        | EventBody::OutputCleared { .. }
        | EventBody::CommPublished { .. }
        | EventBody::OutputCut { .. }
        | EventBody::CancelRequested { .. }
        | EventBody::MessageStreamed(_)
        | EventBody::PromptQueued(_)
        | EventBody::QueueChanged { .. }
        | EventBody::AgentChanged(_)
        | EventBody::AgentNoted(_)
        | EventBody::MessageAdded(_)
        | EventBody::EnvironmentChanged { .. }
        | EventBody::AssembliesChanged { .. }
        | EventBody::SourcesChanged { .. }
        | EventBody::SourcesSwapped(_)
        | EventBody::ApplicationStarted(_)
        | EventBody::ApplicationEnded(_)
        | EventBody::TranscriptCompacted(_)
        | EventBody::EntryLabeled { .. } => None,
    }
}

fn warm_up(reason: WarmUpReason) -> Transition {
    match reason {
        WarmUpReason::Started => Transition::StartWarmUp,
        WarmUpReason::Reset => Transition::Reset,
        WarmUpReason::HardReset | WarmUpReason::Merged => Transition::HardReset,
        WarmUpReason::Refreshed
        | WarmUpReason::Cancelled
        | WarmUpReason::WorkerLost
        | WarmUpReason::DaemonLost => Transition::WorkerLost,
    }
}

fn assert_consistent(session: &Session) {
    let state = session.state();
    assert_eq!(session.running().is_some(), state.is_busy(), "a job runs exactly in the states that say so");
    let asks = |job| session.asks.iter().any(|ask| ask.is_of_job(job));
    let waits = session.running().is_some_and(|running| asks(running.job));
    assert_eq!(waits, state == SessionState::Waiting(WaitReason::Ask), "a job that asks waits");
    if session.worker.is_some() {
        assert!(
            state == SessionState::Ready || state.is_busy(),
            "a worker is there, and the session is {state}"
        );
    }
    assert!(session.definitions_since <= session.last_seq);
    assert!(session.failures <= session.evals);
}

proptest! {
    #[test]
    fn an_event_takes_the_arrow_it_stands_for_or_changes_no_state(events in any_history()) {
        let mut session = Session::begin(&events[0]).unwrap();
        for event in &events[1..] {
            let before = session.state();
            let after = arrow(&session, &event.body).and_then(|change| transition(before, change).ok());
            session.evolve(event);
            prop_assert_eq!(session.state(), after.unwrap_or(before), "{:?}", event.body);
            prop_assert_eq!(session.last_seq, event.seq);
            assert_consistent(&session);
        }
        prop_assert_eq!(Session::fold(&events), Some(session));
    }

    #[test]
    fn a_session_of_any_shape_takes_any_event(mut session in any_session(), event in any_event()) {
        session.evolve(&event);
        prop_assert_eq!(session.running().is_some(), session.state().is_busy());
    }

    #[test]
    fn a_story_that_does_not_begin_with_a_creation_is_no_session(event in any_event()) {
        let creates = matches!(event.body, EventBody::SessionCreated { .. });
        prop_assert_eq!(Session::fold([&event]).is_some(), creates);
    }

    #[test]
    fn a_refused_change_names_itself_and_its_state(state in any_state(), index in 0..Transition::ALL.len()) {
        let change = Transition::ALL[index];
        if let Err(error) = transition(state, change) {
            prop_assert_eq!(error, mainstay_model::Error::InvalidTransition { state, change });
        }
    }
}
