//! Artifacts whose content follows in frames of bytes. Pure. Source: draft-arcp-01, 16.2.

use std::collections::HashMap;

use mainstay_arcp_protocol::a::artifact::ArtifactPut;
use mainstay_arcp_protocol::a::sidecar::{Owner, SidecarFrame};
use thiserror::Error;

/// How many artifacts of one connection may wait for their content.
const MOST: usize = 64;

/// The artifacts of a connection that wait for their content.
#[derive(Default)]
pub(super) struct Uploads {
    waiting: HashMap<String, Upload>,
    /// How many announcements and frames have come.
    heard: u64,
}

struct Upload {
    put: ArtifactPut,
    /// When it was announced, or its last frame came: the number of that message or frame among all of the connection.
    heard: u64,
    /// The number of the next frame.
    next: u64,
    bytes: Vec<u8>,
}

/// An artifact whose content has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Uploaded {
    /// The message that announced it.
    pub(super) message: String,
    pub(super) put: ArtifactPut,
    pub(super) bytes: Vec<u8>,
}

/// Why an artifact, or a frame of one, is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum UploadError {
    /// Too many artifacts wait for their content.
    #[error(
        "more than {MOST} artifacts of this connection wait for their frames; this one has waited longest, and is given up"
    )]
    TooMany { message: String },
    /// No message announced the frame.
    #[error("no message announced a frame of bytes for {0}")]
    Unannounced(String),
    /// A frame is missing, or came twice.
    #[error("the frame has the number {got}, and the next is {next}; the artifact is given up")]
    OutOfOrder { message: String, next: u64, got: u64 },
    /// The content is larger than may be, with what else has come.
    #[error(
        "the content is larger than {limit} bytes, with what else is on its way; the artifact is given up"
    )]
    TooLarge { message: String, limit: usize },
}

impl UploadError {
    /// The message that announced what is not taken, where one did.
    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Unannounced(_) => None,
            Self::TooMany { message } | Self::OutOfOrder { message, .. } | Self::TooLarge { message, .. } => {
                Some(message)
            }
        }
    }

    /// What the client can do about it.
    pub(super) const fn next_step(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => {
                "Send the frames of the other artifacts first, then `artifact.put` again."
            }
            Self::Unannounced(_) => "Send `artifact.put` without `data` first, and its `id` in each frame.",
            Self::OutOfOrder { .. } => "Send `artifact.put` again, and its frames in order from 0.",
            Self::TooLarge { .. } => {
                "Wait until the other artifacts are stored, and send `artifact.put` again with a smaller content."
            }
        }
    }
}

impl Uploads {
    /// Waits for the frames of an artifact. A message that comes twice begins anew. Where too many wait, the artifact that has waited longest for a
    /// frame is given up: this is its refusal.
    pub(super) fn announce(&mut self, message: &str, put: ArtifactPut) -> Option<UploadError> {
        self.heard += 1;
        let upload = Upload { put, heard: self.heard, next: 0, bytes: Vec::new() };
        self.waiting.insert(message.to_owned(), upload);
        if self.waiting.len() <= MOST {
            return None;
        }
        let (message, _) = self.waiting.iter().min_by_key(|(_, upload)| upload.heard)?;
        let message = message.clone();
        self.waiting.remove(&message);
        Some(UploadError::TooMany { message })
    }

    /// Takes a frame in, and gives the artifact that it completes. All that has come may have so many bytes together.
    pub(super) fn take(
        &mut self,
        frame: SidecarFrame,
        limit: usize,
    ) -> Result<Option<Uploaded>, UploadError> {
        let SidecarFrame { owner, sequence, is_last, bytes } = frame;
        let message = match owner {
            Owner::Message(message) => message,
            // A client has no streams of its own.
            Owner::Stream(stream) => return Err(UploadError::Unannounced(stream)),
        };
        let come: usize = self.waiting.values().map(|upload| upload.bytes.len()).sum();
        let Some(mut upload) = self.waiting.remove(&message) else {
            return Err(UploadError::Unannounced(message));
        };
        if sequence != upload.next {
            return Err(UploadError::OutOfOrder { message, next: upload.next, got: sequence });
        }
        if come.saturating_add(bytes.len()) > limit {
            return Err(UploadError::TooLarge { message, limit });
        }
        upload.bytes.extend(bytes);
        if is_last {
            return Ok(Some(Uploaded { message, put: upload.put, bytes: upload.bytes }));
        }
        upload.next += 1;
        self.heard += 1;
        upload.heard = self.heard;
        self.waiting.insert(message, upload);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(media_type: &str) -> ArtifactPut {
        let media_type = media_type.to_owned();
        ArtifactPut { media_type, data: None, size: None, sha256: None, retention_seconds: None }
    }

    fn frame(message: &str, sequence: u64, is_last: bool, bytes: &[u8]) -> SidecarFrame {
        SidecarFrame { owner: Owner::Message(message.to_owned()), sequence, is_last, bytes: bytes.to_vec() }
    }

    proptest! {
        #[test]
        fn contents_that_come_among_each_other_are_joined_as_they_were(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..60), 1..5),
            size in 1_usize..20,
            order in proptest::collection::vec(0_usize..5, 0..200),
        ) {
            let mut uploads = Uploads::default();
            let name = |number: usize| format!("m{number}");
            let mut frames: Vec<_> = contents.iter().enumerate().map(|(number, content)| {
                assert_eq!(uploads.announce(&name(number), put("a/b")), None);
                let pieces: Vec<_> = content.chunks(size).map(<[u8]>::to_vec).collect();
                let last = pieces.len() - 1;
                let frame_of = move |(at, piece): (usize, Vec<u8>)| {
                    frame(&name(number), at as u64, at == last, &piece)
                };
                pieces.into_iter().enumerate().map(frame_of).collect::<std::collections::VecDeque<_>>()
            }).collect();
            let turns = order.iter().map(|turn| turn % contents.len());
            let rest = (0..contents.len()).flat_map(|number| std::iter::repeat_n(number, 60));
            let mut whole = vec![None; contents.len()];
            for turn in turns.chain(rest) {
                if let Some(frame) = frames[turn].pop_front()
                    && let Some(uploaded) = uploads.take(frame, 1000).unwrap()
                {
                    prop_assert_eq!(&uploaded.message, &format!("m{turn}"));
                    whole[turn] = Some(uploaded.bytes);
                }
            }
            prop_assert_eq!(whole, contents.into_iter().map(Some).collect::<Vec<_>>());
            prop_assert!(uploads.waiting.is_empty());
        }
    }

    #[test]
    fn what_was_not_announced_or_is_out_of_order_or_too_large_is_refused() {
        let mut uploads = Uploads::default();
        assert_eq!(uploads.take(frame("m", 0, true, b"a"), 9), Err(UploadError::Unannounced("m".to_owned())));
        let of_stream = SidecarFrame { owner: Owner::Stream("s".to_owned()), ..frame("", 0, true, b"a") };
        assert_eq!(uploads.take(of_stream, 9), Err(UploadError::Unannounced("s".to_owned())));
        assert_eq!(uploads.announce("m", put("a/b")), None);
        assert_eq!(uploads.announce("n", put("a/b")), None);
        assert_eq!(uploads.take(frame("m", 0, false, b"12345"), 9), Ok(None));
        let message = "n".to_owned();
        assert_eq!(
            uploads.take(frame("n", 0, false, b"12345"), 9),
            Err(UploadError::TooLarge { message, limit: 9 })
        );
        let message = "m".to_owned();
        assert_eq!(
            uploads.take(frame("m", 2, false, b"1"), 9),
            Err(UploadError::OutOfOrder { message, next: 1, got: 2 })
        );
        assert!(matches!(uploads.take(frame("m", 1, true, b"1"), 9), Err(UploadError::Unannounced(_))));
        for number in 0..MOST {
            assert_eq!(uploads.announce(&number.to_string(), put("a/b")), None);
        }
        // "n" was given up above, and "0" goes on: so "1" has waited longest.
        assert_eq!(uploads.take(frame("0", 0, false, b"1"), 9), Ok(None));
        let message = "1".to_owned();
        assert_eq!(uploads.announce("one more", put("a/b")), Some(UploadError::TooMany { message }));
        assert_eq!(uploads.announce("0", put("a/b")), None);
        assert_eq!(uploads.waiting.len(), MOST);
    }
}
