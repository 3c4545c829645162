//! Which sessions were forked off which, as a picture.

use std::collections::BTreeMap;

use mainstay_model::session::Parent;
use mainstay_model::{SessionId, Timestamp};
use mainstay_protocol::view::{MergedEntries, RelativeView};
use mainstay_terminal::{Paint, Tone, ago};

use crate::session_text::called;

/// A line a session, each below and to the right of the one it was forked off; `marked` is marked.
pub fn lineage_text(relatives: &[RelativeView], marked: SessionId, paint: Paint, now: Timestamp) -> String {
    let known: Vec<SessionId> = relatives.iter().map(|relative| relative.session.session).collect();
    let mut children: BTreeMap<Option<SessionId>, Vec<&RelativeView>> = BTreeMap::new();
    for relative in relatives {
        let parent = relative.session.forked_from.as_ref().map(|parent| parent.session);
        children.entry(parent.filter(|parent| known.contains(parent))).or_default().push(relative);
    }
    let mut picture = String::new();
    // To be drawn, the next one last: each with what stands before it, and whether a sibling follows.
    let mut next: Vec<(&RelativeView, String, Option<bool>)> = Vec::new();
    next.extend(children.get(&None).into_iter().flatten().rev().map(|root| (*root, String::new(), None)));
    while let Some((relative, before, follows)) = next.pop() {
        let branch = match follows {
            None => "",
            Some(true) => "├─",
            Some(false) => "└─",
        };
        picture.push_str(&format!("{before}{branch}{}\n", line(relative, relatives, marked, paint, now)));
        let below = match follows {
            None => before,
            Some(true) => format!("{before}│ "),
            Some(false) => format!("{before}  "),
        };
        let born = children.get(&Some(relative.session.session)).map_or(&[][..], Vec::as_slice);
        for (index, child) in born.iter().enumerate().rev() {
            next.push((child, below.clone(), Some(index + 1 < born.len())));
        }
    }
    picture
}

fn line(
    relative: &RelativeView,
    relatives: &[RelativeView],
    marked: SessionId,
    paint: Paint,
    now: Timestamp,
) -> String {
    let RelativeView { session, entries, merged } = relative;
    let mark = if session.session == marked { paint.tone(Tone::Good, "●") } else { "○".to_owned() };
    let off = match &session.forked_from {
        Some(Parent { entries, .. }) => format!("after {entries}, "),
        None => String::new(),
    };
    let merged: String = merged
        .iter()
        .map(|MergedEntries { session, entries }| {
            let name = called(*session, relatives.iter().map(|other| &other.session));
            format!("{entries} of them merged from {name}, ")
        })
        .collect();
    let deleted = if session.deleted_at.is_some() { "deleted " } else { "" };
    let facts = format!("{off}{entries} entries, {merged}{deleted}{}", ago(session.last_activity, now));
    let id = paint.tone(Tone::Name, &session.short_id);
    format!("{mark} {id}  {}  {}", session.name, paint.tone(Tone::Faint, &facts))
}
