//! What a process prints, as text.

use tokio::io::AsyncReadExt;

use crate::process::drain;
use crate::text::Utf8Stream;

/// The most that is read at once, in bytes.
const PIECE: usize = 16 * 1024;

/// One captured stream of the worker.
pub struct OutputPipe<P> {
    pipe: P,
    text: Utf8Stream,
    /// Whether the stream is still open.
    pub is_open: bool,
}

impl<P: std::os::fd::AsFd + AsyncReadExt + Unpin> OutputPipe<P> {
    /// Reads from a pipe that is open.
    pub fn new(pipe: P) -> Self {
        Self { pipe, text: Utf8Stream::default(), is_open: true }
    }

    /// The next text; empty where a character is not complete yet, or the stream ended.
    pub async fn next(&mut self) -> String {
        let mut buffer = vec![0; PIECE];
        match self.pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => {
                self.is_open = false;
                self.text.finish()
            }
            Ok(count) => self.text.push(&buffer[..count]),
        }
    }

    /// What stands in the pipe now, in pieces.
    pub fn drain(&mut self) -> Vec<String> {
        drain(&self.pipe).chunks(PIECE).map(|bytes| self.text.push(bytes)).collect()
    }
}
