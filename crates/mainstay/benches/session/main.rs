//! What the daemon costs, in one run: starting it, its memory, sessions until they are ready, evals and questions by each road, and shims,
//! beside the bare worker, `dotnet fsi` of the same SDK and the bare disk. With `shims`, `slow`, `swaps`, `tests` or `standby` as its argument it
//! measures those alone. `cargo xtask bench` runs it with the release build.

mod bare_worker;
mod daemon;
mod disk;
mod fsi;
mod live_tests;
mod mcp;
mod roads;
mod shims;
mod slow;
mod spread;
mod standby;
mod swaps;
mod until_ready;

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_kernel::fsharp::{Search, choose};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{ForkSession, GetStatus, SettleSession, StopSession};

use bare_worker::Bare;
use daemon::{Daemon, create, eval};
use disk::Disk;
use fsi::Fsi;
use roads::roads;
use spread::{Spread, print_row, spread};
use until_ready::until_ready;

type Failure = Box<dyn std::error::Error>;

/// How often the daemon is started.
const STARTS: usize = 20;

/// How often the bare disk is measured.
const FLUSHES: usize = 500;

/// How often a session is opened.
const SESSIONS: usize = 5;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    let target =
        Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).ok_or("no target folder")?.to_owned();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(&target)?;
    let beside = folder.path().join("shims");
    if std::env::args().any(|argument| argument == "shims") {
        return shims::beside_the_daemon(&beside).await;
    }
    let home = folder.path().join("home");
    std::fs::create_dir(&home)?;
    let ahead = folder.path().join("ahead");
    std::fs::create_dir(&ahead)?;
    std::fs::write(ahead.join("config.toml"), standby::SETTINGS)?;
    if std::env::args().any(|argument| argument == "standby") {
        return beside_a_standby(&ahead, folder.path()).await;
    }
    let warm = folder.path().join("warm");
    std::fs::create_dir(&warm)?;
    std::fs::write(warm.join("config.toml"), slow::SETTINGS)?;
    if std::env::args().any(|argument| argument == "slow") {
        return slow::slow(&Daemon::start(&warm)?, folder.path()).await;
    }
    // The other figures are of sessions that start their workers.
    std::fs::write(home.join("config.toml"), "[fsharp]\nstandby = false\nwarm-compilers = 0\n")?;
    if std::env::args().any(|argument| argument == "swaps") {
        return swaps::swaps(&Daemon::start(&home)?, folder.path()).await;
    }
    if std::env::args().any(|argument| argument == "tests") {
        return live_tests::live_tests(&Daemon::start(&home)?, folder.path()).await;
    }
    println!("| what | median | p99 |\n|---|---|---|");
    let disk = flushes(&folder.path().join("disk"))?;
    print_row("bare 4 KB write + fdatasync", disk);
    start_up(&home)?;
    memory(&Daemon::start(&home)?, folder.path()).await?;
    let fresh = folder.path().join("fresh");
    std::fs::create_dir(&fresh)?;
    std::fs::rename(home.join("kernels"), fresh.join("kernels"))?;
    std::fs::rename(home.join("config.toml"), fresh.join("config.toml"))?;
    let daemon = Daemon::start(&fresh)?;
    until_ready(&daemon, folder.path()).await?;
    swaps::swaps(&daemon, folder.path()).await?;
    live_tests::live_tests(&daemon, folder.path()).await?;
    let dotnet = choose(&Search::from_env(&fresh))?.parts()?.host;
    beside_fsi(&daemon, &dotnet, folder.path()).await?;
    replay(&fresh, &dotnet, folder.path()).await?;
    roads(&daemon, &dotnet, folder.path(), disk).await?;
    drop(daemon);
    live_fork(&Daemon::start(&fresh)?, folder.path()).await?;
    std::fs::rename(fresh.join("kernels"), ahead.join("kernels"))?;
    beside_a_standby(&ahead, folder.path()).await?;
    std::fs::rename(ahead.join("kernels"), warm.join("kernels"))?;
    slow::slow(&Daemon::start(&warm)?, folder.path()).await?;
    shims::beside_the_daemon(&beside).await
}

/// Sessions of a home whose daemon has a standby.
async fn beside_a_standby(home: &Path, folder: &Path) -> Result<(), Failure> {
    let dotnet = choose(&Search::from_env(home))?.parts()?.host;
    standby::standby(&Daemon::start(home)?, &dotnet, folder).await
}

/// How many definitions a session has that is forked live, and how often it is.
const DEFINITIONS: usize = 200;
const FORKS: usize = 5;

/// A fork of a live session with many definitions: until it is answered, and until its worker has the values.
async fn live_fork(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let session = create(&client, folder).await?;
    let mut evals = Vec::new();
    for number in 0..DEFINITIONS {
        let began = Instant::now();
        client.call(eval(&session, &format!("let value{number} = {number} * 2"))).await?;
        evals.push(began.elapsed());
    }
    println!(
        "| {DEFINITIONS} definitions, one eval each | {:.2} s in all | |",
        evals.iter().sum::<Duration>().as_secs_f64()
    );
    let (mut answered, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..FORKS {
        let began = Instant::now();
        let fork = ForkSession {
            command: None,
            session: session.clone(),
            entries: None,
            name: None,
            before_reset: false,
        };
        let child = client.call(fork).await?.session.session.to_string();
        answered.push(began.elapsed());
        client.call(SettleSession { session: child.clone(), timeout_ms: 600_000 }).await?;
        ready.push(began.elapsed());
        client.call(StopSession { session: child, sent: Sent::default() }).await?;
    }
    print_row("a fork of them, answered", spread(answered));
    print_row("the same, with all values", spread(ready));
    Ok(())
}

/// How many definitions are replayed, how many of them are announced at once, and how often that is done.
const REPLAYED: usize = 300;
const ROW: usize = 30;
const REPLAYS: usize = 5;

/// A new session until it has given a first value, and what its process holds in memory then, beside `dotnet fsi`.
async fn beside_fsi(daemon: &Daemon, dotnet: &Path, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_memory, mut their_memory) = (0, 0);
    for _ in 0..SESSIONS {
        let began = Instant::now();
        let fsi = Fsi::start(dotnet, folder)?;
        theirs.push(began.elapsed());
        their_memory = fsi.resident_bytes()?;
        drop(fsi);
        let began = Instant::now();
        let session = create(&client, folder).await?;
        client.call(eval(&session, "1+1")).await?;
        ours.push(began.elapsed());
        client.call(StopSession { session, sent: Sent::default() }).await?;
        let mut bare = Bare::start(&daemon.home, folder).await?;
        bare.eval("1+1").await?;
        our_memory = bare.started.runner.process().usage().ok_or("no usage")?.resident_bytes;
    }
    println!("\n| a new session, to its first value | median | longest |\n|---|---|---|");
    print_row("Mainstay", spread(ours));
    print_row("`dotnet fsi`", spread(theirs));
    println!("\n| memory after a first value | resident |\n|---|---|");
    println!("| worker | {:.0} MB |", our_memory as f64 / 1e6);
    println!("| `dotnet fsi` | {:.0} MB |", their_memory as f64 / 1e6);
    Ok(())
}

/// A worker from its start until it has many definitions again, one by one and in rows that it may run together, and `dotnet fsi` that is
/// given the same, line by line.
async fn replay(home: &Path, dotnet: &Path, folder: &Path) -> Result<(), Failure> {
    let cells: Vec<_> = (0..REPLAYED)
        .map(|number| match number % 2 {
            0 => format!("let value{number} = {number} * 2"),
            _ => format!("let add{number} x = x + {number}"),
        })
        .collect();
    let (mut alone, mut together, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPLAYS {
        let began = Instant::now();
        let mut fsi = Fsi::start(dotnet, folder)?;
        cells.iter().try_for_each(|cell| fsi.eval(cell))?;
        theirs.push(began.elapsed());
        for (series, row) in [(&mut alone, 1), (&mut together, ROW)] {
            let began = Instant::now();
            let mut bare = Bare::start(home, folder).await?;
            for cells in cells.chunks(row) {
                bare.replay(cells).await?;
            }
            series.push(began.elapsed());
        }
    }
    let (alone, together) = (spread(alone), spread(together));
    println!("\n| start, and replay of {REPLAYED} definitions | median | longest |\n|---|---|---|");
    print_row("one by one", alone);
    print_row("in rows of 30", together);
    print_row("`dotnet fsi`, a line each", spread(theirs));
    let ratio = together.median.as_secs_f64() / alone.median.as_secs_f64();
    println!("| in rows, of one by one | {:.0} % | |", ratio * 100.0);
    Ok(())
}

/// How long the disk takes for the least that is durable.
fn flushes(path: &Path) -> Result<Spread, Failure> {
    let mut disk = Disk::at(path)?;
    let series: Result<_, _> = (0..FLUSHES).map(|_| disk.flush()).collect();
    Ok(spread(series?))
}

/// From the start of the process to the line that says it serves, with an empty store and with this one's.
fn start_up(home: &Path) -> Result<(), Failure> {
    let mut series = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let daemon = Daemon::start(home)?;
        series.push(began.elapsed());
        drop(daemon);
    }
    print_row("daemon start to ready", spread(series));
    Ok(())
}

async fn memory(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    println!("\n| the daemon alone | resident |\n|---|---|");
    for (sessions, row) in [(0, "idle"), (1, "1 F# session"), (9, "10 F# sessions")] {
        for _ in 0..sessions {
            let session = create(&client, folder).await?;
            client.call(eval(&session, "let x = 1")).await?;
        }
        let resident = client.call(GetStatus {}).await?.resident_bytes.unwrap_or_default();
        println!("| {row} | {:.1} MB |", resident as f64 / 1e6);
    }
    Ok(())
}
