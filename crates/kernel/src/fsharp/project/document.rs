//! Files of projects as texts and as XML: how they are read, and what is said of those that cannot be.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use mainstay_model::Error;
use roxmltree::{Document, ParsingOptions};

/// How large a file of a project may be. Those that people write have some kilobytes, lists of restored packages some megabytes.
const LARGEST_BYTES: u64 = 64 * 1024 * 1024;
/// How many nodes an XML file of a project may have.
const MOST_NODES: u32 = 500_000;

/// What is said of a file that is no project, or none that can be read.
pub(super) fn invalid(path: &Path, reason: impl ToString) -> Error {
    Error::ProjectInvalid { path: path.display().to_string(), reason: reason.to_string() }
}

/// What is said where there is no such file.
pub(super) fn not_found(path: &Path) -> Error {
    Error::ProjectNotFound { path: path.display().to_string() }
}

/// The text of a file of a project.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => not_found(path),
        _ => invalid(path, error),
    };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(invalid(path, format!("it is larger than {LARGEST_BYTES} bytes")));
    }
    text(&bytes).map_err(|reason| invalid(path, reason))
}

/// Bytes as text: UTF-8, or UTF-16 with its mark, as Visual Studio may write.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => String::from_utf16(&units(rest, u16::from_le_bytes)).map_err(|_| ()),
        [0xFE, 0xFF, rest @ ..] => String::from_utf16(&units(rest, u16::from_be_bytes)).map_err(|_| ()),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => str::from_utf8(rest).map(str::to_owned).map_err(|_| ()),
    }
    .map_err(|()| "it is no text in UTF-8".to_owned())
}

/// A text as XML. The error has the line.
pub(super) fn parse(text: &str) -> Result<Document<'_>, String> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options)
        .map_err(|error| format!("line {}, column {}: {error}", error.pos().row, error.pos().col))
}

/// A path as projects write it, from `folder`: with either slash, and `.` and `..` taken away without looking at the disk.
pub(super) fn path_from(folder: &Path, written: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for component in folder.join(written.trim().replace('\\', "/")).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(component),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsharp::testing::Tree;

    #[test]
    fn texts_are_read_in_the_encodings_that_visual_studio_writes() {
        let wide: Vec<u8> = "é<".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide_other: Vec<u8> = "é<".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            "é<".as_bytes().to_vec(),
            [&[0xEF, 0xBB, 0xBF], "é<".as_bytes()].concat(),
            [&[0xFF, 0xFE][..], &wide].concat(),
            [&[0xFE, 0xFF][..], &wide_other].concat(),
        ] {
            assert_eq!(text(&bytes).unwrap(), "é<");
        }
        assert!(text(&[0xFF, 0x41]).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_and_a_folder_are_told_apart() {
        let tree = Tree::of("folder/file");
        assert!(matches!(read(&tree.path("no.fsproj")), Err(Error::ProjectNotFound { .. })));
        assert!(matches!(read(&tree.path("folder/file/no.fsproj")), Err(Error::ProjectNotFound { .. })));
        assert!(matches!(read(&tree.path("folder")), Err(Error::ProjectInvalid { .. })));
    }

    #[test]
    fn broken_xml_is_told_with_its_line() {
        let reason = parse("<Project>\n  <ItemGroup>\n</Project>").unwrap_err();
        assert!(reason.starts_with("line 3, column "), "{reason}");
        assert!(parse("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>").is_err(), "no document type is read");
    }

    #[test]
    fn paths_are_read_with_either_slash() {
        let from = |written| path_from(Path::new("/home/shop/src"), written);
        assert_eq!(from(r"..\lib\.\Lib.fsproj"), Path::new("/home/shop/lib/Lib.fsproj"));
        assert_eq!(from("/other/A.fs"), Path::new("/other/A.fs"));
        assert_eq!(from("../../../../../A.fs"), Path::new("/A.fs"));
    }
}
