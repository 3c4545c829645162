//! `refresh_session`: running again what rests on libraries and scripts that have changed.

use std::fmt::{Display, Formatter};

use mainstay_engine::{RefreshOutlook, Reloading};
use mainstay_model::affordance::Reach;
use mainstay_model::command;
use mainstay_model::{
    Action, Divergence, Error, EventBody, Seq, Session, SessionCommand, SessionId, SessionState,
};
use mainstay_protocol::{OperationId, operations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::needs::Works;
use super::text::{TEXT_BYTES, shortened};
use super::tool::{Answer, Effect, Tool};
use mainstay_gateway::view::for_each_between;

/// Brings a session up to date with its changed sources.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RefreshSession {
    session_id: Option<String>,
    /// Run all in a new worker, also where nothing has changed.
    all: Option<bool>,
    /// Only say what would run.
    dry_run: Option<bool>,
}

/// What was out of date, and what came of running it again.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefreshAnswer {
    session_id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Whether something was out of date.
    due: bool,
    /// The files that have changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
    /// What is gone: nothing runs until it is there again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    /// What would run, where that is only asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<String>,
    /// What was run again, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    ran: Option<String>,
    /// What of it came to something else than before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differs: Vec<String>,
}

impl Tool for RefreshSession {
    const NAME: &'static str = "refresh_session";
    const OPERATIONS: &'static [OperationId] = &[OperationId::of::<operations::RefreshSession>()];
    const DESCRIPTION: &'static str = "Run again what used libraries or scripts that have changed since.";
    const EFFECT: Effect = Effect::RunsCode { idempotent: true };
    const ACTION: Option<Action> = Some(Action::Refresh);
    const WORKS: Works = Works::In(Action::Refresh, Reach::Started);
    // Its words say all of it that matters.
    const SAYS_ANSWER: bool = false;
    type Answer = RefreshAnswer;

    async fn carry_out(self, call: &Call) -> Result<RefreshAnswer, Error> {
        let session = call.existing(self.session_id.as_deref(), Action::Refresh).await?;
        let (all, dry_run) = (self.all == Some(true), self.dry_run == Some(true));
        let client = call.client();
        let before = client.status(session).await?.session;
        if !Action::Refresh.is_of(before.capabilities()) {
            return Err(Error::NotOfKind { action: Action::Refresh, kind: before.kind });
        }
        // What has changed is looked for before an idle session takes it in.
        let outlook = client.outlook(session).await?;
        let is_at_rest = before.state() == SessionState::Uninitialized;
        if is_at_rest && dry_run {
            let would = Some("all submissions, as whenever the session starts".to_owned());
            return Ok(RefreshAnswer { would, ..RefreshAnswer::new(&before, &outlook) });
        }
        let present = call.bring_up(session).await?;
        if present.state() != SessionState::Ready {
            return Err(present.refusal(Action::Refresh));
        }
        let is_wanted = (all || outlook.is_due()) && outlook.gone.is_empty();
        let answer = RefreshAnswer::new(&present, &outlook);
        if dry_run {
            let would = match is_wanted {
                true => Some(would(client.reloading(session).await?, all)),
                false => None,
            };
            return Ok(RefreshAnswer { would, ..answer });
        }
        if is_wanted && (all || !is_at_rest) {
            call.submit(session, SessionCommand::Refresh(command::Refresh { all })).await?;
        } else if !is_at_rest {
            return Ok(answer);
        }
        let session = call.settled(session).await?;
        let (ran, differs) = rebuilding(call, session.id, before.last_seq, session.last_seq).await?;
        Ok(RefreshAnswer {
            ran,
            differs,
            state: session.state().name(),
            fault: session.fault().map(str::to_owned),
            ..answer
        })
    }
}

/// What a refresh would run.
fn would(Reloading { in_place, of }: Reloading, all: bool) -> String {
    match in_place {
        Ok(_) if all => format!("{of} of {of} submissions in a new worker"),
        Ok(part) => format!("{} of {of} submissions in the worker that is there", part.len()),
        Err(why) => format!("{of} of {of} submissions in a new worker: {why}"),
    }
}

/// What the last rebuilding among these events ran, and what of it came to something else.
async fn rebuilding(
    call: &Call,
    session: SessionId,
    after: Seq,
    last: Seq,
) -> Result<(Option<String>, Vec<String>), Error> {
    let mut found = (None, Vec::new());
    for_each_between(call.client(), session, after, last.next(), |event| {
        if let EventBody::WarmUpCompleted { replayed, diverged, reload, .. } = &event.body {
            let ran = match reload {
                Some(reload) => reload.line(diverged),
                None => format!("{replayed} submissions ran again in a new worker"),
            };
            let differs = diverged.iter().map(Divergence::to_string).collect();
            found = (Some(shortened(ran, TEXT_BYTES)), differs);
        }
    })
    .await?;
    Ok(found)
}

impl RefreshAnswer {
    fn new(session: &Session, outlook: &RefreshOutlook) -> Self {
        Self {
            session_id: session.id.short(),
            state: session.state().name(),
            fault: session.fault().map(str::to_owned),
            due: outlook.is_due(),
            changed: outlook.changed.clone(),
            gone: outlook.gone.clone(),
            would: None,
            ran: None,
            differs: Vec::new(),
        }
    }
}

impl Answer for RefreshAnswer {
    fn is_failure(&self) -> bool {
        self.fault.is_some() || (!self.gone.is_empty() && self.would.is_none() && self.ran.is_none())
    }
}

impl Display for RefreshAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { session_id, state, fault, due, changed, gone, would, ran, differs } = self;
        if !gone.is_empty() {
            writeln!(f, "gone: {}; nothing runs again until that is there", gone.join(", "))?;
        }
        if !changed.is_empty() {
            writeln!(f, "changed: {}", changed.join(", "))?;
        }
        if !due && gone.is_empty() {
            writeln!(f, "nothing was out of date")?;
        }
        if let Some(would) = would {
            writeln!(f, "would run: {would}")?;
        }
        if let Some(ran) = ran {
            writeln!(f, "{ran}")?;
        }
        for divergence in differs {
            writeln!(f, "{divergence}")?;
        }
        match fault {
            Some(fault) => write!(f, "{state}: {fault} [session {session_id}]"),
            None => write!(f, "{state} [session {session_id}]"),
        }
    }
}
