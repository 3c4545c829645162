//! From the creation of a session to Ready.

use std::path::Path;
use std::time::Instant;

use mainstay_kernel::fsharp::{Search, choose, project};
use mainstay_model::SessionKind;
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, SettleSession, StopSession};

use crate::daemon::Daemon;
use crate::spread::{print_row, spread};
use crate::{Failure, SESSIONS};

/// How many files the project has that sessions are opened for.
const FILES: usize = 50;

/// From the creation of a session to Ready: with nothing, and for a project.
pub(crate) async fn until_ready(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let project = folder.join("project");
    write_project(&project)?;
    let file = project.join("Bench.fsproj");
    let sdk = choose(&Search::from_env(&daemon.home))?;
    let began = Instant::now();
    let built = project::build(&file, &sdk, &mainstay_runner::Environment::default(), &|_| {}).await?;
    if !built.success {
        return Err(built.output.into());
    }
    println!("\n| a session, from its creation to Ready | median | longest |\n|---|---|---|");
    println!("| (the build of {FILES} files by itself) | {:.2} s | |", began.elapsed().as_secs_f64());
    for (project, row) in [(None, "bare"), (Some(&file), "for a project of 50 files")] {
        let mut series = Vec::new();
        for _ in 0..SESSIONS {
            let began = Instant::now();
            let create = CreateSession {
                command: None,
                kind: SessionKind::fsharp(),
                working_directory: folder.display().to_string(),
                project: project.map(|file| file.display().to_string()),
                no_project: false,
                fsi_args: None,
                name: None,
            };
            let session = client.call(create).await?.session.to_string();
            client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
            series.push(began.elapsed());
            client.call(StopSession { session, sent: Sent::default() }).await?;
        }
        print_row(row, spread(series));
    }
    Ok(())
}

/// A project of many files, with ten functions each.
pub(crate) fn write_project(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir(folder)?;
    let names: Vec<String> = (1..=FILES).map(|number| format!("Part{number}")).collect();
    for name in &names {
        let functions =
            (1..=10).map(|number| format!("    let double{number} (x: int) = x * 2 + {number}\n"));
        let code =
            format!("namespace Bench\ntype {name} = {{ Name: string; Size: int }}\nmodule {name}s =\n");
        std::fs::write(folder.join(format!("{name}.fs")), code + &functions.collect::<String>())?;
    }
    let compiled = names.iter().map(|name| format!("<Compile Include=\"{name}.fs\" />"));
    let text = format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
         </PropertyGroup><ItemGroup>{}</ItemGroup></Project>",
        compiled.collect::<String>()
    );
    Ok(std::fs::write(folder.join("Bench.fsproj"), text)?)
}
