//! What a save cannot exchange: from the order to build until the session has run the new code, beside a build of the same project.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_client::Client;
use mainstay_kernel::fsharp::{Sdk, Search, choose, project};
use mainstay_model::agent::YieldReason;
use mainstay_model::{Admission, JobSpec, SessionKind};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, DoWork, SettleSession, StopSession};

use crate::Failure;
use crate::daemon::{Daemon, eval};
use crate::spread::{print_row, spread};

/// The settings of the home: what is done ahead is done at once, and nothing of a save by itself.
pub(crate) const SETTINGS: &str = "[fsharp]\nwatch = \"mark\"\nstandby-rest-ms = 0\nstandby-memory-bytes = 0\nwarm-compiler-memory-bytes = 0\n";

/// How often a type is changed.
const CHANGES: usize = 5;
/// How often the project is built.
const BUILDS: usize = 3;
/// How often a rebuild is tried until the warm compiler does it.
const TRIES: usize = 10;

/// A type that four files use, in a project of those and in one of 26 files, and one that twenty do.
pub(crate) async fn slow(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    println!("\n| a type is changed | median | longest |\n|---|---|---|");
    let projects = [
        (4, 0, "four files use it"),
        (4, 21, "four of the project's 26 files use it"),
        (19, 0, "a core type of 20 files"),
    ];
    for (users, others, row) in projects {
        let project = folder.join(format!("slow{}", users + others));
        write_project(&project, users, others)?;
        let sdk = choose(&Search::from_env(&daemon.home))?;
        let (all, compiled) = changed(daemon, &project, &sdk).await?;
        print_row(&format!("{row}: until an eval has run the new code"), spread(all));
        print_row("of that, until it is compiled", spread(compiled));
        let mut built = Vec::new();
        for number in 0..BUILDS {
            change(&project, 1_000 + number)?;
            let began = Instant::now();
            build(&project, &sdk).await?;
            built.push(began.elapsed());
        }
        print_row("`dotnet build` of the project", spread(built));
    }
    Ok(())
}

async fn build(project: &Path, sdk: &Sdk) -> Result<(), Failure> {
    let environment = mainstay_runner::Environment::default();
    let built = project::build(&project.join("Slow.fsproj"), sdk, &environment, &|_| {}).await?;
    built.success.then_some(()).ok_or_else(|| built.output.into())
}

/// How long the changes took, and how long until they were compiled.
async fn changed(
    daemon: &Daemon,
    project: &Path,
    sdk: &Sdk,
) -> Result<(Vec<Duration>, Vec<Duration>), Failure> {
    change(project, 0)?;
    build(project, sdk).await?;
    let client = daemon.connect().await?;
    let create = CreateSession {
        command: None,
        kind: SessionKind::fsharp(),
        working_directory: project.display().to_string(),
        project: Some(project.join("Slow.fsproj").display().to_string()),
        no_project: false,
        fsi_args: None,
        name: None,
    };
    let session = client.call(create).await?.session.to_string();
    client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
    let mut tries = 0;
    // Each try gives up what is done ahead, so there is time between them.
    while rebuilt(&client, &session).await? != Some(YieldReason::WarmCompiler) {
        client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
        tries += 1;
        if tries == TRIES {
            return Err("no compiler is warm".into());
        }
        tokio::time::sleep(Duration::from_secs(45)).await;
    }
    client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
    let (mut all, mut compiled) = (Vec::new(), Vec::new());
    for number in 1..=CHANGES {
        // The next standby is made meanwhile.
        tokio::time::sleep(Duration::from_secs(8)).await;
        change(project, number)?;
        let began = Instant::now();
        if rebuilt(&client, &session).await? != Some(YieldReason::WarmCompiler) {
            return Err("msbuild has built it".into());
        }
        compiled.push(began.elapsed());
        client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
        let ran = client.call(eval(&session, &format!("(Core.make 1).Extra{number}"))).await?;
        all.push(began.elapsed());
        if !serde_json::to_string(&ran)?.contains(&format!("\"{number}\"")) {
            return Err("older code ran".into());
        }
    }
    client.call(StopSession { session, sent: Sent::default() }).await?;
    Ok((all, compiled))
}

async fn rebuilt(client: &Client, session: &str) -> Result<Option<YieldReason>, Failure> {
    let work = JobSpec::Build;
    let sent = Sent::default();
    let built =
        client.call(DoWork { session: session.to_owned(), work, admission: Admission::Queue, sent }).await?;
    Ok(built.reason)
}

/// Gives the type another member.
fn change(project: &Path, number: usize) -> Result<(), Failure> {
    let code = format!(
        "namespace Slow\nmodule Core =\n    type Item = {{ Id: int; Name: string; Extra{number}: int }}\n\
         \x20   let make id = {{ Id = id; Name = string id; Extra{number} = {number} }}\n"
    );
    Ok(std::fs::write(project.join("Core.fs"), code)?)
}

/// A project of a type, and so many files that use it and others that do not, with twenty functions each.
fn write_project(folder: &Path, users: usize, others: usize) -> Result<(), Failure> {
    std::fs::create_dir(folder)?;
    let mut files = "<Compile Include=\"Core.fs\" />".to_owned();
    for user in 1..=users + others {
        let (kind, id) = if user > others { ("Core.Item", "item.Id") } else { ("int", "item") };
        let function = |number| {
            format!(
                "    let f{number} (item: {kind}) (text: string) =\n        match {id} % 3 with\n        | 0 -> text.Length + {number}\n        | 1 -> [ 1 .. {id} ] |> List.map (fun one -> one * {number}) |> List.sum\n        | _ -> text |> Seq.filter System.Char.IsLetter |> Seq.length\n"
            )
        };
        let functions: String = (1..=20).map(function).collect();
        let code = format!("namespace Slow\nmodule User{user} =\n{functions}");
        std::fs::write(folder.join(format!("User{user}.fs")), code)?;
        files += &format!("<Compile Include=\"User{user}.fs\" />");
    }
    let text = format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
         </PropertyGroup><ItemGroup>{files}</ItemGroup></Project>"
    );
    Ok(std::fs::write(folder.join("Slow.fsproj"), text)?)
}
