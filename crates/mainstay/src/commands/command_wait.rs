//! Waiting for what one's own command comes to, an eval or an agent's turn: what happens meanwhile is shown, Ctrl-C stops it, what it asks
//! is put to the person, and a daemon that is lost is asked again under the same id. What is shown is told by who waits.

use std::time::Duration;

use mainstay_client::Client;
use mainstay_home::Home;
use mainstay_model::{CommandId, Error, Event, Live, Seq};
use mainstay_protocol::json_rpc::Method;
use mainstay_protocol::operations::{Follow, GetCommand};
use mainstay_protocol::view::{CommandState, CommandView, SessionView};
use mainstay_protocol::{Conditions, Sent};
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::{Connection, MOST_LOSSES, connect_again};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::interrupts::InterruptWatch;
use super::questions::{Asker, Questions};

/// What has not begun after this long is said to wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// A command, and what is shown of it.
pub(super) trait AwaitedCommand {
    /// The request that carries it.
    type Request: Method;

    /// Whether more is shown of it than events say.
    const LISTENS: bool;

    /// The request that has it carried out in a session.
    fn request(&self, session: String, sent: Sent) -> Self::Request;

    /// The last event that belongs to its answer.
    fn last_event(answer: &<Self::Request as Method>::Answer) -> Seq;

    /// Whether its beginning was seen; what began earlier is shown from its answer.
    fn has_begun(&self) -> bool;

    /// Takes in an event of its session.
    fn see(&mut self, event: &Event, command: &CommandId, questions: &mut Questions);

    /// Takes in what is going on.
    fn hear(&mut self, live: &Live);
}

/// A command that is waited for.
pub(super) struct CommandWait<S> {
    pub(super) shown: S,
    session: String,
    command: CommandId,
    conditions: Conditions,
    /// The last event that was seen, or that there was before.
    seen: Seq,
    stopping: InterruptWatch,
    questions: Questions,
}

impl<S: AwaitedCommand> CommandWait<S> {
    /// Under this name, in a session as it is now; `asker` is who may ask meanwhile.
    pub(super) fn new(
        shown: S,
        session: &SessionView,
        (command, conditions): (CommandId, Conditions),
        asker: Asker,
    ) -> Result<Self, Error> {
        Ok(Self {
            shown,
            session: session.session.to_string(),
            stopping: InterruptWatch::new(command.clone())?,
            command,
            conditions,
            seen: session.last_seq,
            questions: Questions::new(asker),
        })
    }

    /// Has it carried out, and waits for its answer; gives it with the connection over which it came.
    pub(super) async fn answer(
        &mut self,
        home: &Home,
        connection: Connection,
    ) -> Result<(<S::Request as Method>::Answer, Client), Error> {
        let mut answered = self.attempt(connection).await;
        let mut losses = 0;
        // The daemon was lost. The command goes on, its outcome is stored, or it never arrived; the same id asks for either.
        while matches!(answered, Err(Error::DaemonNotRunning)) && losses < MOST_LOSSES {
            losses += 1;
            answered = self.attempt(connect_again(home, "cli").await?).await;
        }
        answered
    }

    async fn attempt(
        &mut self,
        connection: Connection,
    ) -> Result<(<S::Request as Method>::Answer, Client), Error> {
        let Connection { client, mut events } = connection;
        let answer = self.until_answered(&client, &mut events).await?;
        // It may overtake the last of what happened.
        while self.seen < S::last_event(&answer) {
            let Some(event) = events.recv().await else { break };
            self.see(&event);
        }
        Ok((answer, client))
    }

    async fn until_answered(
        &mut self,
        client: &Client,
        events: &mut UnboundedReceiver<Event>,
    ) -> Result<<S::Request as Method>::Answer, Error> {
        self.stopping.begin_again();
        client.call(Follow::session(self.session.clone(), self.seen)).await?;
        let answered = self.questions.answer_again(client).await;
        self.unless_refused(client, answered).await?;
        let mut live = match S::LISTENS {
            true => Some(client.listen(self.session.clone()).await?),
            false => None,
        };
        let sent = Sent { command: Some(self.command.clone()), conditions: self.conditions.clone() };
        let answer = client.call(self.shown.request(self.session.clone(), sent));
        tokio::pin!(answer);
        let patience = sleep(PATIENCE);
        tokio::pin!(patience);
        let mut is_patient = !self.shown.has_begun();
        loop {
            tokio::select! {
                biased;
                // First, so that the command is on its way before it is taken back.
                answer = &mut answer => return answer,
                () = self.stopping.wanted() => self.stopping.stop(client, &self.session).await?,
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    self.tell_that_it_waits(client).await?;
                }
                line = self.questions.line() => {
                    let answered = self.questions.answer(client, line).await;
                    self.unless_refused(client, answered).await?;
                }
                Some(event) = events.recv() => {
                    self.see(&event);
                    if self.shown.has_begun() {
                        is_patient = false;
                        if self.stopping.is_due() {
                            self.stopping.stop(client, &self.session).await?;
                        }
                    }
                }
                Some(live) = heard(&mut live) => self.shown.hear(&live),
            }
        }
    }

    /// Says that it waits for its turn, unless it runs: another client may have sent it first.
    async fn tell_that_it_waits(&self, client: &Client) -> Result<(), Error> {
        let command = &self.command;
        match client.call(GetCommand { command: command.clone() }).await {
            Ok(CommandView { state: CommandState::Runs | CommandState::Ended, .. }) => {}
            Err(error @ Error::DaemonNotRunning) => return Err(error),
            Ok(_) | Err(_) => terminal::note(&format!(
                "waits for its turn …; Ctrl-C takes it back, or `mainstay cancel --command {command}`"
            )),
        }
        Ok(())
    }

    /// Stops the command where an answer that it reads was refused.
    async fn unless_refused(&mut self, client: &Client, answered: Result<(), Error>) -> Result<(), Error> {
        match answered {
            Ok(()) | Err(Error::DaemonNotRunning) => {}
            Err(_) => self.stopping.stop(client, &self.session).await?,
        }
        answered
    }

    fn see(&mut self, event: &Event) {
        self.seen = event.seq;
        self.shown.see(event, &self.command, &mut self.questions);
    }
}

/// The next that is heard; where nobody listens, nothing ever is.
async fn heard(live: &mut Option<UnboundedReceiver<Live>>) -> Option<Live> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}
