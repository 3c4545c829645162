//! How fast the streams of a connection are told, as their reader wishes. Pure: the time comes in. Source: draft-arcp-01, 11.2.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// How many streams of one connection may be slowed down.
pub(crate) const MOST_STREAMS: usize = 1000;

/// How fast a stream is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// How many chunks a second; none where their number does not matter.
    pub(crate) chunks: Option<u64>,
    /// How many bytes a second; none where their number does not matter.
    pub(crate) bytes: Option<u64>,
}

impl Rate {
    /// How long nothing follows a chunk of so many bytes; none where nothing follows until the reader wishes otherwise.
    fn pause(self, size: usize) -> Option<Duration> {
        let of_chunk = part_of_second(1, self.chunks)?;
        let of_bytes = part_of_second(size as u64, self.bytes)?;
        Some(of_chunk.max(of_bytes))
    }

    const fn is_unbounded(self) -> bool {
        self.chunks.is_none() && self.bytes.is_none()
    }
}

/// How long `count` of so many a second take; none where there are none at all.
fn part_of_second(count: u64, per_second: Option<u64>) -> Option<Duration> {
    const NANOSECONDS: u128 = 1_000_000_000;
    let Some(per_second) = per_second else { return Some(Duration::ZERO) };
    let nanoseconds = (u128::from(count) * NANOSECONDS).checked_div(u128::from(per_second))?;
    Some(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
}

/// When the next chunk of a stream may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// The chunk may be told at this moment, or could have been before.
    At(Instant),
    /// The chunk waits until the reader wishes otherwise.
    Never,
}

impl Due {
    /// Whether the chunk may be told at this moment.
    pub(crate) fn has_come(self, now: Instant) -> bool {
        self <= Self::At(now)
    }
}

/// Waits until something is due; for ever where nothing is.
pub(crate) async fn wait(due: Option<Due>) {
    match due {
        Some(Due::At(moment)) => tokio::time::sleep_until(moment).await,
        Some(Due::Never) | None => std::future::pending().await,
    }
}

/// The streams whose reader wants them slower than they come.
#[derive(Default)]
pub(crate) struct Pacing {
    streams: HashMap<String, Pace>,
}

struct Pace {
    rate: Rate,
    /// When the last chunk was told, and how many bytes it had.
    last: Option<(Instant, usize)>,
}

impl Pacing {
    /// Tells a stream at this rate from now on; false where too many are slowed down already.
    pub(crate) fn set(&mut self, stream: &str, rate: Rate) -> bool {
        if rate.is_unbounded() {
            self.streams.remove(stream);
            return true;
        }
        if let Some(pace) = self.streams.get_mut(stream) {
            pace.rate = rate;
            return true;
        }
        if self.streams.len() >= MOST_STREAMS {
            return false;
        }
        self.streams.insert(stream.to_owned(), Pace { rate, last: None });
        true
    }

    /// When the next chunk of a stream may be told; none of a stream that nobody slows down.
    pub(crate) fn due(&self, stream: &str, now: Instant) -> Option<Due> {
        let Pace { rate, last } = self.streams.get(stream)?;
        let due = match last {
            // Before the first there is no pause, but nothing is told of a stream that is stopped.
            None => rate.pause(0).map(|_| now),
            Some((told, size)) => rate.pause(*size).and_then(|pause| told.checked_add(pause)),
        };
        Some(due.map_or(Due::Never, Due::At))
    }

    /// Notes that a chunk of so many bytes was told.
    pub(crate) fn note_told(&mut self, stream: &str, size: usize, now: Instant) {
        if let Some(pace) = self.streams.get_mut(stream) {
            pace.last = Some((now, size));
        }
    }

    /// Forgets the streams that this does not want to know of.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.streams.retain(|stream, _| is_wanted(stream));
    }

    /// Slows down nothing any more.
    pub(crate) fn clear(&mut self) {
        self.streams.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn rate(chunks: Option<u64>, bytes: Option<u64>) -> Rate {
        Rate { chunks, bytes }
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_was_wished_and_all_are_told(
            chunks in proptest::option::of(1_u64..50),
            bytes in proptest::option::of(1_u64..100_000),
            sizes in proptest::collection::vec(0_usize..10_000, 1..60),
        ) {
            prop_assume!(chunks.is_some() || bytes.is_some());
            let mut pacing = Pacing::default();
            pacing.set("s", rate(chunks, bytes));
            let start = Instant::now();
            let (mut now, mut told) = (start, Vec::new());
            for size in sizes {
                let Some(Due::At(due)) = pacing.due("s", now) else { panic!("it never comes") };
                now = now.max(due);
                prop_assert!(pacing.due("s", now).unwrap().has_come(now));
                pacing.note_told("s", size, now);
                told.push((now, size));
            }
            for (at, _) in &told {
                let within = |(other, _): &&(Instant, usize)| {
                    *at <= *other && *other < *at + Duration::from_secs(1)
                };
                let second: Vec<_> = told.iter().filter(within).collect();
                if let Some(chunks) = chunks {
                    // A pause is rounded down to nanoseconds.
                    prop_assert!(second.len() as u64 <= chunks + 1);
                }
                if let Some(bytes) = bytes {
                    // The last one may be as large as it is.
                    let all_but_last: usize = second.iter().rev().skip(1).map(|(_, size)| size).sum();
                    prop_assert!(all_but_last as u64 <= bytes + 1);
                }
            }
        }
    }

    #[test]
    fn a_stream_that_is_stopped_goes_on_once_its_reader_wants_it_and_others_are_not_slowed() {
        let (mut pacing, now) = (Pacing::default(), Instant::now());
        pacing.set("s", rate(Some(0), None));
        assert_eq!(pacing.due("s", now), Some(Due::Never));
        assert_eq!(pacing.due("other", now), None);
        pacing.set("s", rate(Some(2), None));
        assert!(pacing.due("s", now).unwrap().has_come(now));
        pacing.note_told("s", 10, now);
        assert_eq!(pacing.due("s", now), Some(Due::At(now + Duration::from_millis(500))));
        pacing.set("s", rate(Some(1000), Some(100)));
        assert_eq!(pacing.due("s", now), Some(Due::At(now + Duration::from_millis(100))));
        pacing.set("s", rate(None, None));
        assert_eq!(pacing.due("s", now), None);
        for number in 0..MOST_STREAMS {
            assert!(pacing.set(&number.to_string(), rate(Some(1), None)));
        }
        assert!(!pacing.set("one more", rate(Some(1), None)));
        assert!(pacing.set("0", rate(Some(2), None)));
        pacing.retain(|stream| stream != "0");
        assert!(pacing.set("one more", rate(Some(1), None)));
        pacing.clear();
        assert_eq!(pacing.due("1", now), None);
    }
}
