//! Speaking to an agent: what is said to it, what it says and does meanwhile, and a line that steers it while it works.
//!
//! Such a line is begun by typing: as soon as a key is pressed, what the agent goes on to say is held back until the line is sent or
//! empty. What must not wait, the end of the turn and what is asked, ends the line; what was typed stands in the next one then.

use std::io::stdin;
use std::sync::Arc;
use std::time::Duration;

use mainstay_model::{
    Admission, AgentState, CommandId, Delivery, Error, Event, EventBody, JobSpec, Live, Prompt, QueuedPrompt,
    Setting, ThinkingLevel, WarmUpReason,
};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{AskAgent, DoWork, GetSession, PauseSession, SteerSession};
use mainstay_protocol::view::SessionView;
use mainstay_protocol::view::agent::{AgentView, QueuedView};
use mainstay_runner::AgentQuestion;
use mainstay_terminal::turn::{RenderItem, Screen, TurnRenderer, state_words};
use mainstay_terminal::{Paint, Tone, note, printable, show_error};
use mainstay_terminal_client::link::is_loss;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::time::sleep;

use crate::agent_start::start;
use crate::command::{self, Command, PromptLanguage};
use crate::editor::{Editor, Typed};
use crate::evaluation::{Progress, tell_cancelled};
use crate::line_prompt::LinePrompt;
use crate::prompt_loop::{PromptLoop, no_terminal};

/// Between two looks whether a key was pressed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// What a line that is no command asks of an agent: a shell's line behind an exclamation mark, of which the model is not told behind two.
pub(crate) fn work_from_text(text: &str) -> JobSpec {
    let shell = |line: &str, is_private| JobSpec::Shell { line: line.trim().to_owned(), is_private };
    match (text.strip_prefix("!!"), text.strip_prefix('!')) {
        (Some(line), _) => shell(line, true),
        (None, Some(line)) => shell(line, false),
        (None, None) => JobSpec::Turn { prompt: Prompt::text(text.trim_end()) },
    }
}

/// What is known of what an agent does for us, and shown of it.
pub(crate) struct AgentTurn {
    renderer: TurnRenderer,
    screen: Screen,
    /// What was said to it meanwhile.
    steered: Vec<CommandId>,
    /// What was said to it last, while no daemon has said that it has it.
    unheard: Option<SteerSession>,
    has_ended: bool,
}

impl AgentTurn {
    /// With the agent of this session.
    pub(crate) fn new(session: &SessionView) -> Self {
        Self {
            renderer: TurnRenderer::of(session),
            screen: Screen::new(":output"),
            steered: Vec::new(),
            unheard: None,
            has_ended: false,
        }
    }

    /// Whether the agent has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.renderer.has_begun()
    }

    /// Whether it can be told something now.
    pub(crate) fn can_be_steered(&self) -> bool {
        self.renderer.is_turn() && !self.has_ended
    }

    /// Shows what is going on.
    pub(crate) fn hear(&mut self, live: &Live) {
        let told = self.renderer.live(live);
        self.screen.show(told);
    }

    /// Shows what an event of ours says.
    pub(crate) fn observe(&mut self, event: &Event) {
        self.has_ended |= matches!(event.body, EventBody::JobEnded { .. });
        let told = self.renderer.event(event);
        self.screen.show(told);
    }

    /// What follows begins on a line of its own.
    pub(crate) fn end_line(&mut self) {
        self.screen.end_line();
    }

    /// Whether an event follows from what we asked of the agent, which starts where it was idle.
    pub(crate) fn is_own_event(&self, event: &Event) -> bool {
        let is_steered =
            event.metadata.correlation.as_ref().is_some_and(|command| self.steered.contains(command));
        let is_start = matches!(
            event.body,
            EventBody::WarmUpStarted { reason: WarmUpReason::Started } | EventBody::WarmUpCompleted { .. }
        );
        is_steered || is_start
    }
}

impl PromptLoop {
    /// Has the agent do something, and shows what comes of it. Where the connection is lost meanwhile the same command is given again: it
    /// has one outcome.
    pub(crate) async fn do_work(&mut self, work: JobSpec) -> Result<(), Error> {
        let command = CommandId::from_uuid(uuid::Uuid::now_v7());
        let mut progress = Progress::of_turn(command, &self.link.session);
        let run = async |prompt: &mut Self, progress: &mut Progress| prompt.work(&work, progress).await;
        let done = self.over_losses(&mut progress, run).await;
        progress.end_line();
        done.or_else(tell_cancelled)
    }

    async fn work(&mut self, work: &JobSpec, progress: &mut Progress) -> Result<(), Error> {
        let client = Arc::clone(&self.link.client);
        let done = client.call(DoWork {
            session: self.link.reference(),
            work: work.clone(),
            admission: Admission::Queue,
            sent: Sent::named(progress.command().clone()),
        });
        let view = self.follow(done, progress).await?;
        self.observe_until(view.seq, progress).await;
        let has_begun = progress.has_begun();
        if let Some(turn) = progress.turn().filter(|_| !has_begun) {
            turn.screen.show(RenderItem::missed(&view.text, view.error.as_deref()));
        }
        self.link.session = client.call(GetSession { session: self.link.reference() }).await?;
        Ok(())
    }

    /// Reads a line while the agent works, and says it to the agent.
    pub(crate) async fn steer_by_line(&mut self, progress: &mut Progress) -> Result<(), Error> {
        let typed = self.read_steering(progress).await.map_err(|error| no_terminal(&error))?;
        let text = typed.trim();
        match command::read(text, PromptLanguage::Words) {
            None if text.is_empty() => {}
            None => self.steer(steering(text), progress.turn()).await?,
            Some(Ok(Command::Steer(queued))) => self.steer(queued, progress.turn()).await?,
            Some(Ok(Command::Pause(question))) => self.pause(question).await?,
            Some(Ok(Command::Cancel)) => self.want_stop(progress).await,
            Some(Ok(_)) => {
                note("while the agent works: words that steer it, :pause, :follow-up TEXT, or :cancel")
            }
            Some(Err(error)) => note(&printable(&error.to_string())),
        }
        Ok(())
    }

    /// The line that was typed; empty where there is none, or it is left for later.
    async fn read_steering(&mut self, progress: &mut Progress) -> std::io::Result<String> {
        progress.end_line();
        let mut editor = Editor::for_answers(self.paint, false)?;
        editor.put(std::mem::take(&mut self.unsent_text))?;
        let bell = editor.bell();
        let mut reading = editor.read(LinePrompt::steering())?;
        let (mut held, command) = (Vec::new(), progress.command().clone());
        let hold = |_: &mut Self, event: Event| {
            let is_urgent = is_urgent(&event, &command);
            held.push(event);
            is_urgent
        };
        let done = self.listen(&mut reading, &bell, hold).await;
        let typed = editor.finish(done, reading.prompt())?;
        if typed == Typed::Interrupted {
            self.unsent_text = editor.take_text();
        }
        held.iter().for_each(|event| self.observe(event, progress));
        Ok(match typed {
            Typed::Text(text) => text,
            Typed::Dropped | Typed::End | Typed::Interrupted => String::new(),
        })
    }

    /// Says something to the agent while it works.
    pub(crate) async fn steer(
        &mut self,
        queued: QueuedPrompt,
        turn: Option<&mut AgentTurn>,
    ) -> Result<(), Error> {
        let QueuedPrompt { prompt, hears } = queued;
        let command = CommandId::from_uuid(uuid::Uuid::now_v7());
        let (session, sent) = (self.link.reference(), Sent::named(command.clone()));
        let steer = SteerSession { session, prompt, hears, sent };
        let Some(turn) = turn else { return self.link.client.call(steer).await.map(drop) };
        turn.steered.push(command);
        turn.unheard = Some(steer);
        self.steer_again(turn).await
    }

    /// Says to the agent what a daemon that was lost may not have taken.
    pub(crate) async fn steer_again(&mut self, turn: &mut AgentTurn) -> Result<(), Error> {
        let Some(steer) = turn.unheard.clone() else { return Ok(()) };
        let heard = self.link.client.call(steer).await;
        if heard.as_ref().is_err_and(is_loss) {
            return heard.map(drop);
        }
        turn.unheard = None;
        match heard {
            // It has just ended: what was typed is not lost.
            Err(error @ Error::NotOffered { .. }) => note(&printable(&error.to_string())),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(())
    }

    /// Has the agent pause in its turn, and ask how to go on. One that has just ended does not.
    pub(crate) async fn pause(&mut self, prompt: Option<String>) -> Result<(), Error> {
        let sent = Sent::named(CommandId::from_uuid(uuid::Uuid::now_v7()));
        let pause = PauseSession { session: self.link.reference(), target: None, prompt, sent };
        match self.link.client.call(pause).await {
            Err(error) if is_loss(&error) => {
                note("the agent may not have been told to pause; `:pause` once more");
                Err(error)
            }
            Err(error) => {
                show_error(&error);
                Ok(())
            }
            Ok(_) => {
                note(
                    "the agent pauses before its next step, and asks; `:asks` shows it, `:answer ID TEXT` answers it",
                );
                Ok(())
            }
        }
    }

    /// Has the agent shorten what it is shown. Where none is there, a summary of one's own does it.
    pub(crate) async fn shorten(&mut self, instructions: Option<String>) -> Result<(), Error> {
        match (self.do_work(JobSpec::Compaction { instructions: instructions.clone() }).await, instructions) {
            (Err(Error::KernelUnknown { .. }), Some(summary)) => self.compact(None, summary).await,
            (done, _) => done,
        }
    }

    /// What the agent has still to hear.
    pub(crate) async fn queue(&self) -> Result<(), Error> {
        let AgentView { queue, .. } = self.agent().await?;
        for QueuedView { hears, text, .. } in &queue {
            let when = match hears {
                Delivery::Steer => "before its next step",
                Delivery::FollowUp => "when it would be done",
            };
            println!("{}  {}", printable(text), self.paint.tone(Tone::Faint, when));
        }
        if queue.is_empty() {
            note("the agent has heard all that was said");
        }
        Ok(())
    }

    /// Goes on with another model, or lists them.
    pub(crate) async fn model(&mut self, setting: Option<Setting>) -> Result<(), Error> {
        if let Some(setting) = setting {
            return self.do_work(JobSpec::Setting(setting)).await;
        }
        self.wake().await?;
        let session = self.link.reference();
        let models = self.link.client.call(AskAgent { session, question: AgentQuestion::Models }).await?;
        let state = self.agent().await?.state.unwrap_or_default();
        print!("{}", models_text(&models, &state, self.paint));
        Ok(())
    }

    /// Thinks so hard from now on, or says how hard it does.
    pub(crate) async fn thinking(&mut self, level: Option<ThinkingLevel>) -> Result<(), Error> {
        match level {
            Some(level) => self.do_work(JobSpec::Setting(Setting::Thinking { level })).await,
            None => {
                let state = self.agent().await?.state.unwrap_or_default();
                println!("{}", printable(&state_words(&state)));
                Ok(())
            }
        }
    }

    async fn agent(&self) -> Result<AgentView, Error> {
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        Ok(session.agent.unwrap_or_default())
    }

    /// Starts the agent where it is idle: what it knows of itself only it can say.
    pub(crate) async fn wake(&mut self) -> Result<(), Error> {
        let there = start(&self.link.client, self.link.reference()).await?;
        self.catch_up(there.last_seq).await;
        Ok(())
    }
}

fn steering(text: &str) -> QueuedPrompt {
    QueuedPrompt { prompt: Prompt::text(text), hears: Delivery::Steer }
}

/// What must be seen at once: the end of the job, and what is asked.
fn is_urgent(event: &Event, command: &CommandId) -> bool {
    event.metadata.correlation.as_ref() == Some(command)
        && matches!(event.body, EventBody::JobEnded { .. } | EventBody::AskRaised(_))
}

/// The models there are, as the agent tells them, with a mark before the one it goes on with.
fn models_text(models: &Value, state: &AgentState, paint: Paint) -> String {
    let listed = models.as_array().or_else(|| models["models"].as_array());
    let line = |model: &Value| {
        let (provider, id) = (model["provider"].as_str()?, model["id"].as_str()?);
        let is_present =
            state.model.as_ref().is_some_and(|present| present.provider == provider && present.id == id);
        let mark = if is_present { "*" } else { " " };
        let called = model["name"].as_str().filter(|name| *name != id).unwrap_or_default();
        let name = paint.tone(Tone::Name, &printable(&format!("{provider}/{id}")));
        Some(format!("{mark} {name}  {}", printable(called)).trim_end().to_owned() + "\n")
    };
    listed.into_iter().flatten().filter_map(line).collect()
}

/// Waits until a key was pressed, and leaves it to who reads next. It looks now and then: to be told, one would have to take the key.
pub(crate) async fn typed_ahead() {
    let keys = stdin();
    loop {
        let mut looked_at = [PollFd::new(&keys, PollFlags::IN)];
        if matches!(poll(&mut looked_at, Some(&Timespec::default())), Ok(1..)) {
            return;
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::agent::Model;
    use serde_json::json;

    #[test]
    fn what_is_said_is_words_or_a_line_of_a_shell() {
        let shell = |line: &str, is_private| JobSpec::Shell { line: line.to_owned(), is_private };
        assert_eq!(work_from_text("hello\nthere\n"), JobSpec::Turn { prompt: Prompt::text("hello\nthere") });
        assert_eq!(
            (work_from_text("!ls -l"), work_from_text("!! ls")),
            (shell("ls -l", false), shell("ls", true))
        );
    }

    #[test]
    fn the_model_it_goes_on_with_is_marked() {
        let models = json!({ "models": [
            { "provider": "anthropic", "id": "claude", "name": "Claude" },
            { "provider": "local", "id": "small\u{1b}" },
        ] });
        let (provider, id) = ("anthropic".to_owned(), "claude".to_owned());
        let model = Model { provider, id, name: None, context_window: None, about: Value::Null };
        let state = AgentState { model: Some(model), ..AgentState::default() };
        insta::assert_snapshot!(models_text(&models, &state, Paint::plain()), @"
        * anthropic/claude  Claude
          local/small␛
        ");
    }
}
