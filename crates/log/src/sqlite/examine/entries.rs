//! Every entry against its hash, and every place against the entry that stands there.

use mainstay_model::Content;
use rusqlite::{Connection, Row};

use super::super::entries::{ENTRY, decode_entry};
use super::super::failure::reason_of;
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;

/// A session's places: whether some are without an entry, and whether their numbers have gaps.
const PLACES: &str = "
    SELECT place.session, count(*), max(place.number) + 1, count(entry.number)
    FROM place LEFT JOIN entry ON entry.number = place.entry
    WHERE place.session NOT IN (SELECT head.session FROM head WHERE deleted_at IS NOT NULL)
    GROUP BY place.session";

/// What transcripts have of other sessions and is not there.
const HELD: &str = "
    SELECT holder, session, until - first,
           (SELECT count(*) FROM place WHERE place.session = held.session AND number >= first AND number < until)
    FROM held";

impl Examiner<'_> {
    pub(super) fn entries(&mut self, connection: &Connection) {
        self.progress(Stage::Entries, 0);
        let select = format!(
            "SELECT {ENTRY}, entry.number, EXISTS (SELECT 1 FROM object WHERE object.hash = entry.object) FROM entry"
        );
        let examined = connection.prepare(&select).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::Entries, self.report.entries);
                match entry(row)? {
                    None => self.report.entries += 1,
                    Some(reason) => {
                        let what = format!("entry {}", row.get::<_, i64>(7)?);
                        self.found(Finding::TranscriptWrong { what, reason });
                    }
                }
            }
            Ok(())
        });
        self.read("entry", examined);
        self.places(connection);
        self.held(connection);
    }

    fn places(&mut self, connection: &Connection) {
        let examined = connection.prepare(PLACES).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                let (session, places, end, entries): (i64, i64, i64, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                if places != end || places != entries {
                    let reason = format!(
                        "of {end} places {} are missing, and {} have no entry",
                        end - places,
                        places - entries
                    );
                    self.found(Finding::TranscriptWrong {
                        what: format!("the transcript of session number {session}"),
                        reason,
                    });
                }
            }
            Ok(())
        });
        self.read("place", examined);
    }

    fn held(&mut self, connection: &Connection) {
        let examined = connection.prepare(HELD).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                let (holder, session, until, there): (i64, i64, i64, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                if there != until {
                    let missing = until - there;
                    self.found(Finding::TranscriptWrong {
                        what: format!("the transcript of session number {holder}"),
                        reason: format!(
                            "{missing} of the entries that it has of session number {session} are missing"
                        ),
                    });
                }
            }
            Ok(())
        });
        self.read("held", examined);
    }
}

/// What is wrong with an entry.
fn entry(row: &Row<'_>) -> rusqlite::Result<Option<String>> {
    let (hash, entry) = match decode_entry(row, 0) {
        Ok(entry) => entry,
        Err(error) => return Ok(Some(reason_of(error))),
    };
    let has_object: bool = row.get(8)?;
    let lacks_object = matches!(entry.content, Content::Object { .. }) && !has_object;
    Ok(match entry.hash() == hash {
        false => Some("what it says is not what its hash is of".to_owned()),
        true if lacks_object => Some("the object with its text is missing".to_owned()),
        true => None,
    })
}
