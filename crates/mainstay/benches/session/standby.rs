//! A session that takes the standby, from its creation or hard reset to its first value, beside `dotnet fsi`.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_model::SessionKind;
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, ResetSession, SettleSession, StopSession};

use crate::daemon::{Daemon, create, eval};
use crate::fsi::Fsi;
use crate::spread::{print_row, spread};
use crate::{Failure, SESSIONS};

/// When there is a standby here: as soon as nobody waits for anything, whatever memory there is.
pub(crate) const SETTINGS: &str = "[fsharp]\nstandby-rest-ms = 0\nstandby-memory-bytes = 0\n";

/// How long the next standby may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked whether one is.
const LOOK: Duration = Duration::from_millis(20);

/// The rows: with the options of the settings, with others, after a hard reset; and `dotnet fsi`.
pub(crate) async fn standby(daemon: &Daemon, dotnet: &Path, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    // None is made before the daemon has started a session.
    let first = create(&client, folder).await?;
    client.call(eval(&first, "1+1")).await?;
    let mut last = wait_for_another(daemon, 0).await?;
    println!("\n| with a standby, to the first value | median | longest |\n|---|---|---|");
    for (options, row) in [(None, "a new session"), (Some("--define:X"), "one with options of its own")] {
        let mut series = Vec::new();
        for _ in 0..SESSIONS {
            let began = Instant::now();
            let session = created(&client, folder, options).await?;
            client.call(eval(&session, "1+1")).await?;
            series.push(began.elapsed());
            last = wait_for_another(daemon, last).await?;
            client.call(StopSession { session, sent: Sent::default() }).await?;
        }
        print_row(row, spread(series));
    }
    let mut series = Vec::new();
    for _ in 0..SESSIONS {
        let began = Instant::now();
        client.call(ResetSession { session: first.clone(), hard: true, sent: Sent::default() }).await?;
        client.call(SettleSession { session: first.clone(), timeout_ms: 120_000 }).await?;
        client.call(eval(&first, "1+1")).await?;
        series.push(began.elapsed());
        last = wait_for_another(daemon, last).await?;
    }
    print_row("a hard reset", spread(series));
    let theirs = (0..SESSIONS).map(|_| {
        let began = Instant::now();
        Fsi::start(dotnet, folder)?;
        Ok::<_, Failure>(began.elapsed())
    });
    print_row("`dotnet fsi`", spread(theirs.collect::<Result<_, _>>()?));
    Ok(())
}

async fn created(client: &Client, folder: &Path, options: Option<&str>) -> Result<String, Failure> {
    let create = CreateSession {
        command: None,
        kind: SessionKind::fsharp(),
        working_directory: folder.display().to_string(),
        project: None,
        no_project: false,
        fsi_args: options.map(str::to_owned),
        name: None,
    };
    let session = client.call(create).await?.session.to_string();
    client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
    Ok(session)
}

/// Waits until another process stands by than the last; gives it.
async fn wait_for_another(daemon: &Daemon, last: u32) -> Result<u32, Failure> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match mainstay_shim::standby(&daemon.home.join("shims")) {
            Some(standby) if standby.worker_pid != last => return Ok(standby.worker_pid),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
    Err("no process stands by".into())
}
