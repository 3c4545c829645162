//! What a job prints and shows, on its way to the log: printed text is joined into chunks, and all is cut at the limits. The text of a
//! display counts as printed, its other forms have an allowance of their own. What a job puts out beyond the limit is left out, but for its
//! end, which is recorded when the job ends ([`tail`]).
//!
//! Pure: the session's task says what came and when to flush. Output that belongs to no job shares one allowance between
//! two jobs, so that a process left behind cannot fill the disk either.

mod so_far;
mod tail;

use mainstay_model::outcome::OutputItem;
use mainstay_model::{Bundle, CommMessage, Display, JobId, Limits, OutputStream};

pub(crate) use self::so_far::PutOutSoFar;
use self::tail::Tail;

/// A chunk is written out at this size, or when the flush interval ends.
const CHUNK_BYTES: usize = 4 * 1024;

/// What a display counts for beside its text, in bytes: so much its event and its entry cost, however little it shows.
const DISPLAY_BYTES: usize = 256;

/// What is said where a job's widgets have said as much as is kept.
const COMMS_CUT: &str = "[what widgets say further is left out: the job has shown as much as is kept]\n";

/// Collects output until it is worth an event.
#[derive(Debug)]
pub(crate) struct OutputBuffer {
    limits: StoredOutput,
    kept: StoredOutput,
    owner: Option<JobId>,
    /// Whether it is for what jobs put out that have ended, which share one allowance.
    is_late: bool,
    chunk: Option<(OutputStream, String)>,
    /// Whether nothing more is kept, but for the end.
    cut: bool,
    tail: Tail,
    /// Whether it was told that what is said to front ends is not kept any more.
    are_comms_cut: bool,
}

/// How much is kept of a job.
#[derive(Clone, Copy, Debug, Default)]
struct StoredOutput {
    /// How many bytes of text are held.
    text: usize,
    /// Bytes of the end of what does not fit into these.
    tail: usize,
    /// Bytes of one display.
    display: usize,
    /// Bytes of the other forms of all displays.
    forms: usize,
}

/// What is to be recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputPiece {
    /// What this job, or none, put out.
    Chunk(Option<JobId>, OutputItem),
    /// This job took back what it had put out.
    Cleared {
        /// The job whose output was cleared.
        job: JobId,
        /// Whether something else takes its place at once.
        is_replaced: bool,
    },
    /// What a kernel said to front ends, of this job or of none.
    Comm(Option<JobId>, Box<CommMessage>),
    /// The limit was reached: of what follows only the end is kept.
    Cut(JobId),
}

impl OutputBuffer {
    /// Keeps as much for each job as the limits say.
    pub(crate) fn new(limits: &Limits) -> Self {
        let limits = StoredOutput {
            text: limits.output_bytes_per_job,
            tail: limits.output_end_bytes_per_job,
            display: limits.display_bytes,
            forms: limits.display_bytes_per_job,
        };
        Self {
            limits,
            kept: StoredOutput::default(),
            owner: None,
            is_late: false,
            chunk: None,
            cut: false,
            tail: Tail::default(),
            are_comms_cut: false,
        }
    }

    /// For what jobs put out that have ended, and left code running. All of them share what is kept for one, from one job's begin to the next.
    /// Nobody says when the last of it has come, so it keeps no end.
    pub(crate) fn late(limits: &Limits) -> Self {
        let late = Self::new(limits);
        Self { is_late: true, limits: StoredOutput { tail: 0, ..late.limits }, ..late }
    }

    /// Goes on with a job of which so much is stored. Its end that an earlier daemon held is lost, and the job's output says so.
    pub(crate) fn go_on(&mut self, job: JobId, so_far: PutOutSoFar) {
        let PutOutSoFar { text, forms, is_cut } = so_far;
        self.renew();
        self.owner = Some(job);
        (self.kept.text, self.kept.forms, self.cut) = (text, forms, is_cut);
        if is_cut {
            self.kept.text = self.limits.text;
            self.tail.lacks_more();
        }
    }

    /// Forgets what was put out so far, since another job begins: there is room for as much again.
    pub(crate) fn renew(&mut self) {
        (self.kept, self.cut, self.are_comms_cut) = (StoredOutput::default(), false, false);
        self.tail.clear();
    }

    /// Takes in what was printed; gives what is ready to be recorded.
    pub(crate) fn push(&mut self, job: Option<JobId>, stream: OutputStream, text: &str) -> Vec<OutputPiece> {
        let mut ready = self.turn_to(job);
        if self.chunk.as_ref().is_some_and(|(of, _)| *of != stream) {
            ready.extend(self.flush());
        }
        let taken = self.take(text);
        if taken > 0 {
            self.chunk.get_or_insert_with(|| (stream, String::new())).1.push_str(&text[..taken]);
        }
        if taken < text.len() {
            ready.extend(self.cut());
            self.tail.print(stream, &text[taken..], self.limits.tail);
        }
        if self.chunk.as_ref().is_some_and(|(_, chunk)| chunk.len() >= CHUNK_BYTES) {
            ready.extend(self.flush());
        }
        ready
    }

    /// Takes in what was shown; gives what is ready to be recorded.
    pub(crate) fn show(&mut self, job: Option<JobId>, display: Display) -> Vec<OutputPiece> {
        let mut ready = self.turn_to(job);
        ready.extend(self.flush());
        let data =
            display.data.cut(self.limits.display).within(self.limits.forms.saturating_sub(self.kept.forms));
        if self.cut {
            self.kept.forms += data.form_bytes();
            let shown = OutputItem::Displayed(Box::new(Display { data, ..display }));
            self.kept.forms -= self.tail.show(shown, self.limits.tail);
            return ready;
        }
        self.kept.text += DISPLAY_BYTES;
        let (text, taken) = (data.text().len(), self.take(data.text()));
        let data = if taken < text { Bundle::with_text_of(data, taken) } else { data };
        self.kept.forms += data.form_bytes();
        ready.push(OutputPiece::Chunk(job, OutputItem::Displayed(Box::new(Display { data, ..display }))));
        if taken < text || self.kept.text >= self.limits.text {
            ready.extend(self.cut());
        }
        ready
    }

    /// Takes in that what was put out is taken back. What it took of the limits stays taken: it is in the log.
    pub(crate) fn clear(&mut self, job: JobId, is_replaced: bool) -> Vec<OutputPiece> {
        let mut ready = self.turn_to(Some(job));
        // It was not told yet.
        self.chunk = None;
        self.tail.clear();
        ready.push(OutputPiece::Cleared { job, is_replaced });
        ready
    }

    /// Takes in what a kernel says to front ends; gives what is ready to be recorded. It shares the allowance of the forms of displays;
    /// once that is spent it is dropped, and the job's output says so.
    pub(crate) fn say(&mut self, job: Option<JobId>, message: Box<CommMessage>) -> Vec<OutputPiece> {
        let mut ready = self.turn_to(job);
        ready.extend(self.flush());
        let forms = self.kept.forms + message.bytes() + DISPLAY_BYTES;
        if forms <= self.limits.forms {
            self.kept.forms = forms;
            ready.push(OutputPiece::Comm(job, message));
        } else if !std::mem::replace(&mut self.are_comms_cut, true) {
            ready.extend(self.push(job, OutputStream::Stderr, COMMS_CUT));
        }
        ready
    }

    /// What follows is of this job.
    fn turn_to(&mut self, job: Option<JobId>) -> Vec<OutputPiece> {
        let mut ready = Vec::new();
        if job != self.owner {
            ready.extend(self.flush());
            self.owner = job;
            if !self.is_late {
                self.renew();
            }
        }
        ready
    }

    /// How many bytes of a text are still kept.
    fn take(&mut self, text: &str) -> usize {
        let taken = text.floor_char_boundary(self.limits.text.saturating_sub(self.kept.text));
        self.kept.text += taken;
        taken
    }

    /// Nothing is kept any more.
    fn cut(&mut self) -> Vec<OutputPiece> {
        if std::mem::replace(&mut self.cut, true) {
            return Vec::new();
        }
        self.kept.text = self.limits.text;
        self.flush().into_iter().chain(self.owner.map(OutputPiece::Cut)).collect()
    }

    /// Gives up what is held.
    pub(crate) fn flush(&mut self) -> Option<OutputPiece> {
        let (stream, text) = self.chunk.take()?;
        Some(OutputPiece::Chunk(self.owner, OutputItem::Printed(stream, text)))
    }

    /// Whether something waits for the end of the job.
    pub(crate) fn has_end(&self) -> bool {
        self.tail.has_any()
    }

    /// Gives up what is held as the job ends: the end of what was over the limit, too.
    pub(crate) fn end(&mut self) -> Vec<OutputPiece> {
        let held = self.flush();
        let tail = self.tail.end(self.limits.tail);
        held.into_iter()
            .chain(tail.into_iter().map(|put_out| OutputPiece::Chunk(self.owner, put_out)))
            .collect()
    }

    /// Whether something waits for a flush.
    pub(crate) fn is_pending(&self) -> bool {
        self.chunk.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::{Base64, CommId, CommStep, EventBody};
    use proptest::prelude::*;

    fn job(n: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(n))
    }

    /// A buffer that keeps so many bytes of text, of a display, and of the forms of all.
    fn buffer(text: usize, display: usize, forms: usize) -> OutputBuffer {
        OutputBuffer::new(&Limits {
            output_bytes_per_job: text,
            display_bytes: display,
            display_bytes_per_job: forms,
            ..Limits::default()
        })
    }

    fn display(text: &str, html: &str) -> Display {
        let data = serde_json::json!({ "text/plain": text, "text/html": html });
        Display {
            id: None,
            is_value: false,
            is_update: false,
            is_in_place: false,
            data: serde_json::from_value(data).unwrap(),
        }
    }

    fn shown(text: &str, html: &str) -> OutputPiece {
        OutputPiece::Chunk(Some(job(1)), OutputItem::Displayed(Box::new(display(text, html))))
    }

    fn chunk(job: Option<JobId>, stream: OutputStream, text: &str) -> OutputPiece {
        OutputPiece::Chunk(job, OutputItem::Printed(stream, text.to_owned()))
    }

    #[test]
    fn jobs_that_have_ended_share_one_allowance_until_another_begins() {
        let limits = Limits { output_bytes_per_job: 5, ..Limits::default() };
        let mut late = OutputBuffer::late(&limits);
        let printed = |pieces: Vec<OutputPiece>| -> Vec<(Option<JobId>, String)> {
            let text = |piece| match piece {
                OutputPiece::Chunk(job, OutputItem::Printed(_, text)) => Some((job, text)),
                _ => None,
            };
            pieces.into_iter().filter_map(text).collect()
        };
        let mut all = Vec::new();
        for (number, text) in [(1, "abc"), (2, "def"), (1, "ghi")] {
            all.extend(late.push(Some(job(number)), OutputStream::Stdout, text));
        }
        all.extend(late.flush());
        assert_eq!(printed(all), [(Some(job(1)), "abc".to_owned()), (Some(job(2)), "de".to_owned())]);
        late.renew();
        let mut all = late.push(Some(job(1)), OutputStream::Stdout, "jkl");
        all.extend(late.flush());
        assert_eq!(printed(all), [(Some(job(1)), "jkl".to_owned())]);
    }

    #[test]
    fn a_job_that_goes_on_with_another_daemon_has_no_more_room_than_with_one() {
        let produced = |text: &str| EventBody::OutputProduced {
            job: Some(job(1)),
            stream: OutputStream::Stdout,
            text: text.to_owned(),
        };
        let mut so_far = PutOutSoFar::default();
        so_far.take_in(job(1), &produced("abcd"));
        so_far.take_in(job(2), &produced("of another job"));
        let mut next = buffer(6, 0, 0);
        next.go_on(job(1), so_far);
        let pieces = next.push(Some(job(1)), OutputStream::Stdout, "efgh");
        assert_eq!(pieces, [chunk(Some(job(1)), OutputStream::Stdout, "ef"), OutputPiece::Cut(job(1))]);
        so_far.take_in(job(1), &produced("ef"));
        so_far.take_in(job(1), &EventBody::OutputCut { job: job(1), limit: 6 });
        let mut last = buffer(6, 0, 0);
        last.go_on(job(1), so_far);
        assert_eq!(last.push(Some(job(1)), OutputStream::Stdout, "end"), []);
        let lost = "\n[… what an earlier daemon had left out is not counted …]\n";
        let told = [lost, "end"].map(|text| chunk(Some(job(1)), OutputStream::Stdout, text));
        assert_eq!(last.end(), told);
    }

    #[test]
    fn small_writes_become_one_chunk() {
        let mut buffer = buffer(100, 0, 0);
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "a").is_empty());
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "b").is_empty());
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stdout, "ab")));
        assert_eq!(buffer.flush(), None);
    }

    #[test]
    fn streams_and_jobs_never_share_a_chunk() {
        let mut buffer = buffer(100, 0, 0);
        buffer.push(Some(job(1)), OutputStream::Stdout, "out");
        assert_eq!(
            buffer.push(Some(job(1)), OutputStream::Stderr, "err"),
            [chunk(Some(job(1)), OutputStream::Stdout, "out")]
        );
        assert_eq!(
            buffer.push(None, OutputStream::Stderr, "late"),
            [chunk(Some(job(1)), OutputStream::Stderr, "err")]
        );
    }

    #[test]
    fn output_over_the_limit_is_cut_at_a_character_and_marked_once() {
        let mut buffer = buffer(4, 0, 0);
        let pieces = buffer.push(Some(job(1)), OutputStream::Stdout, "abcé!");
        assert_eq!(pieces, [chunk(Some(job(1)), OutputStream::Stdout, "abc"), OutputPiece::Cut(job(1))]);
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "more").is_empty());
        assert!(!buffer.is_pending());
    }

    #[test]
    fn a_display_stands_between_what_was_printed_before_and_after_it() {
        let mut buffer = buffer(1000, 100, 100);
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "one ").is_empty());
        assert_eq!(
            buffer.show(Some(job(1)), display("it", "<b>")),
            [chunk(Some(job(1)), OutputStream::Stdout, "one "), shown("it", "<b>")]
        );
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "two").is_empty());
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stdout, "two")));
    }

    #[test]
    fn displays_over_the_limits_keep_their_text_and_say_what_is_gone() {
        let mut buffer = buffer(10_000, 20, 10);
        let told = |pieces: Vec<OutputPiece>| match pieces.as_slice() {
            [OutputPiece::Chunk(_, OutputItem::Displayed(display))] => {
                format!("{:?} {}", display.data.kinds(), display.data.text())
            }
            other => panic!("{other:?}"),
        };
        let show =
            |buffer: &mut OutputBuffer, html: &str| told(buffer.show(Some(job(1)), display("it", html)));
        assert_eq!(show(&mut buffer, "<b>1234"), r#"["text/html", "text/plain"] it"#);
        let spent = "[text/html left out: 7 bytes, and the job has shown as much as is kept]";
        assert_eq!(show(&mut buffer, "<b>1234"), format!("[\"text/plain\"] it\n{spent}"));
        let large = "[text/html left out: 23 bytes, over the limit]";
        assert_eq!(show(&mut buffer, "<b>12345678901234567890"), format!("[\"text/plain\"] it\n{large}"));
        assert_eq!(show(&mut buffer, "<b>"), r#"["text/html", "text/plain"] it"#);
    }

    #[test]
    fn the_text_of_displays_counts_as_printed_and_their_number_too() {
        let mut buffer = buffer(5 + 2 * DISPLAY_BYTES, 100, 100);
        assert_eq!(buffer.show(Some(job(1)), display("abc", "<b>")), [shown("abc", "<b>")]);
        assert_eq!(
            buffer.show(Some(job(1)), display("def", "<b>")),
            [shown("de", "<b>"), OutputPiece::Cut(job(1))]
        );
        assert!(buffer.push(Some(job(1)), OutputStream::Stdout, "more").is_empty());
        assert!(buffer.show(Some(job(1)), display("ghi", "<b>")).is_empty());
        let mut of_another = || buffer.show(Some(job(2)), display("", "")).len();
        let pieces: Vec<usize> = (0..5).map(|_| of_another()).collect();
        assert_eq!(pieces, [1, 1, 2, 0, 0], "the third is cut as well, and the mark follows it");
    }

    fn comm(bytes: usize) -> Box<CommMessage> {
        Box::new(CommMessage {
            comm: CommId::new("1").unwrap(),
            step: CommStep::Say,
            data: serde_json::Value::Null,
            metadata: serde_json::Value::Null,
            buffers: vec![Base64::of(&vec![0; bytes])],
        })
    }

    #[test]
    fn what_is_taken_back_before_it_was_told_is_never_told() {
        let mut buffer = buffer(1000, 100, 100);
        buffer.push(Some(job(1)), OutputStream::Stdout, "one");
        let cleared = OutputPiece::Cleared { job: job(1), is_replaced: true };
        assert_eq!(buffer.clear(job(1), true), [cleared]);
        buffer.push(Some(job(1)), OutputStream::Stdout, "two");
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stdout, "two")));
        buffer.push(None, OutputStream::Stdout, "of none");
        let of_none = chunk(None, OutputStream::Stdout, "of none");
        assert_eq!(
            buffer.clear(job(1), false),
            [of_none, OutputPiece::Cleared { job: job(1), is_replaced: false }]
        );
    }

    #[test]
    fn comms_over_the_limit_are_dropped_and_told_of_once_and_text_is_not() {
        let mut buffer = buffer(1000, 0, 100 + DISPLAY_BYTES);
        assert_eq!(buffer.say(Some(job(1)), comm(100)), [OutputPiece::Comm(Some(job(1)), comm(100))]);
        assert_eq!(buffer.say(Some(job(1)), comm(1)), []);
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stderr, COMMS_CUT)));
        assert_eq!(buffer.say(Some(job(1)), comm(1)), []);
        buffer.push(Some(job(1)), OutputStream::Stdout, "text");
        assert_eq!(buffer.flush(), Some(chunk(Some(job(1)), OutputStream::Stdout, "text")));
        assert_eq!(buffer.say(None, comm(1)), [OutputPiece::Comm(None, comm(1))], "another job has its own");
    }

    proptest! {
        #[test]
        fn what_was_printed_and_shown_keeps_its_order(outputs: Vec<(bool, String)>) {
            let mut buffer = buffer(usize::MAX / 2, usize::MAX, usize::MAX);
            let put_out = |(is_shown, text): &(bool, String)| match is_shown {
                true => buffer.show(Some(job(1)), display(text, "<b>")),
                false => buffer.push(Some(job(1)), OutputStream::Stdout, text),
            };
            let mut pieces: Vec<OutputPiece> = outputs.iter().flat_map(put_out).collect();
            pieces.extend(buffer.flush());
            let mark = |text: &str| format!("<{text}>");
            let told = pieces.into_iter().map(|piece| match piece {
                OutputPiece::Chunk(_, OutputItem::Printed(_, text)) => text,
                OutputPiece::Chunk(_, OutputItem::Displayed(display)) => mark(display.data.text()),
                OutputPiece::Cut(_) => "cut".to_owned(),
                OutputPiece::Cleared { .. } | OutputPiece::Comm(..) => "neither".to_owned(),
            });
            let expected = outputs.iter().map(|(is_shown, text)| if *is_shown { mark(text) } else { text.clone() });
            prop_assert_eq!(told.collect::<String>(), expected.collect::<String>());
        }

        #[test]
        fn what_is_kept_is_a_prefix_of_what_was_printed(limit in 0_usize..200, writes: Vec<String>) {
            let mut buffer = buffer(limit, 0, 0);
            let mut kept = String::new();
            let mut cuts = 0;
            let mut pieces: Vec<OutputPiece> =
                writes.iter().flat_map(|text| buffer.push(Some(job(1)), OutputStream::Stdout, text)).collect();
            pieces.extend(buffer.flush());
            for piece in pieces {
                match piece {
                    OutputPiece::Chunk(_, OutputItem::Printed(_, text)) => kept.push_str(&text),
                    OutputPiece::Cut(_) => cuts += 1,
                    OutputPiece::Chunk(_, OutputItem::Displayed(_)) | OutputPiece::Cleared { .. } | OutputPiece::Comm(..) => {
                        prop_assert!(false, "nothing was shown");
                    }
                }
            }
            let printed = writes.concat();
            prop_assert!(printed.starts_with(&kept));
            prop_assert!(kept.len() <= limit);
            prop_assert_eq!(cuts, u32::from(kept.len() < printed.len()));
        }
    }
}
