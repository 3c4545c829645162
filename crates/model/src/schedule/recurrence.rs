//! Recurrence rules: the part of RFC 5545, 3.3.10, that schedules know. Everything is in UTC, so all periods have the same length.
//!
//! A rule begins when its schedule is made: the parts of the time that the rule does not name are those of that moment, as RFC 5545 takes them
//! from DTSTART. Weeks begin on Monday.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// The Monday before 1970, in seconds from then.
const MONDAY: i64 = -3 * DAY;
const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
/// After so many periods, each with the moments of a week at most, what a rule names repeats itself.
const PERIODS: i64 = WEEK;
/// How many periods and moments are looked at for the next one, together: a rule that names none for so long is taken to name none.
const LOOKED_AT: usize = 1_000_000;
/// So many moments are looked at for the least gap between two: all of two days that have one in each minute.
const GAPS: usize = 2 * 24 * 60;
/// The largest number that an interval or a count may be.
const LARGEST: u32 = 1_000_000;

/// A rule by which a schedule recurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Recurrence {
    text: String,
    frequency: Frequency,
    interval: i64,
    count: Option<u64>,
    until: Option<Timestamp>,
    /// Days of the week, 0 for Monday; hours; minutes; each in order, and empty where the rule does not say.
    days: Vec<i64>,
    hours: Vec<i64>,
    minutes: Vec<i64>,
}

impl schemars::JsonSchema for Recurrence {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Recurrence".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let description = "A rule of RFC 5545, such as `FREQ=DAILY;BYHOUR=6;BYMINUTE=0`, in UTC.";
        schemars::json_schema!({ "type": "string", "description": description })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Frequency {
    Secondly,
    Minutely,
    Hourly,
    Daily,
    Weekly,
}

impl Frequency {
    const fn seconds(self) -> i64 {
        match self {
            Self::Secondly => 1,
            Self::Minutely => MINUTE,
            Self::Hourly => HOUR,
            Self::Daily => DAY,
            Self::Weekly => WEEK,
        }
    }
}

/// Why a text is no recurrence rule, or none that is known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecurrenceError {
    /// A part of it has no equals sign.
    #[error("`{0}` is no part of an RRULE; write it as `FREQ=DAILY;INTERVAL=2`")]
    Part(String),
    /// A part comes twice.
    #[error("`{0}` comes twice")]
    Twice(String),
    /// The frequency is missing.
    #[error("it has no FREQ; it is SECONDLY, MINUTELY, HOURLY, DAILY or WEEKLY")]
    NoFrequency,
    /// The frequency is not known.
    #[error("FREQ={0} is not known here; it is SECONDLY, MINUTELY, HOURLY, DAILY or WEEKLY")]
    Frequency(String),
    /// The part is not known.
    #[error("{0} is not known here; there are FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYHOUR and BYMINUTE")]
    Unknown(String),
    /// The value of a part is wrong.
    #[error("{part}={value} is wrong: it must be {wanted}")]
    Value {
        /// The name of the part.
        part: &'static str,
        /// The value that it has.
        value: String,
        /// What it may be.
        wanted: &'static str,
    },
    /// It has both a count and an end.
    #[error("COUNT and UNTIL exclude each other")]
    CountAndUntil,
}

impl FromStr for Recurrence {
    type Err = RecurrenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut frequency = None;
        let mut rule = Self {
            text: text.to_owned(),
            frequency: Frequency::Daily,
            interval: 1,
            count: None,
            until: None,
            days: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
        };
        let mut seen: Vec<String> = Vec::new();
        for part in text.strip_prefix("RRULE:").unwrap_or(text).split(';') {
            let (name, value) = part.split_once('=').ok_or_else(|| RecurrenceError::Part(part.to_owned()))?;
            let name = name.to_ascii_uppercase();
            if seen.contains(&name) {
                return Err(RecurrenceError::Twice(name));
            }
            match name.as_str() {
                "FREQ" => frequency = Some(frequency_of(value)?),
                "INTERVAL" => rule.interval = i64::from(number("INTERVAL", value)?),
                "COUNT" => rule.count = Some(u64::from(number("COUNT", value)?)),
                "UNTIL" => rule.until = Some(until(value)?),
                "BYDAY" => rule.days = list("BYDAY", value, "days such as MO,WE", day)?,
                "BYHOUR" => rule.hours = list("BYHOUR", value, "hours from 0 to 23", below::<24>)?,
                "BYMINUTE" => rule.minutes = list("BYMINUTE", value, "minutes from 0 to 59", below::<60>)?,
                _ => return Err(RecurrenceError::Unknown(name)),
            }
            seen.push(name);
        }
        if rule.count.is_some() && rule.until.is_some() {
            return Err(RecurrenceError::CountAndUntil);
        }
        rule.frequency = frequency.ok_or(RecurrenceError::NoFrequency)?;
        Ok(rule)
    }
}

fn frequency_of(value: &str) -> Result<Frequency, RecurrenceError> {
    match value.to_ascii_uppercase().as_str() {
        "SECONDLY" => Ok(Frequency::Secondly),
        "MINUTELY" => Ok(Frequency::Minutely),
        "HOURLY" => Ok(Frequency::Hourly),
        "DAILY" => Ok(Frequency::Daily),
        "WEEKLY" => Ok(Frequency::Weekly),
        _ => Err(RecurrenceError::Frequency(value.to_owned())),
    }
}

fn number(part: &'static str, value: &str) -> Result<u32, RecurrenceError> {
    let wrong =
        || RecurrenceError::Value { part, value: value.to_owned(), wanted: "a number from 1 to 1000000" };
    value.parse().ok().filter(|number| (1..=LARGEST).contains(number)).ok_or_else(wrong)
}

fn until(value: &str) -> Result<Timestamp, RecurrenceError> {
    let wrong = || RecurrenceError::Value {
        part: "UNTIL",
        value: value.to_owned(),
        wanted: "a moment in UTC such as 20260509T130000Z",
    };
    let local = value.strip_suffix(['Z', 'z']).ok_or_else(wrong)?;
    let moment = DateTime::strptime("%Y%m%dT%H%M%S", local).map_err(|_| wrong())?;
    TimeZone::UTC.to_timestamp(moment).map_err(|_| wrong())
}

fn list(
    part: &'static str,
    value: &str,
    wanted: &'static str,
    read: impl Fn(&str) -> Option<i64>,
) -> Result<Vec<i64>, RecurrenceError> {
    let wrong = || RecurrenceError::Value { part, value: value.to_owned(), wanted };
    let mut list: Vec<i64> = value.split(',').map(read).collect::<Option<_>>().ok_or_else(wrong)?;
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

fn day(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    DAYS.iter().position(|name| *name == text).and_then(|index| i64::try_from(index).ok())
}

fn below<const LIMIT: i64>(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| (0..LIMIT).contains(number))
}

impl Recurrence {
    /// The first moment after one, of a rule that began at `start`; `passed` have been before.
    pub(super) fn next_after(&self, start: Timestamp, moment: Timestamp, passed: u64) -> Option<Timestamp> {
        self.search(start, moment, passed, &mut { LOOKED_AT })
    }

    /// The same, while so many periods and moments may still be looked at.
    fn search(
        &self,
        start: Timestamp,
        moment: Timestamp,
        passed: u64,
        left: &mut usize,
    ) -> Option<Timestamp> {
        if self.count.is_some_and(|count| passed >= count) {
            return None;
        }
        let start = start.as_second();
        let after = start.max(moment.as_second());
        let step = self.interval * self.frequency.seconds();
        let base = self.period_of(start);
        let first = (after - base).div_euclid(step).max(0);
        let mut found = None;
        for period in first..=first + PERIODS {
            let moments = self.moments(base + period * step, start);
            *left = left.saturating_sub(1 + moments.len());
            found = moments.into_iter().find(|found| *found > after);
            if found.is_some() || *left == 0 {
                break;
            }
        }
        let found = found?;
        let found = Timestamp::from_second(found).ok()?;
        self.until.is_none_or(|until| found <= until).then_some(found)
    }

    /// The least time between two moments, of those that come first; none where there are no two.
    pub(super) fn least_gap_ms(&self, start: Timestamp) -> Option<u64> {
        let (mut passed, mut left) = (0, LOOKED_AT);
        let mut last = self.search(start, start, passed, &mut left)?;
        let mut least = None;
        while passed < GAPS as u64 {
            passed += 1;
            let Some(next) = self.search(start, last, passed, &mut left) else { break };
            let gap = u64::try_from(next.duration_since(last).as_millis()).unwrap_or_default();
            least = Some(least.map_or(gap, |least: u64| least.min(gap)));
            last = next;
        }
        least
    }

    /// The beginning of the period in which a second is.
    fn period_of(&self, second: i64) -> i64 {
        let origin = if self.frequency == Frequency::Weekly { MONDAY } else { 0 };
        let length = self.frequency.seconds();
        (second - origin).div_euclid(length) * length + origin
    }

    /// The moments in a period, in order; what the rule does not say is as at `start`.
    fn moments(&self, period: i64, start: i64) -> Vec<i64> {
        let or_own = |list: &[i64], own: i64, least: Frequency| match (self.frequency >= least, list) {
            (false, _) => vec![0],
            (true, []) => vec![own],
            (true, list) => list.to_vec(),
        };
        let second = if self.frequency == Frequency::Secondly { 0 } else { start.rem_euclid(MINUTE) };
        let days = or_own(&self.days, weekday(start), Frequency::Weekly);
        let hours = or_own(&self.hours, hour(start), Frequency::Daily);
        let minutes = or_own(&self.minutes, minute(start), Frequency::Hourly);
        let mut moments = Vec::with_capacity(days.len() * hours.len() * minutes.len());
        for day in &days {
            for hour in &hours {
                for minute in &minutes {
                    moments.push(period + day * DAY + hour * HOUR + minute * MINUTE + second);
                }
            }
        }
        moments.retain(|moment| self.admits(*moment));
        moments
    }

    fn admits(&self, second: i64) -> bool {
        let is_among = |list: &[i64], own: i64| list.is_empty() || list.contains(&own);
        is_among(&self.days, weekday(second))
            && is_among(&self.hours, hour(second))
            && is_among(&self.minutes, minute(second))
    }
}

const fn weekday(second: i64) -> i64 {
    (second - MONDAY).div_euclid(DAY).rem_euclid(7)
}

const fn hour(second: i64) -> i64 {
    second.rem_euclid(DAY) / HOUR
}

const fn minute(second: i64) -> i64 {
    second.rem_euclid(HOUR) / MINUTE
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl TryFrom<String> for Recurrence {
    type Error = RecurrenceError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Recurrence> for String {
    fn from(rule: Recurrence) -> Self {
        rule.text
    }
}
