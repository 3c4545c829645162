//! Pages of events. Subscriptions to them are the connection's.

use super::call::Call;
use super::page::{PAGE_LIMIT, page};
use mainstay_model::{Error, Event};
use mainstay_protocol::operations::{ListAllEvents, ListEvents};

pub(crate) async fn of_session(call: Call, asked: ListEvents) -> Result<Vec<Event>, Error> {
    let ListEvents { session, after, limit } = asked;
    let limit = limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT);
    page(call.client.events(call.resolve(&session).await?, after, limit).await?)
}

pub(crate) async fn of_log(call: Call, asked: ListAllEvents) -> Result<Vec<Event>, Error> {
    let ListAllEvents { after_position, limit } = asked;
    page(call.client.all_events(after_position, limit.unwrap_or(PAGE_LIMIT).min(PAGE_LIMIT)).await?)
}
