//! Full-text search over entries, those of objects included.
//!
//! All that matches is ranked, which takes the index alone. The places are looked up of the best only, some more of them
//! until there are as many as are wanted: to look up each of a common word takes several times as long as to rank it.

use mainstay_model::search::Words;
use mainstay_model::{Error, Session, TranscriptEntry};
use rusqlite::{Connection, Row, ToSql};
use serde_json::json;

use super::entries::{PLACED, decode_placed};
use super::failure::failed;
use super::queries::{SessionClause, collect};
use super::rows::{decode_session, decode_session_id};
use crate::{EntryFilter, SessionFilter};

/// Of how many entries at least the places are looked up first.
const FEWEST: usize = 64;
/// Of how many times as many next, where the filter let too few through.
const GROWTH: usize = 4;

/// The places of the entries that match, the best first; of equals the newest.
pub(super) fn search(
    connection: &Connection,
    filter: &EntryFilter,
) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
    // One snapshot, lest entries come to be between the statements.
    let snapshot = connection.unchecked_transaction().map_err(failed)?;
    let mut ranked = ranked(&snapshot, &filter.words)?;
    let wanted = filter.offset.saturating_add(filter.limit);
    let (mut rest, mut count) = (ranked.as_mut_slice(), wanted.max(FEWEST));
    let mut places = Vec::new();
    while places.len() < wanted && !rest.is_empty() {
        let (best, others) = split_best(rest, count);
        places.extend(places_of(&snapshot, best, filter)?);
        (rest, count) = (others, count.saturating_mul(GROWTH));
    }
    let shown: Vec<EntryPlace> = places.into_iter().skip(filter.offset).take(filter.limit).collect();
    read(&snapshot, &shown)
}

/// An entry that matches. The smaller the rank, the better it does.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranked {
    rank: f64,
    entry: i64,
}

/// Where an entry stands, in numbers.
struct EntryPlace {
    /// The session that is shown for it.
    shown: i64,
    /// The session it came to be in.
    session: i64,
    number: i64,
}

/// Every entry that matches, in no order.
fn ranked(connection: &Connection, words: &Words) -> Result<Vec<Ranked>, Error> {
    let sql = "SELECT rank, rowid FROM entry_text WHERE entry_text MATCH ?1";
    collect(connection, sql, [words.to_fts5()], |row| {
        Ok(Ranked { rank: row.get(0).map_err(failed)?, entry: row.get(1).map_err(failed)? })
    })
}

/// The best so many in order, with all that are as good as the last of them, and the others.
fn split_best(ranked: &mut [Ranked], count: usize) -> (&[Ranked], &mut [Ranked]) {
    let mut end = count.min(ranked.len());
    if let Some(last) = end.checked_sub(1).filter(|_| end < ranked.len()) {
        let bound = ranked.select_nth_unstable_by(last, |a, b| a.rank.total_cmp(&b.rank)).1.rank;
        let after = end;
        for index in after..ranked.len() {
            if ranked[index].rank <= bound {
                ranked.swap(index, end);
                end += 1;
            }
        }
    }
    let (best, others) = ranked.split_at_mut(end);
    best.sort_unstable_by(|a, b| a.rank.total_cmp(&b.rank));
    (best, others)
}

/// Where these stand, of the places that the filter lets through; in the order in which they are shown.
fn places_of(
    connection: &Connection,
    best: &[Ranked],
    filter: &EntryFilter,
) -> Result<Vec<EntryPlace>, Error> {
    let EntryFilter { words: _, roles, sessions, since, until, offset: _, limit: _ } = filter;
    let equals = best.chunk_by(|a, b| a.rank == b.rank).zip(0_u64..);
    let best: Vec<(u64, i64)> =
        equals.flat_map(|(equals, nth)| equals.iter().map(move |ranked| (nth, ranked.entry))).collect();
    let mut conditions = vec!["true".to_owned()];
    let mut values: Vec<(&str, Box<dyn ToSql + '_>)> = vec![(":best", Box::new(json!(best).to_string()))];
    if !roles.is_empty() {
        let names: Vec<String> = roles.iter().map(|role| format!("'{}'", role.name())).collect();
        conditions.push(format!(
            "(SELECT role FROM entry WHERE entry.number = place.entry) IN ({})",
            names.join(", ")
        ));
    }
    if let Some(since) = since {
        conditions.push("place.at >= :since".to_owned());
        values.push((":since", Box::new(since.as_microsecond())));
    }
    if let Some(until) = until {
        conditions.push("place.at < :until".to_owned());
        values.push((":until", Box::new(until.as_microsecond())));
    }
    let mut of_session = "true".to_owned();
    if *sessions != SessionFilter::default() {
        let SessionClause { from, values: chosen } = SessionClause::by(sessions);
        of_session = format!("head.session IN (SELECT head.session {from})");
        values.extend(chosen);
    }
    // What came to be in a session that was deleted is shown where it is still.
    let sql = format!(
        "SELECT CASE WHEN (SELECT deleted_at IS NULL FROM head WHERE head.session = place.session)
                THEN (SELECT head.session FROM head WHERE head.session = place.session AND {of_session})
                ELSE (SELECT min(head.session) FROM held JOIN head ON head.session = held.holder
                      WHERE held.session = place.session AND first <= place.number AND until > place.number AND {of_session}) END AS shown,
            place.session, place.number
         FROM json_each(:best) AS best CROSS JOIN place ON place.entry = best.value ->> 1
         WHERE {} AND shown IS NOT NULL
         ORDER BY best.value ->> 0, place.at DESC, place.session, place.number",
        conditions.join(" AND ")
    );
    let values: Vec<(&str, &dyn ToSql)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    collect(connection, &sql, values.as_slice(), |row| {
        let number = |column| row.get(column).map_err(failed);
        Ok(EntryPlace { shown: number(0)?, session: number(1)?, number: number(2)? })
    })
}

/// What stands at these places, in their order.
fn read(connection: &Connection, places: &[EntryPlace]) -> Result<Vec<(Session, TranscriptEntry)>, Error> {
    let wanted: Vec<_> =
        places.iter().map(|EntryPlace { shown, session, number }| (shown, session, number)).collect();
    let sql = format!(
        "SELECT {PLACED}, session.projection, head.last_seq, head.last_activity, began.id
         FROM json_each(?1) AS wanted
             CROSS JOIN place ON place.session = wanted.value ->> 1 AND place.number = wanted.value ->> 2
             CROSS JOIN entry ON entry.number = place.entry
             CROSS JOIN session AS began ON began.number = place.session
             CROSS JOIN session ON session.number = wanted.value ->> 0
             CROSS JOIN head ON head.session = session.number
         ORDER BY wanted.key"
    );
    collect(connection, &sql, [json!(wanted).to_string()], decode)
}

fn decode(row: &Row<'_>) -> Result<(Session, TranscriptEntry), Error> {
    Ok((decode_session(row, 13)?, decode_placed(decode_session_id(row, 16)?, row)?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_best_come_first_and_equals_are_never_parted(ranks in vec(0..20_u8, 0..60), count in 1..70_usize) {
            let all: Vec<_> =
                ranks.iter().zip(0..).map(|(rank, entry)| Ranked { rank: -f64::from(*rank), entry }).collect();
            let mut split = all.clone();
            let (best, others) = split_best(&mut split, count);
            prop_assert!(best.len() >= count.min(all.len()));
            prop_assert!(best.is_sorted_by(|a, b| a.rank <= b.rank));
            let worst = best.last().map_or(f64::MIN, |worst| worst.rank);
            prop_assert!(others.iter().all(|other| other.rank > worst));
            let better = all.iter().filter(|one| one.rank < worst).count();
            prop_assert!(better < count, "no more than it takes");
            split.sort_by_key(|one| one.entry);
            prop_assert_eq!(split, all);
        }
    }
}
