//! The end of what a job puts out beyond what is kept as it comes: held until the job ends, so that a flood keeps its end as well.

use std::collections::VecDeque;

use mainstay_model::OutputStream;
use mainstay_model::outcome::OutputItem;

use super::DISPLAY_BYTES;

/// What stands in the place of what an earlier daemon has left out.
const MORE: &str = "\n[… what an earlier daemon had left out is not counted …]\n";

/// The newest output of one job, and how much older output it has displaced.
#[derive(Debug, Default)]
pub(super) struct Tail {
    held: VecDeque<OutputItem>,
    bytes: usize,
    left_out: OmittedOutput,
}

/// How many bytes were left out, by stream; and how many displays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OmittedOutput {
    stdout: usize,
    stderr: usize,
    displays: usize,
    /// Whether more was left out than was counted: by a daemon that is gone.
    is_more: bool,
}

impl Tail {
    /// Holds printed text, and as much of what is held already as `limit` bytes allow.
    pub(super) fn print(&mut self, stream: OutputStream, text: &str, limit: usize) {
        self.bytes += text.len();
        match self.held.back_mut() {
            Some(OutputItem::Printed(of, held)) if *of == stream => held.push_str(text),
            Some(_) | None => self.held.push_back(OutputItem::Printed(stream, text.to_owned())),
        }
        // Not at each write: what is dropped at the front of a text moves all of the text.
        if self.bytes > limit.saturating_mul(2) {
            self.shrink(limit);
        }
    }

    /// Holds a display, and as much of what is held already as `limit` bytes allow. Gives the bytes of the forms of the displays it displaced.
    pub(super) fn show(&mut self, shown: OutputItem, limit: usize) -> usize {
        self.bytes += size(&shown);
        self.held.push_back(shown);
        self.shrink(limit)
    }

    /// Whether anything came that is held, or was left out.
    pub(super) fn has_any(&self) -> bool {
        !self.held.is_empty() || self.left_out != OmittedOutput::default()
    }

    /// Gives what is held and forgets it, each stream's part headed by how much of it was left out.
    pub(super) fn end(&mut self, limit: usize) -> Vec<OutputItem> {
        self.shrink(limit);
        self.begin_at_a_line();
        let OmittedOutput { stdout, stderr, displays, is_more } = std::mem::take(&mut self.left_out);
        self.bytes = 0;
        let marks = [(OutputStream::Stdout, stdout, displays), (OutputStream::Stderr, stderr, 0)];
        let more = is_more.then(|| OutputItem::Printed(OutputStream::Stdout, MORE.to_owned()));
        more.into_iter().chain(marks.into_iter().filter_map(mark)).chain(self.held.drain(..)).collect()
    }

    /// Notes that an earlier daemon has left out what nobody counted.
    pub(super) fn lacks_more(&mut self) {
        self.left_out.is_more = true;
    }

    /// Forgets what is held, and that anything was left out.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn shrink(&mut self, limit: usize) -> usize {
        let mut forms = 0;
        while self.bytes > limit
            && let Some(first) = self.held.front_mut()
        {
            let over = self.bytes - limit;
            match first {
                OutputItem::Printed(stream, text) if text.len() > over => {
                    let from = text.ceil_char_boundary(over);
                    text.drain(..from);
                    self.bytes -= from;
                    self.left_out.add(*stream, from);
                }
                OutputItem::Printed(stream, text) => {
                    self.bytes -= text.len();
                    self.left_out.add(*stream, text.len());
                    self.held.pop_front();
                }
                OutputItem::Displayed(display) => {
                    forms += display.data.form_bytes();
                    self.bytes -= size(first);
                    self.left_out.displays += 1;
                    self.held.pop_front();
                }
            }
        }
        forms
    }

    /// Half a line at the front says little, and reads as a whole one.
    fn begin_at_a_line(&mut self) {
        if let Some(OutputItem::Printed(stream, text)) = self.held.front_mut()
            && self.left_out.of(*stream) > 0
            && let Some(end) = text.find('\n').filter(|end| end + 1 < text.len())
        {
            text.drain(..=end);
            self.left_out.add(*stream, end + 1);
        }
    }
}

impl OmittedOutput {
    fn of_mut(&mut self, stream: OutputStream) -> &mut usize {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    fn add(&mut self, stream: OutputStream, bytes: usize) {
        *self.of_mut(stream) += bytes;
    }

    fn of(mut self, stream: OutputStream) -> usize {
        *self.of_mut(stream)
    }
}

/// The line that stands in the place of what was left out of a stream.
fn mark((stream, bytes, displays): (OutputStream, usize, usize)) -> Option<OutputItem> {
    let displays = match displays {
        0 => None,
        1 => Some("1 display".to_owned()),
        many => Some(format!("{many} displays")),
    };
    let name = match stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    let bytes = (bytes > 0).then(|| format!("{bytes} bytes of {name}"));
    let left_out = bytes.into_iter().chain(displays).collect::<Vec<_>>();
    (!left_out.is_empty())
        .then(|| OutputItem::Printed(stream, format!("\n[… {} left out …]\n", left_out.join(" and "))))
}

/// How many bytes of the limit something takes.
fn size(put_out: &OutputItem) -> usize {
    match put_out {
        OutputItem::Printed(_, text) => text.len(),
        OutputItem::Displayed(display) => display.data.text().len() + DISPLAY_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

    fn printed(stream: OutputStream, text: &str) -> OutputItem {
        OutputItem::Printed(stream, text.to_owned())
    }

    #[test]
    fn the_end_begins_at_a_line_and_says_what_is_missing() {
        let mut tail = Tail::default();
        for number in 1..=1000 {
            tail.print(OutputStream::Stdout, &format!("{number}\n"), 12);
        }
        let mark = printed(OutputStream::Stdout, "\n[… 3884 bytes of stdout left out …]\n");
        assert_eq!(tail.end(12), [mark, printed(OutputStream::Stdout, "999\n1000\n")]);
        assert_eq!(tail.end(12), []);
    }

    #[test]
    fn what_fits_is_whole_and_has_no_mark() {
        let mut tail = Tail::default();
        tail.print(OutputStream::Stdout, "half a line", 20);
        tail.print(OutputStream::Stderr, "no\n", 20);
        let whole = [printed(OutputStream::Stdout, "half a line"), printed(OutputStream::Stderr, "no\n")];
        assert_eq!(tail.end(20), whole);
    }

    proptest! {
        #[test]
        fn what_is_held_and_what_is_counted_are_all_that_was_printed(
            limit in 0_usize..100,
            writes: Vec<(bool, String)>,
        ) {
            let mut tail = Tail::default();
            for (is_error, text) in &writes {
                tail.print(STREAMS[usize::from(*is_error)], text, limit);
            }
            tail.shrink(limit);
            tail.begin_at_a_line();
            let left_out = tail.left_out;
            for (at, stream) in STREAMS.into_iter().enumerate() {
                let of_stream = |(is_error, text): &(bool, String)| {
                    (usize::from(*is_error) == at).then(|| text.clone())
                };
                let all: String = writes.iter().filter_map(of_stream).collect();
                let held: String = tail.held.iter().filter_map(|held| match held {
                    OutputItem::Printed(of, text) if *of == stream => Some(text.as_str()),
                    _ => None,
                }).collect();
                prop_assert!(all.ends_with(&held));
                prop_assert_eq!(left_out.of(stream) + held.len(), all.len());
            }
            prop_assert!(tail.held.iter().map(size).sum::<usize>() <= limit);
        }
    }
}
