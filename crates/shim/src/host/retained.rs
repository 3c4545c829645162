//! Notices that are not acknowledged: kept in memory up to a limit, then in a file, and then not taken any more, so that the worker
//! waits on its pipe.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mainstay_model::NoticeNumber;

/// How many bytes stand before a frame in the file: its length.
const LENGTH_BYTES: usize = 4;

/// Encoded notices that are not acknowledged, in order, without a gap.
pub(super) struct Retained {
    /// The oldest, as many as fit.
    memory: VecDeque<Bytes>,
    memory_bytes: usize,
    buffer_bytes: usize,
    /// The notices that are newer than those.
    file: Overflow,
    /// The newest, where the file could not take it.
    stranded: Option<Bytes>,
    /// The number of the first that is kept, or of the next to come.
    first: NoticeNumber,
    /// The number of the next to come.
    next: NoticeNumber,
}

impl Retained {
    /// Keeps nothing yet; the first notice will have this number. What does not fit into memory goes to the file at `path`.
    pub(super) fn new(next: NoticeNumber, buffer_bytes: usize, path: PathBuf, file_bytes: u64) -> Self {
        let file = Overflow { path, file: None, limit: file_bytes, read: 0, written: 0, is_broken: false };
        Self {
            memory: VecDeque::new(),
            memory_bytes: 0,
            buffer_bytes,
            file,
            stranded: None,
            first: next,
            next,
        }
    }

    /// The number of the next notice to come.
    pub(super) const fn next(&self) -> NoticeNumber {
        self.next
    }

    /// The number of the first notice that is kept; [`Retained::next`] where none is.
    pub(super) const fn first(&self) -> NoticeNumber {
        self.first
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// Whether another notice is taken.
    pub(super) fn has_room(&self) -> bool {
        self.stranded.is_none() && (self.fits() || self.file.has_room())
    }

    /// Whether another notice is taken that must not come to lie in the file. As much more fits into memory then as else into the file.
    pub(super) fn has_room_in_memory(&self) -> bool {
        let most = self.buffer_bytes as u64 + self.file.limit;
        self.stranded.is_none() && self.file.is_empty() && (self.memory_bytes as u64) < most
    }

    /// Keeps the next notice in memory. Only where there is room for it ([`Retained::has_room_in_memory`]).
    pub(super) fn keep_in_memory(&mut self, frame: Bytes) {
        self.next = self.next.next();
        self.push(frame);
    }

    /// Whether the next notice goes to memory. One always fits, lest it could never be told.
    fn fits(&self) -> bool {
        self.file.is_empty() && (self.memory.is_empty() || self.memory_bytes < self.buffer_bytes)
    }

    /// Keeps the next notice.
    ///
    /// # Errors
    /// The file could not be written. The notice is kept in memory then, and none is taken after it until there is room.
    pub(super) fn keep(&mut self, frame: Bytes) -> std::io::Result<()> {
        self.next = self.next.next();
        if self.fits() {
            self.push(frame);
            return Ok(());
        }
        let written = self.file.write(&frame);
        if written.is_err() {
            self.stranded = Some(frame);
        }
        written
    }

    fn push(&mut self, frame: Bytes) {
        self.memory_bytes += frame.len();
        self.memory.push_back(frame);
    }

    /// One that is kept in memory.
    pub(super) fn get(&self, number: NoticeNumber) -> Option<&Bytes> {
        let at = number.0.checked_sub(self.first.0)?;
        self.memory.get(usize::try_from(at).ok()?)
    }

    /// Forgets all up to this one.
    ///
    /// # Errors
    /// The file could not be read. What it has is lost.
    pub(super) fn acknowledge(&mut self, up_to: NoticeNumber) -> std::io::Result<()> {
        while self.first <= up_to && self.first < self.next {
            if self.memory.is_empty() {
                self.refill()?;
            }
            let Some(frame) = self.memory.pop_front() else { break };
            self.memory_bytes -= frame.len();
            self.first = self.first.next();
        }
        self.refill()
    }

    fn refill(&mut self) -> std::io::Result<()> {
        while self.memory.is_empty() || self.memory_bytes < self.buffer_bytes {
            let next = self.file.read()?;
            let Some(frame) = next.or_else(|| self.stranded.take()) else { break };
            self.push(frame);
        }
        Ok(())
    }

    /// Gives up all that is kept, in order.
    ///
    /// # Errors
    /// The file could not be read. What it has is lost.
    pub(super) fn give_up(&mut self) -> std::io::Result<Vec<Bytes>> {
        let mut frames = Vec::new();
        loop {
            frames.extend(self.memory.drain(..));
            self.memory_bytes = 0;
            self.refill()?;
            if self.memory.is_empty() {
                return Ok(frames);
            }
        }
    }
}

/// Writes frames to a file of their own, durably.
///
/// # Errors
/// What the system says.
pub(super) fn write_frames(path: &Path, frames: &[Bytes]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    frames.iter().try_for_each(|frame| write_frame(&mut file, frame))?;
    file.sync_all()
}

/// Reads a file that [`write_frames`] wrote.
///
/// # Errors
/// What the system says, also where the last frame is not whole.
pub(crate) fn read_frames(path: &Path) -> std::io::Result<Vec<Bytes>> {
    let mut file = File::open(path)?;
    let mut frames = Vec::new();
    while let Some(frame) = read_frame(&mut file)? {
        frames.push(frame);
    }
    Ok(frames)
}

/// The file of what does not fit into memory. It is read from its beginning while it is written at its end, and begins anew when all of
/// it was read.
struct Overflow {
    path: PathBuf,
    file: Option<File>,
    limit: u64,
    read: u64,
    written: u64,
    /// Whether it could not be written, and so is not tried again before it is read empty.
    is_broken: bool,
}

impl Overflow {
    const fn is_empty(&self) -> bool {
        self.read == self.written
    }

    const fn has_room(&self) -> bool {
        self.written < self.limit && !self.is_broken
    }

    fn write(&mut self, frame: &[u8]) -> std::io::Result<()> {
        let written = self.write_at_end(frame);
        self.is_broken |= written.is_err();
        written
    }

    fn write_at_end(&mut self, frame: &[u8]) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(&self.path)?,
            ),
        };
        file.seek(SeekFrom::Start(self.written))?;
        write_frame(file, frame)?;
        self.written += (LENGTH_BYTES + frame.len()) as u64;
        Ok(())
    }

    fn read(&mut self) -> std::io::Result<Option<Bytes>> {
        if self.is_empty() {
            // There is room again, and it is tried again.
            self.is_broken = false;
            return Ok(None);
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        file.seek(SeekFrom::Start(self.read))?;
        let frame = read_frame(file)?;
        self.read += frame.as_ref().map_or(0, |frame| (LENGTH_BYTES + frame.len()) as u64);
        if self.read == self.written {
            file.set_len(0)?;
            (self.read, self.written, self.is_broken) = (0, 0, false);
        }
        Ok(frame)
    }
}

fn write_frame(file: &mut File, frame: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
    let mut whole = Vec::with_capacity(LENGTH_BYTES + frame.len());
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(frame);
    file.write_all(&whole)
}

fn read_frame(file: &mut File) -> std::io::Result<Option<Bytes>> {
    let mut length = [0; LENGTH_BYTES];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    file.read_exact(&mut frame)?;
    Ok(Some(Bytes::from(frame)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(number: u64, bytes: usize) -> Bytes {
        Bytes::from(format!("{number}:{}", "x".repeat(bytes)))
    }

    fn is_of(frame: &Bytes, number: u64) -> bool {
        frame.starts_with(format!("{number}:").as_bytes())
    }

    #[test]
    fn no_more_is_taken_once_memory_and_file_are_full_until_some_is_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let mut retained = Retained::new(NoticeNumber(1), 100, folder.path().join("notices"), 100);
        let mut number = 0;
        while retained.has_room() {
            number += 1;
            retained.keep(frame(number, 40)).unwrap();
        }
        assert!((4..=7).contains(&number), "{number}");
        retained.acknowledge(NoticeNumber(number)).unwrap();
        assert!(retained.has_room() && retained.is_empty());
        assert_eq!(retained.next(), NoticeNumber(number + 1));
    }

    #[test]
    fn where_the_file_cannot_be_written_no_notice_is_lost_and_none_is_taken_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut retained = Retained::new(NoticeNumber(1), 10, folder.path().join("no/such"), 1000);
        retained.keep(frame(1, 40)).unwrap();
        assert!(retained.keep(frame(2, 40)).is_err());
        assert!(!retained.has_room());
        retained.acknowledge(NoticeNumber(1)).unwrap();
        assert!(is_of(retained.get(NoticeNumber(2)).unwrap(), 2));
        retained.acknowledge(NoticeNumber(2)).unwrap();
        assert!(retained.has_room());
    }

    proptest! {
        /// Whatever is kept and acknowledged when, each notice is there in order until it is acknowledged, and none twice.
        #[test]
        fn all_that_is_not_acknowledged_is_there_in_order(
            steps in proptest::collection::vec((any::<bool>(), 0_usize..60), 1..80),
            buffer in 0_usize..200,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut retained =
                Retained::new(NoticeNumber(1), buffer, folder.path().join("notices"), 1_000_000);
            let (mut kept, mut gone) = (0, 0);
            for (is_kept, amount) in steps {
                if is_kept {
                    kept += 1;
                    retained.keep(frame(kept, amount)).unwrap();
                } else {
                    // Only what can be sent is acknowledged.
                    let mut number = gone;
                    while number < gone + amount as u64 && retained.get(NoticeNumber(number + 1)).is_some() {
                        number += 1;
                        prop_assert!(is_of(retained.get(NoticeNumber(number)).unwrap(), number));
                    }
                    retained.acknowledge(NoticeNumber(number)).unwrap();
                    gone = number;
                }
                prop_assert_eq!(retained.first(), NoticeNumber(gone + 1));
                prop_assert_eq!(retained.next(), NoticeNumber(kept + 1));
                prop_assert!(gone == kept || retained.get(NoticeNumber(gone + 1)).is_some());
            }
            let left = folder.path().join("left");
            write_frames(&left, &retained.give_up().unwrap()).unwrap();
            let frames = read_frames(&left).unwrap();
            prop_assert_eq!(frames.len() as u64, kept - gone);
            for (frame, number) in frames.iter().zip(gone + 1..) {
                prop_assert!(is_of(frame, number));
            }
        }
    }
}
