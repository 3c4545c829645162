//! `mainstay run`: a notebook or a script, cell by cell. Each cell is an eval under an id that its text gives, so whoever runs the file
//! again goes on after the last cell that ran to its end.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_formats::exchange::Outputs;
use mainstay_formats::notebook::runs::{CellRun, NotebookRuns, check_kind, goes_on, passed_over};
use mainstay_formats::notebook::{Cell, Notebook, NotebookFormat};
use mainstay_home::Home;
use mainstay_model::{CommandId, CommandLine, Error};
use mainstay_protocol::Conditions;
use mainstay_protocol::operations::{GetSession, GetStatus};
use mainstay_protocol::view::{EvalView, SessionView};
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::{Connection, connected, connected_again};
use mainstay_terminal_client::kernels;
use mainstay_terminal_client::sessions::OpenedSession;
use serde::Serialize;

use super::command_wait::CommandWait;
use super::eval::{Run as Evaluation, Show, Source, utf8};
use super::questions::Asker;
use super::target::Target;
use mainstay_terminal_client::export;

/// Runs the code cells of a file one after the other, up to the first that fails.
///
/// A script's cells begin with `// %%` or `# %%`, as its language has comments, each on a line of its own; one without such lines is one cell. It
/// runs in a session of its language, a Jupyter notebook in one of the kernel that it names. Cells that ran to their end before, with all cells
/// before them as they are now, do not run again; a script without cells runs each time.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay run analysis.ipynb --write     # what comes of it stands in the file\n  mainstay run analysis.fsx               # again: goes on after the last cell that ran to its end\n  mainstay run analysis.py --kind xpython # in another kernel of its language\n  mainstay run analysis.dib --from 4 --again\n  mainstay run import.fsx data.csv --dry  # `fsi.CommandLineArgs` is import.fsx, data.csv, --dry\n\nExit codes: 0 all cells ran to their end, 1 one did not, 2 the command line was wrong.\nA cell that calls `exit` gives its own exit code, and 1 with --json."
)]
pub(super) struct Run {
    /// The file: an .ipynb or .dib, or a script (.fsx, .py, .ts, .js, .sh)
    file: PathBuf,

    #[command(flatten)]
    target: Target,

    /// Begin at this cell; the first is 1, and Markdown counts
    #[arg(long, value_name = "N", conflicts_with = "cell", value_parser = clap::value_parser!(u32).range(1..))]
    from: Option<u32>,

    /// Run this cell alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cell: Option<u32>,

    /// Run also what ran to its end before
    #[arg(long)]
    again: bool,

    /// Put what comes of the cells into the file, an .ipynb
    #[arg(long)]
    write: bool,

    /// Print one line of JSON for each code cell
    #[arg(long)]
    json: bool,

    /// What the code has for `fsi.CommandLineArgs` (F#) or `sys.argv` (Python) behind the file; `--` before the first one that begins
    /// with a hyphen
    #[arg(trailing_var_arg = true)]
    arguments: Vec<String>,
}

/// A file in cells.
struct NotebookFile {
    path: PathBuf,
    text: String,
    notebook: Notebook,
    cells: Vec<Cell>,
}

/// What came of a cell, for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CellLine {
    cell: usize,
    line: u32,
    /// Whether it waits for a run that comes so far.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    not_run: bool,
    #[serde(flatten)]
    eval: Option<EvalView>,
}

/// The cell after which none runs.
struct StopCell {
    index: usize,
    /// Whether its code called `exit 0`, which is an end and no failure.
    is_own_end: bool,
}

/// The cells that were run, or had been, by the commands that did.
type RunCells = Vec<(usize, CommandId)>;

impl Run {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let mut opened = NotebookFile::read(&self.file)?;
        let wanted = self.wanted(opened.cells.len())?;
        if self.write && !opened.notebook.keeps_outputs() {
            let reason = "only an .ipynb has a place for what comes of its cells".to_owned();
            return Err(Error::InvalidArgument { argument: "write".to_owned(), reason });
        }
        let kinds = opened.notebook.kinds();
        let settled = async |connection: &Connection| {
            opened.check_size(&connection.client).await?;
            self.target.settled_of(home, &connection.client, kinds.clone()).await
        };
        let (_, OpenedSession { session, .. }) = connected(home, "cli", settled).await?;
        if self.target.kind.is_none() {
            check_kind(&self.file, &kinds, &session.kind, session.language.as_ref())?;
        }
        terminal::tell_unbuilt(&session);
        terminal::tell_news(&session);
        let mut ran = RunCells::new();
        let exit = self.run_cells(home, &session, &opened, wanted, &mut ran).await;
        if self.write {
            let write = async |connection: &Connection| {
                opened.write_outputs(home, &connection.client, &session, &ran).await
            };
            connected_again(home, "cli", write).await?;
        }
        exit
    }

    /// The command line of the code, as if its language's own program had been called.
    fn command_line(&self) -> CommandLine {
        CommandLine { script: self.file.display().to_string(), arguments: self.arguments.clone() }
    }

    /// The indices of the cells that are meant.
    fn wanted(&self, cells: usize) -> Result<std::ops::Range<usize>, Error> {
        let index = |number: u32, argument: &str| match (number as usize).checked_sub(1) {
            Some(index) if index < cells => Ok(index),
            Some(_) | None => Err(Error::InvalidArgument {
                argument: argument.to_owned(),
                reason: format!("there is no cell {number}; there are {cells}"),
            }),
        };
        match (self.cell, self.from) {
            (Some(cell), _) => index(cell, "cell").map(|cell| cell..cell + 1),
            (None, Some(from)) => index(from, "from").map(|from| from..cells),
            (None, None) => Ok(0..cells),
        }
    }

    async fn run_cells(
        &self,
        home: &Home,
        session: &SessionView,
        opened: &NotebookFile,
        wanted: std::ops::Range<usize>,
        ran: &mut RunCells,
    ) -> Result<ExitCode, Error> {
        let file = opened.path.display().to_string();
        let again = self.again || opened.is_plain_script();
        let mut runs = NotebookRuns::new(session.session, &file, &self.arguments, &opened.cells, again);
        let (end, of) = (wanted.end, opened.cells.len());
        let mut is_anything_new = false;
        for index in wanted {
            let Some(cell) = opened.cells.get(index) else { break };
            let number = index + 1;
            if let Some(passed) = passed_over(cell, &session.kind, session.language.as_ref()) {
                let line = format!("[{number}/{of}] {passed}");
                // Code that does not run is missed by whoever reads what came of it.
                if cell.is_code() {
                    self.note(&line)
                } else {
                    self.tell(&line)
                }
                continue;
            }
            let reference = session.session.to_string();
            let find = async |connection: &Connection| {
                let run = runs.of_cell(&connection.client, index).await?;
                let now = connection.client.call(GetSession { session: reference.clone() }).await?;
                Ok((run, now))
            };
            let (connection, (CellRun { command, ran_before }, now)) =
                connected_again(home, "cli", find).await?;
            self.tell(&format!("[{number}/{of}]{}", if ran_before { " ran before" } else { "" }));
            let show = if self.json || ran_before { Show::Nothing } else { Show::OutputAndDisplay };
            let evaluation = Evaluation::new(opened.source(cell, self.command_line()), show);
            let named = (command.clone(), Conditions::default());
            let mut eval = CommandWait::new(evaluation, &now, named, Asker::Cell)?;
            let (answer, client) = eval.answer(home, connection).await?;
            let answer = eval.shown.finish(home, &client, answer).await?;
            ran.push((index, command));
            if !answer.eval.replayed {
                runs.ran_anew();
                is_anything_new = true;
            }
            let (goes_on, exit) = (goes_on(cell, &answer.eval.ending), answer.exit_code(self.json));
            let is_own_end = answer.is_own_end();
            self.print_line(index, cell, Some(answer.eval))?;
            if !goes_on {
                self.tell_rest(session, opened, StopCell { index, is_own_end }, end)?;
                return Ok(exit);
            }
        }
        if ran.is_empty() {
            self.note("nothing to run: no cell has code for this session");
        } else if !is_anything_new {
            self.note("every cell ran before, as it is now; `--again` runs them again");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What whoever reads the output must know.
    fn note(&self, text: &str) {
        if !self.json {
            terminal::note(text);
        }
    }

    /// How far it is, for who watches.
    fn tell(&self, progress: &str) {
        if !self.json && std::io::stderr().is_terminal() {
            terminal::note(progress);
        }
    }

    fn print_line(&self, index: usize, cell: &Cell, eval: Option<EvalView>) -> Result<(), Error> {
        if !self.json {
            return Ok(());
        }
        let not_run = eval.is_none();
        super::print_json_line(&CellLine { cell: index + 1, line: cell.line, not_run, eval })
    }

    /// Which cell was the last one, and which were not run for it.
    fn tell_rest(
        &self,
        session: &SessionView,
        opened: &NotebookFile,
        StopCell { index: last, is_own_end }: StopCell,
        end: usize,
    ) -> Result<(), Error> {
        let mut rest = Vec::new();
        for (index, cell) in opened.cells.iter().enumerate().take(end).skip(last + 1) {
            if passed_over(cell, &session.kind, session.language.as_ref()).is_none() {
                self.print_line(index, cell, None)?;
                rest.push((index + 1).to_string());
            }
        }
        let not_run = match rest.as_slice() {
            [] => String::new(),
            [one] => format!("; cell {one} was not run"),
            many => format!("; cells {} were not run", many.join(", ")),
        };
        let line = match opened.notebook {
            Notebook::Script(..) | Notebook::Dib(_) => opened.cells.get(last).map(|cell| cell.line),
            Notebook::Ipynb(_) => None,
        };
        let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
        match (is_own_end, rest.is_empty()) {
            (true, true) => {}
            // It is the whole file, and what was printed says how it ended.
            (false, _) if opened.cells.len() == 1 => {}
            (true, false) => terminal::note(&format!("cell {}{line} ended the run{not_run}", last + 1)),
            (false, _) => {
                terminal::note(&format!("cell {}{line} did not run to its end{not_run}", last + 1));
            }
        }
        Ok(())
    }
}

impl NotebookFile {
    fn read(file: &Path) -> Result<Self, Error> {
        let unusable = |reason: String| Error::InvalidArgument {
            argument: "file".to_owned(),
            reason: format!("`{}`: {reason}", file.display()),
        };
        let format = NotebookFormat::named(file).map_err(unusable)?;
        let path = std::fs::canonicalize(file).map_err(|error| unusable(error.to_string()))?;
        let bytes = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
        let text = utf8(bytes)?;
        let notebook = Notebook::read(format, &text)?;
        let cells = notebook.cells();
        Ok(Self { path, text, notebook, cells })
    }

    /// Whether it is a script without cells, which has no place to go on at.
    fn is_plain_script(&self) -> bool {
        matches!(self.notebook, Notebook::Script(..)) && self.cells.len() == 1
    }

    /// A file is taken as large as a message may be.
    async fn check_size(&self, client: &Client) -> Result<(), Error> {
        let limit = client.call(GetStatus {}).await?.limits.message_bytes;
        let size = self.text.len();
        if size <= limit {
            return Ok(());
        }
        let reason = format!("it has {size} bytes; `message-bytes` allows {limit}");
        Err(Error::InvalidArgument { argument: "file".to_owned(), reason })
    }

    fn source(&self, cell: &Cell, command_line: CommandLine) -> Source {
        let lines_before = cell.line.saturating_sub(1);
        let file = Some(self.path.display().to_string());
        Source {
            code: cell.source.clone(),
            file,
            command_line: Some(command_line),
            lines_before,
            is_script: false,
        }
    }

    /// Puts what came of the cells into the file, whole or not at all.
    async fn write_outputs(
        &mut self,
        home: &Home,
        client: &Client,
        session: &SessionView,
        ran: &RunCells,
    ) -> Result<(), Error> {
        let (header, items) = export::read(client, session.session.to_string()).await?;
        let kernel = kernels::kernel_of_export(home, &header);
        let outputs = Outputs::of(&kernel, &items);
        for ((cell, command), number) in ran.iter().zip(1..) {
            if let Some(outputs) = outputs.of_command(command, number) {
                self.notebook.set_outputs(*cell, number, outputs);
            }
        }
        let name = self.path.display().to_string();
        let is_as_read =
            std::fs::read(&self.path).is_ok_and(|now| utf8(now).is_ok_and(|now| now == self.text));
        if !is_as_read {
            let reason = format!("`{name}` was changed while it ran; what came of it is in the session");
            return Err(Error::InvalidArgument { argument: "write".to_owned(), reason });
        }
        replace(&self.path, self.notebook.text().as_bytes())
            .map_err(|error| export::unwritable(&name, &error))
    }
}

/// Writes over a file, which keeps who may read it.
fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut staged = tempfile::NamedTempFile::new_in(folder)?;
    staged.write_all(bytes)?;
    staged.as_file().set_permissions(std::fs::metadata(file)?.permissions())?;
    staged.as_file().sync_all()?;
    staged.persist(file)?;
    std::fs::File::open(folder)?.sync_all()
}
