//! `mainstay session refresh`: brings a session up to date with the libraries and scripts that it uses.

use std::process::ExitCode;

use clap::Args;
use mainstay_client::Client;
use mainstay_model::{Divergence, Error, EventBody, Reload, Seq, Validity};
use mainstay_protocol::operations::{GetSession, RefreshSession, WouldRun};
use mainstay_protocol::view::SessionView;
use mainstay_terminal::{Paint, Tone, note, printable};
use mainstay_terminal_client::session_changes::refresh_reason;
use mainstay_terminal_client::sessions::settle;
use mainstay_terminal_client::transcript::{EntrySelection, SHOWN_LINES, entry_text, for_each_entry};

use super::arguments::named;
use super::conditions::SentArgs;
use super::events::for_each_event;

/// Runs a session's definitions again, where a library or a script that they use has changed.
///
/// Where only scripts changed, what depends on them runs again in the worker that is there. Otherwise a new worker takes in what is
/// there now and runs again what defined the session. What then has another value is named. Nothing runs where nothing has changed, or
/// where something is gone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay session refresh\n  mainstay session refresh --dry-run lab   # what is out of date, and what would run again"
)]
pub(super) struct Refresh {
    /// The session [default: the most recently active one of this folder]
    session: Option<String>,

    /// Only show what is out of date
    #[arg(long)]
    dry_run: bool,

    /// Run all of them in a new worker, also where nothing has changed
    #[arg(long)]
    all: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    sent: SentArgs,
}

impl Refresh {
    pub(super) async fn run(self, client: &Client) -> Result<ExitCode, Error> {
        let Self { session, dry_run, all, json, sent } = self;
        let session = named(client, session).await?;
        let refresh =
            RefreshSession { session: session.session.to_string(), all, dry_run, sent: sent.sent() };
        let refreshed = client.call(refresh).await?;
        let done = match refreshed.after {
            Some(after) => Some(rebuilding(client, &session, after).await?),
            None => None,
        };
        if json {
            super::print_json(&refreshed)?;
        } else {
            if dry_run {
                show_outdated(client, &session).await?;
            }
            note(&refresh_reason(&refreshed, all));
            if let Some(would) = &refreshed.would {
                note(&would_text(would));
            }
            if let Some(done) = &done {
                print!("{}", rebuilding_text(done, Paint::stdout()));
            }
        }
        let failed = !refreshed.gone.is_empty() || done.is_some_and(|done| done.faulted);
        Ok(if failed && !dry_run { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// What came of a rebuilding.
struct Rebuilding {
    replayed: u32,
    diverged: Vec<Divergence>,
    reload: Option<Box<Reload>>,
    faulted: bool,
}

/// Waits for the rebuilding that begins behind an event.
async fn rebuilding(client: &Client, session: &SessionView, after: Seq) -> Result<Rebuilding, Error> {
    let session = client.call(GetSession { session: session.session.to_string() }).await?;
    settle(client, session.clone()).await?;
    let mut done = Rebuilding { replayed: 0, diverged: Vec::new(), reload: None, faulted: false };
    let mut is_done = false;
    for_each_event(client, &session, after, |event| {
        if is_done {
            return;
        }
        if let EventBody::WarmUpCompleted { replayed, diverged, reload, .. } = &event.body {
            is_done = true;
            (done.replayed, done.diverged, done.faulted) = (*replayed, diverged.clone(), false);
            done.reload.clone_from(reload);
        }
        done.faulted |= matches!(event.body, EventBody::SessionFaulted { .. });
    })
    .await?;
    Ok(done)
}

fn rebuilding_text(done: &Rebuilding, paint: Paint) -> String {
    let Rebuilding { replayed, diverged, reload, faulted } = done;
    if *faulted {
        let words = "the session did not come up again; `mainstay session show` says why\n";
        return paint.tone(Tone::Error, words);
    }
    if let Some(reload) = reload {
        return format!("{}\n", printable(&reload.line(diverged)));
    }
    // An idle session took in what had changed when it was started.
    let mut text = format!("{replayed} submissions ran again");
    if diverged.is_empty() {
        return text + ", and gave the same\n";
    }
    text.push('\n');
    for divergence in diverged {
        text.push_str(&format!("  {}\n", printable(&divergence.to_string())));
    }
    text
}

/// What would run again, and where.
fn would_text(WouldRun { count, of, because }: &WouldRun) -> String {
    let words = match because {
        None => format!("{count} of {of} submissions would run again, in the worker that is there"),
        Some(because) => format!("{count} of {of} submissions would run again, in a new worker: {because}"),
    };
    printable(&words).into_owned()
}

async fn show_outdated(client: &Client, session: &SessionView) -> Result<(), Error> {
    let paint = Paint::stdout();
    for_each_entry(client, session.session, EntrySelection::default(), |number, entry| {
        if matches!(entry.validity, Some(Validity::Stale | Validity::Invalid)) {
            print!("{}", entry_text(number, entry, SHOWN_LINES, paint));
        }
        Ok(())
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_model::DivergenceKind;

    #[test]
    fn what_has_another_value_is_told_with_it() {
        let kind = DivergenceKind::Values {
            names: vec!["x".to_owned(), "y".to_owned()],
            now: [("x".to_owned(), "2".to_owned())].into(),
        };
        let diverged = vec![Divergence { requested: Seq(4), session: None, kind }];
        let told = |diverged, faulted| {
            rebuilding_text(&Rebuilding { replayed: 3, diverged, reload: None, faulted }, Paint::plain())
        };
        insta::assert_snapshot!(told(diverged, false), @"
        3 submissions ran again
          #4 gave another `x` (now 2), `y`
        ");
        insta::assert_snapshot!(told(Vec::new(), false), @"3 submissions ran again, and gave the same");
        insta::assert_snapshot!(told(Vec::new(), true), @"the session did not come up again; `mainstay session show` says why");
    }
}
