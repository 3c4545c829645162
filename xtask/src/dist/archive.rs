//! Archives whose bytes follow from their entries alone: entries are sorted, times and owners are fixed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// How archives are made, whatever is in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// The time of every entry.
    pub(crate) time: Timestamp,
    /// The level of compression, 1 to 9.
    pub(crate) level: u32,
}

/// The files of an archive by their paths, which have no slash at their beginning.
#[derive(Debug, Default)]
pub(crate) struct Files<'a>(BTreeMap<String, File<'a>>);

/// A file in an archive.
#[derive(Debug)]
pub(crate) struct File<'a> {
    /// The content of the file.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Whether the file is a program.
    pub(crate) is_executable: bool,
}

impl<'a> Files<'a> {
    /// Adds a file that is read.
    pub(crate) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), is_executable: false });
    }

    /// Adds a file of text.
    pub(crate) fn add_text(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.add(path, text.into().into_bytes());
    }

    /// Adds a file that can be run as a program.
    pub(crate) fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Cow<'a, [u8]>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), is_executable: true });
    }

    /// Returns the files, in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &File<'a>)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the files below a folder, which ends with a slash.
    pub(crate) fn below(self, folder: &str) -> Self {
        Self(self.0.into_iter().map(|(path, file)| (format!("{folder}{path}"), file)).collect())
    }

    /// Returns a zip archive of the files.
    pub(crate) fn zip(&self, style: Style) -> io::Result<Vec<u8>> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(style.level.into()))
            .last_modified_time(zip_time(style.time)?);
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in self.iter() {
            archive.start_file(path, options.unix_permissions(file.mode()))?;
            archive.write_all(&file.bytes)?;
        }
        Ok(archive.finish()?.into_inner())
    }

    /// Returns a compressed tar archive of the files and the folders above them. `root`, which ends with a slash, stands before each path.
    pub(crate) fn tar_gz(&self, root: &str, style: Style) -> io::Result<Vec<u8>> {
        let mut archive = tar::Builder::new(gzip_writer(style.level));
        // Sorted with the files, a folder stands before what is in it.
        let folders = self.folders();
        let above = folders.iter().map(String::as_str).chain([""]);
        let mut entries: Vec<_> = above.map(|folder| (folder, None)).collect();
        entries.extend(self.iter().map(|(path, file)| (path, Some(file))));
        entries.sort_by_key(|(path, _)| *path);
        for (path, file) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(style.time.as_second().try_into().unwrap_or(0));
            header.set_uid(0);
            header.set_gid(0);
            header.set_username("root")?;
            header.set_groupname("root")?;
            header.set_entry_type(if file.is_some() {
                tar::EntryType::Regular
            } else {
                tar::EntryType::Directory
            });
            header.set_mode(file.map_or(0o755, File::mode));
            let bytes = file.map_or(&[][..], |file| &file.bytes);
            header.set_size(bytes.len() as u64);
            append(&mut archive, &mut header, &format!("{root}{path}"), bytes)?;
        }
        archive.into_inner()?.finish()
    }

    /// Returns the folders above the files, each with a slash at its end.
    fn folders(&self) -> BTreeSet<String> {
        let paths = self.0.keys();
        paths.flat_map(|path| path.match_indices('/').map(|(end, _)| path[..=end].to_owned())).collect()
    }
}

/// Appends an entry. A short path stays as it is; the library would take a `./` away, with which paths begin in Debian's packages.
fn append(
    archive: &mut tar::Builder<impl Write>,
    header: &mut tar::Header,
    path: &str,
    bytes: &[u8],
) -> io::Result<()> {
    match header.as_gnu_mut().and_then(|header| header.name.get_mut(..path.len())) {
        Some(name) => name.copy_from_slice(path.as_bytes()),
        None => return archive.append_data(header, path, bytes),
    }
    header.set_cksum();
    archive.append(header, bytes)
}

impl File<'_> {
    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// Returns a text compressed by gzip, without a name or a time in it, and as well as can be: Debian wants that, and texts are short.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = gzip_writer(9);
    writer.write_all(bytes)?;
    writer.finish()
}

fn gzip_writer(level: u32) -> GzEncoder<Vec<u8>> {
    // The byte that names the operating system says that it is not known.
    GzBuilder::new().operating_system(255).write(Vec::new(), Compression::new(level))
}

/// Returns an archive of the format of `ar`, in the order given, as Debian has it.
pub(crate) fn ar(members: &[(&str, &[u8])], style: Style) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (time, size) = (style.time.as_second(), bytes.len());
        archive.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 100_644).bytes());
        archive.extend(*bytes);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

/// Returns a time as zip has it: in steps of two seconds, from 1980 on.
fn zip_time(time: Timestamp) -> io::Result<DateTime> {
    let time = time.to_zoned(TimeZone::UTC).datetime();
    let part = |part: i8| part.unsigned_abs();
    DateTime::from_date_and_time(
        time.year().unsigned_abs(),
        part(time.month()),
        part(time.day()),
        part(time.hour()),
        part(time.minute()),
        part(time.second()),
    )
    .map_err(|_| io::Error::other(format!("zip has no time {time}; set SOURCE_DATE_EPOCH to one after 1980")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn style() -> Style {
        Style { time: Timestamp::from_second(1_790_000_000).unwrap(), level: 6 }
    }

    fn files() -> Files<'static> {
        let mut files = Files::default();
        files.add_text("z/read.txt", "text");
        files.add_program("bin/run", &b"program"[..]);
        files
    }

    #[test]
    fn a_zip_has_sorted_entries_with_modes_and_the_time_given() {
        let bytes = files().zip(style()).unwrap();
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let told: Vec<_> = (0..archive.len())
            .map(|index| {
                let entry = archive.by_index(index).unwrap();
                (
                    entry.name().unwrap().into_owned(),
                    entry.unix_mode(),
                    entry.last_modified().unwrap().to_string(),
                )
            })
            .collect();
        let time = "2026-09-21 14:13:20".to_owned();
        assert_eq!(
            told,
            [
                ("bin/run".to_owned(), Some(0o100_755), time.clone()),
                ("z/read.txt".to_owned(), Some(0o100_644), time)
            ]
        );
    }

    #[test]
    fn a_tar_has_folders_before_what_is_in_them_and_belongs_to_root() {
        let bytes = files().tar_gz("./", style()).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bytes[..]));
        let told: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = String::from_utf8(header.path_bytes().into_owned()).unwrap();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 1_790_000_000));
                (path, header.mode().unwrap())
            })
            .collect();
        let expected = [
            ("./", 0o755),
            ("./bin/", 0o755),
            ("./bin/run", 0o755),
            ("./z/", 0o755),
            ("./z/read.txt", 0o644),
        ]
        .map(|(path, mode)| (path.to_owned(), mode));
        assert_eq!(told, expected);
    }

    #[test]
    fn gzip_has_no_time_of_its_own() {
        let bytes = gzip(b"text").unwrap();
        assert_eq!(bytes[4..8], [0; 4], "the time in the header");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn members_of_ar_begin_at_even_places() {
        let archive = ar(&[("one", b"odd"), ("two", b"even")], style());
        assert_eq!(archive.len(), 8 + 60 + 4 + 60 + 4);
        assert_eq!(archive[8 + 60 + 4..][..4], *b"two ");
    }

    #[test]
    fn a_time_before_1980_is_refused() {
        let time = Timestamp::from_second(0).unwrap();
        assert!(files().zip(Style { time, ..style() }).is_err());
    }
}
