//! The history: lines go in beside the appends, with the objects of large ones, and the oldest go out.

use mainstay_model::{
    Content, Error, HistoryExtent, HistoryLine, HistoryPage, LineNumber, NewLine, ObjectHash, Principal,
    SessionId, Timestamp,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::failure::failed;
use super::objects::{self, ObjectRow};
use super::queries::{collect, rows};
use super::rows::{decode_session_id, integer};
use super::statements::Statements;
use super::writer::WriteFailure;
use crate::HistoryFilter;

/// A line on its way into the table.
pub(super) struct LineRow {
    pub(super) principal: Principal,
    pub(super) line: NewLine,
    pub(super) content: Content,
    pub(super) object: Option<ObjectRow>,
    /// How many lines of the principal are kept.
    pub(super) keep: Option<u64>,
}

impl LineRow {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.content.beginning().len() + self.object.as_ref().map_or(0, ObjectRow::bytes)
    }

    /// Writes the line, where it is not there yet, and lets the oldest go. Gives its number.
    pub(super) fn store(&self, statements: &mut Statements<'_>) -> Result<LineNumber, WriteFailure> {
        let Self { principal, line: NewLine { id, at, folder, session, .. }, content, object, keep } = self;
        let id = id.into_bytes();
        let there = statements
            .get("SELECT number FROM history WHERE principal = ?1 AND id = ?2")?
            .query_row(params![principal.as_str(), id], |row| row.get::<_, i64>(0))
            .optional()?;
        if let Some(number) = there {
            return Ok(LineNumber(number.unsigned_abs()));
        }
        if let Some(object) = object {
            object.store(statements)?;
        }
        let (text, hash, bytes, preview) = match content {
            Content::Text(text) => (Some(text), None, None, None),
            Content::Object { object, bytes, preview } => {
                (None, Some(object.as_str()), Some(integer(*bytes)), Some(preview))
            }
        };
        let session = session.map(|session| session.as_uuid().into_bytes());
        let number = statements
            .get(
                "INSERT INTO history (principal, id, at, folder, session, text, object, bytes, preview)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .insert(params![
                principal.as_str(),
                id,
                at.as_microsecond(),
                folder,
                session,
                text,
                hash,
                bytes,
                preview
            ])?;
        if let Some(keep) = keep {
            let removed: Vec<Option<String>> = statements
                .get(
                    "DELETE FROM history WHERE principal = ?1 AND number <=
                         (SELECT number FROM history WHERE principal = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
                     RETURNING object",
                )?
                .query_map(params![principal.as_str(), integer(*keep)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            release(statements, &removed)?;
        }
        Ok(LineNumber(number.unsigned_abs()))
    }
}

/// The lines that match, newest first, and how far the history reaches.
pub(super) fn page(connection: &Connection, filter: &HistoryFilter) -> Result<HistoryPage, Error> {
    let snapshot = connection.unchecked_transaction().map_err(failed)?;
    let LineClause { conditions, mut values } = LineClause::by(filter);
    values.push(Box::new(rows(filter.limit.unwrap_or(usize::MAX))));
    let sql = format!(
        "SELECT number, at, folder, session, text, object, bytes, preview FROM history
         WHERE {conditions} ORDER BY number DESC LIMIT ?{}",
        values.len()
    );
    let lines = collect(&snapshot, &sql, rusqlite::params_from_iter(values), decode_line)?;
    let extent = collect(
        &snapshot,
        "SELECT count(*), coalesce(min(number), 0) FROM history WHERE principal = ?1",
        [filter.principal.as_str()],
        |row| {
            let counter = |column| row.get::<_, i64>(column).map(i64::unsigned_abs).map_err(failed);
            Ok(HistoryExtent { lines: counter(0)?, oldest: LineNumber(counter(1)?) })
        },
    )?;
    Ok(HistoryPage { lines, extent: extent.into_iter().next().unwrap_or_default() })
}

/// Removes the lines that match; says how many those were.
pub(super) fn remove(statements: &mut Statements<'_>, filter: &HistoryFilter) -> Result<u64, WriteFailure> {
    let LineClause { conditions, values } = LineClause::by(filter);
    let sql = format!("DELETE FROM history WHERE {conditions} RETURNING object");
    let removed: Vec<Option<String>> = statements
        .connection()
        .prepare_cached(&sql)?
        .query_map(rusqlite::params_from_iter(values), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    release(statements, &removed)?;
    Ok(removed.len() as u64)
}

/// Removes the objects of lines that were removed, as far as nothing else has them.
fn release(statements: &mut Statements<'_>, removed: &[Option<String>]) -> rusqlite::Result<()> {
    removed.iter().flatten().try_for_each(|object| objects::release(statements, object).map(drop))
}

/// The lines that a filter chooses, as conditions, and what is bound in them.
struct LineClause {
    conditions: String,
    values: Vec<Box<dyn ToSql>>,
}

impl LineClause {
    fn by(filter: &HistoryFilter) -> Self {
        let HistoryFilter { principal, number, folder, session, words, before, after, limit: _ } = filter;
        let mut chosen = Self { conditions: String::new(), values: Vec::new() };
        chosen.and("principal = ", "", principal.as_str().to_owned());
        if let Some(number) = number {
            chosen.and("number = ", "", integer(number.0));
        }
        if let Some(folder) = folder {
            chosen.and("coalesce(folder = ", ", true)", folder.clone());
        }
        if let Some(session) = session {
            chosen.and("session = ", "", session.as_uuid().into_bytes());
        }
        if let Some(before) = before {
            chosen.and("number < ", "", integer(before.0));
        }
        if let Some(after) = after {
            chosen.and("number > ", "", integer(after.0));
        }
        for word in words {
            chosen.and("coalesce(text, preview) LIKE ", " ESCAPE '\\'", format!("%{}%", literal(word)));
        }
        chosen
    }

    fn and(&mut self, before: &str, behind: &str, value: impl ToSql + 'static) {
        self.values.push(Box::new(value));
        let and = if self.conditions.is_empty() { "" } else { " AND " };
        self.conditions.push_str(&format!("{and}{before}?{}{behind}", self.values.len()));
    }
}

/// A text as a pattern that stands for itself.
fn literal(word: &str) -> String {
    let escaped = |c: char| match c {
        '%' | '_' | '\\' => format!("\\{c}"),
        _ => c.to_string(),
    };
    word.chars().map(escaped).collect()
}

/// Reads the columns `number, at, folder, session, text, object, bytes, preview`.
pub(super) fn decode_line(row: &Row<'_>) -> Result<HistoryLine, Error> {
    let session: Option<SessionId> = match row.get_ref(3).map_err(failed)? {
        ValueRef::Null => None,
        _ => Some(decode_session_id(row, 3)?),
    };
    let content = match row.get::<_, Option<String>>(4).map_err(failed)? {
        Some(text) => Content::Text(text),
        None => Content::Object {
            object: ObjectHash::from_stored(row.get(5).map_err(failed)?),
            bytes: row.get::<_, i64>(6).map_err(failed)?.unsigned_abs(),
            preview: row.get(7).map_err(failed)?,
        },
    };
    Ok(HistoryLine {
        number: LineNumber(row.get::<_, i64>(0).map_err(failed)?.unsigned_abs()),
        at: Timestamp::from_microsecond(row.get(1).map_err(failed)?).map_err(failed)?,
        folder: row.get(2).map_err(failed)?,
        session,
        content,
    })
}
