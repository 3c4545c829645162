//! Times, counts and sizes for people.

use mainstay_model::Timestamp;

/// How long ago something was, for people: `just now`, `5 min ago`, `2 h ago`, `3 days ago`.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// So many of something: `1 entry`, `2 entries`.
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Bytes for people: `512 B`, `3.4 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    UNITS.iter().find(|(_, size)| count >= *size).map_or_else(
        || format!("{count} B"),
        |(unit, size)| format!("{:.1} {unit}", count as f64 / *size as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_for_people() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let before = |seconds: i64| ago(Timestamp::from_second(1_000_000 - seconds).unwrap(), now);
        assert_eq!(
            [before(5), before(65), before(7_200), before(200_000)],
            ["just now", "1 min ago", "2 h ago", "2 days ago"]
        );
        assert_eq!([bytes(12), bytes(3_400_000)], ["12 B", "3.4 MB"]);
    }
}
