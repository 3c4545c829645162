//! A session's story: a row for each event, told in order. Output comes in chunks that may end inside a line; a row waits until
//! its last line is whole, its job has ended, or whoever follows the story has waited long enough.

use mainstay_model::{Event, EventBody, JobId, OutputStream, Seq};

use super::events::{describe, who};
use crate::terminal::{Paint, Tone};

/// Tells events one after another.
pub(crate) struct Story {
    paint: Paint,
    begun: Vec<Begun>,
}

/// The beginning of a line, and the chunk it came with.
struct Begun {
    job: Option<JobId>,
    stream: OutputStream,
    text: String,
    chunk: Event,
}

impl Story {
    /// Nothing yet.
    pub(crate) fn new(paint: Paint) -> Self {
        Self { paint, begun: Vec::new() }
    }

    /// The rows that an event completes, each with its end of line.
    pub(crate) fn tell(&mut self, event: &Event) -> String {
        match &event.body {
            EventBody::OutputProduced { job, stream, text } => self.printed(event, *job, *stream, text),
            // The job goes on, and its line with it.
            EventBody::CancelRequested { .. }
            | EventBody::SessionRenamed { .. }
            | EventBody::CommandQueued(_)
            | EventBody::CommandLeft { .. }
            | EventBody::EvalTimedOut { .. } => self.row(event),
            EventBody::SessionCreated { .. }
            | EventBody::WarmUpStarted { .. }
            | EventBody::WarmUpCompleted { .. }
            | EventBody::SessionFaulted { .. }
            | EventBody::SessionReset
            | EventBody::SessionHardReset
            | EventBody::SessionStopped
            | EventBody::WorkerExited { .. }
            | EventBody::EvalRequested { .. }
            | EventBody::OutputCut { .. }
            | EventBody::EvalCompleted { .. }
            | EventBody::EvalFailed { .. }
            | EventBody::EvalCancelled { .. }
            | EventBody::EvalInterrupted { .. } => self.end() + &self.row(event),
        }
    }

    /// The rows that still wait for the end of their line.
    pub(crate) fn end(&mut self) -> String {
        self.end_until(Seq(u64::MAX))
    }

    /// Those of them to whose line nothing was added after this event.
    pub(crate) fn end_until(&mut self, last: Seq) -> String {
        let ended: Vec<Begun> = self.begun.extract_if(.., |begun| begun.chunk.seq <= last).collect();
        ended.into_iter().map(|Begun { text, chunk, .. }| self.row(&holding(&chunk, text))).collect()
    }

    /// Whether a line is begun.
    pub(crate) fn is_inside_line(&self) -> bool {
        !self.begun.is_empty()
    }

    fn printed(&mut self, chunk: &Event, job: Option<JobId>, stream: OutputStream, text: &str) -> String {
        let before = self.begun.iter().position(|begun| (begun.job, begun.stream) == (job, stream));
        let mut lines = before.map_or_else(String::new, |at| self.begun.remove(at).text) + text;
        let rest = lines.split_off(lines.rfind('\n').map_or(0, |end| end + 1));
        if !rest.is_empty() {
            self.begun.push(Begun { job, stream, text: rest, chunk: chunk.clone() });
        }
        if lines.is_empty() { lines } else { self.row(&holding(chunk, lines)) }
    }

    fn row(&self, event: &Event) -> String {
        let who = who(&event.metadata.source);
        let (tone, what) = describe(&event.body);
        let what = tone.map_or_else(|| what.clone(), |tone| self.paint.tone(tone, &what));
        let head = format!("{:>5}  {:.3}  {who:<9}", event.seq.0, event.at);
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
    use mainstay_model::{EvalResult, Position, Source};

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
        let result = EvalResult { display: "val it : unit = ()".to_owned(), ..EvalResult::default() };
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
        let mut story = Story::new(Paint::plain());
        let mut text = String::new();
        for (index, body) in bodies.into_iter().enumerate() {
            text += &story.tell(&event(index as u64 + 1, body));
        }
        text + &story.end()
    }

    #[test]
    fn a_line_that_does_not_go_on_is_told_before_its_end() {
        let mut story = Story::new(Paint::plain());
        assert_eq!(story.tell(&event(1, out("working..."))), "");
        assert_eq!(story.tell(&event(2, printed(OutputStream::Stderr, "hm"))), "");
        let told = story.end_until(Seq(1));
        insta::assert_snapshot!(told, @"    1  2026-02-13T13:30:20.000Z  worker    printed working...");
        assert!(story.is_inside_line());
        insta::assert_snapshot!(story.tell(&event(3, out(" done\n"))), @"    3  2026-02-13T13:30:20.000Z  worker    printed  done");
        insta::assert_snapshot!(story.end(), @"    2  2026-02-13T13:30:20.000Z  worker    printed hm");
        assert!(!story.is_inside_line());
    }

    #[test]
    fn a_line_that_came_in_pieces_is_one() {
        insta::assert_snapshot!(told([out("one "), out("two "), out("three\n"), out("four\n"), done()]), @"
        3  2026-02-13T13:30:20.000Z  worker    printed one two three
        4  2026-02-13T13:30:20.000Z  worker    printed four
        5  2026-02-13T13:30:20.000Z  worker    done: val it : unit = () (4 ms)
        ");
    }

    #[test]
    fn a_chunk_gives_its_whole_lines_and_keeps_what_is_begun() {
        insta::assert_snapshot!(told([out("one\ntw"), out("o\nthree\nfo"), out("ur"), done()]), @"
        1  2026-02-13T13:30:20.000Z  worker    printed one
        2  2026-02-13T13:30:20.000Z  worker    printed two …
        3  2026-02-13T13:30:20.000Z  worker    printed four
        4  2026-02-13T13:30:20.000Z  worker    done: val it : unit = () (4 ms)
        ");
    }

    #[test]
    fn each_stream_has_lines_of_its_own() {
        let error = |text: &str| printed(OutputStream::Stderr, text);
        insta::assert_snapshot!(told([out("out "), error("err "), out("put\n"), error("or\n"), done()]), @"
        3  2026-02-13T13:30:20.000Z  worker    printed out put
        4  2026-02-13T13:30:20.000Z  worker    printed err or
        5  2026-02-13T13:30:20.000Z  worker    done: val it : unit = () (4 ms)
        ");
    }

    #[test]
    fn what_a_job_goes_on_with_does_not_cut_its_line() {
        let cancel = EventBody::CancelRequested { job: job() };
        insta::assert_snapshot!(told([out("one "), cancel, out("line\n"), done()]), @"
        2  2026-02-13T13:30:20.000Z  worker    cancel
        3  2026-02-13T13:30:20.000Z  worker    printed one line
        4  2026-02-13T13:30:20.000Z  worker    done: val it : unit = () (4 ms)
        ");
    }

    #[test]
    fn a_line_without_an_end_is_told_at_the_end() {
        insta::assert_snapshot!(told([out("one "), out("line")]), @"    2  2026-02-13T13:30:20.000Z  worker    printed one line");
    }
}
