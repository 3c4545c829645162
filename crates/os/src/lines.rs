//! Lines that go over a process's pipes: what it prints, each with a bound; what it is told; the last that it says on standard error.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};

/// How many lines of standard error are kept.
const KEPT_LINES: usize = 8;
/// The most that one of them has, in bytes.
const KEPT_BYTES: usize = 1024;

/// Reads lines of a bounded length.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// The line that is being read is longer than it may be; how long it is so far.
    overflow: Option<usize>,
}

/// What comes of reading.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line of so many bytes was passed over.
    TooLong(usize),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from this, lines of at most so many bytes.
    pub fn new(reader: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, reader), limit, line: Vec::new(), overflow: None }
    }

    /// The next line; none at the end, where what was cut off is dropped. Nothing is lost where the future is dropped.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            // A pipe that breaks has come to its end.
            let read = self.reader.fill_buf().await.unwrap_or_default();
            if read.is_empty() {
                return None;
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let piece = &read[..end.unwrap_or(read.len())];
            match &mut self.overflow {
                Some(length) => *length += piece.len(),
                None if self.line.len() + piece.len() > self.limit => {
                    self.overflow = Some(self.line.len() + piece.len());
                    self.line = Vec::new();
                }
                None => self.line.extend_from_slice(piece),
            }
            let used = end.map_or(read.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Some(match self.overflow.take() {
                    Some(length) => Line::TooLong(length),
                    None => Line::Whole(std::mem::take(&mut self.line)),
                });
            }
        }
    }
}

/// Writes lines to a process's input, in a task of its own: whoever has something to tell it waits only where it wants to.
#[derive(Clone, Debug)]
pub struct LineWriter {
    requests: mpsc::UnboundedSender<WriteRequest>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum WriteRequest {
    Line(String),
    /// All before it is written.
    Mark(oneshot::Sender<()>),
}

impl LineWriter {
    /// Writes to this input.
    pub fn new(input: ChildStdin) -> Self {
        let (requests, taken) = mpsc::unbounded_channel();
        let waiting = Arc::default();
        tokio::spawn(write(input, taken, Arc::clone(&waiting)));
        Self { requests, waiting }
    }

    /// How many lines are not written yet: the process does not read them.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Has a text written, which ends its line itself. Where the process is gone, whoever reads its output notices.
    pub fn send(&self, line: String) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.requests.send(WriteRequest::Line(line)).ok();
    }

    /// Waits until all that was sent before is written, or the process is gone.
    pub async fn written(&self) {
        let (mark, written) = oneshot::channel();
        self.requests.send(WriteRequest::Mark(mark)).ok();
        written.await.ok();
    }
}

async fn write(
    mut input: ChildStdin,
    mut requests: mpsc::UnboundedReceiver<WriteRequest>,
    waiting: Arc<AtomicUsize>,
) {
    while let Some(next) = requests.recv().await {
        match next {
            WriteRequest::Line(line) => {
                if input.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
            WriteRequest::Mark(mark) => drop(mark.send(())),
        }
    }
}

/// The last lines that a process said on standard error.
#[derive(Debug, Default)]
pub struct LastLines(VecDeque<String>);

impl LastLines {
    /// Takes in one more.
    pub fn push(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        if self.0.len() == KEPT_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line[..line.floor_char_boundary(KEPT_BYTES)].to_owned());
    }

    /// All of them; none where nothing was said.
    pub fn text(&self) -> Option<String> {
        let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines_of(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(line);
        }
        read
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_passed_over_and_the_next_is_read() {
        let read = lines_of(b"abc\nabcdef\n\nab\ncut off", 4).await;
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(read, [whole("abc"), Line::TooLong(6), whole(""), whole("ab")]);
    }

    #[test]
    fn of_what_is_said_on_standard_error_the_last_lines_are_kept() {
        let mut last = LastLines::default();
        assert_eq!(last.text(), None);
        (0..20).for_each(|number| last.push(&format!("line {number}\n")));
        assert_eq!(
            last.text().unwrap().lines().collect::<Vec<_>>(),
            (12..20).map(|n| format!("line {n}")).collect::<Vec<_>>()
        );
    }
}
