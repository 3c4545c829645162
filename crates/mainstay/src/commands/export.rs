//! `mainstay export`: a session as a file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use mainstay_formats::exchange::Format;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::export::Destination;

use super::arguments::named;

/// Writes a session to a file, whole or for people to read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay export lab --output lab.jsonl      # whole: `mainstay import lab.jsonl` has it again\n  mainstay export lab --output lab.ipynb      # a Jupyter notebook\n  mainstay export lab --format markdown | less\n\nThe formats:\n  jsonl      every cell with all that came of it, and every message, checked by its hash; what `mainstay import` reads\n  markdown   code and outputs, or what was said, to read\n  ipynb      a Jupyter notebook\n  fsx, py, ts, js, sh\n             a script of what ran to its end since the last reset, of a session of its language\n  dib        the same as a Polyglot notebook, of an F# session"
)]
pub(super) struct Export {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    #[command(flatten)]
    to: DestinationArgs,
}

/// Where a session is written, and how.
#[derive(Debug, Args)]
struct DestinationArgs {
    /// The format [default: by the name of the file, or jsonl]
    #[arg(short, long, value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>()))]
    format: Option<Format>,

    /// The file; it must not be there yet [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write over a file that is there
    #[arg(long, requires = "output")]
    force: bool,
}

impl From<DestinationArgs> for Destination {
    fn from(DestinationArgs { format, output, force }: DestinationArgs) -> Self {
        Self { format, output, force }
    }
}

impl Export {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let to = Destination::from(self.to);
        // Before a daemon is started for it.
        to.check()?;
        let connection = connect_or_start(home, "cli").await?;
        let session = named(&connection.client, self.session).await.map_err(|error| to.meant(error))?;
        let session = session.session.to_string();
        to.write(home, &connection.client, session).await?;
        Ok(ExitCode::SUCCESS)
    }
}
