//! What the figures of the rest points say: whether anything grew. At a rest point all load is paused, no client is connected and every
//! session is at rest, so what the daemon uses there does not depend on what it was doing.

use super::processes::Usage;

/// How much a daemon's own memory may grow: so many bytes, or so many hundredths, whichever is more.
const MEMORY_BYTES: u64 = 4 * 1024 * 1024;
const MEMORY_PERCENT: u64 = 10;
/// The fewest rest points of one daemon from which growth can be told.
const FEWEST: usize = 6;

/// The point at which a soak's load pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// When, in seconds since the load began.
    pub(super) at: u64,
    /// Whose figures: the daemon's process id.
    pub(super) daemon: u32,
    pub(super) usage: Usage,
}

/// How the memory of one daemon went: the medians of the two halves of its rest points, without the first quarter, in which it warms up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Course {
    pub(super) daemon: u32,
    pub(super) rests: usize,
    pub(super) before: u64,
    pub(super) after: u64,
}

impl Course {
    /// What `after` may be at most.
    pub(super) fn bound(&self) -> u64 {
        self.before + MEMORY_BYTES.max(self.before / 100 * MEMORY_PERCENT)
    }

    /// Whether it stayed within the bound.
    pub(super) fn is_flat(&self) -> bool {
        self.after <= self.bound()
    }
}

/// The course of every daemon that had rest points enough.
pub(super) fn courses(rests: &[Rest]) -> Vec<Course> {
    let lives = rests.chunk_by(|one, next| one.daemon == next.daemon);
    lives.filter(|life| life.len() >= FEWEST).filter_map(course).collect()
}

fn course(life: &[Rest]) -> Option<Course> {
    let warm = &life[life.len().div_ceil(4)..];
    let (early, late) = warm.split_at(warm.len() / 2);
    Some(Course {
        daemon: life.first()?.daemon,
        rests: life.len(),
        before: median(early)?,
        after: median(late)?,
    })
}

fn median(rests: &[Rest]) -> Option<u64> {
    let mut figures: Vec<u64> = rests.iter().map(|rest| rest.usage.memory).collect();
    figures.sort_unstable();
    figures.get(figures.len() / 2).copied()
}

/// Everything that grew and should not have.
pub(super) fn growth(rests: &[Rest]) -> Vec<String> {
    let swollen = courses(rests).into_iter().filter(|course| !course.is_flat()).map(|course| {
        let Course { daemon, before, after, .. } = course;
        format!(
            "the memory of daemon {daemon} grew from {before} to {after} bytes; {} are the bound",
            course.bound()
        )
    });
    let lives = rests.chunk_by(|one, next| one.daemon == next.daemon);
    swollen.chain(lives.flat_map(left_open)).collect()
}

/// Rest points after which a daemon has more open files or threads than at the first of its rest points, or has children. What it opens
/// when it is first needed, such as another reader of its store, may come between the first two.
fn left_open(life: &[Rest]) -> Vec<String> {
    let (warm, later) = life.split_at(life.len().min(2));
    let Some(most) = warm.iter().map(|rest| rest.usage).reduce(Usage::or_more) else { return Vec::new() };
    let mut found = Vec::new();
    for rest in later {
        let figures =
            [("open files", most.files, rest.usage.files), ("threads", most.threads, rest.usage.threads)];
        for (what, before, now) in figures.into_iter().filter(|(_, before, now)| now > before) {
            let Rest { at, daemon, .. } = rest;
            found.push(format!(
                "daemon {daemon} has {now} {what} at rest at {at} s, and had at most {before} at its first two"
            ));
        }
    }
    for Rest { at, daemon, usage } in life.iter().filter(|rest| rest.usage.children > 0) {
        found.push(format!("daemon {daemon} has {} children at rest at {at} s", usage.children));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1024 * 1024;

    fn life(memory: &[u64]) -> Vec<Rest> {
        let rest = |(at, memory): (u64, &u64)| Rest {
            at,
            daemon: 1,
            usage: Usage { memory: memory * MB, threads: 10, files: 30, children: 0 },
        };
        (0..).zip(memory).map(rest).collect()
    }

    #[test]
    fn a_daemon_that_warms_up_and_then_stays_is_flat() {
        assert!(growth(&life(&[10, 25, 30, 31, 30, 32, 31, 30])).is_empty());
        assert!(growth(&life(&[30, 30, 30, 90, 30, 30, 30, 30])).is_empty());
    }

    #[test]
    fn a_daemon_that_grows_is_found_out() {
        let found = growth(&life(&[20, 21, 22, 24, 26, 28, 30, 32, 34]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("memory of daemon 1 grew from"), "{found:?}");
    }

    #[test]
    fn each_daemon_is_judged_by_itself_and_only_from_rest_points_enough() {
        let mut rests = life(&[10, 11, 12, 12, 12, 12]);
        let later = life(&[60, 61, 62, 62, 62, 62]).into_iter().map(|rest| Rest { daemon: 2, ..rest });
        rests.extend(later);
        rests.extend(life(&[10, 90]).into_iter().map(|rest| Rest { daemon: 3, ..rest }));
        assert!(growth(&rests).is_empty());
        assert_eq!(courses(&rests).iter().map(|course| course.daemon).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn files_threads_and_children_that_stay_are_named() {
        let leave = |change: fn(&mut Usage)| {
            let mut rests = life(&[10, 10, 10]);
            change(&mut rests[2].usage);
            growth(&rests)
        };
        assert!(leave(|_| {}).is_empty());
        assert!(leave(|usage| usage.files = 29).is_empty());
        let leaks: [fn(&mut Usage); 3] =
            [|usage| usage.files = 31, |usage| usage.threads = 11, |usage| usage.children = 1];
        for leak in leaks {
            assert_eq!(leave(leak).len(), 1);
        }
    }
}
