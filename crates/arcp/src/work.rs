//! What a job's input asks of a session, and which session that is.

use mainstay_engine::{Client, SessionChoice};
use mainstay_gateway::command::anonymous;
use mainstay_gateway::daemon::Daemon;
use mainstay_model::command::Eval;
use mainstay_model::{
    Capabilities, Capability, Error, JobSpec, Outcome, Prompt, Response, Session, SessionCommand, SessionId,
    SessionKind, SessionSearch, TestSelection, TestTimeout, ToolCall,
};
use serde::Deserialize;
use serde_json::Value;

use crate::agents::Agent;

/// What a client gives an agent to do. A text alone is the code, or the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Work {
    /// The code for a kernel.
    #[serde(default)]
    code: Option<String>,
    /// What is said to an agent.
    #[serde(default, alias = "text")]
    prompt: Option<String>,
    /// Which tests a session of F# runs, in place of code.
    #[serde(default)]
    tests: Option<WantedTests>,
    /// The session that does it, by id or name; else the one that was active last of its kind in its folder, or a new one.
    #[serde(default)]
    session: Option<String>,
    /// The folder of the session, absolute; by default the home folder of the daemon's user.
    #[serde(default, alias = "workingDirectory")]
    working_directory: Option<String>,
}

/// Which tests are run: all of them where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct WantedTests {
    /// A part of a name, in any case; with `*` it is the whole name.
    pattern: Option<String>,
    /// A category, or a trait as `name=value`.
    category: Option<String>,
    /// How long one test may take, in milliseconds.
    #[serde(alias = "timeoutMs")]
    timeout_ms: Option<u64>,
}

impl WantedTests {
    /// The code that runs them in a session of this kind.
    fn code(self, kind: &SessionKind, capabilities: Capabilities) -> Result<String, Error> {
        TestSelection::is_known_to(kind, capabilities)?;
        let Self { pattern, category, timeout_ms } = self;
        let timeout = |limit| {
            TestTimeout::new(limit).ok_or_else(|| Error::InvalidArgument {
                argument: "timeout_ms".to_owned(),
                reason: format!("it is {limit}, and must be from 1 to {}", TestTimeout::MAX),
            })
        };
        let timeout_ms = timeout_ms.map(timeout).transpose()?;
        Ok(TestSelection { pattern, category, timeout_ms, ..TestSelection::default() }.code())
    }
}

impl Work {
    /// Reads a job's input.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it has another form.
    fn of(input: &Value) -> Result<Self, Error> {
        let wrong = |reason: String| Error::InvalidArgument { argument: "input".to_owned(), reason };
        match input {
            Value::String(text) => {
                Ok(Self { code: Some(text.clone()), prompt: Some(text.clone()), ..Self::default() })
            }
            Value::Object(_) => Self::deserialize(input).map_err(|error| wrong(error.to_string())),
            _ => Err(wrong(
                "it must be a text, or an object with `code`, `prompt` or `tests`, and perhaps `session` \
                 or `working_directory`"
                    .to_owned(),
            )),
        }
    }

    /// Reads the input of a job for an agent.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it has another form. What a tool is given is for the tool to read.
    pub(crate) fn for_agent(agent: &Agent, input: &Value) -> Result<Self, Error> {
        match &agent.tool {
            None => Self::of(input),
            Some((name, version)) => {
                let (name, version, input) = (name.clone(), version.clone(), input.clone());
                Ok(Self { code: Some(ToolCall { name, version, input }.code()), ..Self::default() })
            }
        }
    }

    /// The same, in this folder where it names neither a folder nor a session.
    #[must_use]
    pub(crate) fn in_folder(mut self, folder: Option<&str>) -> Self {
        self.working_directory = self.working_directory.or_else(|| folder.map(str::to_owned));
        self
    }

    /// The session that it names.
    pub(crate) fn named_session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The command that has it done.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it lacks what a session of this kind does; [`Error::NotOfKind`] where that runs no tests.
    pub(crate) fn command(
        self,
        kind: &SessionKind,
        capabilities: Capabilities,
    ) -> Result<SessionCommand, Error> {
        let lacks = |what: &str| Error::InvalidArgument {
            argument: "input".to_owned(),
            reason: format!("it has no `{what}`, which is what this agent takes"),
        };
        match (self.tests, capabilities.has(Capability::Conversation)) {
            (Some(_), _) if self.code.is_some() || self.prompt.is_some() => Err(Error::InvalidArgument {
                argument: "input".to_owned(),
                reason: "it has `tests`, and so can have neither `code` nor `prompt`".to_owned(),
            }),
            (Some(tests), _) => Ok(eval(tests.code(kind, capabilities)?)),
            (None, true) => {
                let prompt = self.prompt.ok_or_else(|| lacks("prompt"))?;
                Ok(SessionCommand::Work(JobSpec::Turn { prompt: Prompt::text(prompt) }))
            }
            (None, false) => Ok(eval(self.code.ok_or_else(|| lacks("code"))?)),
        }
    }

    /// The session that does it, where it is there already.
    ///
    /// # Errors
    /// As [`Work::session`].
    pub(crate) async fn found_session(
        &self,
        daemon: &Daemon,
        client: &Client,
        kind: &SessionKind,
    ) -> Result<Option<SessionId>, Error> {
        if let Some(reference) = &self.session {
            let session = client.resolve(reference).await?;
            let found = client.status(session).await?.session;
            return match found.kind == *kind {
                true => Ok(Some(session)),
                false => Err(other_kind(&found, kind)),
            };
        }
        match client.choose_session(self.search(client, kind), &daemon.kind_resolver).await? {
            SessionChoice::Found(found) => Ok(Some(found.id)),
            SessionChoice::New(_) => Ok(None),
        }
    }

    fn search(&self, client: &Client, kind: &SessionKind) -> SessionSearch {
        SessionSearch {
            working_directory: Some(self.working_directory.clone().unwrap_or_else(|| client.usual_folder())),
            kinds: vec![kind.clone()],
            ..SessionSearch::default()
        }
    }

    /// The session that does it. One is created where none is meant.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::SessionAmbiguous`]; [`Error::InvalidArgument`] where the session that is named is of another kind;
    /// what a creation is refused with.
    pub(crate) async fn session(
        &self,
        daemon: &Daemon,
        client: &Client,
        kind: &SessionKind,
    ) -> Result<SessionId, Error> {
        if let Some(found) = self.found_session(daemon, client, kind).await? {
            return Ok(found);
        }
        let _turn = client.creation_turn().await;
        // Another client may have created it since.
        match client.choose_session(self.search(client, kind), &daemon.kind_resolver).await? {
            SessionChoice::Found(found) => Ok(found.id),
            SessionChoice::New(create) => match client.create(anonymous(), create).await? {
                Outcome::Done { response: Response::Created { session } } => Ok(session),
                Outcome::Failed { error } => Err(error),
                Outcome::Done { .. } => Err(Error::SessionNotFound { reference: kind.to_string() }),
            },
        }
    }
}

fn eval(code: String) -> SessionCommand {
    SessionCommand::Eval(Eval { code, file: None, command_line: None, origin: None, withheld: false })
}

fn other_kind(found: &Session, kind: &SessionKind) -> Error {
    let reason = format!("session {} is of the kind {}, not {kind}", found.name, found.kind);
    Error::InvalidArgument { argument: "input".to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code_of(input: &Value, kind: &SessionKind) -> Result<String, Error> {
        match Work::of(input)?.command(kind, Capabilities::of_kind(kind))? {
            SessionCommand::Eval(eval) => Ok(eval.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tests_are_run_where_a_session_knows_of_tests_and_in_place_of_code() {
        let fsharp = SessionKind::fsharp();
        let tests = json!({ "tests": { "pattern": "*Price", "timeout_ms": 50 } });
        let code = code_of(&tests, &fsharp).unwrap();
        assert_eq!(code, r#"Mainstay.Tests.run(pattern = "*Price", timeoutMs = 50)"#);
        assert_eq!(code_of(&json!({ "tests": {} }), &fsharp).unwrap(), "Mainstay.Tests.run()");
        let python = SessionKind::new("python3").unwrap();
        assert!(matches!(code_of(&tests, &python), Err(Error::NotOfKind { .. })));
        for wrong in [
            json!({ "tests": {}, "code": "1" }),
            json!({ "tests": { "timeout_ms": 0 } }),
            json!({ "tests": { "name": "x" } }),
            json!({ "session": "lab" }),
            json!(7),
        ] {
            assert!(matches!(code_of(&wrong, &fsharp), Err(Error::InvalidArgument { .. })), "{wrong}");
        }
    }
}
