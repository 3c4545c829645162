//! Schedules: code and prompts that run later.

use std::time::Duration;

use mainstay_engine::NewSchedule;
use mainstay_model::command::Eval;
use mainstay_model::schedule::When;
use mainstay_model::{Error, JobSpec, Prompt, SessionCommand, Timestamp};
use mainstay_protocol::operations::{
    AddSchedule, ListSchedules, Nothing, RemoveSchedule, ScheduleList, ScheduleView, ScheduledTime,
};
use uuid::Uuid;

use super::call::Call;

pub(crate) async fn add(call: Call, asked: AddSchedule) -> Result<ScheduleView, Error> {
    let AddSchedule { session, schedule, text, when, missed } = asked;
    let session = call.resolve(&session).await?;
    let is_agent = call.client.status(session).await?.session.is_agent();
    let command = match is_agent {
        true => SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text(text) }),
        false => SessionCommand::Eval(Eval {
            code: text,
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }),
    };
    let wrong = |reason: String| Error::InvalidArgument { argument: "every".to_owned(), reason };
    let when = match when {
        ScheduledTime::At(at) => When::At(at),
        ScheduledTime::After(delay_ms) => When::after(Timestamp::now(), Duration::from_millis(delay_ms))?,
        ScheduledTime::Every(rule) => When::Every(
            rule.parse()
                .map_err(|error: mainstay_model::schedule::RecurrenceError| wrong(error.to_string()))?,
        ),
    };
    let id = schedule.unwrap_or_else(|| format!("sched_{}", Uuid::now_v7().simple()));
    let new = NewSchedule { id, when, session, command, key_prefix: None, grants: None, missed };
    call.client.add_schedule(new).await.map(ScheduleView::from)
}

pub(crate) async fn list(call: Call, _: ListSchedules) -> Result<ScheduleList, Error> {
    let schedules = call.client.schedules().await?;
    Ok(ScheduleList { schedules: schedules.into_iter().map(ScheduleView::from).collect() })
}

pub(crate) async fn remove(call: Call, asked: RemoveSchedule) -> Result<Nothing, Error> {
    let RemoveSchedule { schedule } = asked;
    match call.client.remove_schedule(&schedule).await? {
        true => Ok(Nothing {}),
        false => Err(Error::InvalidArgument {
            argument: "schedule".to_owned(),
            reason: format!("you have none that is named `{schedule}`; list them"),
        }),
    }
}
