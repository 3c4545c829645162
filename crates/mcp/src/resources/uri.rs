//! What the addresses of resources say.

use std::fmt::{Display, Formatter};

/// What every address begins with.
const SCHEME: &str = "mainstay://";

/// The address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The list of all sessions.
    Sessions,
    /// Something of one session, which is named by its id, the end of it, or its name.
    Session { session: String, part: Part },
}

/// What of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The state of the session.
    Status,
    /// Its cells and messages from a number on; without it the newest.
    Transcript { from: Option<u64>, count: Option<usize> },
    /// The cell or message with a number.
    Cell { number: u64 },
    /// What the compiler remarked.
    Diagnostics,
    /// What happened after a cursor; without it the newest.
    Events { since: Option<u64> },
}

impl Address {
    /// Creates the address of a part of a session.
    pub(crate) fn of(session: impl Into<String>, part: Part) -> Self {
        Self::Session { session: session.into(), part }
    }

    /// Reads an address. There is none where it is not of a form of ours: also where it asks for what its form does not have.
    pub(crate) fn read(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query = Query::read(query)?;
        let segments: Vec<&str> = path.split('/').collect();
        let (session, part) = match segments.as_slice() {
            ["sessions"] if query == Query::default() => return Some(Self::Sessions),
            ["session", session] if query == Query::default() => (session, Part::Status),
            ["session", session, "transcript"] if query.since.is_none() => {
                let count = query.count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
                (session, Part::Transcript { from: query.from, count })
            }
            ["session", session, "cell", number] if query == Query::default() => {
                (session, Part::Cell { number: number.parse().ok()? })
            }
            ["session", session, "diagnostics"] if query == Query::default() => (session, Part::Diagnostics),
            ["session", session, "events"] if query.from.is_none() && query.count.is_none() => {
                (session, Part::Events { since: query.since })
            }
            _ => return None,
        };
        let session = decoded(session);
        (!session.is_empty()).then_some(Self::Session { session, part })
    }
}

/// What may stand behind a question mark.
#[derive(Default, PartialEq)]
struct Query {
    from: Option<u64>,
    count: Option<u64>,
    since: Option<u64>,
}

impl Query {
    fn read(text: &str) -> Option<Self> {
        let mut query = Self::default();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let place = match &*name {
                "from" => &mut query.from,
                "count" => &mut query.count,
                "since" => &mut query.since,
                _ => return None,
            };
            *place = Some(value.parse().ok()?);
        }
        Some(query)
    }
}

/// A segment of a path. Unlike in a form, a plus sign and an ampersand stand for themselves.
fn decoded(segment: &str) -> String {
    let form = format!("={}", segment.replace('&', "%26").replace('+', "%2B"));
    form_urlencoded::parse(form.as_bytes()).map(|(_, value)| value).collect()
}

/// As in a form, but for blanks: in a path a plus sign stands for itself.
fn encoded(segment: &str) -> String {
    form_urlencoded::byte_serialize(segment.as_bytes()).collect::<String>().replace('+', "%20")
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sessions => write!(f, "{SCHEME}sessions"),
            Self::Session { session, part } => write!(f, "{SCHEME}session/{}{part}", encoded(session)),
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status => Ok(()),
            Self::Transcript { from, count } => {
                write!(f, "/transcript")?;
                let said = [("from", *from), ("count", count.map(|count| count as u64))];
                let said = said.into_iter().filter_map(|(name, number)| Some((name, number?)));
                said.zip(["?", "&"]).try_for_each(|((name, number), mark)| write!(f, "{mark}{name}={number}"))
            }
            Self::Cell { number } => write!(f, "/cell/{number}"),
            Self::Diagnostics => write!(f, "/diagnostics"),
            Self::Events { since: None } => write!(f, "/events"),
            Self::Events { since: Some(since) } => write!(f, "/events?since={since}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_is_of_a_form_is_an_address() {
        for uri in [
            "mainstay://sessions?from=1",
            "mainstay://sessions/",
            "mainstay://session/",
            "mainstay://session/a/cell",
            "mainstay://session/a/cell/first",
            "mainstay://session/a/cell/1?from=2",
            "mainstay://session/a/transcript?from=-1",
            "mainstay://session/a/transcript?since=1",
            "mainstay://session/a/events?count=1",
            "mainstay://session/a/events?until=1",
            "mainstay://session/a/secrets",
            "file:///etc/passwd",
        ] {
            assert_eq!(Address::read(uri), None, "{uri}");
        }
    }

    fn parts() -> impl Strategy<Value = Part> {
        prop_oneof![
            Just(Part::Status),
            Just(Part::Diagnostics),
            (any::<Option<u64>>(), any::<Option<usize>>())
                .prop_map(|(from, count)| Part::Transcript { from, count }),
            any::<u64>().prop_map(|number| Part::Cell { number }),
            any::<Option<u64>>().prop_map(|since| Part::Events { since }),
        ]
    }

    proptest! {
        #[test]
        fn an_address_is_read_as_it_is_written(session in ".{1,20}", part in parts()) {
            let address = Address::of(session, part);
            prop_assert_eq!(Address::read(&address.to_string()), Some(address));
        }

        #[test]
        fn whatever_is_given_it_is_read_or_refused(uri in "(mainstay://)?(session/)?.{0,40}") {
            Address::read(&uri);
        }
    }
}
