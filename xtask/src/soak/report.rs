//! What a person sees: a line now and then while it goes on, a table at the end, and the same figures as JSON.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::conductor::Reckoning;
use super::processes::Usage;
use super::stage::Stage;
use super::verdict::{Course, Rest, courses};

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// How a soak went.
pub(super) struct Report<'a> {
    pub(super) stage: &'a Stage,
    pub(super) lasted: Duration,
    pub(super) was_interrupted: bool,
    pub(super) peak: Usage,
    pub(super) reckoning: &'a Reckoning,
    pub(super) faults: &'a [String],
}

/// One line of progress; on a terminal it takes the place of the one before.
pub(super) fn progress(stage: &Stage, elapsed: Duration, length: Duration, usage: Option<Usage>) {
    let done: u64 = stage.tally().values().sum();
    let state = match usage {
        Some(Usage { memory, threads, files, children }) => {
            format!("{}, {threads} threads, {files} files, {children} children", bytes(memory))
        }
        None => "no daemon".to_owned(),
    };
    let line = format!(
        "soak {} of {}: {done} things done, {state}, {} faults",
        clock(elapsed),
        clock(length),
        stage.faults().len()
    );
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        write!(stderr, "\r\x1b[K{line}").ok();
    } else {
        writeln!(stderr, "{line}").ok();
    }
}

impl Report<'_> {
    /// The table and the verdict.
    pub(super) fn print(&self) {
        let mut text = String::from("\n");
        for (what, count) in self.stage.tally() {
            text.push_str(&format!("  {count:>8}  {what}\n"));
        }
        let Reckoning { commands, never_arrived, recalls, events, .. } = self.reckoning;
        for (count, what) in [
            (*commands as u64, "commands kept in mind to the end"),
            (*never_arrived as u64, "of them never reached a daemon"),
            (*recalls, "values asked for again after whatever happened"),
            (*events, "events in the log"),
            (super::gate::held(&self.stage.story).seen(), "events seen by followers and readers"),
        ] {
            text.push_str(&format!("  {count:>8}  {what}\n"));
        }
        text.push_str("\n  at rest   daemon    memory  threads  files\n");
        for Rest { at, daemon, usage } in &self.reckoning.rests {
            let (at, memory) = (clock(Duration::from_secs(*at)), bytes(usage.memory));
            let Usage { threads, files, .. } = usage;
            text.push_str(&format!("  {at:>7} {daemon:>8} {memory:>9} {threads:>8} {files:>6}\n"));
        }
        let Usage { memory, threads, files, children } = self.peak;
        let memory = bytes(memory);
        text.push_str(&format!(
            "  at most          {memory:>9} {threads:>8} {files:>6}   {children} children\n\n"
        ));
        for course in courses(&self.reckoning.rests) {
            text.push_str(&format!("  {}\n", in_words(&course)));
        }
        if courses(&self.reckoning.rests).is_empty() {
            text.push_str(
                "  No daemon had rest points enough to tell whether its memory grows: soak longer.\n",
            );
        }
        for fault in self.faults {
            text.push_str(&format!("  fault: {fault}\n"));
        }
        text.push_str(&format!("\n{}\n", self.verdict()));
        print!("{text}");
    }

    fn verdict(&self) -> String {
        let early = if self.was_interrupted { ", ended early" } else { "" };
        let circumstances = format!("{} of load{early}, seed {}", clock(self.lasted), self.stage.seed);
        let has_colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let (colour, said) = match self.faults.len() {
            0 => (GREEN, "sound".to_owned()),
            1 => (RED, "1 fault".to_owned()),
            faults => (RED, format!("{faults} faults")),
        };
        let said = if has_colours { format!("{colour}{said}{PLAIN}") } else { said };
        format!("{said} ({circumstances})")
    }

    /// Writes the figures as JSON.
    pub(super) fn json(&self) -> Value {
        let usage = |usage: &Usage| {
            let Usage { memory, threads, files, children } = usage;
            json!({ "memoryBytes": memory, "threads": threads, "files": files, "children": children })
        };
        let rests: Vec<Value> = self
            .reckoning
            .rests
            .iter()
            .map(|rest| json!({ "atSeconds": rest.at, "daemon": rest.daemon, "usage": usage(&rest.usage) }))
            .collect();
        let memory: Vec<Value> = courses(&self.reckoning.rests)
            .iter()
            .map(|course| {
                let Course { daemon, rests, before, after } = course;
                json!({ "daemon": daemon, "rests": rests, "beforeBytes": before, "afterBytes": after,
                    "boundBytes": course.bound(), "isFlat": course.is_flat() })
            })
            .collect();
        json!({
            "seed": self.stage.seed,
            "seconds": self.lasted.as_secs(),
            "endedEarly": self.was_interrupted,
            "done": self.stage.tally(),
            "commands": self.reckoning.commands,
            "neverArrived": self.reckoning.never_arrived,
            "recalls": self.reckoning.recalls,
            "events": self.reckoning.events,
            "rests": rests,
            "memory": memory,
            "peak": usage(&self.peak),
            "faults": self.faults,
        })
    }
}

fn in_words(course: &Course) -> String {
    let Course { daemon, rests, before, after } = course;
    let (bound, before, after) = (bytes(course.bound()), bytes(*before), bytes(*after));
    let word = if course.is_flat() { "flat" } else { "grows" };
    format!(
        "memory of daemon {daemon} over {rests} rests: {word}, {before}, later {after}; {bound} are the bound"
    )
}

fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

fn bytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(clock(Duration::from_secs(605)), "10:05");
        assert_eq!(bytes(23_456_789), "23.4 MB");
    }
}
