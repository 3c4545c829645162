//! Commands about what was said and what happened: transcripts, searches, labels, summaries.

use mainstay_model::{Error, Seq, Timestamp};
use mainstay_rpc::api::{
    CompactSession, GetSession, InsertEntries, Inserted, LabelEntry, ListEvents, ListHistory, ListLabels,
    SearchEntries, Sent,
};

use crate::commands::compact::told;
use crate::commands::event_table::EventTable;
use crate::commands::history::{newest, show_history};
use crate::commands::label::{labels_text, told as label_told};
use crate::commands::merge::{Entries, inserted_text};
use crate::commands::search::show_found;
use crate::commands::transcript::{EntrySelection, LINES, Pages, entry_text, nothing_shown, show_picture};
use crate::repl::Repl;
use crate::terminal::note;

/// How many lines `:history` shows.
const LINES_SHOWN: usize = 20;
/// How much `:search` shows.
const FOUND_SHOWN: usize = 10;

impl Repl {
    /// Shows the entries from this number on, or until Ctrl-C.
    pub(super) async fn transcript(&mut self, from: u64) -> Result<(), Error> {
        let (link, paint) = (&self.link, self.paint);
        let session = link.session.session;
        let mut is_empty = true;
        let show = async {
            let mut pages =
                Pages::of(session, EntrySelection { from: from - 1, ..EntrySelection::default() });
            while let Some(page) = pages.next(&link.client).await? {
                for (number, entry) in &page {
                    is_empty = false;
                    print!("{}", entry_text(*number, entry, LINES, paint));
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

    pub(super) async fn search(&self, words: String) -> Result<(), Error> {
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

    pub(super) async fn history(&self, words: Vec<String>) -> Result<(), Error> {
        let folder = Some(self.link.session.working_directory.clone());
        let list = ListHistory { folder, session: None, words, before: None, after: None, limit: None };
        let lines = newest(&self.link.client, list, LINES_SHOWN).await?;
        show_history(&lines, self.paint, Timestamp::now());
        Ok(())
    }

    pub(super) async fn events(&self, count: u64) -> Result<(), Error> {
        let newest = self.link.client.call(GetSession { session: self.link.reference() }).await?.last_seq;
        let mut after = Seq(newest.0.saturating_sub(count));
        let mut story = EventTable::new(self.paint);
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

    pub(super) async fn label(&mut self, entry: u64, label: Option<String>) -> Result<(), Error> {
        let told = label_told(entry, label.as_deref());
        let session = self.link.reference();
        let labeled = LabelEntry { session, entry: entry - 1, label, sent: Sent::default() };
        let session = self.link.client.call(labeled).await?;
        self.catch_up(session.last_seq).await;
        note(&told);
        Ok(())
    }

    pub(super) async fn labels(&self) -> Result<(), Error> {
        let labels = self.link.client.call(ListLabels { session: self.link.reference() }).await?;
        print!("{}", labels_text(&labels, self.paint, Timestamp::now()));
        Ok(())
    }

    pub(in crate::repl) async fn compact(
        &mut self,
        before: Option<u64>,
        summary: String,
    ) -> Result<(), Error> {
        let session = self.link.reference();
        let before = match before {
            Some(number) => number - 1,
            None => self.statistics(session.clone()).await?.transcript,
        };
        let compact = CompactSession { session, before, summary, sent: Sent::default() };
        let compacted = self.link.client.call(compact).await?;
        self.catch_up(compacted.session.last_seq).await;
        note(&told(&compacted));
        Ok(())
    }

    pub(super) async fn insert(
        &mut self,
        from: String,
        entries: Entries,
        at: Option<u64>,
    ) -> Result<(), Error> {
        let session = self.link.reference();
        let insert = InsertEntries { session, command: None, from, entries: entries.0, at };
        let Inserted { entries, at, asked, .. } = self.link.client.call(insert).await?;
        println!("{}", inserted_text(entries, at, asked));
        self.settle().await
    }
}
