//! When daemons are killed, as a seed has it.

use std::time::Duration;

/// A stream of choices (SplitMix64): the same seed gives the same ones.
pub(super) struct Random(u64);

impl Random {
    /// The choices of a seed.
    pub(super) const fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Picks one of them at random.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    /// Some time less than `end`.
    fn time(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(end.as_micros()).unwrap()))
    }
}

/// What is done to the daemons while a story goes on.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The kills, each so long after what was before: the beginning of the story, or the start of the daemons after the last kill.
    pub(super) kills: Vec<Kill>,
}

/// A kill, and what is started after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    /// So long after what was before.
    pub(super) after: Duration,
    /// How many daemons are started at once then.
    pub(super) daemons: usize,
    /// The commit at which the next daemon kills itself, and is followed by another; none where it lives on.
    pub(super) ends_at: Option<(&'static str, u64)>,
}

/// Where a daemon kills itself that is compiled with failpoints, before and behind what a commit makes durable.
const FAILPOINTS: [&str; 4] = ["before-commit", "after-commit", "during-batch", "during-projection"];
/// How many commits a daemon may live.
const COMMITS: u64 = 8;

/// The first daemon after a kill adopts within this time: some kills come into the middle of that.
const ADOPTS: Duration = Duration::from_millis(500);

impl Plan {
    /// One kill at any time of a story that takes so long, and now and then others that hit the daemons that adopt; or one soon, after
    /// which the next daemon ends with one of its commits.
    pub(super) fn of(random: &mut Random, length: Duration) -> Self {
        if random.below(2) == 0 {
            let ends_at = Some((random.pick(&FAILPOINTS), 1 + random.below(COMMITS)));
            return Self { kills: vec![Kill { after: random.time(length / 4), daemons: 1, ends_at }] };
        }
        let mut kills = vec![Kill { after: random.time(length), daemons: 1, ends_at: None }];
        while kills.len() < 4 && random.below(3) == 0 {
            kills.push(Kill { after: random.time(ADOPTS), daemons: 1, ends_at: None });
        }
        for kill in &mut kills {
            kill.daemons += usize::from(random.below(4) == 0);
        }
        Self { kills }
    }

    /// A plan in which nothing is killed.
    pub(super) const fn quiet() -> Self {
        Self { kills: Vec::new() }
    }
}
