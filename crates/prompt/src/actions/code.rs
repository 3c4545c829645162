//! Commands about code: exploring, loading, running files and tests.

use std::path::Path;

use mainstay_formats::notebook::NotebookFormat;
use mainstay_formats::notebook::runs::{CellRun, NotebookRuns, goes_on, passed_over};
use mainstay_gateway::notebook::NotebookFile;
use mainstay_model::{ApplicationStart, Error, TestSelection};
use mainstay_protocol::operations::{Explore, FindSymbols, GetCoverage, GetStatus, ListValues};
use mainstay_terminal::note;
use mainstay_terminal_client::coverage::{CoverageSubject, coverage_notes, coverage_text};
use mainstay_terminal_client::explore::{members_text, symbols_text, values_text};
use mainstay_terminal_client::link::is_loss;

use crate::evaluation::Submission;
use crate::prompt_loop::PromptLoop;

impl PromptLoop {
    pub(super) async fn explore(&self, name: String) -> Result<(), Error> {
        let members = self.link.client.call(Explore { session: self.link.reference(), name }).await?;
        print!("{}", members_text(&members, self.paint));
        Ok(())
    }

    pub(super) async fn find(&self, text: String) -> Result<(), Error> {
        let find = FindSymbols { session: self.link.reference(), text, limit: None };
        print!("{}", symbols_text(&self.link.client.call(find).await?, self.paint));
        Ok(())
    }

    pub(super) async fn values(&self) -> Result<(), Error> {
        let values = self.link.client.call(ListValues { session: self.link.reference() }).await?;
        print!("{}", values_text(&values, self.paint));
        Ok(())
    }

    pub(super) async fn load(&mut self, file: &str) -> Result<(), Error> {
        let unreadable = |error: std::io::Error| Error::InvalidArgument {
            argument: file.to_owned(),
            reason: error.to_string(),
        };
        let path = std::fs::canonicalize(file).map_err(unreadable)?;
        let code = std::fs::read_to_string(&path).map_err(unreadable)?;
        let code = code.strip_prefix('\u{feff}').map_or_else(|| code.clone(), str::to_owned);
        self.evaluate(Submission::new(code, Some(path.display().to_string()))).await
    }

    /// Runs a file cell by cell, up to the first that fails.
    pub(super) async fn run_file(&mut self, file: &str) -> Result<(), Error> {
        let limit = self.link.client.call(GetStatus {}).await?.limits.message_bytes;
        let opened = NotebookFile::read(Path::new(file), limit).await?;
        let (kind, language) = (self.link.session.kind.clone(), self.link.session.language.clone());
        let (path, cells) = opened.into_parts(&kind, language.as_ref())?;
        let of = cells.len();
        let is_script = matches!(NotebookFormat::of_file(&path), Some(NotebookFormat::Script(_)));
        let path = path.display().to_string();
        // A script without cells has no place to go on at.
        let mut runs = NotebookRuns::new(self.link.session.session, &path, &[], &cells, is_script && of == 1);
        let mut has_code = false;
        for (index, cell) in cells.iter().enumerate() {
            let number = index + 1;
            if let Some(passed) = passed_over(cell, &kind, language.as_ref()) {
                if cell.is_code() {
                    note(&format!("[{number}/{of}] {passed}"));
                }
                continue;
            }
            let CellRun { command, ran_before } = loop {
                match runs.of_cell(&*self.link.client, index).await {
                    Err(error) if is_loss(&error) && self.reconnect().await => {}
                    found => break found?,
                }
            };
            has_code = true;
            if ran_before {
                note(&format!("[{number}/{of}] ran before"));
                continue;
            }
            note(&format!("[{number}/{of}]"));
            runs.ran_anew();
            let ending = self.evaluate_cell(command, cell.source.clone(), path.clone()).await?;
            if !goes_on(cell, &ending) {
                note(&format!("cell {number} (line {}) did not run to its end", cell.line));
                break;
            }
        }
        if !has_code {
            note("nothing to run: no cell has code for this session");
        }
        Ok(())
    }

    pub(super) async fn test(&mut self, pattern: Option<String>) -> Result<(), Error> {
        TestSelection::is_known_to(&self.link.session.kind, self.link.session.capabilities())?;
        let selection = TestSelection { pattern, ..TestSelection::default() };
        self.evaluate(Submission::new(selection.code(), None)).await
    }

    /// Shows which lines tests reach.
    pub(super) async fn coverage(&self, subject: Option<String>) -> Result<(), Error> {
        TestSelection::is_known_to(&self.link.session.kind, self.link.session.capabilities())?;
        let folder = std::env::current_dir().unwrap_or_default();
        let subject = subject.map(|text| CoverageSubject::read(&text, &folder));
        let (file, name) = CoverageSubject::parts(subject.as_ref());
        let session = self.link.reference();
        let coverage = self.link.client.call(GetCoverage { session, file, name, measure: false }).await?;
        print!("{}", coverage_text(&coverage, subject.as_ref(), &folder, self.paint));
        coverage_notes(&coverage).iter().for_each(|text| note(text));
        Ok(())
    }

    /// Starts the application of the project; what it says is told as that of other code.
    pub(super) async fn run_app(&mut self, arguments: Vec<String>) -> Result<(), Error> {
        let start = ApplicationStart { entry: None, arguments };
        self.evaluate(Submission::new(start.code(), None)).await
    }
}
