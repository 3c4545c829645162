//! The rule by which a folder, a kind, a project or a name stands for a session. It is pure: which kinds the same kernel runs is an argument.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Capability, CreateSession, Language, Principal, ProjectChoice, Session, SessionKind};

/// What the session that a client looks for is used for, where the client names no kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionWork {
    /// A session of any kind, a kernel's or an agent's.
    #[default]
    Any,
    /// A session that runs code: code does not go into an agent's conversation, nor to a tool worker, unless its user names that.
    Code,
    /// A session that is an agent's conversation.
    Conversation,
}

/// Which session a client means that names none by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSearch {
    /// The folder that its code runs in, absolute; any folder where that is not known.
    pub working_directory: Option<String>,
    /// What it is used for. It does not count where kinds are named.
    pub work: SessionWork,
    /// The kinds that are as good, the preferred one first; any kind where there are none.
    pub kinds: Vec<SessionKind>,
    /// The language of what is to run, where the kinds are those of a file: a session whose kernel says that it runs this language will do,
    /// whatever its kind is called.
    pub language: Option<Language>,
    /// The project it is for. Any will do where the choice is left to the folder.
    pub project: ProjectChoice,
    /// What people call it; any name where absent.
    pub name: Option<String>,
}

impl SessionSearch {
    /// The session of this principal that is meant. `sessions` come most recently active first, and `kinds` are those that the kernel of the
    /// preferred kind runs.
    ///
    /// Sessions of others are not taken by mistake: their users name them by id or name.
    pub fn most_recent<'s>(
        &self,
        owner: &Principal,
        sessions: &'s [Session],
        kinds: &[SessionKind],
    ) -> Option<&'s Session> {
        sessions.iter().find(|session| session.owner == *owner && self.means(session, kinds))
    }

    fn means(&self, session: &Session, kinds: &[SessionKind]) -> bool {
        let is_in_folder =
            self.working_directory.as_ref().is_none_or(|folder| session.working_directory == *folder);
        let does_work = match (self.kinds.as_slice(), self.work) {
            ([_, ..], _) => {
                let speaks = self.language.is_some() && self.language == session.language();
                kinds.contains(&session.kind) || speaks
            }
            ([], SessionWork::Any) => true,
            ([], SessionWork::Code) => !session.is_agent() && !session.capabilities().has(Capability::Calls),
            ([], SessionWork::Conversation) => session.is_agent(),
        };
        let is_for_project = match &self.project {
            ProjectChoice::OfFolder => true,
            ProjectChoice::Nothing => session.project.is_none(),
            ProjectChoice::At(wanted) => session.project.as_deref().map(Path::new).is_some_and(|project| {
                project == Path::new(wanted) || project.parent() == Some(Path::new(wanted))
            }),
        };
        let is_named = self.name.as_ref().is_none_or(|name| session.name == *name);
        is_in_folder && does_work && is_for_project && is_named
    }

    /// The session to create where none is meant: of this kind, in this folder where the search names none.
    pub fn creation(self, kind: SessionKind, folder: impl FnOnce() -> String) -> CreateSession {
        CreateSession {
            kind,
            working_directory: self.working_directory.unwrap_or_else(folder),
            project: self.project,
            arguments: Vec::new(),
            name: self.name,
            alias: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, Event, EventBody, Metadata, Position, Seq, SessionId, Source, Timestamp};

    /// A session of this kind and project, in `/work`, whose number is its name.
    fn session(number: u128, kind: &str, owner: &str, project: Option<&str>) -> Session {
        let body = EventBody::SessionCreated {
            kind: SessionKind::new(kind).unwrap(),
            name: number.to_string(),
            working_directory: "/work".to_owned(),
            project: project.map(str::to_owned),
            passed_over: Vec::new(),
            arguments: Vec::new(),
            alias: None,
            capabilities: None,
        };
        let source = Source::Client { principal: Principal::new(owner).unwrap(), name: "test".to_owned() };
        let metadata = Metadata { source, correlation: None, causation: None, environment: None };
        let event = Event {
            session: SessionId::from_uuid(uuid::Uuid::from_u128(number)),
            seq: Seq(1),
            position: Position(1),
            at: Timestamp::UNIX_EPOCH,
            metadata,
            body,
        };
        Session::begin(&event).unwrap()
    }

    /// The number of the session that is found.
    fn found(search: &SessionSearch, kinds: &[&str]) -> Option<String> {
        let sessions = [
            session(1, "fsharp", "eve", None),
            session(2, "pi", "ada", None),
            session(3, "python3", "ada", None),
            session(4, "fsharp", "ada", Some("/work/shop/Shop.fsproj")),
            session(5, "fsharp", "ada", None),
        ];
        let kinds: Vec<_> = kinds.iter().map(|kind| SessionKind::new(*kind).unwrap()).collect();
        search
            .most_recent(&Principal::new("ada").unwrap(), &sessions, &kinds)
            .map(|session| session.name.clone())
    }

    fn here(work: SessionWork) -> SessionSearch {
        SessionSearch { working_directory: Some("/work".to_owned()), work, ..SessionSearch::default() }
    }

    fn number(number: u32) -> Option<String> {
        Some(number.to_string())
    }

    #[test]
    fn the_most_recent_own_session_that_does_the_work_is_meant() {
        assert_eq!(found(&here(SessionWork::Any), &[]), number(2));
        assert_eq!(found(&here(SessionWork::Code), &[]), number(3));
        assert_eq!(found(&here(SessionWork::Conversation), &[]), number(2));
        assert_eq!(found(&SessionSearch::default(), &[]), number(2));
        let elsewhere = Some("/other".to_owned());
        assert_eq!(
            found(&SessionSearch { working_directory: elsewhere, ..here(SessionWork::Any) }, &[]),
            None
        );
    }

    #[test]
    fn a_named_kind_stands_for_all_that_its_kernel_runs() {
        let python = vec![SessionKind::new("python").unwrap()];
        let search = SessionSearch { kinds: python, ..here(SessionWork::Conversation) };
        assert_eq!(found(&search, &["python", "python3"]), number(3));
        assert_eq!(found(&search, &["python"]), None);
    }

    #[test]
    fn a_project_is_named_by_its_file_or_its_folder() {
        let for_project = |project| found(&SessionSearch { project, ..here(SessionWork::Code) }, &[]);
        let at = |path: &str| for_project(ProjectChoice::At(path.to_owned()));
        assert_eq!(at("/work/shop/Shop.fsproj"), number(4));
        assert_eq!(at("/work/shop"), number(4));
        assert_eq!(at("/work"), None);
        assert_eq!(for_project(ProjectChoice::Nothing), number(3));
    }

    #[test]
    fn a_name_finds_its_session_alone() {
        let named = SessionSearch { name: number(5), ..here(SessionWork::Any) };
        assert_eq!(found(&named, &[]), number(5));
    }

    #[test]
    fn code_goes_to_a_tool_worker_only_where_that_is_named() {
        let (owner, mut worker) = (Principal::new("ada").unwrap(), session(1, "stock", "ada", None));
        worker.capabilities = Some(Capabilities::KERNEL.with(Capability::Calls));
        let sessions = [worker, session(2, "python3", "ada", None)];
        let named = |kinds: &[SessionKind]| {
            let search = SessionSearch { kinds: kinds.to_vec(), ..here(SessionWork::Code) };
            search.most_recent(&owner, &sessions, kinds).map(|session| session.name.clone())
        };
        assert_eq!(named(&[]), number(2));
        assert_eq!(named(&[SessionKind::new("stock").unwrap()]), number(1));
    }
}
