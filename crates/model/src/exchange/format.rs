//! The formats that a session is exported in.

use std::path::Path;

use super::{Header, Item, Lines, dib, markdown, notebook, script};
use crate::error::Error;
use crate::id::SessionKind;

/// How an exported session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Whole, and what is imported.
    #[default]
    Jsonl,
    /// Code and outputs, or what was said, to read.
    Markdown,
    /// A script of what ran to its end since the last reset, of an F# session.
    Fsx,
    /// The same as a Polyglot notebook.
    Dib,
    /// A Jupyter notebook.
    Ipynb,
}

impl Format {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Jsonl, Self::Markdown, Self::Fsx, Self::Dib, Self::Ipynb];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Fsx => "fsx",
            Self::Dib => "dib",
            Self::Ipynb => "ipynb",
        }
    }

    /// That of a file with this name, where the name tells.
    pub fn of_file(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?;
        let named = Self::ALL.into_iter().find(|format| format.name() == extension);
        named.or((extension == "md").then_some(Self::Markdown))
    }

    /// The whole file.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a script, or a Polyglot notebook, of what is no F# session.
    pub fn write(self, header: &Header, items: &[Item]) -> Result<String, Error> {
        Ok(match self {
            Self::Jsonl => {
                let mut lines = Lines::default();
                let mut text = lines.header(header);
                items.iter().for_each(|item| text.push_str(&lines.item(item)));
                text + &lines.end()
            }
            Self::Fsx | Self::Dib if header.kind != SessionKind::fsharp() => {
                let name = self.name();
                let reason =
                    format!("`{name}` is for F# sessions, and this one is of the kind `{}`", header.kind);
                return Err(Error::InvalidArgument { argument: "format".to_owned(), reason });
            }
            Self::Markdown => markdown(header, items),
            Self::Fsx => script(items),
            Self::Dib => dib(header, items),
            Self::Ipynb => format!("{:#}\n", notebook(header, items)),
        })
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| Error::InvalidArgument {
            argument: "format".to_owned(),
            reason: format!("there is no `{text}`; there are jsonl, markdown, fsx, dib and ipynb"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_tells_its_format() {
        for (file, format) in [
            ("lab.jsonl", Some(Format::Jsonl)),
            ("a/lab.md", Some(Format::Markdown)),
            ("lab.fsx", Some(Format::Fsx)),
            ("lab.dib", Some(Format::Dib)),
            ("lab.ipynb", Some(Format::Ipynb)),
            ("lab.txt", None),
            ("lab", None),
        ] {
            assert_eq!(Format::of_file(Path::new(file)), format, "{file}");
        }
        assert!(Format::ALL.iter().all(|format| format.name().parse() == Ok(*format)));
        assert!("pdf".parse::<Format>().is_err());
    }
}
