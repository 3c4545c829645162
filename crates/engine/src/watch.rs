//! How the files are now that sessions' code rests on. A file is read again only where its length or its time has changed.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use mainstay_model::{Reference, References};
use sha2::{Digest, Sha256};

/// How many files are remembered; all are forgotten then.
const REMEMBERED: usize = 4096;
/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// Knows the files that it has looked at. Its clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    known: Arc<Mutex<HashMap<String, FileState>>>,
}

/// A file as it was when it was read.
#[derive(Clone, PartialEq, Eq)]
struct FileState {
    length: u64,
    modified: Option<SystemTime>,
    hash: String,
}

impl Watch {
    /// How these are now. What is no file is left out.
    pub(crate) async fn look_at(&self, references: References) -> References {
        let watch = self.clone();
        let looked = tokio::task::spawn_blocking(move || watch.look(references));
        // A look that fails has seen nothing.
        looked.await.unwrap_or_default()
    }

    fn look(&self, references: References) -> References {
        let now = |(name, reference): (String, Reference)| {
            let path = reference.path?;
            let hash = self.hash_of(&path).ok()?;
            Some((name, Reference { path: Some(path), hash }))
        };
        references.into_iter().filter_map(now).collect()
    }

    /// The hash of a file's content; none where there is none.
    ///
    /// # Errors
    /// Where it is there and cannot be read, which says nothing of it.
    fn hash_of(&self, path: &str) -> io::Result<Option<String>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if let Some(hash) = self.remembered(path, &metadata) {
            return Ok(Some(hash));
        }
        let hash = content_hash(&mut file)?;
        // One that was written meanwhile is read again at the next look.
        if is_same(&metadata, &std::fs::metadata(Path::new(path))?) {
            self.remember(path, &metadata, hash.clone());
        }
        Ok(Some(hash))
    }

    fn remembered(&self, path: &str, metadata: &Metadata) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(path)?;
        let is_same = known.length == metadata.len() && known.modified == metadata.modified().ok();
        is_same.then(|| known.hash.clone())
    }

    fn remember(&self, path: &str, metadata: &Metadata, hash: String) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        known.insert(path.to_owned(), FileState { length, modified, hash });
    }
}

fn is_same(before: &Metadata, after: &Metadata) -> bool {
    before.len() == after.len() && before.modified().ok() == after.modified().ok()
}

fn content_hash(file: &mut File) -> io::Result<String> {
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            count => hasher.update(&piece[..count]),
        }
    }
}
