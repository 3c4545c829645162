//! Anything that agents are asked to do, say and end with.

use mainstay_model::agent::{Image, Model, ToolCall};
use mainstay_model::event::CancelEnding;
use mainstay_model::{
    AgentNotice, AgentState, Delivery, Delta, EventBody, JobId, JobSpec, Note, PartRole, Prompt,
    QueuedPrompt, Setting, ThinkingLevel, WorkEnding, YieldReason,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{
    any_comm, any_command_id, any_count, any_deadline, any_diagnostic, any_fingerprint, any_grants, any_job,
    any_key, any_message, any_text,
};

pub(crate) fn any_prompt() -> impl Strategy<Value = Prompt> {
    (any_text(), any::<bool>()).prop_map(|(text, has_image)| {
        let image = || Image { mime_type: "image/png".to_owned(), data: "aGk=".to_owned() };
        Prompt { text, images: has_image.then(image).into_iter().collect() }
    })
}

fn any_level() -> impl Strategy<Value = ThinkingLevel> {
    (0..ThinkingLevel::ALL.len()).prop_map(|index| ThinkingLevel::ALL[index])
}

fn any_setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        (any_text(), any_text()).prop_map(|(provider, id)| Setting::Model { provider, id }),
        any::<bool>().prop_map(|is_backward| Setting::NextModel { is_backward }),
        any_level().prop_map(|level| Setting::Thinking { level }),
        Just(Setting::NextThinking),
        any::<bool>().prop_map(|enabled| Setting::AutoCompaction { enabled }),
        any::<bool>().prop_map(|enabled| Setting::AutoRetry { enabled }),
    ]
}

pub(crate) fn any_work() -> impl Strategy<Value = JobSpec> {
    prop_oneof![
        3 => any_prompt().prop_map(|prompt| JobSpec::Turn { prompt }),
        1 => option::of(any_text()).prop_map(|instructions| JobSpec::Compaction { instructions }),
        1 => (any_text(), any::<bool>()).prop_map(|(line, is_private)| JobSpec::Shell { line, is_private }),
        1 => any_setting().prop_map(JobSpec::Setting),
        1 => Just(JobSpec::Build),
        1 => Just(JobSpec::Rebuild),
        1 => any_comm().prop_map(|message| JobSpec::Comm(Box::new(message))),
    ]
}

pub(crate) fn any_queued_prompt() -> impl Strategy<Value = QueuedPrompt> {
    let hears = prop_oneof![Just(Delivery::Steer), Just(Delivery::FollowUp)];
    (any_prompt(), hears).prop_map(|(prompt, hears)| QueuedPrompt { prompt, hears })
}

fn any_agent_state() -> impl Strategy<Value = AgentState> {
    let model = (any_text(), any_text(), option::of(any_text()), option::of(any_count())).prop_map(
        |(provider, id, name, context_window)| {
            let about = json!({ "id": id });
            Model { provider, id, name, context_window, about }
        },
    );
    (option::of(model), any_level(), any::<bool>(), option::of(any_count())).prop_map(
        |(model, thinking, auto_compaction, context_tokens)| AgentState {
            model,
            thinking,
            auto_compaction,
            context_tokens,
        },
    )
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let place = (0_u32..3, 0_u32..3, any_count());
    let role = (0..PartRole::ALL.len()).prop_map(|index| PartRole::ALL[index]);
    (any_job(), place, role, any_text(), option::of(any_call())).prop_map(
        |(job, (message, part, offset), role, text, tool)| Delta {
            job,
            message,
            part,
            role,
            offset,
            text,
            tool,
        },
    )
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    (any_text(), any_text()).prop_map(|(call, tool)| ToolCall { call, tool })
}

fn any_note() -> impl Strategy<Value = Note> {
    prop_oneof![
        any_call().prop_map(|call| Note::ToolStarted { call, arguments: json!({ "path": "a" }) }),
        (any_call(), any::<bool>()).prop_map(|(call, is_error)| Note::ToolEnded { call, is_error }),
        any_text().prop_map(|reason| Note::CompactionStarted { reason }),
        (any_text(), any_text(), any::<bool>()).prop_map(|(reason, message, was_cancelled)| {
            Note::CompactionFailed { reason, message, was_cancelled }
        }),
        any_text().prop_map(|message| Note::RetryStarted {
            attempt: 1,
            attempts: 3,
            delay_ms: 2_000,
            message
        }),
        (any::<bool>(), option::of(any_text())).prop_map(|(success, message)| Note::RetryEnded {
            success,
            attempt: 2,
            message
        }),
        any_text().prop_map(|message| Note::Told { level: "info".to_owned(), message }),
    ]
}

pub(crate) fn any_work_ending() -> impl Strategy<Value = WorkEnding> {
    let by = || prop_oneof![Just(CancelEnding::Yielded), Just(CancelEnding::Killed)];
    prop_oneof![
        Just(WorkEnding::Done { reason: YieldReason::EndTurn, value: json!(null) }),
        Just(WorkEnding::Done { reason: YieldReason::MaxTokens, value: json!({ "exitCode": 0 }) }),
        (any_text(), vec(any_diagnostic(), 0..2))
            .prop_map(|(message, diagnostics)| WorkEnding::Failed { message, diagnostics }),
        by().prop_map(|by| WorkEnding::Cancelled { by }),
        Just(WorkEnding::Interrupted),
    ]
}

/// What an agent says; what it ends is the given job.
pub(crate) fn any_agent_notice() -> impl Strategy<Value = AgentNotice> {
    let hears = || prop_oneof![Just(Delivery::Steer), Just(Delivery::FollowUp)];
    prop_oneof![
        any_delta().prop_map(AgentNotice::Said),
        any_message().prop_map(AgentNotice::Message),
        vec((hears(), any_text()), 0..3).prop_map(AgentNotice::Queue),
        any_agent_state().prop_map(AgentNotice::State),
        any_note().prop_map(AgentNotice::Noted),
        (any_job(), any_work_ending()).prop_map(|(job, ending)| AgentNotice::Ended { job, ending }),
    ]
}

/// The same notice, of the job that runs.
pub(crate) fn of_job(notice: AgentNotice, job: JobId) -> AgentNotice {
    match notice {
        AgentNotice::Said(delta) => AgentNotice::Said(Delta { job, ..delta }),
        AgentNotice::Ended { ending, .. } => AgentNotice::Ended { job, ending },
        other @ (AgentNotice::ToolOutput { .. }
        | AgentNotice::Message(_)
        | AgentNotice::Compacted { .. }
        | AgentNotice::Queue(_)
        | AgentNotice::State(_)
        | AgentNotice::Noted(_)) => other,
    }
}

/// An event of an agent.
pub(crate) fn any_agent_body() -> impl Strategy<Value = EventBody> {
    let bounds = (option::of(any_deadline()), option::of(any_grants()));
    let said = (any_command_id(), any_fingerprint(), option::of(any_key()), bounds);
    let requested = (any_job(), said, any_work()).prop_map(
        |(job, (command, fingerprint, key, (deadline, grants)), work)| EventBody::JobRequested {
            job,
            command,
            fingerprint,
            key,
            deadline,
            grants,
            work,
        },
    );
    let ended = (any_job(), any_work_ending(), any_count()).prop_map(|(job, ending, duration_ms)| {
        EventBody::JobEnded { job, ending, duration_ms, grace_ms: None }
    });
    prop_oneof![
        3 => requested,
        2 => ended,
        2 => any_delta().prop_map(EventBody::MessageStreamed),
        1 => any_queued_prompt().prop_map(EventBody::PromptQueued),
        1 => vec(any_queued_prompt(), 0..3).prop_map(|queue| EventBody::QueueChanged { queue }),
        1 => any_agent_state().prop_map(|state| EventBody::AgentChanged(Box::new(state))),
        1 => any_note().prop_map(EventBody::AgentNoted),
    ]
}
