//! Every schedule, and whether it is found under its own name, moment and principal.

use mainstay_model::Timestamp;
use mainstay_model::schedule::Schedule;
use rusqlite::Connection;

use super::super::failure::reason_of;
use super::super::schedules::decode;
use super::Examiner;
use crate::StoredSchedule;
use crate::examination::Stage;
use crate::finding::Finding;

const SCHEDULES: &str = "SELECT schedule, revision, id, principal, wakes_at FROM schedule ORDER BY id";

impl Examiner<'_> {
    pub(super) fn schedules(&mut self, connection: &Connection) {
        self.progress(Stage::Schedules, 0);
        let examined = connection.prepare(SCHEDULES).and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::Schedules, self.report.schedules);
                let key = Key { id: row.get(2)?, principal: row.get(3)?, wakes_at: row.get(4)? };
                match decode(row) {
                    Ok(StoredSchedule { schedule, .. }) => self.schedule(key, schedule),
                    Err(error) => {
                        self.found(Finding::ScheduleWrong { schedule: key.id, reason: reason_of(error) });
                    }
                }
            }
            Ok(())
        });
        self.read("schedule", examined);
    }

    fn schedule(&mut self, key: Key, schedule: Schedule) {
        if let Some(reason) = key.difference(&schedule) {
            return self.found(Finding::ScheduleWrong { schedule: key.id, reason: reason.to_owned() });
        }
        self.report.schedules += 1;
        if !schedule.has_ended() {
            self.report.open_schedules.push((schedule.id, schedule.principal));
        }
    }
}

/// What a schedule is found by.
struct Key {
    id: String,
    principal: String,
    wakes_at: Option<i64>,
}

impl Key {
    /// What of it is not the schedule's own.
    fn difference(&self, schedule: &Schedule) -> Option<&'static str> {
        if self.id != schedule.id {
            return Some("it is stored under another name");
        }
        if self.principal != schedule.principal.as_str() {
            return Some("it is stored as that of another principal");
        }
        let wakes_at = schedule.wakes_at().map(Timestamp::as_microsecond);
        (self.wakes_at != wakes_at).then_some("it is stored under another moment than that of its next run")
    }
}
