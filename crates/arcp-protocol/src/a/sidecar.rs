//! Sidecar frames: bytes that follow a message in frames of the transport's own. Source: draft-arcp-01, 11.3 and 16.2.
//!
//! The draft has a frame found by its stream and number, and says not how a frame states them. Here each frame begins with a header, in network
//! byte order: the version (one byte), what the frame belongs to (one byte), whether it is the last (one byte), the length of the name
//! (two bytes), the number (eight bytes), and the name in UTF-8. The bytes themselves follow.

use thiserror::Error;

/// The version of the header, its first byte.
const VERSION: u8 = 1;

/// The length of the header without the name.
const FIXED: usize = 13;

/// What a frame belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The frame is a piece of the stream of this name.
    Stream(String),
    /// The frame is content of the message with this id.
    Message(String),
}

/// A frame of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarFrame {
    /// What the frame belongs to.
    pub owner: Owner,
    /// The number of its chunk in a stream; among the frames of a message its own, from 0.
    pub sequence: u64,
    /// Whether the chunk, or the content of the message, ends with this frame.
    pub is_last: bool,
    /// The bytes behind the header.
    pub bytes: Vec<u8>,
}

/// Why bytes are no sidecar frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SidecarError {
    /// The frame ends within its header.
    #[error("the frame is shorter than its header")]
    Short,
    /// The header has another version.
    #[error("the frame has a header of version {0}, not 1")]
    Version(u8),
    /// The header names something else than a stream or a message.
    #[error("the frame belongs to {0}, which is neither a stream (1) nor a message (2)")]
    Owner(u8),
    /// The header says something else than whether the frame is the last.
    #[error("the frame has {0} where 1 says that it is the last, and 0 that it is not")]
    Last(u8),
    /// The name is empty, or no text.
    #[error("the frame has no name in UTF-8")]
    Name,
}

impl SidecarFrame {
    /// Writes the frame as it is sent. A name of more than 65,535 bytes is cut; no id of this runtime is that long.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, name) = match &self.owner {
            Owner::Stream(name) => (1, name),
            Owner::Message(name) => (2, name),
        };
        let name = &name[..name.floor_char_boundary(usize::from(u16::MAX))];
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        let mut frame = Vec::with_capacity(FIXED + name.len() + self.bytes.len());
        frame.extend([VERSION, kind, u8::from(self.is_last)]);
        frame.extend(length.to_be_bytes());
        frame.extend(self.sequence.to_be_bytes());
        frame.extend(name.as_bytes());
        frame.extend(&self.bytes);
        frame
    }

    /// Reads a frame as it was sent.
    ///
    /// # Errors
    /// What is wrong with its header.
    pub fn decode(frame: &[u8]) -> Result<Self, SidecarError> {
        let (fixed, rest) = frame.split_first_chunk::<FIXED>().ok_or(SidecarError::Short)?;
        let [version, kind, last, high, low, sequence @ ..] = *fixed;
        if version != VERSION {
            return Err(SidecarError::Version(version));
        }
        let is_last = match last {
            0 => false,
            1 => true,
            other => return Err(SidecarError::Last(other)),
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (name, bytes) = rest.split_at_checked(length).ok_or(SidecarError::Short)?;
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty());
        let name = name.ok_or(SidecarError::Name)?.to_owned();
        let owner = match kind {
            1 => Owner::Stream(name),
            2 => Owner::Message(name),
            other => return Err(SidecarError::Owner(other)),
        };
        Ok(Self { owner, sequence: u64::from_be_bytes(sequence), is_last, bytes: bytes.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = SidecarFrame> {
        let owner = ("\\PC{1,30}", any::<bool>()).prop_map(|(name, is_stream)| match is_stream {
            true => Owner::Stream(name),
            false => Owner::Message(name),
        });
        (owner, any::<u64>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..100))
            .prop_map(|(owner, sequence, is_last, bytes)| SidecarFrame { owner, sequence, is_last, bytes })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(frame in frames()) {
            prop_assert_eq!(SidecarFrame::decode(&frame.encode()), Ok(frame));
        }

        #[test]
        fn what_is_read_is_written_as_it_was(bytes in proptest::collection::vec(0_u8..4, 0..40)) {
            if let Ok(frame) = SidecarFrame::decode(&bytes) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }

        #[test]
        fn a_frame_that_ends_within_its_header_is_refused(frame in frames(), cut in 0_usize..43) {
            let whole = frame.encode();
            let header = whole.len() - frame.bytes.len();
            let is_cut = SidecarFrame::decode(&whole[..cut.min(header - 1)]);
            prop_assert_eq!(is_cut, Err(SidecarError::Short));
        }
    }

    #[test]
    fn the_header_is_laid_out_as_it_is_documented() {
        let frame = SidecarFrame {
            owner: Owner::Stream("ab".to_owned()),
            sequence: 258,
            is_last: true,
            bytes: vec![7],
        };
        assert_eq!(frame.encode(), [1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 1, 2, b'a', b'b', 7]);
        for (at, value, wrong) in [
            (0, 2, SidecarError::Version(2)),
            (1, 3, SidecarError::Owner(3)),
            (2, 9, SidecarError::Last(9)),
            (4, 0, SidecarError::Name),
        ] {
            let mut bytes = frame.encode();
            bytes[at] = value;
            assert_eq!(SidecarFrame::decode(&bytes), Err(wrong));
        }
    }
}
