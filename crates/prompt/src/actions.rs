//! Carrying out the commands of the table, one small function each: here those about sessions and their entries, in [`code`] those about code,
//! in [`store`] those about the store.

mod code;
mod store;

use std::path::Path;

use mainstay_model::application::stop_code;
use mainstay_model::{Error, JobSpec, Seq, SessionId, Timestamp};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{
    CancelSession, CompactSession, CreateSession, DeleteSession, ForkSession, GetLineage, GetSession,
    GetStatus, InsertEntries, Inserted, LabelEntry, ListAsks, ListEvents, ListHistory, ListLabels,
    ListSessions, RefreshSession, RenameSession, ResetSession, SearchEntries,
};
use mainstay_terminal::{Enter, Paint, Tone, confirm, counted, note, printable};
use mainstay_terminal_client::ask::{answer, asks_text};
use mainstay_terminal_client::connect::connect;
use mainstay_terminal_client::event_table::EventTable;
use mainstay_terminal_client::history::{newest, show_history};
use mainstay_terminal_client::import::{Source, imported_text};
use mainstay_terminal_client::label::{labeled_text, labels_text};
use mainstay_terminal_client::lineage::lineage_text;
use mainstay_terminal_client::link::Link;
use mainstay_terminal_client::merge::{Entries, inserted_text};
use mainstay_terminal_client::paths::working_directory;
use mainstay_terminal_client::reset::{confirm_reset, has_begun, how_to_undo};
use mainstay_terminal_client::search::show_found;
use mainstay_terminal_client::session_changes::{
    compacted_text, delete_question, moved_text, refresh_reason,
};
use mainstay_terminal_client::session_text::{
    application_text, session_facts, session_line, startup_text, tally,
};
use mainstay_terminal_client::sessions::create;
use mainstay_terminal_client::status::status_text;
use mainstay_terminal_client::transcript::{
    EntrySelection, Pages, SHOWN_LINES, entry_text, nothing_shown, show_picture,
};

use crate::command::{Command, PromptLanguage};
use crate::echo_off::EchoOff;
use crate::evaluation::Submission;
use crate::help::help_text;
use crate::prompt_loop::{CLIENT_NAME, PromptLoop, no_terminal};

/// How many lines `:history` shows.
const LINES_SHOWN: usize = 20;
/// How much `:search` shows.
const FOUND_SHOWN: usize = 10;

impl PromptLoop {
    /// Carries out a command other than [`Command::Quit`].
    pub(crate) async fn act(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Help => print!("{}", help_text(self.paint, self.prompt_language())),
            Command::Sessions => self.sessions().await?,
            Command::Switch(reference) => self.switch(reference).await?,
            Command::Reset => self.reset(false).await?,
            Command::HardReset => self.reset(true).await?,
            Command::Rebuild { keep } => self.rebuild(keep).await?,
            Command::Refresh { all } => self.refresh(all).await?,
            Command::Status => self.status().await?,
            Command::SessionInfo => self.session_info().await?,
            Command::Events(count) => self.events(count).await?,
            Command::New(name) => self.create(name).await?,
            Command::Fork { entries, name, before_reset } => {
                self.fork(entries, name, before_reset).await?;
            }
            Command::Merge { from, entries, at } => match (at, self.prompt_language()) {
                (None, PromptLanguage::Fsharp | PromptLanguage::Foreign) => {
                    self.evaluate(Submission::merge(from, entries)).await?
                }
                (Some(_), _) | (None, PromptLanguage::Words) => self.insert(from, entries, at).await?,
            },
            Command::Lineage => self.lineage().await?,
            Command::Transcript(from) => self.transcript(from).await?,
            Command::History(words) => self.history(words).await?,
            Command::Explore(name) => self.explore(name).await?,
            Command::Find(text) => self.find(text).await?,
            Command::Values => self.values().await?,
            Command::Test(pattern) => self.test(pattern).await?,
            Command::Coverage(subject) => self.coverage(subject).await?,
            Command::RunApp(arguments) => self.run_app(arguments).await?,
            Command::StopApp => self.evaluate(Submission::new(stop_code(None), None)).await?,
            Command::Search(words) => self.search(words).await?,
            Command::Rename(name) => self.rename(name).await?,
            Command::Delete(reference) => self.delete(reference).await?,
            Command::Asks => self.asks().await?,
            Command::Answer { ask, text } => self.answer(&ask, &text).await?,
            Command::Cancel => self.cancel().await?,
            Command::Load(file) => self.load(&file).await?,
            Command::Directive(code) => self.evaluate(Submission::new(code, None)).await?,
            Command::Run(file) => self.run_file(&file).await?,
            Command::Export(to) => to.write(&self.home, &self.link.client, self.link.reference()).await?,
            Command::Import(file) => self.import(&file).await?,
            Command::Compact { before, summary } => self.compact(before, summary).await?,
            Command::Shorten(instructions) => self.shorten(instructions).await?,
            Command::Steer(queued) => self.steer(queued, None).await?,
            Command::Pause(question) => self.pause(question).await?,
            Command::Queue => self.queue().await?,
            Command::Output(entry) => self.output(entry).await?,
            Command::Model(setting) => self.model(setting).await?,
            Command::Thinking(level) => self.thinking(level).await?,
            Command::Label { entry, label } => self.label(entry, label).await?,
            Command::Labels => self.labels().await?,
            Command::Stats(session) => self.stats(session).await?,
            Command::Gc => self.collect().await?,
            Command::Backup(folder) => self.back_up(&folder).await?,
            Command::Quit => {}
        }
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
        self.link
            .client
            .call(CancelSession { session, target: None, grace_ms: None, sent: Sent::default() })
            .await?;
        note("cancelling …");
        Ok(())
    }

    async fn sessions(&mut self) -> Result<(), Error> {
        let all = self.link.client.call(ListSessions::default()).await?;
        for (number, session) in (1..).zip(&all) {
            let mark = if session.session == self.link.session.session { "*" } else { " " };
            print!("{number:>3} {mark} {}", session_line(session, self.paint, Timestamp::now()));
            println!("      {}", self.paint.tone(Tone::Faint, &session_facts(session, &all)));
        }
        self.listed = all.iter().map(|session| session.session).collect();
        Ok(())
    }

    async fn switch(&mut self, reference: String) -> Result<(), Error> {
        let listed = reference.parse().ok().and_then(|number: usize| self.listed.get(number.checked_sub(1)?));
        let reference = listed.map_or(reference, SessionId::to_string);
        // Another connection, so that the events of the former session end.
        let connection = connect(&self.home, CLIENT_NAME).await?;
        let session = connection.client.call(GetSession { session: reference }).await?;
        let session = self.in_use(&connection.client, session).await?;
        let link = Link::open(connection, session).await?;
        self.attach(link).map_err(|error| no_terminal(&error))
    }

    async fn create(&mut self, name: Option<String>) -> Result<(), Error> {
        let kind = self.link.session.kind.clone();
        // It may have to ask whether to install an SDK.
        self.echo_off = None;
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
        self.echo_off = EchoOff::begin();
        let session = session?;
        self.switch(session.session.to_string()).await
    }

    async fn fork(
        &mut self,
        entries: Option<u64>,
        name: Option<String>,
        before_reset: bool,
    ) -> Result<(), Error> {
        let fork = ForkSession { command: None, session: self.link.reference(), entries, name, before_reset };
        let forked = self.link.client.call(fork).await?;
        moved_text(&forked).iter().for_each(|moved| note(moved));
        self.switch(forked.session.session.to_string()).await
    }

    async fn import(&mut self, file: &Path) -> Result<(), Error> {
        let source = Source::read(file, None)?;
        // It may have to ask whether to install an SDK.
        self.echo_off = None;
        let imported = source.import(&self.home, &self.link.client, None, None).await;
        self.echo_off = EchoOff::begin();
        let imported = imported?;
        note(&imported_text(&imported));
        self.switch(imported.session.session.to_string()).await
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

    async fn delete(&mut self, reference: Option<String>) -> Result<(), Error> {
        let session = reference.unwrap_or_else(|| self.link.reference());
        let found = self.statistics(session).await?;
        // What is typed now is an answer.
        self.echo_off = None;
        let agreed = confirm(&delete_question(&found, Timestamp::now()), Enter::No);
        self.echo_off = EchoOff::begin();
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

    async fn lineage(&self) -> Result<(), Error> {
        let relatives = self.link.client.call(GetLineage { session: self.link.reference() }).await?;
        print!("{}", lineage_text(&relatives, self.link.session.session, self.paint, Timestamp::now()));
        Ok(())
    }

    async fn reset(&mut self, hard: bool) -> Result<(), Error> {
        if self.prompt_language() == PromptLanguage::Words && !hard {
            self.wake().await?;
        }
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        let has_begun = has_begun(&session);
        // What is typed now is an answer.
        self.echo_off = None;
        let agreed = confirm_reset(&self.link.client, &session).await;
        self.echo_off = EchoOff::begin();
        if !agreed {
            note("nothing was reset");
            return Ok(());
        }
        self.link
            .client
            .call(ResetSession { session: self.link.reference(), hard, sent: Sent::default() })
            .await?;
        self.settle().await?;
        note(match (self.prompt_language(), hard) {
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

    async fn rebuild(&mut self, keep: bool) -> Result<(), Error> {
        let before = self.link.session.last_seq;
        self.do_work(if keep { JobSpec::Build } else { JobSpec::Rebuild }).await?;
        let is_new = self.link.session.last_seq > before && self.link.session.state != "Ready";
        if is_new {
            self.settle().await?;
            eprint!("{}", startup_text(&self.link.session, Paint::stderr()));
        }
        Ok(())
    }

    async fn refresh(&mut self, all: bool) -> Result<(), Error> {
        let session = self.link.reference();
        let refresh = RefreshSession { session, all, dry_run: false, sent: Sent::default() };
        let refreshed = self.link.client.call(refresh).await?;
        note(&refresh_reason(&refreshed, all));
        if refreshed.after.is_some() {
            self.settle().await?;
        }
        Ok(())
    }

    async fn status(&self) -> Result<(), Error> {
        self.session_info().await?;
        let status = self.link.client.call(GetStatus {}).await?;
        println!();
        print!("{}", status_text(&status, self.paint, Timestamp::now()));
        Ok(())
    }

    async fn session_info(&self) -> Result<(), Error> {
        let session = self.link.client.call(GetSession { session: self.link.reference() }).await?;
        print!("{}", super::banner::facts(&session, self.paint, Timestamp::now()));
        let application = application_text(&session, self.paint, Timestamp::now());
        print!("{}", application.unwrap_or_default());
        let (noun, failed) = tally(&session);
        println!("{}, {failed}, {}", counted(session.evals, noun), counted(session.last_seq.0, "event"));
        if !session.usage.is_zero() {
            println!("{}", session.usage);
        }
        Ok(())
    }

    /// Shows the entries from this number on, or until Ctrl-C.
    async fn transcript(&mut self, from: u64) -> Result<(), Error> {
        let (link, paint) = (&self.link, self.paint);
        let session = link.session.session;
        let mut is_empty = true;
        let show = async {
            let mut pages =
                Pages::of(session, EntrySelection { from: from - 1, ..EntrySelection::default() });
            while let Some(page) = pages.next(&link.client).await? {
                for (number, entry) in &page {
                    is_empty = false;
                    print!("{}", entry_text(*number, entry, SHOWN_LINES, paint));
                    show_picture(&link.client, session, *number, entry).await?;
                }
            }
            Ok::<_, Error>(())
        };
        tokio::select! {
            shown = show => shown?,
            _ = self.interrupts.recv() => return Ok(()),
        }
        if is_empty {
            note(nothing_shown(from));
        }
        Ok(())
    }

    async fn search(&self, words: String) -> Result<(), Error> {
        let search = SearchEntries {
            words,
            session: None,
            working_directory: None,
            kind: None,
            roles: Vec::new(),
            since: None,
            until: None,
            offset: 0,
            limit: Some(FOUND_SHOWN),
        };
        let found = self.link.client.call(search).await?;
        show_found(&found, self.paint, Timestamp::now());
        Ok(())
    }

    async fn history(&self, words: Vec<String>) -> Result<(), Error> {
        let folder = Some(self.link.session.working_directory.clone());
        let list = ListHistory { folder, session: None, words, before: None, after: None, limit: None };
        let lines = newest(&self.link.client, list, LINES_SHOWN).await?;
        show_history(&lines, self.paint, Timestamp::now());
        Ok(())
    }

    async fn events(&self, count: u64) -> Result<(), Error> {
        let newest = self.link.client.call(GetSession { session: self.link.reference() }).await?.last_seq;
        let mut after = Seq(newest.0.saturating_sub(count));
        let mut table = EventTable::new(self.paint);
        loop {
            let page = ListEvents { session: self.link.reference(), after, limit: None };
            let events = self.link.client.call(page).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            events.iter().for_each(|event| print!("{}", table.rows_of(event)));
        }
        print!("{}", table.end());
        Ok(())
    }

    async fn label(&mut self, entry: u64, label: Option<String>) -> Result<(), Error> {
        let told = labeled_text(entry, label.as_deref());
        let session = self.link.reference();
        let labeled = LabelEntry { session, entry: entry - 1, label, sent: Sent::default() };
        let session = self.link.client.call(labeled).await?;
        self.catch_up(session.last_seq).await;
        note(&told);
        Ok(())
    }

    async fn labels(&self) -> Result<(), Error> {
        let labels = self.link.client.call(ListLabels { session: self.link.reference() }).await?;
        print!("{}", labels_text(&labels, self.paint, Timestamp::now()));
        Ok(())
    }

    pub(crate) async fn compact(&mut self, before: Option<u64>, summary: String) -> Result<(), Error> {
        let session = self.link.reference();
        let before = match before {
            Some(number) => number - 1,
            None => self.statistics(session.clone()).await?.transcript,
        };
        let compact = CompactSession { session, before, summary, sent: Sent::default() };
        let compacted = self.link.client.call(compact).await?;
        self.catch_up(compacted.session.last_seq).await;
        note(&compacted_text(&compacted));
        Ok(())
    }

    async fn insert(&mut self, from: String, entries: Entries, at: Option<u64>) -> Result<(), Error> {
        let session = self.link.reference();
        let insert = InsertEntries { session, command: None, from, entries: entries.0, at };
        let Inserted { entries, at, asked, .. } = self.link.client.call(insert).await?;
        println!("{}", inserted_text(entries, at, asked));
        self.settle().await
    }
}
