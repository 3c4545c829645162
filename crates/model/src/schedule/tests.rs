//! What schedules promise, over any cut of time.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{LastRun, MOST_MADE_UP, MissedRuns, Recurrence, Schedule, ScheduleState, When};
use crate::Timestamp;
use crate::access::Rights;
use crate::command::{Eval, SessionCommand};
use crate::error::Error;
use crate::id::{Principal, SessionId};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(created_at: Timestamp, when: When, missed: MissedRuns) -> Result<Schedule, Error> {
    let code = "1".to_owned();
    Schedule {
        id: "nightly".to_owned(),
        principal: Principal::local(),
        rights: Rights::All,
        created_at,
        when,
        session: SessionId::from_uuid(uuid::Uuid::nil()),
        command: SessionCommand::Eval(Eval {
            code,
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }),
        key_prefix: None,
        grants: None,
        missed,
        state: ScheduleState {
            planned_to: created_at,
            passed: 0,
            left_out: 0,
            under_way: Vec::new(),
            next: None,
            last: None,
        },
    }
    .begin(1_000)
}

fn every(created_at: Timestamp, rule: &str, missed: MissedRuns) -> Result<Schedule, Error> {
    schedule(created_at, When::Every(rule.parse().unwrap()), missed)
}

/// The first moments of a rule.
fn first(created_at: &str, rule: &str, count: usize) -> Vec<String> {
    let created = moment(created_at);
    let rule: Recurrence = rule.parse().unwrap();
    let mut last = created;
    let mut all = Vec::new();
    while let Some(next) = rule.next_after(created, last, all.len() as u64).filter(|_| all.len() < count) {
        all.push(next.to_string());
        last = next;
    }
    all
}

#[test]
fn a_rule_names_the_moments_that_rfc_5545_gives_it() {
    // 2026-05-08 is a Friday.
    let first = |rule, count| first("2026-05-08T10:30:15Z", rule, count);
    assert_eq!(first("FREQ=DAILY", 2), ["2026-05-09T10:30:15Z", "2026-05-10T10:30:15Z"]);
    assert_eq!(
        first("RRULE:FREQ=DAILY;BYHOUR=6,18;BYMINUTE=0", 3),
        ["2026-05-08T18:00:15Z", "2026-05-09T06:00:15Z", "2026-05-09T18:00:15Z"]
    );
    assert_eq!(
        first("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", 3),
        ["2026-05-18T10:30:15Z", "2026-05-22T10:30:15Z", "2026-06-01T10:30:15Z"]
    );
    assert_eq!(first("FREQ=HOURLY;INTERVAL=6;BYDAY=SA", 2), ["2026-05-09T04:30:15Z", "2026-05-09T10:30:15Z"]);
    assert_eq!(first("freq=minutely;interval=90;count=1", 5), ["2026-05-08T12:00:15Z"]);
    assert_eq!(
        first("FREQ=SECONDLY;INTERVAL=10;UNTIL=20260508T103035Z", 5),
        ["2026-05-08T10:30:25Z", "2026-05-08T10:30:35Z"]
    );
    assert_eq!(first("FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1", 1), Vec::<String>::new());
}

#[test]
fn what_is_no_rule_or_none_that_is_known_is_named() {
    let wrong = |text: &str| text.parse::<Recurrence>().unwrap_err().to_string();
    assert!(wrong("now and then").starts_with("`now and then` is no part of an RRULE"));
    assert!(wrong("INTERVAL=2").starts_with("it has no FREQ"));
    assert!(wrong("FREQ=MONTHLY").starts_with("FREQ=MONTHLY is not known here"));
    assert!(wrong("FREQ=DAILY;BYSETPOS=1").starts_with("BYSETPOS is not known here"));
    assert!(wrong("FREQ=DAILY;INTERVAL=0").starts_with("INTERVAL=0 is wrong"));
    assert!(wrong("FREQ=DAILY;BYDAY=1MO").starts_with("BYDAY=1MO is wrong"));
    assert!(wrong("FREQ=DAILY;UNTIL=tomorrow").starts_with("UNTIL=tomorrow is wrong"));
    assert_eq!(wrong("FREQ=DAILY;COUNT=2;UNTIL=20260508T103035Z"), "COUNT and UNTIL exclude each other");
    assert_eq!(wrong("FREQ=DAILY;FREQ=DAILY"), "`FREQ` comes twice");
}

#[test]
fn what_would_run_too_often_or_never_is_refused() {
    let refused = |rule| every(at(0), rule, MissedRuns::Skip).unwrap_err().to_string();
    let often = every(at(0), "FREQ=SECONDLY;INTERVAL=2", MissedRuns::Skip).unwrap();
    assert!(often.clone().begin(2_000).is_ok());
    assert!(often.begin(2_001).unwrap_err().to_string().contains("`schedule-interval-ms` is 2001"));
    assert!(refused("FREQ=DAILY;UNTIL=19700101T000000Z").contains("names no moment to come"));
    let asks =
        Schedule { command: SessionCommand::Stop, ..every(at(0), "FREQ=DAILY", MissedRuns::Skip).unwrap() };
    assert!(asks.begin(0).unwrap_err().to_string().contains("only code and prompts"));
}

#[test]
fn a_run_that_is_only_a_little_late_is_not_missed() {
    let one = schedule(at(0), When::At(at(100)), MissedRuns::Skip).unwrap();
    assert_eq!(one.due(at(99)).runs, []);
    assert_eq!(one.due(at(105)).runs, [at(100)]);
    assert_eq!(one.due(at(500)).runs, []);
    let taken = one.take_due(at(500));
    assert!(taken.has_ended());
    assert_eq!((taken.state.passed, taken.state.left_out), (1, 1));
}

#[test]
fn a_run_has_the_same_command_however_often_it_is_submitted() {
    let schedule = schedule(at(0), When::At(at(100)), MissedRuns::RunOnce).unwrap();
    let schedule = Schedule { key_prefix: Some("mine/".to_owned()), ..schedule };
    let command = schedule.command_of(at(100)).unwrap();
    assert_eq!(command.as_str(), "nightly.100");
    assert_eq!(schedule.key_of(&command).unwrap().unwrap().as_str(), "mine/nightly.100");
    let taken = schedule.take_due(at(100));
    assert_eq!(taken.wakes_at(), Some(at(100)));
    let done = taken.ended(LastRun { at: at(100), command, error: None, ending: None });
    assert!(done.has_ended());
    assert_eq!(done.wakes_at(), None);
}

fn any_rule() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..50_u32).prop_map(|interval| format!("FREQ=SECONDLY;INTERVAL={interval}")),
        (1..5_u32, 1..40_u32)
            .prop_map(|(interval, count)| format!("FREQ=MINUTELY;INTERVAL={interval};COUNT={count}")),
        Just("FREQ=HOURLY;BYMINUTE=0,7,31".to_owned()),
    ]
}

/// Looks at a schedule at each of these moments; gives the runs, and the schedule after it.
fn looked_at(mut schedule: Schedule, looks: &[i64]) -> (Vec<Timestamp>, Schedule) {
    let mut runs = Vec::new();
    for look in looks {
        schedule = schedule.take_due(at(*look));
        for run in std::mem::take(&mut schedule.state.under_way) {
            runs.push(run);
        }
    }
    (runs, schedule)
}

proptest! {
    #[test]
    fn whatever_the_cuts_of_time_no_run_comes_twice_and_none_is_missed_under_run_all(
        rule in any_rule(),
        start in 0..100_000_i64,
        cuts in proptest::collection::btree_set(0..20_000_i64, 1..20),
    ) {
        let looks: Vec<i64> = cuts.iter().map(|cut| start + cut).collect();
        let end = *looks.last().unwrap();
        let all = every(at(start), &rule, MissedRuns::RunOnce).unwrap();
        // More than can be asked for.
        let all = Schedule { missed: MissedRuns::RunAll(u32::MAX), ..all };
        let (runs, after) = looked_at(all.clone(), &looks);
        let (at_once, _) = looked_at(all, &[end]);
        prop_assert_eq!(&runs, &at_once);
        let distinct: BTreeSet<_> = runs.iter().collect();
        prop_assert_eq!(distinct.len(), runs.len());
        prop_assert!(after.state.next.is_none_or(|next| next > at(end)));
        prop_assert_eq!(after.state.passed, runs.len() as u64);
        prop_assert_eq!(after.state.left_out, 0);
    }

    #[test]
    fn a_policy_never_runs_what_is_not_due_and_counts_what_it_leaves_out(
        rule in any_rule(),
        start in 0..100_000_i64,
        cuts in proptest::collection::btree_set(0..20_000_i64, 1..20),
        limit in 1..5_u32,
    ) {
        let looks: Vec<i64> = cuts.iter().map(|cut| start + cut).collect();
        let all = every(at(start), &rule, MissedRuns::RunOnce).unwrap();
        // More than can be asked for.
        let all = Schedule { missed: MissedRuns::RunAll(u32::MAX), ..all };
        let (every_run, _) = looked_at(all, &looks);
        for missed in [MissedRuns::Skip, MissedRuns::RunOnce, MissedRuns::RunAll(limit)] {
            let mut schedule = every(at(start), &rule, missed).unwrap();
            let mut ran = 0;
            for look in &looks {
                let due = schedule.due(at(*look));
                prop_assert!(due.runs.iter().all(|run| every_run.contains(run) && *run <= at(*look)));
                prop_assert!(due.next.is_none_or(|next| next > at(*look)));
                match missed {
                    MissedRuns::Skip => prop_assert!(due.runs.len() <= 1),
                    MissedRuns::RunOnce => prop_assert_eq!(due.runs.len() as u64, due.passed.min(1)),
                    MissedRuns::RunAll(limit) => {
                        prop_assert_eq!(due.runs.len() as u64, due.passed.min(u64::from(limit)));
                    }
                }
                ran += due.runs.len() as u64;
                schedule = schedule.take_due(at(*look));
            }
            prop_assert_eq!(ran + schedule.state.left_out, schedule.state.passed);
            prop_assert_eq!(schedule.state.passed, every_run.len() as u64);
        }
    }

    #[test]
    fn whatever_text_comes_a_rule_is_read_or_refused_and_a_read_one_is_written_as_it_was(
        text in "(FREQ|INTERVAL|COUNT|BYDAY|BYHOUR|UNTIL|;|=|,|DAILY|WEEKLY|MO|[0-9]|.){0,12}",
    ) {
        if let Ok(rule) = text.parse::<Recurrence>() {
            prop_assert_eq!(rule.to_string(), text);
            rule.next_after(at(0), at(0), 0);
        }
    }
}

#[test]
fn a_schedule_whose_runs_could_be_no_commands_is_refused() {
    for id in ["my report", "anon:1", "tab\t"] {
        let schedule =
            Schedule { id: id.to_owned(), ..every(at(0), "FREQ=DAILY", MissedRuns::RunOnce).unwrap() };
        assert!(schedule.begin(0).is_err(), "{id}");
    }
    let most = MissedRuns::RunAll(MOST_MADE_UP);
    assert!(every(at(0), "FREQ=DAILY", most).is_ok());
    assert!(every(at(0), "FREQ=DAILY", MissedRuns::RunAll(MOST_MADE_UP + 1)).is_err());
    // A rule that names no moment is found out soon.
    assert!(every(at(0), "FREQ=DAILY;INTERVAL=7;BYDAY=FR", most).is_err());
}
