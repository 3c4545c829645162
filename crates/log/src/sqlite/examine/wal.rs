//! The write-ahead log, read as SQLite reads it after a crash: frame by frame, as long as each is sealed by the checksum
//! over all before it. What lies behind the last commit is either of an earlier round (another salt), or what a crash left
//! of a transaction that nobody was told of. Where more than one transaction has ended behind the first broken seal, the
//! earlier ones had been acknowledged, since the next begins only after the flush of the one before.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::super::open::write_ahead_log;
use super::Examiner;
use crate::finding::Finding;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const LARGEST_PAGE: usize = 65_536;

/// What is behind the last commit of this round.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The first frame whose seal is broken, from 1; none where all are sealed.
    broken: Option<u64>,
    /// Frames of this round behind the last commit that can be read, the broken one and a part of one among them.
    frames: u64,
    /// How many commits are among them.
    commits: u64,
}

/// Whether the database has a write-ahead log with anything in it.
pub(super) fn has_frames(database: &Path) -> bool {
    write_ahead_log(database).metadata().is_ok_and(|found| found.len() > 0)
}

impl Examiner<'_> {
    pub(super) fn write_ahead_log(&mut self, database: &Path) {
        // What cannot be read here, SQLite cannot read either.
        let Ok(Tail { broken, frames, commits }) =
            File::open(write_ahead_log(database)).and_then(|file| tail(BufReader::new(file)))
        else {
            return;
        };
        match broken {
            Some(frame) if commits > 1 => {
                self.found(Finding::WriteAheadLogDamaged { frame, transactions: commits });
            }
            Some(_) | None if frames > 0 => self.found(Finding::CommitUnfinished { pages: frames }),
            Some(_) | None => {}
        }
    }
}

fn tail(mut log: impl Read) -> io::Result<Tail> {
    let mut header = [0; HEADER_BYTES];
    let mut tail = Tail::default();
    if read_full(&mut log, &mut header)? < HEADER_BYTES {
        return Ok(tail);
    }
    let (magic, page_bytes) = (word(&header, 0), word(&header, 8) as usize);
    let is_log = magic & !1 == 0x377f_0682 && page_bytes <= LARGEST_PAGE && page_bytes.is_power_of_two();
    if !is_log {
        return Ok(tail);
    }
    let order = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
    let mut seal = sealed((0, 0), &header[..24], order);
    let salt = &header[16..24];
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    for number in 1.. {
        let length = read_full(&mut log, &mut frame)?;
        // A frame of an earlier round, or the room that is kept for frames to come.
        if length < 16 || frame[8..16] != *salt {
            break;
        }
        let is_whole = length == frame.len();
        let is_commit = is_whole && word(&frame, 4) != 0;
        if tail.broken.is_none() {
            seal = sealed(sealed(seal, &frame[..8], order), &frame[FRAME_HEADER_BYTES..], order);
            if !is_whole || seal != (word(&frame, 16), word(&frame, 20)) {
                tail.broken = Some(number);
            }
        }
        if tail.broken.is_none() && is_commit {
            tail.frames = 0;
        } else {
            tail.frames += 1;
            tail.commits += u64::from(is_commit);
        }
        if !is_whole {
            break;
        }
    }
    Ok(tail)
}

/// Continues SQLite's checksum over further bytes.
fn sealed(seal: (u32, u32), bytes: &[u8], order: fn([u8; 4]) -> u32) -> (u32, u32) {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs.iter().fold(seal, |(one, two), [a, b, c, d, e, f, g, h]| {
        let one = one.wrapping_add(order([*a, *b, *c, *d])).wrapping_add(two);
        (one, two.wrapping_add(order([*e, *f, *g, *h])).wrapping_add(one))
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

fn read_full(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match log.read(rest)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(length)
}
