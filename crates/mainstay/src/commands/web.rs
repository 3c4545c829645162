//! `mainstay web`: the page in a browser, opened by a link that works once.

use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_protocol::operations::GetLink;
use mainstay_terminal as terminal;
use mainstay_terminal_client::connect::connect_or_start;

/// Opens the page in a browser.
///
/// The link works once, within a minute. The browser keeps a secret from then on, for this address alone; `browser-ms` says for how long.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay web\n  mainstay web demo\n  mainstay web --print | wl-copy")]
pub(super) struct Web {
    /// Open this session: its name, its id or the end of it
    session: Option<String>,

    /// Print the link, and open nothing
    #[arg(long)]
    print: bool,

    /// Print JSON, and open nothing
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

impl Web {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let connection = connect_or_start(home, "cli").await?;
        let link = connection.client.call(GetLink { session: self.session }).await?;
        if self.json {
            super::print_json(&link)?;
        } else if self.print || !is_opened(&link.url) {
            println!("{}", link.url);
        } else {
            terminal::note("the page opens in your browser; `mainstay web --print` prints its link instead");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Opens an address with what this machine opens addresses with; false where there is nothing.
fn is_opened(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    opened.is_ok_and(|status| status.success())
}
