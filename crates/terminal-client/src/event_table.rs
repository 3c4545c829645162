//! The events of a session, or of all, as a table: a row for each event, in order. Output comes in chunks that may end inside a line; a row waits until
//! its last line is whole, its job has ended, or the reader of the table has waited long enough.

use mainstay_model::event::Subject;
use mainstay_model::{Event, EventBody, JobId, OutputStream, Position, SessionId};
use mainstay_terminal::{Paint, Tone};

use crate::events::{event_line, person_name};

/// A table of events that is written row by row.
pub struct EventTable {
    paint: Paint,
    scope: Scope,
    begun: Vec<OpenRow>,
}

/// Which sessions the events are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// One session: its seqs name the events.
    Session,
    /// All sessions: each row names its session, and positions name the events.
    Log,
}

/// The beginning of a line, and the chunk it came with.
struct OpenRow {
    job: Option<JobId>,
    stream: OutputStream,
    text: String,
    chunk: Event,
}

impl EventTable {
    /// Of one session; nothing yet.
    pub fn new(paint: Paint) -> Self {
        Self { paint, scope: Scope::Session, begun: Vec::new() }
    }

    /// Of all sessions; nothing yet.
    pub fn of_all_sessions(paint: Paint) -> Self {
        Self { paint, scope: Scope::Log, begun: Vec::new() }
    }

    /// The rows that an event completes, each with its end of line.
    pub fn rows_of(&mut self, event: &Event) -> String {
        match &event.body {
            EventBody::OutputProduced { job, stream, text } => self.printed(event, *job, *stream, text),
            // The job goes on, and its line with it.
            EventBody::CancelRequested { .. }
            | EventBody::EvalTimedOut { .. }
            | EventBody::JobDenied { .. } => self.row(event),
            body => match body.subject() {
                Subject::Lane | Subject::Environment | Subject::Agent | Subject::Transcript => {
                    self.row(event)
                }
                Subject::Session | Subject::Worker | Subject::Ask | Subject::Eval | Subject::Output => {
                    self.end_of(event.session) + &self.row(event)
                }
            },
        }
    }

    /// The rows that still wait for the end of their line.
    pub fn end(&mut self) -> String {
        self.end_where(|_| true)
    }

    /// Those of them to whose line nothing was added after this event.
    pub fn end_until(&mut self, last: Position) -> String {
        self.end_where(|chunk| chunk.position <= last)
    }

    fn end_of(&mut self, session: SessionId) -> String {
        self.end_where(|chunk| chunk.session == session)
    }

    fn end_where(&mut self, is_ended: impl Fn(&Event) -> bool) -> String {
        let ended: Vec<OpenRow> = self.begun.extract_if(.., |begun| is_ended(&begun.chunk)).collect();
        ended.into_iter().map(|OpenRow { text, chunk, .. }| self.row(&holding(&chunk, text))).collect()
    }

    /// Whether a line is begun.
    pub fn is_inside_line(&self) -> bool {
        !self.begun.is_empty()
    }

    fn printed(&mut self, chunk: &Event, job: Option<JobId>, stream: OutputStream, text: &str) -> String {
        let line = (chunk.session, job, stream);
        let before =
            self.begun.iter().position(|begun| (begun.chunk.session, begun.job, begun.stream) == line);
        let mut lines = before.map_or_else(String::new, |at| self.begun.remove(at).text) + text;
        let rest = lines.split_off(lines.rfind('\n').map_or(0, |end| end + 1));
        if !rest.is_empty() {
            self.begun.push(OpenRow { job, stream, text: rest, chunk: chunk.clone() });
        }
        if lines.is_empty() { lines } else { self.row(&holding(chunk, lines)) }
    }

    fn row(&self, event: &Event) -> String {
        let who = person_name(&event.metadata.source);
        let (tone, what) = event_line(&event.body);
        let what = tone.map_or_else(|| what.clone(), |tone| self.paint.tone(tone, &what));
        let head = match self.scope {
            Scope::Session => format!("{:>5}  {:.3}  {who:<9}", event.seq.0, event.at),
            Scope::Log => {
                let session = event.session.short();
                format!("{:>5}  {:.3}  {session}  {who:<9}", event.position.0, event.at)
            }
        };
        format!("{} {what}\n", self.paint.tone(Tone::Faint, &head))
    }
}

/// A chunk with another text.
fn holding(chunk: &Event, other: String) -> Event {
    let mut chunk = chunk.clone();
    if let EventBody::OutputProduced { text, .. } = &mut chunk.body {
        *text = other;
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::event::Metadata;
    use mainstay_model::{EvalResult, Seq, Source};

    fn job() -> JobId {
        "019a0000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn printed(stream: OutputStream, text: &str) -> EventBody {
        EventBody::OutputProduced { job: Some(job()), stream, text: text.to_owned() }
    }

    fn out(text: &str) -> EventBody {
        printed(OutputStream::Stdout, text)
    }

    fn done() -> EventBody {
        let result = EvalResult { display: "val it: unit = ()".to_owned(), ..EvalResult::default() };
        EventBody::EvalCompleted { job: job(), result, changes_state: true, duration_ms: 4 }
    }

    fn event(seq: u64, body: EventBody) -> Event {
        Event {
            session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            seq: Seq(seq),
            position: Position(seq),
            at: "2026-02-13T13:30:20Z".parse().unwrap(),
            metadata: Metadata {
                source: Source::Worker,
                correlation: None,
                causation: None,
                environment: None,
            },
            body,
        }
    }

    fn told(bodies: impl IntoIterator<Item = EventBody>) -> String {
        let mut table = EventTable::new(Paint::plain());
        let mut text = String::new();
        for (index, body) in bodies.into_iter().enumerate() {
            text += &table.rows_of(&event(index as u64 + 1, body));
        }
        text + &table.end()
    }

    #[test]
    fn a_line_that_does_not_go_on_is_told_before_its_end() {
        let mut table = EventTable::new(Paint::plain());
        assert_eq!(table.rows_of(&event(1, out("working..."))), "");
        assert_eq!(table.rows_of(&event(2, printed(OutputStream::Stderr, "hm"))), "");
        let told = table.end_until(Position(1));
        insta::assert_snapshot!(told, @"    1  2026-02-13T13:30:20.000Z  worker    printed working...");
        assert!(table.is_inside_line());
        insta::assert_snapshot!(table.rows_of(&event(3, out(" done\n"))), @"    3  2026-02-13T13:30:20.000Z  worker    printed  done");
        insta::assert_snapshot!(table.end(), @"    2  2026-02-13T13:30:20.000Z  worker    printed stderr: hm");
        assert!(!table.is_inside_line());
    }

    #[test]
    fn a_line_that_came_in_pieces_is_one() {
        insta::assert_snapshot!(told([out("one "), out("two "), out("three\n"), out("four\n"), done()]), @"
        3  2026-02-13T13:30:20.000Z  worker    printed one two three
        4  2026-02-13T13:30:20.000Z  worker    printed four
        5  2026-02-13T13:30:20.000Z  worker    done: val it: unit = () (4 ms)
        ");
    }

    #[test]
    fn a_chunk_gives_its_whole_lines_and_keeps_what_is_begun() {
        insta::assert_snapshot!(told([out("one\ntw"), out("o\nthree\nfo"), out("ur"), done()]), @"
        1  2026-02-13T13:30:20.000Z  worker    printed one
        2  2026-02-13T13:30:20.000Z  worker    printed two …
        3  2026-02-13T13:30:20.000Z  worker    printed four
        4  2026-02-13T13:30:20.000Z  worker    done: val it: unit = () (4 ms)
        ");
    }

    #[test]
    fn each_stream_has_lines_of_its_own() {
        let error = |text: &str| printed(OutputStream::Stderr, text);
        insta::assert_snapshot!(told([out("out "), error("err "), out("put\n"), error("or\n"), done()]), @"
        3  2026-02-13T13:30:20.000Z  worker    printed out put
        4  2026-02-13T13:30:20.000Z  worker    printed stderr: err or
        5  2026-02-13T13:30:20.000Z  worker    done: val it: unit = () (4 ms)
        ");
    }

    #[test]
    fn what_a_job_goes_on_with_does_not_cut_its_line() {
        let cancel = EventBody::CancelRequested { job: job(), grace_ms: None };
        insta::assert_snapshot!(told([out("one "), cancel, out("line\n"), done()]), @"
        2  2026-02-13T13:30:20.000Z  worker    cancel
        3  2026-02-13T13:30:20.000Z  worker    printed one line
        4  2026-02-13T13:30:20.000Z  worker    done: val it: unit = () (4 ms)
        ");
    }

    #[test]
    fn a_line_without_an_end_is_told_at_the_end() {
        insta::assert_snapshot!(told([out("one "), out("line")]), @"    2  2026-02-13T13:30:20.000Z  worker    printed one line");
    }

    #[test]
    fn sessions_do_not_end_each_others_lines() {
        let of = |session: &str, seq: u64, position: u64, body| Event {
            session: session.parse().unwrap(),
            position: Position(position),
            ..event(seq, body)
        };
        let (one, other) = ("019a0000-0000-7000-8000-0000a1b2c3d4", "019a0000-0000-7000-8000-00000000beef");
        let loose = |text: &str| EventBody::OutputProduced {
            job: None,
            stream: OutputStream::Stdout,
            text: text.to_owned(),
        };
        let mut table = EventTable::of_all_sessions(Paint::plain());
        let told: String = [
            of(one, 7, 21, loose("one ")),
            of(other, 3, 22, loose("of the other\n")),
            of(other, 4, 23, EventBody::SessionReset),
            of(one, 8, 24, loose("line\n")),
        ]
        .iter()
        .map(|event| table.rows_of(event))
        .collect();
        insta::assert_snapshot!(told, @"
        22  2026-02-13T13:30:20.000Z  0000beef  worker    printed of the other
        23  2026-02-13T13:30:20.000Z  0000beef  worker    reset: definitions are dropped
        24  2026-02-13T13:30:20.000Z  a1b2c3d4  worker    printed one line
        ");
    }
}
