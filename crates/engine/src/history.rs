//! The history of what a principal submitted at prompts. Each sees its own, and nobody another's.

use mainstay_log::HistoryFilter;
use mainstay_model::command::validate_code;
use mainstay_model::{Content, Error, HistoryPage, LineNumber, NewLine};

use crate::client::Client;

impl Client {
    /// All of the principal's lines, to be narrowed.
    pub fn own_history(&self) -> HistoryFilter {
        HistoryFilter::of(self.principal().clone())
    }

    /// Keeps a line; one that is sent again under its id is kept once.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::SessionNotFound`] where the line's session may not be seen, what is wrong with the line's form, and
    /// [`Error::StoreFailed`].
    pub async fn add_history(&self, line: NewLine) -> Result<LineNumber, Error> {
        self.must_write("keep lines in the history")?;
        let shared = &self.engine().shared;
        validate_code(&line.text, &shared.limits)?;
        if let Some(session) = line.session {
            self.must_see(session).await?;
        }
        let keep = Some(shared.limits.history_lines).filter(|lines| *lines > 0);
        shared.log.add_history(self.principal(), line, keep).await
    }

    /// The principal's lines that match, newest first.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error> {
        let principal = self.principal().clone();
        self.engine().shared.log.history(HistoryFilter { principal, ..filter }).await
    }

    /// All that one of the principal's lines says.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is no such line, [`Error::ObjectDamaged`], [`Error::StoreFailed`].
    pub async fn history_text(&self, number: LineNumber) -> Result<String, Error> {
        let page = self.history(HistoryFilter { number: Some(number), ..self.own_history() }).await?;
        match page.lines.into_iter().next().map(|line| line.content) {
            Some(Content::Text(text)) => Ok(text),
            Some(Content::Object { object, .. }) => {
                let bytes = self.engine().shared.log.object(&object).await?;
                String::from_utf8(bytes).map_err(|_| Error::ObjectDamaged { hash: object.to_string() })
            }
            None => Err(Error::InvalidArgument {
                argument: "number".to_owned(),
                reason: format!("the history has no line {number}"),
            }),
        }
    }

    /// Removes the principal's lines that match; says how many those were.
    ///
    /// # Errors
    /// [`Error::StoreFailed`].
    pub async fn remove_history(&self, filter: HistoryFilter) -> Result<u64, Error> {
        let principal = self.principal().clone();
        self.engine().shared.log.remove_history(HistoryFilter { principal, ..filter }).await
    }
}
