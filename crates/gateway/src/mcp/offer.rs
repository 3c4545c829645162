//! Which tools are listed: those that the session that is meant may have between the agent's own calls. What it does just now changes
//! nothing in that, since each change of the list costs a model what it has read already. Which of them work just now is what is
//! [`Offered`] by a session's status and by refusals. Every call is checked by the engine all the same.

use std::fmt::{Display, Formatter};
use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::{Client, Cursor, Followed};
use mainstay_model::affordance::{Reach, availability, reaches};
use mainstay_model::{
    Action, Availability, Error, EventBody, EventFilter, Session, SessionId, SessionKind, SessionState,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::followers::Tell;
use super::meant::Meant;
use super::names::Names;
use super::tool::{Listed, TOOLS};

/// What of a session lasts, and who looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    pub(super) kind: SessionKind,
    /// Whether it is Faulted; absent for who cannot be told that it is so no longer.
    pub(super) is_faulted: Option<bool>,
    /// Whether its client may drive it.
    pub(super) is_driven: bool,
    /// Whether its client may have files read and written.
    pub(super) has_files: bool,
}

/// What a tool asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Of the session that is meant.
    pub(super) action: Option<Action>,
    /// When that does it.
    pub(super) works: Works,
    /// Of the machine.
    pub(super) files: bool,
}

/// In which states of the session that is meant a tool does what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Works {
    /// In all, and without a session too.
    Always,
    /// Where the action can be reached in a session that is there.
    In(Action, Reach),
    /// The same; where there is no session, one is created.
    InAny(Action, Reach),
}

impl Works {
    /// Whether it does now; without a session, for want of one.
    fn now(self, session: Option<&Session>) -> bool {
        match (self, session) {
            (Self::Always, _) => true,
            (Self::In(..), None) => false,
            (Self::InAny(action, reach), None) => reaches(SessionState::Uninitialized, action, reach),
            (Self::In(action, reach) | Self::InAny(action, reach), Some(session)) => {
                session.reaches(action, reach)
            }
        }
    }

    /// Whether it is for this action, and does it in a session that is in this state.
    pub(super) fn does(self, wanted: Action, state: SessionState) -> bool {
        match self {
            Self::Always => false,
            Self::In(action, reach) | Self::InAny(action, reach) => {
                action == wanted && reaches(state, action, reach)
            }
        }
    }
}

/// The tools that do what they are for in a session as it is now. Whatever else is listed would be refused.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Offered {
    names: Vec<&'static str>,
    /// The other tools that are listed for such a session in some state.
    #[serde(skip)]
    others: Vec<&'static str>,
}

impl Offered {
    /// Those for a client in a session; where there is none, in the one of this kind that running code would create.
    pub(super) fn now(client: &Client, session: Option<&Session>, kind: SessionKind) -> Self {
        let names = Names::of_kind(&kind);
        let lasting = Lasting::of(client, session, kind).in_any_state();
        let listed = TOOLS.iter().filter(|tool| lasting.offers(tool.needs));
        let (offered, others): (Vec<_>, Vec<_>) = listed.partition(|tool| tool.needs.works.now(session));
        let named = |tools: Vec<&'static Listed>| -> Vec<&'static str> {
            tools.into_iter().map(|tool| &*tool.described(names).name).collect()
        };
        Self { names: named(offered), others: named(others) }
    }

    /// Of an answer that says nothing of them.
    pub(super) const fn nothing() -> Self {
        Self { names: Vec::new(), others: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl Display for Offered {
    /// The shorter of what is offered and what is not: models pay for each name.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { names, others } = self;
        match others.len() {
            0 => f.write_str("all tools"),
            others if others < names.len() => write!(f, "all tools but {}", self.others.join(", ")),
            _ => f.write_str(&names.join(", ")),
        }
    }
}

impl Lasting {
    /// Of the session that is meant. Where there is none, the one of this kind that running code would create.
    pub(super) fn of(client: &Client, session: Option<&Session>, kind: SessionKind) -> Self {
        Self {
            kind,
            is_faulted: Some(session.is_some_and(|session| session.state() == SessionState::Faulted)),
            is_driven: session.is_none_or(|session| client.drives(session)),
            has_files: client.require_all("read files").is_ok(),
        }
    }

    /// For who cannot be told of another list: what the session's state keeps from it today it may have tomorrow.
    pub(super) fn in_any_state(self) -> Self {
        Self { is_faulted: None, ..self }
    }

    fn offers(&self, Needs { action, files, works: _ }: Needs) -> bool {
        (self.has_files || !files) && action.is_none_or(|action| self.knows(action))
    }

    fn knows(&self, action: Action) -> bool {
        let lasts = |state: &SessionState| {
            self.is_faulted.is_none_or(|is_faulted| (*state == SessionState::Faulted) == is_faulted)
        };
        let mut states = SessionState::ALL.into_iter().filter(lasts);
        action.is_of(&self.kind)
            && (self.is_driven || is_read(action))
            && states.any(|state| availability(state, action) != Availability::Refused)
    }
}

/// Whether who only sees a session may do it.
const fn is_read(action: Action) -> bool {
    match action {
        Action::Events | Action::Status => true,
        Action::Cancel
        | Action::Eval
        | Action::Prompt
        | Action::Steer
        | Action::Check
        | Action::Complete
        | Action::Explore
        | Action::Test
        | Action::Review
        | Action::Reset
        | Action::HardReset
        | Action::Rebuild
        | Action::Comm
        | Action::Refresh
        | Action::Start
        | Action::Stop
        | Action::Rename
        | Action::Merge
        | Action::Delete
        | Action::Compact
        | Action::Label
        | Action::Ask
        | Action::Answer => false,
    }
}

/// The tools for a session.
pub(super) fn listed(lasting: &Lasting) -> Vec<rmcp::model::Tool> {
    let names = Names::of_kind(&lasting.kind);
    let offered = TOOLS.iter().filter(|tool| lasting.offers(tool.needs));
    offered.map(|tool| tool.described(names).clone()).collect()
}

/// What a client was told of tools last, by what it follows from.
pub(super) type Told = Arc<Mutex<Lasting>>;

/// The list of tools, from where it was found on.
pub(super) struct FollowedList {
    meant: Meant,
    /// The session that it was when it was looked for last.
    found: Option<SessionId>,
    events: Followed,
    told: Told,
}

impl FollowedList {
    /// The list for the session that is meant, and what tells when it is another.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub(super) async fn begin(meant: Meant) -> Result<Self, Error> {
        let after = meant.client.last_position().await?;
        let events = meant.client.follow(Cursor::Log { after }, EventFilter::default()).await?;
        let (found, lasting) = look(&meant).await?;
        Ok(Self { meant, found, events, told: Arc::new(Mutex::new(lasting)) })
    }

    /// What the client was told last; who lists the tools anew tells it.
    pub(super) fn told(&self) -> Told {
        Arc::clone(&self.told)
    }

    /// Says each time that the list is another than the client knows, until nobody hears it.
    pub(super) async fn tell_of_changes(mut self, tell: Tell) {
        loop {
            tokio::select! {
                () = self.meant.is_another() => {}
                event = self.events.next() => match event {
                    Ok(event) if concerns(&event.body, event.session, self.meant.used(), self.found) => {}
                    Ok(_) => continue,
                    Err(_) => return,
                },
            }
            let Ok((found, now)) = look(&self.meant).await else { continue };
            self.found = found;
            if is_news(&self.told, now) && !tell().await {
                return;
            }
        }
    }
}

/// What lasts of the session that is meant.
///
/// # Errors
/// [`Error::StoreFailed`].
pub(super) async fn of_meant(meant: &Meant) -> Result<Lasting, Error> {
    look(meant).await.map(|(_, lasting)| lasting)
}

/// The session that is meant, and what lasts of it.
async fn look(meant: &Meant) -> Result<(Option<SessionId>, Lasting), Error> {
    let session = meant.session().await?;
    let kind = match &session {
        Some(session) => session.kind.clone(),
        None => meant.kind().await,
    };
    let lasting = Lasting::of(&meant.client, session.as_ref(), kind);
    Ok((session.map(|session| session.id), lasting))
}

/// Notes what the list is for now; whether that makes another list of it.
pub(super) fn is_news(told: &Told, now: Lasting) -> bool {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *told, now);
    before != *told && listed(&before) != listed(&told)
}

/// Whether an event of a session may change which tools there are: of the session that is meant, or which one that is. It is the one that
/// the connection `used`, else the most recently active one, which was the one `found` so far.
fn concerns(body: &EventBody, of: SessionId, used: Option<SessionId>, found: Option<SessionId>) -> bool {
    // It makes its session the most recently active one.
    let makes_active = matches!(body, EventBody::EvalRequested { .. });
    let changes = matches!(
        body,
        EventBody::SessionCreated { .. }
            | EventBody::SessionRenamed { .. }
            | EventBody::SessionFaulted { .. }
            | EventBody::SessionStopped
            | EventBody::SessionDeleted
            | EventBody::WarmUpStarted { .. }
    );
    match used {
        Some(used) => changes && used == of,
        None => changes || makes_active && found != Some(of),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;

    use super::*;

    fn every() -> Vec<Lasting> {
        let mut every = Vec::new();
        for kind in [SessionKind::fsharp(), SessionKind::new("python").unwrap(), SessionKind::agent()] {
            for (is_faulted, is_driven, has_files) in [
                (Some(false), true, true),
                (Some(true), true, true),
                (None, true, true),
                (Some(false), true, false),
                (Some(false), false, false),
                (Some(true), false, false),
            ] {
                every.push(Lasting { kind: kind.clone(), is_faulted, is_driven, has_files });
            }
        }
        every
    }

    fn names(lasting: &Lasting) -> Vec<String> {
        listed(lasting).into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    #[test]
    fn what_lasts_of_a_session_decides_which_tools_there_are() {
        let mut table = String::new();
        for lasting in every() {
            let Lasting { kind, is_faulted, is_driven, has_files } = &lasting;
            let marks = [
                (*is_faulted == Some(true), "faulted"),
                (is_faulted.is_none(), "any state"),
                (!is_driven, "of another"),
                (!has_files, "no files"),
            ];
            let marks: Vec<_> = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
            writeln!(table, "{kind} [{}]: {}", marks.join(", "), names(&lasting).join(" ")).unwrap();
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn no_tool_is_listed_twice_under_any_name() {
        let plain: Vec<(&str, &str)> =
            TOOLS.iter().filter_map(|tool| Some((&*tool.fsharp.name, &*tool.plain.as_ref()?.name))).collect();
        for lasting in every() {
            let names = names(&lasting);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
            for (fsharp, plain) in &plain {
                assert!(
                    !names.iter().any(|name| name == fsharp) || !names.iter().any(|name| name == plain),
                    "{fsharp}"
                );
            }
        }
        let described = |tool: &'static super::super::tool::Listed| {
            [Some(&tool.fsharp), tool.plain.as_ref()].into_iter().flatten()
        };
        let all: Vec<_> = TOOLS.iter().flat_map(described).map(|tool| &tool.name).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn only_names_and_words_of_fsharp_sessions_name_the_language() {
        for lasting in every().into_iter().filter(|lasting| !lasting.kind.is_fsharp()) {
            for tool in listed(&lasting) {
                let told = serde_json::to_string(&tool).unwrap();
                assert!(
                    !["fsharp_", "fsi", "F#"].iter().any(|word| told.contains(word))
                        || ["create_session", "export_session"].contains(&&*tool.name),
                    "{told}"
                );
            }
        }
    }

    #[test]
    fn only_an_eval_that_makes_another_session_the_one_that_is_meant_is_looked_at() {
        let [own, other] = [1, 2].map(|number| SessionId::from_uuid(uuid::Uuid::from_u128(number)));
        let fingerprint = mainstay_model::CommandFingerprint::of("s", &mainstay_model::SessionCommand::Stop);
        let eval: EventBody = serde_json::from_value(serde_json::json!({
            "kind": "evalRequested",
            "body": { "job": uuid::Uuid::from_u128(3), "command": "c", "fingerprint": fingerprint, "code": "1" },
        }))
        .unwrap();
        let looks = |body: &EventBody, of, used| concerns(body, of, used, Some(own));
        let looked = |body, of| [looks(body, of, None), looks(body, of, Some(own))];
        assert_eq!([looked(&eval, own), looked(&eval, other)], [[false, false], [true, false]]);
        let stopped = EventBody::SessionStopped;
        assert_eq!([looked(&stopped, own), looked(&stopped, other)], [[true, true], [true, false]]);
    }

    /// The list is wider than what is offered at every moment, and not wider than over time.
    #[test]
    fn what_is_offered_in_a_state_is_listed() {
        for kind in [SessionKind::fsharp(), SessionKind::new("python").unwrap(), SessionKind::agent()] {
            for state in SessionState::ALL {
                let is_faulted = Some(state == SessionState::Faulted);
                let lasting = Lasting { kind: kind.clone(), is_faulted, is_driven: true, has_files: true };
                for tool in TOOLS.iter() {
                    let is_offered = Action::ALL
                        .into_iter()
                        .any(|action| action.is_of(&kind) && tool.needs.works.does(action, state));
                    let is_known = tool.needs.action.is_none_or(|action| action.is_of(&kind));
                    assert!(
                        !(is_offered && is_known) || lasting.offers(tool.needs),
                        "{kind} {state}: {}",
                        tool.fsharp.name
                    );
                }
            }
        }
    }
}
