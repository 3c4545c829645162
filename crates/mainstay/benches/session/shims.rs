//! What it costs that runners live in shims: evals, starts and output with them and without (`orphan-ms = 0`), by turns; the memory of a
//! shim; and how long a daemon takes to adopt many sessions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_protocol::Sent;
use mainstay_protocol::operations::StopSession;
use serde_json::Value;

use crate::Failure;
use crate::daemon::{Daemon, create, eval};
use crate::spread::{print_row, spread};

/// How often each is done.
const EVALS: usize = 500;
const STARTS: usize = 5;
const FLOODS: usize = 5;
const LOSSES: usize = 5;

/// How many lines a flood has.
const LINES: usize = 100_000;

/// How many sessions a daemon adopts.
const ADOPTED: usize = 50;

/// One side of the comparison.
struct Side {
    daemon: Daemon,
    client: Client,
    session: String,
    evals: Vec<Duration>,
    starts: Vec<Duration>,
    floods: Vec<Duration>,
}

impl Side {
    async fn start(folder: &Path, settings: &str) -> Result<Self, Failure> {
        let home = folder.join("home");
        std::fs::create_dir_all(&home)?;
        std::fs::write(home.join("config.toml"), settings)?;
        let daemon = Daemon::start(&home)?;
        let client = daemon.connect().await?;
        let session = create(&client, folder).await?;
        client.call(eval(&session, "1+1")).await?;
        let (evals, starts, floods) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { daemon, client, session, evals, starts, floods })
    }

    async fn eval(&mut self) -> Result<(), Failure> {
        let began = Instant::now();
        self.client.call(eval(&self.session, "1+1")).await?;
        self.evals.push(began.elapsed());
        Ok(())
    }

    async fn begin(&mut self, folder: &Path) -> Result<(), Failure> {
        let began = Instant::now();
        let session = create(&self.client, folder).await?;
        self.starts.push(began.elapsed());
        self.client.call(StopSession { session, sent: Sent::default() }).await?;
        Ok(())
    }

    async fn flood(&mut self) -> Result<(), Failure> {
        let code = format!("for line in 1 .. {LINES} do printfn \"%d\" line");
        let began = Instant::now();
        self.client.call(eval(&self.session, &code)).await?;
        self.floods.push(began.elapsed());
        Ok(())
    }
}

/// Compares runners in shims with runners in the daemon's process.
pub(crate) async fn beside_the_daemon(folder: &Path) -> Result<(), Failure> {
    let mut sides = Vec::new();
    for (name, settings) in
        [("with", "[limits]\nlive-sessions = 64\n"), ("without", "[daemon]\norphan-ms = 0\n")]
    {
        sides.push(Side::start(&folder.join(name), settings).await?);
    }
    for _ in 0..EVALS {
        for side in &mut sides {
            side.eval().await?;
        }
    }
    for _ in 0..STARTS {
        for side in &mut sides {
            side.begin(folder).await?;
        }
    }
    for _ in 0..FLOODS {
        for side in &mut sides {
            side.flood().await?;
        }
    }
    println!(
        "\n| runners in shims, and in the daemon's process (`orphan-ms = 0`) | median | p99 |\n|---|---|---|"
    );
    for (side, name) in sides.iter().zip(["in shims", "in the daemon"]) {
        print_row(&format!("eval of `1+1`, {name}"), spread(side.evals.clone()));
        print_row(&format!("a session until it is Ready, {name}"), spread(side.starts.clone()));
        print_row(&format!("{LINES} lines of output, {name}"), spread(side.floods.clone()));
    }
    let without = sides.pop();
    drop(without);
    let Some(Side { daemon, client, .. }) = sides.pop() else { return Ok(()) };
    adopt(daemon, client, folder).await
}

/// How long a daemon takes from its start until it serves, with many sessions that an earlier daemon had.
async fn adopt(mut daemon: Daemon, client: Client, folder: &Path) -> Result<(), Failure> {
    for _ in 1..ADOPTED {
        create(&client, folder).await?;
    }
    let shims = shims(&daemon.home);
    let own: Vec<u64> = shims.iter().filter_map(|pid| own_bytes(*pid)).collect();
    let mut adopted = Vec::new();
    for _ in 0..LOSSES {
        let home = daemon.lose()?;
        let began = Instant::now();
        daemon = Daemon::start(&home)?;
        adopted.push(began.elapsed());
    }
    print_row(
        &format!("a daemon's start until it serves, with {} shims to adopt", shims.len()),
        spread(adopted),
    );
    let mean = own.iter().sum::<u64>() as f64 / own.len().max(1) as f64 / 1e6;
    println!("\nA shim's own memory (`RssAnon`), mean of {}: {mean:.1} MB", own.len());
    Ok(())
}

/// The processes of a home's shims.
fn shims(home: &Path) -> Vec<u64> {
    let folders = std::fs::read_dir(home.join("shims")).into_iter().flatten().flatten();
    let record = |folder: PathBuf| -> Option<Value> {
        serde_json::from_slice(&std::fs::read(folder.join("shim.json")).ok()?).ok()
    };
    folders.filter_map(|folder| record(folder.path())?["pid"].as_u64()).collect()
}

/// What a process has in memory that is no page of a file.
fn own_bytes(pid: u64) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}
