//! Writing a session to a file.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use mainstay_client::Client;
use mainstay_formats::exchange::{Format, Header, Item};
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_protocol::operations::{ExportSession, Exported};
use mainstay_terminal::{note, printable};

use crate::kernels;

/// The destination and the format of an exported session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The format; without it the one of the file's ending, else jsonl.
    pub format: Option<Format>,

    /// The file, which must not be there yet; standard output without it.
    pub output: Option<PathBuf>,

    /// Whether a file that is there is overwritten.
    pub force: bool,
}

impl Destination {
    /// What is said where no session is found: who named a file may have meant it to be written.
    pub fn meant(&self, error: Error) -> Error {
        match error {
            Error::SessionNotFound { reference }
                if self.output.is_none() && Format::of_file(Path::new(&reference)).is_some() =>
            {
                let reason =
                    format!("no session answers to `{reference}`; `--output {reference}` writes that file");
                Error::InvalidArgument { argument: "session".to_owned(), reason }
            }
            error => error,
        }
    }

    /// Whether it may be written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where there is a file of that name, or its ending is that of no format.
    pub fn check(&self) -> Result<(), Error> {
        self.check_ending()?;
        let Some(file) = self.output.as_deref().filter(|file| file.exists() && !self.force) else {
            return Ok(());
        };
        let reason = format!("`{}` is there already; --force writes over it", file.display());
        Err(Error::InvalidArgument { argument: "output".to_owned(), reason })
    }

    /// Refuses a file whose name promises what is not written.
    fn check_ending(&self) -> Result<(), Error> {
        let Some(file) = self.output.as_deref().filter(|_| self.format.is_none()) else { return Ok(()) };
        let Some(ending) = file.extension().filter(|_| Format::of_file(file).is_none()) else {
            return Ok(());
        };
        let formats = Format::ALL.map(Format::name).join(", ");
        let reason = format!(
            "`.{}` is the ending of no format; name one with --format ({formats}), or give the file its ending",
            ending.display()
        );
        Err(Error::InvalidArgument { argument: "output".to_owned(), reason })
    }

    /// Writes a session, and says what was written where.
    pub async fn write(&self, home: &Home, client: &Client, session: String) -> Result<(), Error> {
        self.check()?;
        let named_by = self.output.as_deref().and_then(Format::of_file);
        let format = self.format.or(named_by).unwrap_or_default();
        let (header, items) = read(client, session).await?;
        let text = format.write_of(&kernels::kernel_of_export(home, &header), &header, &items)?;
        match &self.output {
            None => {
                let mut out = std::io::stdout();
                // A terminal would obey what is in it.
                let text = if out.is_terminal() { printable(&text) } else { text.into() };
                out.write_all(text.as_bytes()).map_err(|error| unwritable("standard output", &error))?;
            }
            Some(file) => {
                let written = write(file, text.as_bytes(), self.force);
                written.map_err(|error| unwritable(&file.display().to_string(), &error))?;
                let entries: u64 = items.iter().map(Item::entries).sum();
                note(&format!("{entries} entries of {} are in {}", header.name, file.display()));
            }
        }
        Ok(())
    }
}

/// Reads all of a session that is in its file.
pub async fn read(client: &Client, session: String) -> Result<(Header, Vec<Item>), Error> {
    let mut part =
        client.call(ExportSession { session: session.clone(), cursor: Default::default() }).await?;
    let mut items = std::mem::take(&mut part.items);
    while let Some(cursor) = part.next {
        part = client.call(ExportSession { session: session.clone(), cursor }).await?;
        items.append(&mut part.items);
    }
    let Exported { header, .. } = part;
    Ok((header, items))
}

/// Writes a file that only the user may read, whole or not at all; over one that is there only by `force`.
pub fn write(file: &Path, bytes: &[u8], force: bool) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    match force {
        true => staged.persist(file).map(drop)?,
        false => staged.persist_noclobber(file).map(drop)?,
    }
    // Its name must outlive the machine as well.
    std::fs::File::open(folder)?.sync_all()
}

/// The error for what cannot be written.
pub fn unwritable(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::InvalidArgument {
        argument: "output".to_owned(),
        reason: format!("{what} cannot be written: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_of_no_format_is_refused_unless_a_format_is_named() {
        let check = |output: &str, format| {
            Destination { format, output: Some(PathBuf::from(output)), force: false }.check().is_ok()
        };
        let nowhere = |name: &str| format!("/nowhere/{name}");
        for (name, format, is_taken) in [
            ("p.html", None, false),
            ("p.JSON", None, false),
            ("p.html", Some(Format::Markdown), true),
            ("p.md", None, true),
            ("p.jsonl", None, true),
            ("p", None, true),
        ] {
            assert_eq!(check(&nowhere(name), format), is_taken, "{name}");
        }
    }
}
