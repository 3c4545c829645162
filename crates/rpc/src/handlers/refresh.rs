//! Refreshes: a session's definitions run again where what they rest on has changed.

use super::call::{Call, unexpected};
use mainstay_engine::{RefreshOutlook, Reloading};
use mainstay_model::{Error, Outcome, Response, SessionCommand, SessionId, SessionState, command};
use mainstay_protocol::operations::{RefreshSession, Refreshed, WouldRun};

pub(crate) async fn refresh(call: Call, refresh: RefreshSession) -> Result<Refreshed, Error> {
    let RefreshSession { session: reference, all, dry_run, sent } = refresh;
    let session = call.resolve(&reference).await?;
    let outlook = call.client.outlook(session).await?;
    let before = call.view(session).await?;
    let is_repeated = match &sent.command {
        Some(command) => call.client.command(command).await.is_ok(),
        None => false,
    };
    let (is_due, is_whole) = (outlook.is_due(), outlook.gone.is_empty());
    let (is_at_rest, last) = (before.state == SessionState::Uninitialized.name(), before.last_seq);
    let wanted = !dry_run && (is_repeated || (is_due || all) && is_whole);
    let after = match wanted && !is_at_rest {
        true => match call.submit(session, SessionCommand::Refresh(command::Refresh { all }), sent).await? {
            Outcome::Done { response: Response::Recorded { seq } } => Some(seq),
            other => return Err(unexpected(&other)),
        },
        false => wanted.then_some(last),
    };
    let would = match dry_run && (is_due || all) && is_whole && !is_at_rest {
        true => Some(would_run(&call, session, all).await?),
        false => None,
    };
    let RefreshOutlook { changed, gone, .. } = outlook;
    Ok(Refreshed { session: before, changed, gone, is_due, would, after })
}

async fn would_run(call: &Call, session: SessionId, all: bool) -> Result<WouldRun, Error> {
    let Reloading { in_place, of } = call.client.reloading(session).await?;
    Ok(match in_place {
        Ok(_) if all => WouldRun { count: of, of, because: Some("all of it was asked for".to_owned()) },
        Ok(part) => WouldRun { count: u32::try_from(part.len()).unwrap_or(of), of, because: None },
        Err(why) => WouldRun { count: of, of, because: Some(why.to_string()) },
    })
}
