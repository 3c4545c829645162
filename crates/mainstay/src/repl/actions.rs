//! Carrying out the commands of the table, one small function each.

use mainstay_gateway::rpc::api::{
    CancelSession, CreateSession, GetSession, GetStatus, ListAsks, ListEvents, ListSessions, RenameSession,
    ResetSession, Sent,
};
use mainstay_model::{Error, Seq, Timestamp};
use unicode_width::UnicodeWidthStr;

use super::command::{Command, TABLE};
use super::evaluation::Submission;
use super::link::Link;
use super::quiet::Quiet;
use super::{CLIENT_NAME, Repl};
use crate::commands::ask::{answer, asks_text};
use crate::commands::session::session_line;
use crate::commands::status::status_text;
use crate::commands::story::Story;
use crate::commands::target::{create, working_directory};
use crate::connect::connect;
use crate::terminal::{Tone, note};

/// Keys worth knowing, as `:help` lists them.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "run what is finished, else begin a new line; an empty line ends a block"),
    ("Alt-Enter", "begin a new line"),
    ("Tab", "complete"),
    ("Up, Right", "what was typed before; the hint"),
    ("Ctrl-R", "search what was typed before"),
    ("Ctrl-C", "drop the line; stop the code that runs"),
    ("Ctrl-D", "leave; the session goes on"),
];

impl Repl {
    /// Carries out a command other than [`Command::Quit`].
    pub(super) async fn act(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Help => self.help(),
            Command::Sessions => self.sessions().await?,
            Command::Switch(reference) => self.switch(reference).await?,
            Command::Reset => self.reset(false).await?,
            Command::HardReset => self.reset(true).await?,
            Command::Status => self.status().await?,
            Command::Events(count) => self.events(count).await?,
            Command::New(name) => self.create(name).await?,
            Command::Rename(name) => self.rename(name).await?,
            Command::Asks => self.asks().await?,
            Command::Answer { ask, text } => self.answer(&ask, &text).await?,
            Command::Cancel => self.cancel().await?,
            Command::Load(file) => self.load(&file).await?,
            Command::Quit => {}
        }
        Ok(())
    }

    fn help(&self) {
        let rows = || TABLE.iter().map(|entry| (entry.usage(), entry.about));
        let width = rows().map(|(usage, _)| usage.width()).max().unwrap_or(0);
        let line = |name: &str, about: &str| {
            println!("  {}{}  {about}", self.paint.tone(Tone::Name, name), " ".repeat(width - name.width()));
        };
        rows().for_each(|(usage, about)| line(&usage, about));
        println!();
        KEYS.iter().for_each(|(key, about)| line(key, about));
        println!("\nA line that begins with a blank is not kept in the history.");
    }

    async fn sessions(&self) -> Result<(), Error> {
        let all = ListSessions { working_directory: None, live: false, limit: None };
        for session in self.link.client.call(all).await? {
            let mark = if session.session == self.link.session.session { "*" } else { " " };
            print!("{mark} {}", session_line(&session, self.paint, Timestamp::now()));
        }
        Ok(())
    }

    async fn switch(&mut self, reference: String) -> Result<(), Error> {
        // Another connection, so that the events of the former session end.
        let connection = connect(&self.home, CLIENT_NAME).await?;
        let session = connection.client.call(GetSession { session: reference }).await?;
        let session = self.settled(&connection.client, session).await?;
        self.attach(Link::open(connection, session).await?);
        Ok(())
    }

    async fn create(&mut self, name: Option<String>) -> Result<(), Error> {
        let kind = self.link.session.kind.clone();
        // It may have to ask whether to install an SDK.
        self.quiet = None;
        let working_directory = working_directory()?.display().to_string();
        let new = CreateSession { command: None, kind, working_directory, project: None, name };
        let session = create(&self.home, &self.link.client, new).await;
        self.quiet = Quiet::begin();
        let session = session?;
        self.switch(session.session.to_string()).await
    }

    async fn reset(&mut self, hard: bool) -> Result<(), Error> {
        self.link
            .client
            .call(ResetSession { session: self.link.reference(), hard, sent: Sent::default() })
            .await?;
        self.settle().await?;
        note(if hard { "the session starts afresh in a new worker" } else { "the session starts afresh" });
        Ok(())
    }

    async fn rename(&mut self, name: String) -> Result<(), Error> {
        let session = self
            .link
            .client
            .call(RenameSession { session: self.link.reference(), name, sent: Sent::default() })
            .await?;
        self.catch_up(session.last_seq).await;
        self.link.session = session;
        Ok(())
    }

    async fn asks(&self) -> Result<(), Error> {
        let asks = self.link.client.call(ListAsks { session: Some(self.link.reference()) }).await?;
        print!("{}", asks_text(&asks, self.paint, Timestamp::now()));
        Ok(())
    }

    /// That it was answered is told like all that happens.
    async fn answer(&mut self, ask: &str, text: &str) -> Result<(), Error> {
        let answered = answer(&self.link.client, ask, text).await?;
        if answered.session == self.link.session.session {
            self.catch_up(answered.seq).await;
        }
        Ok(())
    }

    /// What the cancelled code makes of it is told like all that others do.
    async fn cancel(&self) -> Result<(), Error> {
        let session = self.link.reference();
        self.link.client.call(CancelSession { session, target: None, sent: Sent::default() }).await?;
        note("cancelling …");
        Ok(())
    }

    async fn load(&mut self, file: &str) -> Result<(), Error> {
        let unreadable = |error: std::io::Error| Error::InvalidArgument {
            argument: file.to_owned(),
            reason: error.to_string(),
        };
        let path = std::fs::canonicalize(file).map_err(unreadable)?;
        let code = std::fs::read_to_string(&path).map_err(unreadable)?;
        let code = code.strip_prefix('\u{feff}').map_or_else(|| code.clone(), str::to_owned);
        self.evaluate(Submission::new(code, Some(path.display().to_string()))).await
    }

    async fn status(&self) -> Result<(), Error> {
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        let status = self.link.client.call(GetStatus {}).await?;
        print!("{}", super::banner::facts(&session, self.paint, Timestamp::now()));
        println!("{} evals, {} of them failed, {} events", session.evals, session.failures, session.last_seq);
        println!();
        print!("{}", status_text(&status, self.paint, Timestamp::now()));
        Ok(())
    }

    async fn events(&self, count: u64) -> Result<(), Error> {
        let newest = self.link.client.call(GetSession { session: self.link.reference() }).await?.last_seq;
        let mut after = Seq(newest.0.saturating_sub(count));
        let mut story = Story::new(self.paint);
        loop {
            let page = ListEvents { session: self.link.reference(), after, limit: None };
            let events = self.link.client.call(page).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            events.iter().for_each(|event| print!("{}", story.tell(event)));
        }
        print!("{}", story.end());
        Ok(())
    }
}
