//! Carrying out the commands of the table, one small function each, by what they are about.

mod code;
mod entries;
mod sessions;
mod store;

use mainstay_model::{Error, Timestamp};
use mainstay_rpc::api::{CancelSession, ListAsks, Sent};

use super::Repl;
use super::command::{Command, PromptLanguage};
use super::evaluation::Submission;
use super::help::help_text;
use crate::commands::ask::{answer, asks_text};
use crate::terminal::note;

impl Repl {
    /// Carries out a command other than [`Command::Quit`].
    pub(super) async fn act(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Help => print!("{}", help_text(self.paint, self.tongue())),
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
            Command::Merge { from, entries, at } => match (at, self.tongue()) {
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
        self.link.client.call(CancelSession { session, target: None, sent: Sent::default() }).await?;
        note("cancelling …");
        Ok(())
    }
}
