//! What a store promises of schedules.

use mainstay_log::{AddedSchedule, DueSchedules, StoredSchedule};
use mainstay_model::command::Eval;
use mainstay_model::schedule::{LastRun, MissedRuns, Schedule, ScheduleState, When};
use mainstay_model::{Principal, Rights, SessionCommand, SessionId, Timestamp};
use uuid::Uuid;

use super::Store;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A schedule of this principal that was made at 0 and runs once.
fn schedule(id: &str, principal: &str, second: i64) -> Schedule {
    let code = "1".to_owned();
    Schedule {
        id: id.to_owned(),
        principal: Principal::new(principal).unwrap(),
        rights: Rights::Some { see: Vec::new(), drive: vec!["a*".parse().unwrap()] },
        created_at: at(0),
        when: When::At(at(second)),
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        command: SessionCommand::Eval(Eval {
            code,
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }),
        key_prefix: Some("é/".to_owned()),
        grants: Some(Box::default()),
        missed: MissedRuns::RunAll(3),
        state: ScheduleState {
            planned_to: at(0),
            passed: 0,
            left_out: 0,
            under_way: Vec::new(),
            next: None,
            last: None,
        },
    }
    .begin(0)
    .unwrap()
}

pub async fn a_schedule_is_there_again_and_changes_only_on_its_newest_revision(store: &dyn Store) {
    let log = store.open().await;
    let one = schedule("one", "ada", 100);
    assert_eq!(log.add_schedule(one.clone(), 9).await, Ok(AddedSchedule::New));
    drop(log);
    let log = store.open().await;
    let stored = StoredSchedule { schedule: one.clone(), revision: 0 };
    assert_eq!(log.schedule("one").await, Ok(Some(stored.clone())));
    let again = log.add_schedule(schedule("one", "bea", 7), 9).await;
    assert_eq!(again, Ok(AddedSchedule::Known(Box::new(stored))));
    let taken = one.clone().take_due(at(100));
    assert_eq!(log.change_schedule(0, taken.clone()).await, Ok(true));
    // Whoever looked before it was changed takes nothing.
    assert_eq!(log.change_schedule(0, one).await, Ok(false));
    let stored = log.schedule("one").await.unwrap().unwrap();
    assert_eq!(stored, StoredSchedule { schedule: taken, revision: 1 });
    assert_eq!(log.remove_schedule("one").await, Ok(true));
    assert_eq!(log.remove_schedule("one").await, Ok(false));
    assert_eq!(log.change_schedule(1, stored.schedule).await, Ok(false));
}

pub async fn a_principal_has_so_many_schedules_at_most_that_have_not_ended(store: &dyn Store) {
    let log = store.open().await;
    assert_eq!(log.add_schedule(schedule("one", "ada", 100), 1).await, Ok(AddedSchedule::New));
    assert_eq!(log.add_schedule(schedule("two", "ada", 100), 1).await, Ok(AddedSchedule::TooMany));
    assert_eq!(log.add_schedule(schedule("hers", "bea", 100), 1).await, Ok(AddedSchedule::New));
    let taken = schedule("one", "ada", 100).take_due(at(200));
    let command = taken.command_of(at(100)).unwrap();
    let ended = taken.ended(LastRun { at: at(100), command, error: None, ending: None });
    assert_eq!(log.change_schedule(0, ended.clone()).await, Ok(true));
    assert_eq!(log.add_schedule(schedule("two", "ada", 100), 1).await, Ok(AddedSchedule::New));
    let ada = Principal::new("ada").unwrap();
    let ids =
        |found: Vec<StoredSchedule>| found.into_iter().map(|found| found.schedule.id).collect::<Vec<_>>();
    assert_eq!(ids(log.schedules(&ada).await.unwrap()), ["one", "two"]);
    assert_eq!(log.remove_ended_schedules(at(200)).await, Ok(0));
    assert_eq!(log.remove_ended_schedules(at(201)).await, Ok(1));
    assert_eq!(ids(log.schedules(&ada).await.unwrap()), ["two"]);
}

pub async fn schedules_come_by_the_moment_at_which_they_are_due(store: &dyn Store) {
    let log = store.open().await;
    for (id, second) in [("late", 300), ("early", 100), ("taken", 50)] {
        log.add_schedule(schedule(id, "ada", second), 9).await.unwrap();
    }
    // What is being submitted waits for no moment.
    log.change_schedule(0, schedule("taken", "ada", 50).take_due(at(60))).await.unwrap();
    let found = log.next_schedules(9).await.unwrap();
    let ids: Vec<_> = found.iter().map(|found| found.schedule.id.as_str()).collect();
    assert_eq!(ids, ["taken", "early", "late"]);
    assert_eq!(log.next_schedules(1).await.unwrap().len(), 1);
}

pub async fn only_schedules_that_are_due_are_read_with_the_moment_of_the_next(store: &dyn Store) {
    let log = store.open().await;
    assert_eq!(log.due_schedules(at(0)).await, Ok(DueSchedules::default()));
    for (id, second) in [("late", 300), ("early", 100), ("taken", 50), ("ended", 40)] {
        log.add_schedule(schedule(id, "ada", second), 9).await.unwrap();
    }
    log.change_schedule(0, schedule("taken", "ada", 50).take_due(at(60))).await.unwrap();
    let ended = schedule("ended", "ada", 40).take_due(at(60));
    let command = ended.command_of(at(40)).unwrap();
    let last = LastRun { at: at(40), command, error: None, ending: None };
    log.change_schedule(0, ended.ended(last)).await.unwrap();
    for (now, due, next) in [
        (0, vec![], Some(50)),
        (99, vec!["taken"], Some(100)),
        (100, vec!["taken", "early"], Some(300)),
        (300, vec!["taken", "early", "late"], None),
    ] {
        let found = log.due_schedules(at(now)).await.unwrap();
        let ids: Vec<_> = found.schedules.iter().map(|found| found.schedule.id.as_str()).collect();
        assert_eq!((ids, found.next), (due, next.map(at)), "at {now}");
    }
}
