//! Full-text search over entries, those of objects included.

use mainstay_model::{Error, Placed, Session};
use rusqlite::{Connection, Row, ToSql};

use super::entries::{PLACED, decode_placed};
use super::queries::{Chosen, collect, rows};
use super::rows::{decode_session, decode_session_id};
use crate::{EntryFilter, SessionFilter};

/// The places of the entries that match, the best first.
pub(super) fn search(connection: &Connection, filter: &EntryFilter) -> Result<Vec<(Session, Placed)>, Error> {
    let EntryFilter { words, roles, sessions, since, until, offset, limit } = filter;
    let mut conditions = vec!["entry_text MATCH :words".to_owned()];
    let mut values: Vec<(&str, Box<dyn ToSql + '_>)> = vec![
        (":words", Box::new(words.to_fts5())),
        (":offset", Box::new(rows(*offset))),
        (":limit", Box::new(rows(*limit))),
    ];
    if !roles.is_empty() {
        let names: Vec<String> = roles.iter().map(|role| format!("'{}'", role.name())).collect();
        conditions.push(format!("role IN ({})", names.join(", ")));
    }
    if let Some(since) = since {
        conditions.push("place.at >= :since".to_owned());
        values.push((":since", Box::new(since.as_microsecond())));
    }
    if let Some(until) = until {
        conditions.push("place.at < :until".to_owned());
        values.push((":until", Box::new(until.as_microsecond())));
    }
    if *sessions != SessionFilter::default() {
        let Chosen { from, values: chosen } = Chosen::by(sessions);
        conditions.push(format!("place.session IN (SELECT head.session {from})"));
        values.extend(chosen);
    }
    let sql = format!(
        "SELECT {PLACED}, projection, head.last_seq, head.last_activity, session.id
         FROM entry_text CROSS JOIN entry ON entry.number = entry_text.rowid
             CROSS JOIN place ON place.entry = entry.number
             CROSS JOIN session ON session.number = place.session
             CROSS JOIN head ON head.session = session.number
         WHERE {}
         ORDER BY entry_text.rank, place.at DESC, place.session, place.number LIMIT :limit OFFSET :offset",
        conditions.join(" AND ")
    );
    let values: Vec<(&str, &dyn ToSql)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    collect(connection, &sql, values.as_slice(), decode)
}

fn decode(row: &Row<'_>) -> Result<(Session, Placed), Error> {
    Ok((decode_session(row, 13)?, decode_placed(decode_session_id(row, 16)?, row)?))
}
