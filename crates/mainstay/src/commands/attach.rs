//! `mainstay`: a prompt on a session, or a script from standard input.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use mainstay_home::Home;
use mainstay_model::Error;
use mainstay_terminal_client::connect::connect_or_start;

use super::target::Target;

/// Connects, or starts the daemon and connects.
pub(super) async fn run(home: &Home, target: Target) -> Result<ExitCode, Error> {
    if !std::io::stdin().is_terminal() {
        let mut script = Vec::new();
        std::io::stdin()
            .read_to_end(&mut script)
            .map_err(|error| Error::CodeInvalid { reason: error.to_string() })?;
        return match target.is_agent()? {
            true => super::prompt::Prompt::of_text(target, script)?.run(home).await,
            false => super::eval::Eval::of_script(target, script).run(home).await,
        };
    }
    let connection = connect_or_start(home, "terminal").await?;
    let session = target.in_use(home, &connection.client).await?;
    mainstay_prompt::run(home, connection, session).await
}
