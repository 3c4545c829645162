//! Commands about sessions: listing, switching, creating, resetting, deleting.

use std::path::Path;

use mainstay_model::{Error, JobSpec, SessionId, Timestamp};
use mainstay_rpc::api::{
    CreateSession, DeleteSession, ForkSession, GetLineage, GetSession, GetStatus, ListSessions,
    RefreshSession, RenameSession, ResetSession, Sent,
};

use crate::commands::delete::question;
use crate::commands::fork::moved;
use crate::commands::import::{Source, came_of};
use crate::commands::lineage::picture;
use crate::commands::refresh::reason;
use crate::commands::reset::{agrees, has_begun, how_to_undo};
use crate::commands::session_text::{session_facts, session_line, startup_text, tally};
use crate::commands::status::status_text;
use crate::commands::target::{create, working_directory};
use crate::confirm::{Enter, confirm};
use crate::connect::connect;
use crate::link::Link;
use crate::repl::command::PromptLanguage;
use crate::repl::echo_off::EchoOff;
use crate::repl::{CLIENT_NAME, Repl, no_terminal};
use crate::terminal::{Paint, Tone, counted, note, printable};

impl Repl {
    pub(super) async fn sessions(&mut self) -> Result<(), Error> {
        let all = self.link.client.call(ListSessions::default()).await?;
        for (number, session) in (1..).zip(&all) {
            let mark = if session.session == self.link.session.session { "*" } else { " " };
            print!("{number:>3} {mark} {}", session_line(session, self.paint, Timestamp::now()));
            println!("      {}", self.paint.tone(Tone::Faint, &session_facts(session, &all)));
        }
        self.listed = all.iter().map(|session| session.session).collect();
        Ok(())
    }

    pub(super) async fn switch(&mut self, reference: String) -> Result<(), Error> {
        let listed = reference.parse().ok().and_then(|number: usize| self.listed.get(number.checked_sub(1)?));
        let reference = listed.map_or(reference, SessionId::to_string);
        // Another connection, so that the events of the former session end.
        let connection = connect(&self.home, CLIENT_NAME).await?;
        let session = connection.client.call(GetSession { session: reference }).await?;
        let session = self.in_use(&connection.client, session).await?;
        let link = Link::open(connection, session).await?;
        self.attach(link).map_err(|error| no_terminal(&error))
    }

    pub(super) async fn create(&mut self, name: Option<String>) -> Result<(), Error> {
        let kind = self.link.session.kind.clone();
        // It may have to ask whether to install an SDK.
        self.quiet = None;
        let working_directory = working_directory()?.display().to_string();
        let new = CreateSession {
            command: None,
            kind,
            working_directory,
            project: None,
            no_project: false,
            fsi_args: None,
            name,
        };
        let session = create(&self.home, &self.link.client, new).await;
        self.quiet = EchoOff::begin();
        let session = session?;
        self.switch(session.session.to_string()).await
    }

    pub(super) async fn fork(
        &mut self,
        entries: Option<u64>,
        name: Option<String>,
        before_reset: bool,
    ) -> Result<(), Error> {
        let fork = ForkSession { command: None, session: self.link.reference(), entries, name, before_reset };
        let forked = self.link.client.call(fork).await?;
        moved(&forked).iter().for_each(|moved| note(moved));
        self.switch(forked.session.session.to_string()).await
    }

    pub(super) async fn import(&mut self, file: &Path) -> Result<(), Error> {
        let source = Source::read(file, None)?;
        // It may have to ask whether to install an SDK.
        self.quiet = None;
        let imported = source.import(&self.home, &self.link.client, None, None).await;
        self.quiet = EchoOff::begin();
        let imported = imported?;
        note(&came_of(&imported));
        self.switch(imported.session.session.to_string()).await
    }

    pub(super) async fn rename(&mut self, name: String) -> Result<(), Error> {
        let session = self
            .link
            .client
            .call(RenameSession { session: self.link.reference(), name, sent: Sent::default() })
            .await?;
        self.catch_up(session.last_seq).await;
        self.link.session = session;
        Ok(())
    }

    pub(super) async fn delete(&mut self, reference: Option<String>) -> Result<(), Error> {
        let session = reference.unwrap_or_else(|| self.link.reference());
        let found = self.statistics(session).await?;
        // What is typed now is an answer.
        self.quiet = None;
        let agreed = confirm(&question(&found, Timestamp::now()), Enter::No);
        self.quiet = EchoOff::begin();
        if !agreed {
            note("nothing was deleted");
            return Ok(());
        }
        let session = found.session.session;
        let delete = DeleteSession { session: session.to_string(), sent: Sent::default() };
        let deleted = self.link.client.call(delete).await?;
        if session == self.link.session.session {
            self.catch_up(deleted.seq).await;
        } else {
            note(&format!("{} is deleted", printable(&found.session.name)));
        }
        Ok(())
    }

    pub(super) async fn lineage(&self) -> Result<(), Error> {
        let relatives = self.link.client.call(GetLineage { session: self.link.reference() }).await?;
        print!("{}", picture(&relatives, self.link.session.session, self.paint, Timestamp::now()));
        Ok(())
    }

    pub(super) async fn reset(&mut self, hard: bool) -> Result<(), Error> {
        if self.tongue() == PromptLanguage::Words && !hard {
            self.wake().await?;
        }
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        let has_begun = has_begun(&session);
        // What is typed now is an answer.
        self.quiet = None;
        let agreed = agrees(&self.link.client, &session).await;
        self.quiet = EchoOff::begin();
        if !agreed {
            note("nothing was reset");
            return Ok(());
        }
        self.link
            .client
            .call(ResetSession { session: self.link.reference(), hard, sent: Sent::default() })
            .await?;
        self.settle().await?;
        note(match (self.tongue(), hard) {
            (PromptLanguage::Fsharp | PromptLanguage::Foreign, true) => {
                "the session starts afresh in a new process"
            }
            (PromptLanguage::Fsharp | PromptLanguage::Foreign, false) => "the session starts afresh",
            (PromptLanguage::Words, _) => "the agent has forgotten what was said; `:transcript` has it still",
        });
        if has_begun {
            note(&how_to_undo(":fork --before-reset"));
        }
        eprint!("{}", startup_text(&self.link.session, Paint::stderr()));
        Ok(())
    }

    pub(super) async fn rebuild(&mut self, keep: bool) -> Result<(), Error> {
        let before = self.link.session.last_seq;
        self.have_done(if keep { JobSpec::Build } else { JobSpec::Rebuild }).await?;
        let is_new = self.link.session.last_seq > before && self.link.session.state != "Ready";
        if is_new {
            self.settle().await?;
            eprint!("{}", startup_text(&self.link.session, Paint::stderr()));
        }
        Ok(())
    }

    pub(super) async fn refresh(&mut self, all: bool) -> Result<(), Error> {
        let session = self.link.reference();
        let refresh = RefreshSession { session, all, dry_run: false, sent: Sent::default() };
        let refreshed = self.link.client.call(refresh).await?;
        note(&reason(&refreshed, all));
        if refreshed.after.is_some() {
            self.settle().await?;
        }
        Ok(())
    }

    pub(super) async fn status(&self) -> Result<(), Error> {
        self.session_info().await?;
        let status = self.link.client.call(GetStatus {}).await?;
        println!();
        print!("{}", status_text(&status, self.paint, Timestamp::now()));
        Ok(())
    }

    pub(super) async fn session_info(&self) -> Result<(), Error> {
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        print!("{}", crate::repl::banner::facts(&session, self.paint, Timestamp::now()));
        let (noun, failed) = tally(&session);
        println!("{}, {failed}, {}", counted(session.evals, noun), counted(session.last_seq.0, "event"));
        if !session.usage.is_zero() {
            println!("{}", session.usage);
        }
        Ok(())
    }
}
