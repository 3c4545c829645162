//! What a tool gave, whole: `:output`.

use mainstay_model::{Error, Part, PartRole, Role};
use mainstay_protocol::operations::{GetLineage, ListEntries};
use mainstay_protocol::view::EntryView;
use mainstay_terminal::turn::{Call, whole_text};
use mainstay_terminal::{note, page};
use mainstay_terminal_client::transcript::{entry_text, nothing_shown};

use crate::echo_off::EchoOff;
use crate::prompt_loop::PromptLoop;

/// How many entries are looked at together, from the end.
const TOGETHER: u64 = 100;

impl PromptLoop {
    /// Shows what the tool of this entry gave, or of the last entry that a tool gave. Another entry is shown whole.
    pub(crate) async fn output(&mut self, number: Option<u64>) -> Result<(), Error> {
        let number = match number {
            Some(number) => number,
            None => match self.last_before(None, |view| view.placed.entry.role == Role::ToolResult).await? {
                Some((number, _)) => number,
                None => {
                    note("no tool has given anything in this session");
                    return Ok(());
                }
            },
        };
        let Some(view) = self.whole_entry(number).await? else {
            note(nothing_shown(number));
            return Ok(());
        };
        let text = match view.placed.entry.role {
            Role::ToolResult => self.result_text(number, &view).await?,
            _ => entry_text(number, &view, usize::MAX, self.paint),
        };
        // What is typed now is for the program that pages.
        self.echo_off = None;
        page(text).await;
        self.echo_off = EchoOff::begin();
        Ok(())
    }

    async fn result_text(&self, number: u64, result: &EntryView) -> Result<String, Error> {
        let result = part(PartRole::ToolResult, result);
        let bond = |view: &EntryView| view.placed.entry.bond().call.map(str::to_owned);
        let id = result.metadata.get(mainstay_model::message::CALL).and_then(serde_json::Value::as_str);
        let is_call =
            |view: &EntryView| view.placed.entry.role == Role::ToolCall && bond(view).as_deref() == id;
        let call = match self.last_before(Some(number), is_call).await? {
            Some((at, _)) => self.whole_entry(at).await?,
            None => None,
        };
        let call = call.map(|call| Call::of(&part(PartRole::ToolCall, &call)));
        let outcome = call.unwrap_or_else(|| Call::of(&result)).outcome(&result);
        Ok(whole_text(&outcome, self.paint))
    }

    /// The last entry before this one that fits, with its number.
    async fn last_before(
        &self,
        number: Option<u64>,
        fits: impl Fn(&EntryView) -> bool,
    ) -> Result<Option<(u64, EntryView)>, Error> {
        let mut end = match number {
            Some(number) => number - 1,
            None => self.entries().await?,
        };
        while end > 0 {
            let from = end.saturating_sub(TOGETHER);
            let (mut at, mut found) = (from, None);
            // A page of large entries ends earlier.
            while at < end {
                let page = self.list_entries(at, end - at, false).await?;
                if page.is_empty() {
                    break;
                }
                for view in page {
                    at += 1;
                    if fits(&view) {
                        found = Some((at, view));
                    }
                }
            }
            if found.is_some() {
                return Ok(found);
            }
            end = from;
        }
        Ok(None)
    }

    /// How many entries the session has.
    async fn entries(&self) -> Result<u64, Error> {
        let session = self.link.session.session;
        let relatives = self.link.client.call(GetLineage { session: session.to_string() }).await?;
        let found = relatives.iter().find(|relative| relative.session.session == session);
        Ok(found.map_or(0, |relative| relative.entries))
    }

    async fn whole_entry(&self, number: u64) -> Result<Option<EntryView>, Error> {
        Ok(self.list_entries(number - 1, 1, true).await?.pop())
    }

    async fn list_entries(&self, from: u64, count: u64, full: bool) -> Result<Vec<EntryView>, Error> {
        let limit = usize::try_from(count).ok();
        self.link.client.call(ListEntries { session: self.link.reference(), from, limit, full }).await
    }
}

fn part(role: PartRole, view: &EntryView) -> Part {
    let entry = &view.placed.entry;
    Part { role, text: entry.shown(entry.content.beginning()).into_owned(), metadata: entry.metadata.clone() }
}
