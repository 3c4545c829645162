//! Planning a reload: which submissions run again, or why a new worker has to run all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};

use super::Description;
use crate::fingerprint::Environment;
use crate::id::Seq;
use crate::replay::{LAST_VALUE, ReplayItem};
use crate::validity::{Records, Validity};

/// A submission that a rebuilding would run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The event that accepted it.
    pub requested: Seq,
    /// How far what the session has of it still holds; none where nothing is known of it in this session.
    pub validity: Option<Validity>,
    /// What it used; none where that cannot be told.
    pub touched: Option<&'a [String]>,
    /// The names that it gives a meaning.
    pub defines: BTreeSet<&'a str>,
    /// The words of its code, among which are the names that it uses, each with how often it is there.
    pub words: BTreeMap<&'a str, usize>,
    /// What the worker says of its code.
    pub description: &'a Description,
}

impl<'a> Candidate<'a> {
    /// What is known of a submission.
    pub fn of(
        item: &'a ReplayItem,
        description: &'a Description,
        records: &'a Records,
        present: &Environment,
    ) -> Self {
        let (validity, touched) = records.live(item.requested, present).unzip();
        Self {
            requested: item.requested,
            validity,
            touched: touched.flatten(),
            defines: item.names().chain(description.defines.iter().map(String::as_str)).collect(),
            words: words_of(&item.code),
            description,
        }
    }

    /// The names, and those of scripts, that it gives a meaning, without that of the last value: what uses it does not run twice.
    fn gives(&self) -> impl Iterator<Item = &'a str> {
        let names = self.defines.iter().copied().chain(self.description.loads.iter().map(String::as_str));
        names.filter(|name| *name != LAST_VALUE)
    }
}

fn words_of(code: &str) -> BTreeMap<&str, usize> {
    let mut words = BTreeMap::new();
    for word in code.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\''))) {
        *words.entry(word).or_default() += usize::from(!word.is_empty());
    }
    words
}

/// Why all of a session's submissions run again in a new worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FullReplayReason {
    /// It cannot be told what a submission used.
    Unknown {
        /// The event that accepted it.
        requested: Seq,
    },
    /// A submission ran at first in another session.
    FromElsewhere,
    /// Code was withheld, and it is not known what it used.
    Withheld,
    /// Something that was used is gone.
    Gone {
        /// The name of the definition.
        name: String,
    },
    /// A name that a submission uses or defines would have another meaning than when it ran, or than it is to have afterwards.
    Means {
        /// The name, or that of a script.
        name: String,
        /// The event that accepted the submission that gave it the other meaning.
        by: Seq,
    },
    /// A submission gives names a meaning that are not known.
    Opens {
        /// The event that accepted it.
        requested: Seq,
    },
    /// A submission must not run twice in one process.
    Once {
        /// The event that accepted it.
        requested: Seq,
        /// The reason, in words for people.
        reason: String,
    },
    /// No submission loads something that has changed, so running one again would not exchange it.
    NotLoaded {
        /// The name of the definition.
        name: String,
    },
    /// No submission used what has changed.
    Unused,
    /// No worker has the session's definitions.
    NoWorker,
    /// The worker does not say what its code does.
    Undescribed,
}

impl Display for FullReplayReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { requested } => write!(f, "it is not known what #{requested} used"),
            Self::FromElsewhere => f.write_str("the session has code of another session"),
            Self::Withheld => f.write_str("it is not known what withheld code used"),
            Self::Gone { name } => write!(f, "{name} is gone"),
            Self::Means { name, by } => write!(f, "#{by} gave `{name}` another meaning"),
            Self::Opens { requested } => write!(f, "it is not known which names #{requested} opened"),
            Self::Once { requested, reason } => write!(f, "#{requested} {reason}"),
            Self::NotLoaded { name } => write!(f, "{name} cannot be exchanged in a worker"),
            Self::Unused => f.write_str("no submission used what changed"),
            Self::NoWorker => f.write_str("the session had no worker"),
            Self::Undescribed => f.write_str("the worker does not say what can run twice in it"),
        }
    }
}

/// The submissions that run again, in order, where what has these names is otherwise than a session's code had it: those that used it,
/// themselves or through names of the session, and those that used what is loaded again with it.
///
/// # Errors
/// Why all have to run again in a new worker.
pub fn plan(candidates: &[Candidate<'_>], changed: &BTreeSet<String>) -> Result<Vec<Seq>, FullReplayReason> {
    let mut part = part_of(candidates, changed)?;
    // The last value of all stays that of the same submission.
    let gives_last = |candidate: &&Candidate<'_>| candidate.defines.contains(LAST_VALUE);
    let changes_last =
        candidates.iter().filter(gives_last).any(|one| part.binary_search(&one.requested).is_ok());
    if changes_last
        && let Some(last) = candidates.iter().rfind(gives_last)
        && let Err(index) = part.binary_search(&last.requested)
    {
        part.insert(index, last.requested);
    }
    let runs_again = |candidate: &Candidate<'_>| part.binary_search(&candidate.requested).is_ok();
    let again: Vec<_> = candidates.iter().filter(|candidate| runs_again(candidate)).collect();
    let loads = |name: &String| again.iter().any(|one| one.description.loads.contains(name));
    if let Some(name) = changed.iter().find(|name| !loads(name)) {
        return Err(FullReplayReason::NotLoaded { name: name.clone() });
    }
    for Candidate { requested, description, .. } in &again {
        if let Some(reason) = description.runs_once.clone() {
            return Err(FullReplayReason::Once { requested: *requested, reason });
        }
        if description.defines_others {
            return Err(FullReplayReason::Opens { requested: *requested });
        }
    }
    check_meanings(candidates, runs_again)?;
    Ok(part)
}

/// What used what has changed, or is loaded again with it.
fn part_of(candidates: &[Candidate<'_>], changed: &BTreeSet<String>) -> Result<Vec<Seq>, FullReplayReason> {
    let mut renewed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
    let mut part = Vec::new();
    for Candidate { requested, validity, touched, description, .. } in candidates {
        let requested = *requested;
        let touched = match (validity, touched) {
            (None, _) => return Err(FullReplayReason::FromElsewhere),
            (Some(Validity::Unknown), _) | (_, None) => return Err(FullReplayReason::Unknown { requested }),
            (Some(Validity::Valid | Validity::Stale | Validity::Invalid), Some(touched)) => touched,
        };
        if touched.iter().any(|name| renewed.contains(name.as_str())) {
            part.push(requested);
            renewed.extend(description.loads.iter().map(String::as_str));
        }
    }
    if part.is_empty() { Err(FullReplayReason::Unused) } else { Ok(part) }
}

/// Refuses where a name would mean something else than if all had run again: to a submission that runs again, because one that ran behind
/// it has given it another meaning, or afterwards, because one behind which it now runs had.
fn check_meanings<'a>(
    candidates: &[Candidate<'a>],
    runs_again: impl Fn(&Candidate<'_>) -> bool,
) -> Result<(), FullReplayReason> {
    // The scripts and names that those before use or define which run again, and those that they define.
    let (mut mentioned, mut defined): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    let mut earlier: BTreeSet<&str> = BTreeSet::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let Candidate { requested, touched, defines, words, description, .. } = candidate;
        let gives = || candidate.gives();
        let means = |name: &str, by: Seq| Err(FullReplayReason::Means { name: name.to_owned(), by });
        if runs_again(candidate) {
            let is_used = |(word, count): (&&'a str, &usize)| {
                let is_used =
                    *word != LAST_VALUE && !defines.contains(*word) || *count > 1 && earlier.contains(*word);
                (is_used && !defined.contains(*word)).then_some(*word)
            };
            let scripts = touched.iter().flat_map(|touched| touched.iter()).map(String::as_str);
            let of_others =
                scripts.filter(|name| !defined.contains(name) && !gives().any(|given| given == *name));
            let used: BTreeSet<&str> = words.iter().filter_map(is_used).chain(of_others).collect();
            // Up to its own turn nobody who runs again has given these the meaning that they had then.
            let rest = candidates.iter().skip(index).filter(|one| runs_again(one));
            let mut later = rest.flat_map(|one| {
                one.gives().filter(|name| used.contains(name)).map(|name| (name, one.requested))
            });
            if let Some((name, by)) = later.next() {
                return means(name, by);
            }
            mentioned.extend(words.keys().copied().chain(gives()));
            mentioned.extend(touched.iter().flat_map(|touched| touched.iter()).map(String::as_str));
            defined.extend(gives());
        } else if !mentioned.is_empty() {
            if description.defines_others {
                return Err(FullReplayReason::Opens { requested: *requested });
            }
            if let Some(name) = gives().find(|name| mentioned.contains(name)) {
                return means(name, *requested);
            }
        }
        earlier.extend(gives());
    }
    Ok(())
}
