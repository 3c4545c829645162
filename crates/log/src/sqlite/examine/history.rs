//! Every line of the history, and the objects of large ones.

use mainstay_model::Content;
use rusqlite::Connection;

use super::super::failure::reason_of;
use super::super::history::decode_line;
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;

const LINES: &str = "
    SELECT number, at, folder, session, text, object, bytes, preview,
           EXISTS (SELECT 1 FROM object WHERE object.hash = history.object)
    FROM history ORDER BY number";

impl Examiner<'_> {
    pub(super) fn history(&mut self, connection: &Connection) {
        self.progress(Stage::History, 0);
        let examined = connection.prepare(LINES).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::History, self.report.history);
                let (number, has_object): (i64, bool) = (row.get(0)?, row.get(8)?);
                let reason = match decode_line(row) {
                    Err(error) => Some(reason_of(error)),
                    Ok(line) if matches!(line.content, Content::Object { .. }) && !has_object => {
                        Some("the object with its text is missing".to_owned())
                    }
                    Ok(_) => None,
                };
                match reason {
                    None => self.report.history += 1,
                    Some(reason) => self.found(Finding::HistoryWrong { number, reason }),
                }
            }
            Ok(())
        });
        self.read("history", examined);
    }
}
