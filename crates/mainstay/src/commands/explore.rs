//! The command `mainstay explore`, which lists members.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use mainstay_home::Home;
use mainstay_model::{Action, Error, SessionState};
use mainstay_protocol::operations::{Explore as ListMembers, FindSymbols, ListValues};
use mainstay_runner::query::SYMBOLS;
use mainstay_terminal::{Paint, note};
use mainstay_terminal_client::connect::connect_or_start;
use mainstay_terminal_client::explore::{members_text, symbols_text, values_text};

use super::target::Target;

/// Shows what a session has and refers to; nothing runs for it.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").args(["name", "find", "values"]).required(true),
    after_help = "Examples:\n  mainstay explore System.IO              # what a namespace holds\n  mainstay explore List                   # a module's functions, with their types\n  mainstay explore System.Text.StringBuilder\n  mainstay explore --find chunk           # by a part of the name, in all that is loaded\n  mainstay explore --values               # what the session's code bound\n\nExit codes: 0 something was found, 1 nothing was."
)]
pub(super) struct Explore {
    /// A namespace, module or type, as code would write it
    name: Option<String>,

    /// Find what has this text in its name; with a dot, in its full name
    #[arg(short, long, value_name = "TEXT")]
    find: Option<String>,

    /// With --find: at most so many
    #[arg(long, requires = "find", default_value_t = SYMBOLS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,

    /// List the names that the session's code bound, the newest first, with what they are bound to now
    #[arg(long)]
    values: bool,

    #[command(flatten)]
    target: Target,

    /// Print the members as JSON
    #[arg(long)]
    json: bool,
}

impl Explore {
    pub(super) async fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let Self { name, find, limit, values: _, target, json } = self;
        let connection = connect_or_start(home, "explore").await?;
        let client = &connection.client;
        let view = target.in_use(home, client).await?;
        let is_warming_up = view.state == SessionState::WarmingUp.name();
        if is_warming_up {
            note(&format!("{} is still warming up: what its code defines may be missing yet", view.name));
        }
        let session = view.session.to_string();
        let paint = Paint::stdout();
        let is_empty = match (name, find) {
            (Some(name), _) => {
                let members = match client.call(ListMembers { session, name }).await {
                    // It is not known yet that nothing has the name.
                    Err(Error::InvalidArgument { .. }) if is_warming_up => {
                        let (action, state) = (Action::Explore, SessionState::WarmingUp);
                        return Err(Error::NotOffered { action, state, kind: view.kind, fault: None });
                    }
                    members => members?,
                };
                show(&members, json, || members_text(&members, paint))?;
                false
            }
            (None, Some(text)) => {
                let symbols = client.call(FindSymbols { session, text, limit: Some(limit) }).await?;
                show(&symbols, json, || symbols_text(&symbols, paint))?;
                symbols.items.is_empty()
            }
            (None, None) => {
                let values = client.call(ListValues { session }).await?;
                show(&values, json, || values_text(&values, paint))?;
                values.is_empty()
            }
        };
        Ok(if is_empty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn show(answer: &impl serde::Serialize, json: bool, text: impl FnOnce() -> String) -> Result<(), Error> {
    match json {
        true => super::print_json(answer)?,
        false => print!("{}", text()),
    }
    Ok(())
}
