//! The formats that a session is exported in.

use std::path::Path;

use super::{Header, Item, Kernel, Lines, dib, markdown, notebook, script};
use crate::notebook::ScriptLanguage;
use mainstay_model::error::Error;

/// How an exported session is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Whole, and what is imported.
    #[default]
    Jsonl,
    /// Code and outputs, or what was said, to read.
    Markdown,
    /// A script in cells of what ran to its end since the last reset, of a session of its language.
    Script(ScriptLanguage),
    /// The same as a Polyglot notebook, of an F# session.
    Dib,
    /// A notebook of Jupyter (`.ipynb`).
    Ipynb,
}

impl Format {
    /// Every format, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Jsonl,
        Self::Markdown,
        Self::Ipynb,
        Self::Script(ScriptLanguage::FSharp),
        Self::Dib,
        Self::Script(ScriptLanguage::Python),
        Self::Script(ScriptLanguage::TypeScript),
        Self::Script(ScriptLanguage::JavaScript),
        Self::Script(ScriptLanguage::Bash),
    ];

    /// Returns the name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Script(language) => language.extension(),
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
    /// As [`Self::write_of`].
    pub fn write(self, header: &Header, items: &[Item]) -> Result<String, Error> {
        self.write_of(&Kernel::of_header(header), header, items)
    }

    /// The whole file, of a session whose code this kernel ran: of one that has a name of its own, it says more than the kind.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a script, or a Polyglot notebook, of a session of another language.
    pub fn write_of(self, kernel: &Kernel, header: &Header, items: &[Item]) -> Result<String, Error> {
        Ok(match self {
            Self::Jsonl => {
                let mut lines = Lines::default();
                let mut text = lines.header(header);
                items.iter().for_each(|item| text.push_str(&lines.item(item)));
                text + &lines.end()
            }
            Self::Markdown => markdown(header, kernel, items),
            Self::Script(language) => {
                self.check(language, kernel)?;
                script(language, kernel, items)
            }
            Self::Dib => {
                self.check(ScriptLanguage::FSharp, kernel)?;
                dib(kernel, items)
            }
            Self::Ipynb => format!("{:#}\n", notebook(kernel, items)),
        })
    }

    /// Whether it is for what this kernel runs.
    fn check(self, language: ScriptLanguage, kernel: &Kernel) -> Result<(), Error> {
        let of = kernel.language.as_str();
        if of == language.name() {
            return Ok(());
        }
        let others = match ScriptLanguage::named(of) {
            Some(own) => format!("{}, ipynb and markdown", own.extension()),
            None => "ipynb and markdown".to_owned(),
        };
        let (name, language) = (self.name(), language.name());
        let reason = format!(
            "`{name}` is for sessions of `{language}`, and this one is of `{of}`; there are {others}"
        );
        Err(Error::InvalidArgument { argument: "format".to_owned(), reason })
    }
}

impl std::str::FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| Error::InvalidArgument {
            argument: "format".to_owned(),
            reason: format!("there is no `{text}`; there are {}", Self::ALL.map(Self::name).join(", ")),
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
            ("lab.fsx", Some(Format::Script(ScriptLanguage::FSharp))),
            ("lab.py", Some(Format::Script(ScriptLanguage::Python))),
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
