//! What the events of a session must say once a story is over. Pure.

use serde_json::Value;

/// What is to have come of a command that runs a job.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The id of the command.
    pub(super) command: String,
    /// The event that ends its job.
    pub(super) end: &'static str,
    /// What the job is to print.
    pub(super) prints: Prints,
}

/// What a job prints.
#[derive(Clone, Debug)]
pub(super) enum Prints {
    Exactly(String),
    /// Numbers from one on, each on a line, for as long as it ran.
    FromOne,
}

/// Events that end a job. Each job has one.
const ENDS: [&str; 5] = ["evalCompleted", "evalFailed", "evalCancelled", "evalInterrupted", "jobEnded"];
/// Events that no loss of a daemon brings about.
const NEVER: [&str; 4] = ["evalInterrupted", "workerExited", "sessionFaulted", "outputCut"];
/// Events of a worker that is brought up.
const WARM_UP: [&str; 2] = ["warmUpStarted", "warmUpCompleted"];

impl Expected {
    /// One whose code runs to its end.
    pub(super) fn completed(command: String, prints: impl Into<String>) -> Self {
        Self { command, end: "evalCompleted", prints: Prints::Exactly(prints.into()) }
    }

    /// One that is cancelled while it counts.
    pub(super) const fn cancelled(command: String) -> Self {
        Self { command, end: "evalCancelled", prints: Prints::FromOne }
    }
}

/// Says what is wrong with the events that follow upon `after`. A session `is_rebuilt` where the story has its worker ended.
pub(super) fn check(
    events: &[Value],
    after: u64,
    expected: &[Expected],
    is_rebuilt: bool,
) -> Result<(), String> {
    for (event, seq) in events.iter().zip(after + 1..) {
        if event["seq"] != seq {
            return Err(format!("the event #{} stands where #{seq} should", event["seq"]));
        }
        let kind = event["kind"].as_str().unwrap_or_default();
        // A kernel that ends where it is interrupted is not lost.
        let has_ended_itself = kind == "workerExited" && event["body"]["attempt"] == 0;
        let is_of_rebuild = WARM_UP.contains(&kind) || has_ended_itself;
        let is_out_of_place = if is_of_rebuild { !is_rebuilt } else { NEVER.contains(&kind) };
        if is_out_of_place {
            return Err(format!("there is an event {kind}, #{seq}"));
        }
    }
    let jobs = expected.iter().map(|expected| check_job(events, expected)).collect::<Result<Vec<_>, _>>()?;
    let stray = events.iter().find(|event| is_output(event) && !jobs.contains(&&event["body"]["job"]));
    stray.map_or(Ok(()), |event| Err(format!("this is of no job of the story: {event}")))
}

/// Checks what came of a command; gives its job.
fn check_job<'a>(events: &'a [Value], expected: &Expected) -> Result<&'a Value, String> {
    let Expected { command, end, prints } = expected;
    let requests: Vec<&Value> = events
        .iter()
        .filter(|event| event["kind"] == "evalRequested" || event["kind"] == "jobRequested")
        .filter(|event| event["body"]["command"] == **command)
        .collect();
    let [request] = requests[..] else {
        return Err(format!("`{command}` was begun {} times", requests.len()));
    };
    let job = &request["body"]["job"];
    let of_job = || events.iter().filter(|event| event["body"]["job"] == *job);
    let ends: Vec<&Value> = of_job().filter(|event| ENDS.iter().any(|kind| event["kind"] == *kind)).collect();
    let [ended] = ends[..] else {
        return Err(format!("`{command}` has {} ends: {ends:?}", ends.len()));
    };
    if ended["kind"] != *end || (ended["kind"] == "jobEnded" && ended["body"]["ending"] != "done") {
        return Err(format!("`{command}` should have ended with {end}, and did with {ended}"));
    }
    if of_job().next_back().is_some_and(|last| last["seq"] != ended["seq"]) {
        return Err(format!("something of `{command}` stands behind its end"));
    }
    let printed: String = of_job()
        .filter(|event| is_output(event))
        .filter_map(|event| event["body"]["text"].as_str())
        .collect();
    prints.check(&printed).map_err(|fault| format!("`{command}` printed {fault}"))?;
    Ok(job)
}

fn is_output(event: &Value) -> bool {
    event["kind"] == "outputProduced"
}

impl Prints {
    fn check(&self, printed: &str) -> Result<(), String> {
        match self {
            Self::Exactly(text) if printed == text => Ok(()),
            Self::Exactly(text) => Err(first_difference(text, printed)),
            Self::FromOne => {
                let all: String = (1..=printed.lines().count()).map(|number| format!("{number}\n")).collect();
                if all.starts_with(printed) { Ok(()) } else { Err(first_difference(&all, printed)) }
            }
        }
    }
}

/// The first line at which what was printed differs from what should have been.
fn first_difference(should: &str, printed: &str) -> String {
    let (mut is, mut wanted) = (printed.split_inclusive('\n'), should.split_inclusive('\n'));
    for line in 1.. {
        match (is.next(), wanted.next()) {
            (None, None) => break,
            (is, wanted) if is != wanted => {
                return format!("{is:?} in line {line}, and should have {wanted:?}");
            }
            _ => {}
        }
    }
    "what it should".to_owned()
}

mod tests {
    use serde_json::json;

    use super::*;

    fn event(seq: u64, kind: &str, body: Value) -> Value {
        json!({ "seq": seq, "kind": kind, "body": body })
    }

    /// A story with one eval that prints two lines.
    fn story() -> Vec<Value> {
        vec![
            event(8, "evalRequested", json!({ "job": "j", "command": "c" })),
            event(9, "outputProduced", json!({ "job": "j", "text": "1\n" })),
            event(10, "outputProduced", json!({ "job": "j", "text": "2\n" })),
            event(11, "evalCompleted", json!({ "job": "j" })),
        ]
    }

    fn checked(events: &[Value]) -> Result<(), String> {
        check(events, 7, &[Expected::completed("c".to_owned(), "1\n2\n")], false)
    }

    #[test]
    fn every_way_in_which_a_story_can_be_told_wrongly_is_noticed() {
        checked(&story()).unwrap();
        let wrong: [fn(&mut Vec<Value>); 8] = [
            |events| drop(events.remove(1)),
            |events| events[2]["body"]["text"] = json!("1\n"),
            |events| events[1]["body"]["text"] = json!("1\n2\n"),
            |events| events[1]["body"]["job"] = json!("other"),
            |events| events[3]["kind"] = json!("evalInterrupted"),
            |events| events[3]["kind"] = json!("evalFailed"),
            |events| events.push(event(12, "evalCompleted", json!({ "job": "j" }))),
            |events| events.push(event(12, "warmUpStarted", json!({}))),
        ];
        for (number, change) in wrong.iter().enumerate() {
            let mut events = story();
            change(&mut events);
            assert!(checked(&events).is_err(), "{number}");
        }
        let cancelled = [Expected::cancelled("c".to_owned())];
        let mut events = story();
        events[3]["kind"] = json!("evalCancelled");
        check(&events, 7, &cancelled, false).unwrap();
        events[2]["body"]["text"] = json!("3\n");
        assert!(check(&events, 7, &cancelled, false).is_err());
    }
}
