//! From the save of a source to the new code in the session, beside a build of the project.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_kernel::fsharp::{Search, choose, project};
use mainstay_model::SessionKind;
use mainstay_protocol::operations::{CreateSession, Follow, SettleSession};

use crate::Failure;
use crate::daemon::{Daemon, eval};
use crate::spread::{print_row, spread};
use crate::until_ready::write_project;

/// How often a source is saved, and how often the project is built.
const SAVES: usize = 40;
const BUILDS: usize = 5;

/// One function of a project of 50 files is changed at each save.
pub(crate) async fn swaps(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let project = folder.join("swapped");
    write_project(&project)?;
    let file = project.join("Bench.fsproj");
    let sdk = choose(&Search::from_env(&daemon.home))?;
    let build = async || -> Result<(), Failure> {
        let built = project::build(&file, &sdk, &mainstay_runner::Environment::default(), &|_| {}).await?;
        built.success.then_some(()).ok_or_else(|| built.output.into())
    };
    build().await?;
    let socket = daemon.record["socket"].as_str().ok_or("no socket")?;
    let (client, mut events) = Client::connect(Path::new(socket), daemon.token()?, "bench").await?;
    let create = CreateSession {
        command: None,
        kind: SessionKind::fsharp(),
        working_directory: project.display().to_string(),
        project: Some(file.display().to_string()),
        no_project: false,
        fsi_args: None,
        name: None,
    };
    let session = client.call(create).await?.session.to_string();
    client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
    client.call(eval(&session, "Part7s.double1 1")).await?;
    let settled = client.call(SettleSession { session: session.clone(), timeout_ms: 1_000 }).await?;
    client.call(Follow::session(session.clone(), settled.last_seq)).await?;

    let source = project.join("Part7.fs");
    let text = std::fs::read_to_string(&source)?;
    let save = |number: usize| {
        std::fs::write(&source, text.replacen("x * 2 + 1\n", &format!("x * 2 + {number}\n"), 1))
    };
    let (mut told, mut run) = (Vec::new(), Vec::new());
    for number in 1..=SAVES {
        let began = Instant::now();
        save(100 + number)?;
        loop {
            let event = events.recv().await.ok_or("the daemon is gone")?;
            if event.body.kind() == "sourcesSwapped" {
                break;
            }
        }
        told.push(began.elapsed());
        let answered = client.call(eval(&session, "Part7s.double1 1")).await?;
        run.push(began.elapsed());
        let answered = serde_json::to_string(&answered)?;
        if !answered.contains(&format!("\"{}\"", 102 + number)) {
            return Err(format!("older code ran: {answered}").into());
        }
        // The next save is one of its own.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut built = Vec::new();
    for number in 1..=BUILDS {
        save(1_000 + number)?;
        let began = Instant::now();
        build().await?;
        built.push(began.elapsed());
    }
    println!("\n| a function of a project of 50 files is saved | median | longest |\n|---|---|---|");
    print_row("until its new code is there, as an event says", spread(told));
    print_row("until an eval has run it", spread(run));
    print_row("`dotnet build` of the project", spread(built));
    Ok(())
}
