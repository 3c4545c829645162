//! The source of the F# worker, which the program carries so that any SDK can compile it.

use std::borrow::Cow;

use crate::kernel_files::{KernelFiles, text};

/// The list of the worker's files, in the folder of each assembly.
const LIST: &str = "sources.txt";

/// One file of the worker.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    /// Its file name, which compiler errors mention.
    pub(super) name: Cow<'static, str>,
    /// The text of the file.
    pub(super) text: Cow<'static, str>,
}

/// What the worker is made of. The files of each assembly stand in the order of compilation, which the `sources.txt` beside them sets.
#[derive(Debug, Clone)]
pub(super) struct Sources {
    /// The module `Mainstay`, which code of sessions uses and the worker too.
    pub(super) display: Vec<SourceFile>,
    /// The source files of the worker.
    pub(super) worker: Vec<SourceFile>,
}

/// A file of the worker is not there.
#[derive(Debug, thiserror::Error)]
#[error("this program lacks its file kernels/{path}; install Mainstay again")]
pub struct MissingSource {
    /// Where it would be, in the folder `kernels`.
    path: String,
}

impl Sources {
    /// The sources as they are now.
    ///
    /// # Errors
    /// [`MissingSource`].
    pub(super) fn read(files: KernelFiles) -> Result<Self, MissingSource> {
        Ok(Self { display: read_listed(files, "fsharp/display")?, worker: read_listed(files, "fsharp")? })
    }
}

fn read_listed(files: KernelFiles, folder: &str) -> Result<Vec<SourceFile>, MissingSource> {
    let read = |name: &str| {
        let path = format!("{folder}/{name}");
        text(files, &path).ok_or(MissingSource { path })
    };
    let list = read(LIST)?;
    let file = |name: &str| Ok(SourceFile { name: Cow::Owned(name.to_owned()), text: read(name)? });
    list.split_whitespace().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_come_in_the_order_of_the_list_and_one_that_is_missing_is_named() {
        let files: KernelFiles = |path| {
            let text = match path {
                "fsharp/sources.txt" => "B.fs\nA.fs\n",
                "fsharp/display/sources.txt" => "C.fs",
                "fsharp/B.fs" | "fsharp/A.fs" | "fsharp/display/C.fs" => "()",
                _ => return None,
            };
            Some(Cow::Borrowed(text.as_bytes()))
        };
        let names =
            |sources: &[SourceFile]| sources.iter().map(|source| source.name.to_string()).collect::<Vec<_>>();
        let sources = Sources::read(files).unwrap();
        assert_eq!(
            (names(&sources.worker), names(&sources.display)),
            (vec!["B.fs".to_owned(), "A.fs".to_owned()], vec!["C.fs".to_owned()])
        );

        let lacks: KernelFiles =
            |path| (path.ends_with("sources.txt")).then_some(Cow::Borrowed(b"D.fs".as_slice()));
        let error = Sources::read(lacks).unwrap_err().to_string();
        assert!(error.contains("kernels/fsharp/display/D.fs"), "{error}");
    }
}
