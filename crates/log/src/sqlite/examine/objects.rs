//! Every object against its hash.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::{Connection, Row};

use super::super::objects::path;
use super::Examiner;
use crate::examination::Stage;
use crate::finding::Finding;
use crate::objects::{ObjectHash, hash_of_reader};

impl Examiner<'_> {
    pub(super) fn objects(&mut self, connection: &Connection, folder: &Path) {
        let examined = connection.prepare("SELECT hash, size, bytes FROM object").and_then(|mut select| {
            let mut rows = select.query(())?;
            while let Some(row) = rows.next()? {
                self.progress(Stage::Objects, self.report.objects);
                let hash = ObjectHash::from_stored(row.get(0)?);
                match self.object(folder, &hash, row)? {
                    None => self.report.objects += 1,
                    Some(reason) => {
                        self.found(Finding::ObjectDamaged { hash: hash.to_string(), reason });
                    }
                }
            }
            Ok(())
        });
        self.read("object", examined);
    }

    /// What is wrong with an object.
    fn object(
        &mut self,
        folder: &Path,
        hash: &ObjectHash,
        row: &Row<'_>,
    ) -> rusqlite::Result<Option<String>> {
        let size: i64 = row.get(1)?;
        let (found, length) = match row.get_ref(2)?.as_blob_or_null() {
            Ok(Some(bytes)) => (ObjectHash::of(bytes), bytes.len() as u64),
            Ok(None) => match self.object_file(&path(folder, hash), folder) {
                Ok(found) => found,
                Err(error) => return Ok(Some(format!("its file cannot be read: {error}"))),
            },
            Err(error) => return Ok(Some(error.to_string())),
        };
        let has_size = length == size.unsigned_abs();
        Ok((found != *hash || !has_size)
            .then(|| format!("its {length} bytes are others than the {size} that were written")))
    }

    fn object_file(&mut self, path: &Path, folder: &Path) -> std::io::Result<(ObjectHash, u64)> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        self.private(path, &found, fs::metadata(folder)?.uid());
        Ok((hash_of_reader(file)?, found.len()))
    }
}
