//! A real pi, with a scripted model behind it, as the engine has it. `MAINSTAY_TEST_PI` names the program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mainstay_agent::pi::{PiAgents, PiSettings, Search};
use mainstay_model::{
    AgentNotice, AskId, Epoch, Error, JobId, JobSpec, Message, Note, Principal, Prompt, Question, RunnerInfo,
    RunnerNotice, Seq, SessionId, SessionKind, Timestamp, TranscriptEntry, WorkEnding, WorkerExit,
};
use mainstay_runner::{Agent, Conversation, Runner, RunnerFactory, RunnerSpec};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use mainstay_test_support::model::Model;

/// How long anything may take.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder of a test's own, a model, and how pi is run.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) model: Model,
    pub(crate) settings: PiSettings,
    /// Whose the session is.
    pub(crate) owner: Principal,
}

impl World {
    pub(crate) async fn new() -> Self {
        let program = std::env::var_os("MAINSTAY_TEST_PI").expect(
            "MAINSTAY_TEST_PI must name the program `pi` of @mariozechner/pi-coding-agent 0.73.1; `cargo xtask test` sets it, and \
             installs pi where it is not set",
        );
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start().await;
        let agent = folder.path().join("agent");
        fs::create_dir_all(&agent).unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        let named = |id: &str, reasoning: bool| {
            json!({
                "id": id, "contextWindow": 128_000, "maxTokens": 4096, "reasoning": reasoning, "input": ["text", "image"],
                "headers": { "x-secret": "hidden" },
            })
        };
        let models = json!({ "providers": { "local": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "hidden",
            "models": [named("m", false), named("n", true), named("o", false)],
        }}});
        fs::write(agent.join("models.json"), models.to_string()).unwrap();
        let quick = json!({ "retry": { "baseDelayMs": 10, "maxRetries": 2 }, "compaction": { "keepRecentTokens": 1 } });
        fs::write(agent.join("settings.json"), quick.to_string()).unwrap();
        let search = Search {
            configured: Some(PathBuf::from(program)),
            path: Vec::new(),
            home: folder.path().join("home"),
        };
        let environment =
            BTreeMap::from([("PI_CODING_AGENT_DIR".to_owned(), agent.to_str().unwrap().to_owned())]);
        let settings = PiSettings {
            search,
            provider: Some("local".to_owned()),
            model: Some("m".to_owned()),
            arguments: Vec::new(),
            environment,
            silence: None,
            dialog_ms: 60_000,
            grace: Duration::from_secs(5),
            live_sessions: None,
        };
        Self { folder, model, settings, owner: Principal::local() }
    }

    /// Where pi keeps its files of the session.
    pub(crate) fn session_folder(&self) -> PathBuf {
        self.settings.search.sessions().join(session().to_string())
    }

    /// Adds an extension of pi's, in JavaScript.
    pub(crate) fn extend(&mut self, source: &str) {
        let file = self.folder.path().join("extension.js");
        fs::write(&file, source).unwrap();
        self.settings.arguments = vec!["--extension".to_owned(), file.to_str().unwrap().to_owned()];
    }

    /// Puts a script in pi's place.
    pub(crate) fn stand_in(&mut self, script: &str) {
        let source = self.folder.path().join("stand-in.source");
        fs::write(&source, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        let program = self.folder.path().join("stand-in");
        // Copied by another process: a program that this one has just written may still be open in a test that starts one.
        assert!(std::process::Command::new("cp").args([&source, &program]).status().unwrap().success());
        self.settings.search.configured = Some(program);
    }

    pub(crate) async fn pi(&self) -> Pi {
        self.pi_with(Conversation::default()).await.unwrap()
    }

    /// A pi that goes on from what was said before.
    pub(crate) async fn pi_with(&self, conversation: Conversation) -> Result<Pi, Error> {
        let (factory, spec) = (PiAgents::new(self.settings.clone()), self.spec(conversation));
        let started =
            tokio::time::timeout(LONG, factory.start(spec, mainstay_runner::StartObserver::default()))
                .await
                .expect("pi does not come up")?;
        let Runner::Agent(agent) = started.runner else { panic!("pi is an agent") };
        Ok(Pi { agent, notices: started.notices, jobs: 0 })
    }

    /// What a pi is started for.
    pub(crate) fn spec(&self, conversation: Conversation) -> RunnerSpec {
        RunnerSpec {
            session: session(),
            epoch: Epoch::FIRST,
            kind: SessionKind::pi(),
            owner: self.owner.clone(),
            working_directory: self.folder.path().join("project"),
            project: None,
            environment: mainstay_runner::Environment::default(),
            conversation: Some(conversation),
            gathered: None,
            arguments: Vec::new(),
        }
    }
}

/// A pi that is there.
pub(crate) struct Pi {
    pub(crate) agent: Arc<dyn Agent>,
    notices: mpsc::Receiver<RunnerNotice>,
    jobs: u128,
}

/// What a job came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) said: Vec<AgentNotice>,
    pub(crate) ending: WorkEnding,
}

impl Pi {
    pub(crate) fn info(&self) -> RunnerInfo {
        self.agent.info()
    }

    /// Gives it something to do, without waiting for the end.
    pub(crate) async fn begin(&mut self, work: JobSpec) -> JobId {
        self.jobs += 1;
        let job = JobId::from_uuid(Uuid::from_u128(self.jobs));
        self.agent.work(job, work, false).await;
        job
    }

    /// Gives it something to do, and waits for the end.
    pub(crate) async fn work(&mut self, work: JobSpec) -> Done {
        self.begin(work).await;
        self.done().await
    }

    pub(crate) async fn prompt(&mut self, text: &str) -> Done {
        self.work(JobSpec::Turn { prompt: Prompt::text(text) }).await
    }

    /// The next that it says.
    pub(crate) async fn next(&mut self) -> RunnerNotice {
        let next = tokio::time::timeout(LONG, self.notices.recv()).await.expect("pi says nothing");
        next.expect("pi is gone")
    }

    pub(crate) async fn next_of_agent(&mut self) -> AgentNotice {
        match self.next().await {
            RunnerNotice::Agent(notice) => notice,
            other => panic!("{other:?}"),
        }
    }

    /// What it says up to something; that included.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&AgentNotice) -> bool) -> Vec<AgentNotice> {
        let mut said = Vec::new();
        loop {
            said.push(self.next_of_agent().await);
            if said.last().is_some_and(&is_it) {
                return said;
            }
        }
    }

    /// What it says up to the end of its job.
    pub(crate) async fn done(&mut self) -> Done {
        let mut said = self.until(|notice| matches!(notice, AgentNotice::Ended { .. })).await;
        match said.pop() {
            Some(AgentNotice::Ended { ending, .. }) => Done { said, ending },
            other => panic!("{other:?}"),
        }
    }

    /// Waits until it has said this much of a message.
    pub(crate) async fn says(&mut self, text: &str) {
        let is_it = |notice: &AgentNotice| matches!(notice, AgentNotice::Said(delta) if delta.text == text);
        self.until(is_it).await;
    }

    /// Waits for the next ask that pi raises.
    pub(crate) async fn asks(&mut self) -> (AskId, Question, Option<u64>) {
        loop {
            if let RunnerNotice::Asks { ask, question, timeout_ms, .. } = self.next().await {
                return (ask, question, timeout_ms);
            }
        }
    }

    /// Waits until pi's process ends, and returns how.
    pub(crate) async fn exits(&mut self) -> WorkerExit {
        loop {
            if let RunnerNotice::Exited { exit, .. } = self.next().await {
                return exit;
            }
        }
    }
}

impl Done {
    pub(crate) fn messages(&self) -> Vec<&Message> {
        let message = |notice: &'_ AgentNotice| matches!(notice, AgentNotice::Message(_));
        let messages = self.said.iter().filter(|notice| message(notice));
        messages
            .map(|notice| match notice {
                AgentNotice::Message(message) => message,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.said.iter().filter_map(note_of).map(ToString::to_string).collect()
    }

    /// All of it, a line each.
    pub(crate) fn told(&self) -> String {
        let told: Vec<String> = self.said.iter().map(line_of).collect();
        format!("{}\n{}", told.join("\n"), self.ending)
    }
}

fn note_of(notice: &AgentNotice) -> Option<&Note> {
    match notice {
        AgentNotice::Noted(note) => Some(note),
        AgentNotice::Said(_)
        | AgentNotice::ToolOutput { .. }
        | AgentNotice::Message(_)
        | AgentNotice::Compacted { .. }
        | AgentNotice::Queue(_)
        | AgentNotice::State(_)
        | AgentNotice::Ended { .. } => None,
    }
}

/// A notice in few words.
pub(crate) fn line_of(notice: &AgentNotice) -> String {
    match notice {
        AgentNotice::Said(delta) => {
            let tool = delta.tool.as_ref().map(|call| format!(" {} {}", call.tool, call.call));
            format!(
                "said {}.{} {:?} @{} {:?}{}",
                delta.message,
                delta.part,
                delta.role,
                delta.offset,
                delta.text,
                tool.unwrap_or_default()
            )
        }
        AgentNotice::ToolOutput { call, output } => format!("output of {}: {output}", call.call),
        AgentNotice::Message(message) => {
            let about =
                ["model", "stopReason"].map(|name| message.metadata.get(name).and_then(Value::as_str));
            let about: Vec<&str> = about.into_iter().flatten().collect();
            let usage = message.usage.map(|usage| format!(" ({usage})")).unwrap_or_default();
            format!("message {message} {about:?}{usage}")
        }
        AgentNotice::Compacted { summary, kept, .. } => format!("compacted, {kept} kept: {summary}"),
        AgentNotice::Queue(queue) => format!("queue {queue:?}"),
        AgentNotice::State(state) => format!("state {state}"),
        AgentNotice::Noted(note) => format!("note {note}"),
        AgentNotice::Ended { ending, .. } => format!("ended {ending}"),
    }
}

/// The session of a pi that no engine has.
fn session() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(7))
}

/// What an agent goes on from that said this before.
pub(crate) fn conversation(messages: &[Message]) -> Conversation {
    let session = session();
    let mut entries = Vec::new();
    for (message, seq) in messages.iter().zip(1..) {
        for (entry, text) in message.entries() {
            let number = entries.len() as u64;
            let hash = entry.hash();
            let at = Timestamp::from_second(1_790_000_000 + i64::try_from(seq).unwrap()).unwrap();
            let (first, last) = (Seq(seq), Seq(seq));
            entries.push((
                TranscriptEntry { session, number, hash, entry, at, first, last, origin: None },
                text,
            ));
        }
    }
    Conversation { entries, state: None, name: "a session".to_owned() }
}

/// Kills a process as nothing can refuse.
pub(crate) fn kill_outright(pid: u32) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.unwrap().success());
}
