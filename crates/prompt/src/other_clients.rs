//! What others do on the session, in words: their code, what it prints, what comes of it; and what becomes of the session itself.

use std::collections::HashMap;

use mainstay_model::ask::{Ask, Raiser};
use mainstay_model::eval::{EvalResult, Failure};
use mainstay_model::{Event, EventBody, JobId, Severity, Source};
use mainstay_terminal::turn::{RenderItem, TurnRenderer};
use mainstay_terminal::{
    DisplaySequence, Paint, Surface, Tone, diagnostic_text, printable, printed, rendered_markdown,
};
use mainstay_terminal_client::ask::question_text;
use mainstay_terminal_client::events::{event_line, person_name};
use unicode_width::UnicodeWidthStr;

use crate::banner::DOT;
use crate::other_jobs::{OtherEval, OtherTurn};
use crate::remedies::remedy;
use crate::watched_tests::WatchedTests;

/// Follows the jobs of others.
pub(crate) struct OtherClients {
    paint: Paint,
    jobs: HashMap<JobId, OtherEval>,
    /// What an agent does for someone.
    turn: Option<OtherTurn>,
    displays: DisplaySequence,
    tests: WatchedTests,
}

impl OtherClients {
    /// Creates the list, with no other client.
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            paint,
            jobs: HashMap::new(),
            turn: None,
            displays: DisplaySequence::default(),
            tests: WatchedTests::default(),
        }
    }

    /// Who runs code, or has an agent work, if someone else does.
    pub(crate) fn running(&self) -> Option<&str> {
        let turns = self.turn.iter().map(|turn| turn.name.as_str());
        self.jobs.values().map(|other| other.name.as_str()).chain(turns).next()
    }

    /// What is to be shown of an event that is not ours: whole lines, or nothing.
    pub(crate) fn show(&mut self, event: &Event) -> String {
        if let Some(run) = self.tests.take_in(event) {
            return run.text(self.paint);
        }
        match &event.body {
            EventBody::EvalRequested { job, withheld: true, .. } => self.requested(event, *job, "(withheld)"),
            EventBody::EvalRequested { job, code, .. } => self.requested(event, *job, code),
            EventBody::OutputProduced { job: Some(job), text, .. } => {
                // One that goes on names its command. If its beginning was not seen, its lines are shown when they are whole, as others'.
                if event.metadata.correlation.is_some() {
                    self.jobs.entry(*job).or_insert_with(OtherEval::unseen);
                }
                self.printed(*job, text)
            }
            // A thread that code left running prints as if it were ours: it belongs to the session.
            EventBody::OutputProduced { job: None, text, .. } => printed(text, self.paint),
            EventBody::OutputDisplayed { job, display } if display.is_put_out() => {
                // While the prompt is open a picture would be drawn over.
                let text = self.displays.text(display, Surface::LINES);
                match job {
                    Some(job) => self.shown(*job, &text),
                    None => text,
                }
            }
            // It is told of as the language prints it; what stands on a terminal stays; and what is said beside code is for programs.
            EventBody::OutputDisplayed { .. }
            | EventBody::OutputCleared { .. }
            | EventBody::CommPublished { .. } => String::new(),
            EventBody::OutputCut { job, limit } => self.job_line(
                *job,
                Tone::Warning,
                &format!("output over {limit} bytes is left out, but for its end"),
            ),
            EventBody::EvalCompleted { job, result, .. } => self.ended(*job, result, None),
            EventBody::EvalFailed { job, failure, result, .. } => {
                self.ended(*job, result, failure_words(failure))
            }
            EventBody::EvalCancelled { job, .. } => {
                self.ended(*job, &EvalResult::default(), Some(event.body.describe().sentence()))
            }
            EventBody::EvalInterrupted { job } => self.ended(
                *job,
                &EvalResult::default(),
                Some("cut off: the worker or the daemon was lost".to_owned()),
            ),
            // What waits is of interest when its turn has come.
            EventBody::CommandQueued(_) | EventBody::CommandDequeued { .. } => String::new(),
            // The code that brought it about says so itself.
            EventBody::EnvironmentChanged { .. } => String::new(),
            EventBody::JobRequested { work, .. } => self.turn_begun(event, &work.to_string()),
            // Of what others have an agent do, whole messages are told.
            EventBody::MessageStreamed(_) | EventBody::QueueChanged { .. } | EventBody::AgentChanged(_) => {
                self.note(event);
                String::new()
            }
            EventBody::MessageAdded(_)
            | EventBody::AgentNoted(_)
            | EventBody::TranscriptCompacted(_)
            | EventBody::JobEnded { .. } => match self.turn_text(event) {
                Some(text) => text,
                None => self.session_line(event),
            },
            EventBody::AskRaised(ask) => self.asked(event, ask),
            body => match remedy(body) {
                Some(remedy) => self.with_remedy(event, remedy),
                None => self.session_line(event),
            },
        }
    }

    /// A line on the session itself.
    fn session_line(&self, event: &Event) -> String {
        let (tone, what) = event_line(&event.body);
        let who =
            self.paint.tone(Tone::Faint, &format!("· {}", printable(&person_name(&event.metadata.source))));
        format!("{who} {}\n", self.paint.tone(tone.unwrap_or(Tone::Faint), &printable(&what)))
    }

    fn with_remedy(&self, event: &Event, remedy: &str) -> String {
        format!("{}{DOT}{}\n", self.session_line(event).trim_end(), self.paint.tone(Tone::Name, remedy))
    }

    /// Who asks what, and how it is answered.
    fn asked(&self, event: &Event, ask: &Ask) -> String {
        let asker = match &ask.raiser {
            // What a person asks for a job, as where it is to pause, is not the job's own question.
            Raiser::Job { job } if event.metadata.source == Source::Worker => {
                self.jobs.get(job).map(|other| other.name.clone())
            }
            Raiser::Job { .. } | Raiser::Command { .. } => None,
        };
        let asker = asker.unwrap_or_else(|| person_name(&event.metadata.source));
        format!(
            "{} {}{DOT}{}\n",
            self.paint.tone(Tone::Faint, &format!("· {} asks:", printable(&asker))),
            printable(&question_text(&ask.question).replace('\n', " ")),
            self.paint.tone(Tone::Name, &format!(":answer {} TEXT", ask.ask.short())),
        )
    }

    /// Someone has an agent do something.
    fn turn_begun(&mut self, event: &Event, what: &str) -> String {
        let name = name_of(&event.metadata.source);
        let text = self.marked(&name, '>', &printable(what));
        if let Some(command) = event.metadata.correlation.clone() {
            let mut renderer = TurnRenderer::default();
            renderer.event(event);
            self.turn = Some(OtherTurn { name, command, renderer });
        }
        text
    }

    /// Remembers what is told later, or not at all.
    fn note(&mut self, event: &Event) {
        if let EventBody::AgentChanged(_) = &event.body
            && let Some(turn) = self.turn_of(event)
        {
            turn.renderer.event(event);
        }
    }

    /// What the agent does for someone whose turn's beginning was seen.
    fn turn_text(&mut self, event: &Event) -> Option<String> {
        let turn = self.turn_of(event)?;
        let (name, told) = (turn.name.clone(), turn.renderer.event(event));
        if let EventBody::JobEnded { .. } = &event.body {
            self.turn = None;
        }
        let mut text = String::new();
        for told in told {
            text.push_str(&match told {
                RenderItem::Answer(said) => self.said_by_agent(&name, &said),
                RenderItem::Output(printed) => self.marked(&name, '│', &printable(&printed)),
                RenderItem::Thinking(thought) => self.toned(&name, Tone::Faint, &thought),
                RenderItem::Tool(outcome) => self.toned(&name, outcome.tone, &outcome.line()),
                RenderItem::Line(tone, line) => self.toned(&name, tone, &line),
                RenderItem::Break | RenderItem::Passing(_) => String::new(),
            });
        }
        Some(text)
    }

    fn turn_of(&mut self, event: &Event) -> Option<&mut OtherTurn> {
        let command = event.metadata.correlation.as_ref();
        self.turn.as_mut().filter(|turn| Some(&turn.command) == command)
    }

    fn requested(&mut self, event: &Event, job: JobId, code: &str) -> String {
        let name = name_of(&event.metadata.source);
        let text = self.marked(&name, '>', &printable(code));
        self.jobs.insert(job, OtherEval { name, code: code.to_owned(), begun: String::new() });
        text
    }

    fn printed(&mut self, job: JobId, text: &str) -> String {
        let Some(other) = self.jobs.get_mut(&job) else { return printed(text, self.paint) };
        other.begun.push_str(text);
        let Some(end) = other.begun.rfind('\n') else { return String::new() };
        let rest = other.begun.split_off(end + 1);
        let lines = std::mem::replace(&mut other.begun, rest);
        let (name, lines) = (other.name.clone(), printed(&lines, self.paint));
        self.marked(&name, '│', &lines)
    }

    /// Whole lines; what was begun before them is one as well.
    fn shown(&mut self, job: JobId, text: &str) -> String {
        let is_begun = self.jobs.get(&job).is_some_and(|other| !other.begun.is_empty());
        self.printed(job, &if is_begun { format!("\n{text}") } else { text.to_owned() })
    }

    fn job_line(&self, job: JobId, tone: Tone, text: &str) -> String {
        let name = self.jobs.get(&job).map_or("session", |other| other.name.as_str());
        self.marked(name, '│', &self.paint.tone(tone, text))
    }

    /// What came of a job, whose code is known where its beginning was seen.
    fn ended(&mut self, job: JobId, result: &EvalResult, failure: Option<String>) -> String {
        let other = self.jobs.remove(&job).unwrap_or_else(OtherEval::unseen);
        let mut text = String::new();
        if !other.begun.is_empty() {
            text.push_str(&self.marked(&other.name, '│', &printed(&other.begun, self.paint)));
        }
        if !result.display.trim().is_empty() {
            text.push_str(&self.marked(&other.name, '│', &printable(result.display.trim_end())));
        }
        for diagnostic in
            result.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Hidden)
        {
            text.push_str(&self.marked(
                &other.name,
                '│',
                &diagnostic_text(diagnostic, &other.code, self.paint),
            ));
        }
        if let Some(failure) = failure {
            text.push_str(&self.marked(
                &other.name,
                '│',
                &self.paint.tone(Tone::Error, &printable(&failure)),
            ));
        }
        text
    }

    /// A whole message of an agent's.
    fn said_by_agent(&self, name: &str, said: &str) -> String {
        match Surface::stdout().columns().filter(|_| self.paint.is_on()) {
            Some(columns) => {
                let columns = columns.saturating_sub(name.width() + 2);
                self.marked(name, '│', &rendered_markdown(said, columns))
            }
            None => self.marked(name, '│', &printable(said)),
        }
    }

    /// The same in a colour.
    fn toned(&self, name: &str, tone: Tone, text: &str) -> String {
        let lines = printable(text);
        let toned: Vec<String> = lines.lines().map(|line| self.paint.tone(tone, line)).collect();
        self.marked(name, '│', &toned.join("\n"))
    }

    /// Each line with the name of whom it comes from.
    fn marked(&self, name: &str, mark: char, text: &str) -> String {
        let start = self.paint.tone(Tone::Faint, &format!("{name}{mark}"));
        text.lines().map(|line| format!("{start} {line}\n")).collect()
    }
}

/// What whoever asked is called.
fn name_of(source: &Source) -> String {
    printable(&person_name(source)).into_owned()
}

/// Why code did not run to its end, where the diagnostics do not say it.
fn failure_words(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Rejected => None,
        Failure::Raised { error } => Some(format!("{}: {}", error.kind, error.message)),
        Failure::WorkerExited { exit } => Some(exit.of_code()),
    }
}

#[cfg(test)]
mod tests {
    use mainstay_model::CommandId;

    use super::*;
    use mainstay_model::eval::RaisedError;
    use mainstay_model::event::{Metadata, OutputStream};
    use mainstay_model::fingerprint::CommandFingerprint;
    use mainstay_model::{
        AskId, JobSpec, Message, Part, PartRole, Position, Principal, Prompt, Question, Seq, WarmUpReason,
        WorkEnding, YieldReason,
    };

    fn job() -> JobId {
        "019a0000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn event(source: Source, body: EventBody) -> Event {
        Event {
            session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            seq: Seq(1),
            position: Position(1),
            at: "2026-02-13T13:30:20Z".parse().unwrap(),
            metadata: Metadata { source, correlation: None, causation: None, environment: None },
            body,
        }
    }

    fn agent() -> Source {
        Source::Client { principal: Principal::local(), name: "mcp:agent".to_owned() }
    }

    fn requested(code: &str) -> Event {
        let body = EventBody::EvalRequested {
            job: job(),
            command: CommandId::from_uuid(job().as_uuid()),
            fingerprint: CommandFingerprint::from_stored("fixture".to_owned()),
            key: None,
            deadline: None,
            grants: None,
            code: code.to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        };
        event(agent(), body)
    }

    fn printed(text: &str) -> Event {
        let body = EventBody::OutputProduced {
            job: Some(job()),
            stream: OutputStream::Stdout,
            text: text.to_owned(),
        };
        event(Source::Worker, body)
    }

    fn shown(events: &[Event]) -> String {
        let mut other_clients = OtherClients::new(Paint::plain());
        let numbered = |(seq, event): (u64, &Event)| Event { seq: Seq(seq), ..event.clone() };
        (1..).zip(events).map(numbered).map(|event| other_clients.show(&event)).collect()
    }

    #[test]
    fn code_output_and_result_of_another_client_bear_its_name() {
        let result = EvalResult { display: "val x: int = 3".to_owned(), ..EvalResult::default() };
        let done = EventBody::EvalCompleted { job: job(), result, changes_state: true, duration_ms: 4 };
        let events = [
            requested("let x =\n    3"),
            printed("one\ntw"),
            printed("o\nthree"),
            event(Source::Worker, done),
        ];
        insta::assert_snapshot!(shown(&events), @r"
        mcp:agent> let x =
        mcp:agent>     3
        mcp:agent│ one
        mcp:agent│ two
        mcp:agent│ three
        mcp:agent│ val x: int = 3
        ");
    }

    #[test]
    fn what_is_asked_says_how_to_answer_it() {
        let question =
            Question { schema: serde_json::json!({ "type": "boolean" }), ..Question::text("Go on\nnow?") };
        let ask = |raiser| {
            let ask = AskId::from_uuid(job().as_uuid());
            Box::new(Ask { ask, raiser, question: question.clone(), deadline: None })
        };
        let of_client = Raiser::Command {
            command: CommandId::from_uuid(job().as_uuid()),
            fingerprint: CommandFingerprint::from_stored("fixture".to_owned()),
            key: None,
        };
        let cli = Source::Client { principal: Principal::local(), name: "cli".to_owned() };
        let events = [
            requested("stdin.ReadLine()"),
            event(Source::Worker, EventBody::AskRaised(ask(Raiser::Job { job: job() }))),
            event(cli, EventBody::AskRaised(ask(of_client))),
        ];
        insta::assert_snapshot!(shown(&events), @"
        mcp:agent> stdin.ReadLine()
        · mcp:agent asks: Go on now? (yes or no) • :answer 00000001 TEXT
        · cli asks: Go on now? (yes or no) • :answer 00000001 TEXT
        ");
    }

    #[test]
    fn control_characters_of_names_values_and_errors_are_not_obeyed() {
        let error = RaisedError {
            kind: "System.Exception".to_owned(),
            message: "\u{1b}[2J".to_owned(),
            stack: None,
            coloured_stack: None,
        };
        let failed = EventBody::EvalFailed {
            job: job(),
            failure: Failure::Raised { error },
            result: EvalResult::default(),
            changes_state: true,
            duration_ms: 4,
        };
        insta::assert_snapshot!(shown(&[requested("failwith \"\u{7}\""), event(Source::Worker, failed)]), @r#"
        mcp:agent> failwith "␇"
        mcp:agent│ System.Exception: ␛[2J
        "#);
    }

    #[test]
    fn what_becomes_of_the_session_is_one_line() {
        let events = [
            event(agent(), EventBody::SessionReset),
            event(Source::System, EventBody::WarmUpStarted { reason: WarmUpReason::WorkerLost }),
        ];
        insta::assert_snapshot!(shown(&events), @r"
        · mcp:agent reset: definitions are dropped
        · mainstay warms up: the worker was lost
        ");
    }

    #[test]
    fn an_end_without_a_beginning_is_the_sessions() {
        insta::assert_snapshot!(shown(&[event(Source::System, EventBody::EvalInterrupted { job: job() })]), @"session│ cut off: the worker or the daemon was lost");
    }

    #[test]
    fn what_others_have_an_agent_do_bears_their_name() {
        let command = CommandId::from_uuid(job().as_uuid());
        let of_turn = |source: Source, body| {
            let mut event = event(source, body);
            event.metadata.correlation = Some(command.clone());
            event
        };
        let said = |parts: Vec<Part>| {
            let message = Box::new(Message { parts, ..Message::default() });
            of_turn(Source::Worker, EventBody::MessageAdded(message))
        };
        let requested = EventBody::JobRequested {
            job: job(),
            command: command.clone(),
            fingerprint: CommandFingerprint::from_stored("fixture".to_owned()),
            key: None,
            deadline: None,
            grants: None,
            work: JobSpec::Turn { prompt: Prompt::text("look\nhere") },
        };
        let ending = WorkEnding::Done { reason: YieldReason::EndTurn, value: serde_json::Value::Null };
        let ended = EventBody::JobEnded { job: job(), ending, duration_ms: 4, grace_ms: None };
        let events = [
            of_turn(agent(), requested),
            said(vec![Part::text(PartRole::User, "look\nhere")]),
            said(vec![
                Part::text(PartRole::Assistant, "I look.\nNow."),
                Part::tool_call("c1", "bash", &serde_json::json!({ "command": "ls" })),
            ]),
            said(vec![Part::tool_result("c1", "a.txt")]),
            said(vec![Part::text(PartRole::Assistant, "A \u{1b}file.")]),
            of_turn(Source::Worker, ended),
            event(
                Source::Worker,
                EventBody::MessageAdded(Box::new(Message {
                    parts: vec![Part::text(PartRole::Assistant, "of itself")],
                    ..Message::default()
                })),
            ),
        ];
        insta::assert_snapshot!(shown(&events), @"
        mcp:agent> look
        mcp:agent> here
        mcp:agent│ I look.
        mcp:agent│ Now.
        mcp:agent│ ✓ bash ls: a.txt
        mcp:agent│ A ␛file.
        · worker assistant: of itself
        ");
    }
}
