//! Which tools are listed: those that the session that is meant may have between the agent's own calls. What it does just now changes
//! nothing in that, since each change of the list costs a model what it has read already. Every call is checked by the engine all the
//! same.

use std::sync::{Arc, Mutex, PoisonError};

use mainstay_engine::{Client, Cursor, Followed};
use mainstay_model::affordance::availability;
use mainstay_model::{
    Action, Availability, Error, EventBody, EventFilter, Session, SessionId, SessionKind, SessionState,
};

use super::followers::Tell;
use super::meant::Meant;
use super::names::Names;
use super::tool::TOOLS;

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
    /// Of the machine.
    pub(super) files: bool,
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

    fn offers(&self, Needs { action, files }: Needs) -> bool {
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

    /// The list is wider than the table at every moment, and not wider than over time.
    #[test]
    fn what_is_offered_at_a_moment_is_listed() {
        for kind in [SessionKind::fsharp(), SessionKind::agent()] {
            for state in SessionState::ALL {
                let is_faulted = Some(state == SessionState::Faulted);
                let lasting = Lasting { kind: kind.clone(), is_faulted, is_driven: true, has_files: true };
                for action in mainstay_model::affordance::offered(state, &kind) {
                    assert!(lasting.knows(action), "{state} {action}");
                }
            }
        }
    }
}
