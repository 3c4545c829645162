//! From the save of a source to the results of the tests that reach it, as `mainstay test --watch` prints them, beside `dotnet test` of the
//! tests of that function.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_kernel::fsharp::{Search, choose};
use mainstay_model::BufferEnding;
use mainstay_protocol::operations::{GetCoverage, PutBuffer};
use serde_json::Value;

use crate::Failure;
use crate::daemon::{Daemon, create};
use crate::spread::{print_row, spread};

/// The files of the library, and the tests.
const FILES: usize = 30;
const TESTS: usize = 500;

/// What lies between the end of a run and the next save, so that nothing is left to do of the one when the other comes: nobody saves sooner.
const REST: Duration = Duration::from_millis(700);

/// How often a source is saved, and how often `dotnet test` runs.
const SAVES: usize = 40;
const RUNS: usize = 3;

/// A run of `mainstay test --watch`, killed with the value.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(home: &Path, folder: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
            .args(["test", "--watch", "--json"])
            .env("MAINSTAY_HOME", home)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Self { child, lines })
    }

    /// The next run's report.
    fn report(&mut self) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.lines.next().ok_or("the watch has ended")??)?)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One function of a library of 30 files is changed at each save; 500 tests call its functions.
pub(crate) async fn live_tests(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let folder = folder.join("tested");
    write_projects(&folder)?;
    let tests = folder.join("Tests");
    let mut watch = Watch::start(&daemon.home, &tests)?;
    let first = watch.report()?;
    if first["passed"] != TESTS {
        return Err(format!("not all tests ran: {first}").into());
    }
    let source = folder.join("Lib/Part20.fs");
    let text = std::fs::read_to_string(&source)?;
    let (mut reached, mut all) = (Vec::new(), Vec::new());
    for number in 1..=SAVES {
        tokio::time::sleep(REST).await;
        let began = Instant::now();
        std::fs::write(&source, text.replacen("x * 22", &format!("x * 22 + {number} - {number}"), 1))?;
        let report = watch.report()?;
        reached.push(began.elapsed());
        let count = TESTS.div_ceil(FILES) - 1;
        if report["failed"] != 0 || report["passed"].as_u64() < Some(count as u64) {
            return Err(format!("other tests ran than those that reach the change: {report}").into());
        }
        watch.report()?;
        all.push(began.elapsed());
    }
    drop(watch);
    std::fs::write(&source, &text)?;
    let typed = typed(daemon, &tests, (&source, &text)).await?;
    let measured = measured(daemon, &tests).await?;
    let dotnet = choose(&Search::from_env(&daemon.home))?.parts()?.host;
    let mut theirs = Vec::new();
    for number in 1..=RUNS {
        std::fs::write(&source, text.replacen("x * 22", &format!("x * 22 + {number} - {number}"), 1))?;
        let began = Instant::now();
        let ran = Command::new(&dotnet)
            .args(["test", "--nologo", "--filter", "DisplayName~part_20_"])
            .current_dir(&tests)
            .output()?;
        theirs.push(began.elapsed());
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stdout).into_owned().into());
        }
    }
    println!("\n| a function of a library of {FILES} files is saved | median | longest |\n|---|---|---|");
    print_row("until the tests that reach it have run, of 500", spread(reached));
    print_row("until all 500 have", spread(all));
    print_row("the same of an unsaved text, the first of which starts the mirror", spread(typed.took));
    print_row("`dotnet test --filter` of the same tests", spread(theirs));
    println!("\nAn unsaved text takes {:.0?} of the machine's processors.", typed.processor);
    println!("The lines that the {TESTS} tests run are measured in {measured:.1?}.");
    Ok(())
}

/// What texts cost that are not saved.
struct Typed {
    /// Until the tests that reach each have run.
    took: Vec<Duration>,
    /// Of the machine's processors, for one of them, once the mirror is there.
    processor: Duration,
}

/// The time that the machine's processors were busy since it started.
fn busy() -> Result<Duration, Failure> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let times: Vec<u64> =
        text.lines().next().unwrap_or_default().split_whitespace().skip(1).flat_map(str::parse).collect();
    // Of a user, of a nice one, of the system, in hundredths of a second.
    Ok(Duration::from_millis(10 * times.iter().take(3).sum::<u64>()))
}

/// How long it takes to measure which lines the tests run.
async fn measured(daemon: &Daemon, folder: &Path) -> Result<Duration, Failure> {
    let client = daemon.connect().await?;
    let session = create(&client, folder).await?;
    let began = Instant::now();
    let coverage = client.call(GetCoverage { session, file: None, name: None, measure: true }).await?;
    match coverage.measured {
        measured if measured == TESTS as u64 => Ok(began.elapsed()),
        measured => Err(format!("{measured} tests were measured: {:?}", coverage.notes).into()),
    }
}

/// How long texts that are not saved take until the tests that reach them have run, beside a session that knows nothing of them.
async fn typed(daemon: &Daemon, folder: &Path, (source, text): (&Path, &str)) -> Result<Typed, Failure> {
    let client = daemon.connect().await?;
    let session = create(&client, folder).await?;
    let mut took = Vec::new();
    let mut before = busy()?;
    for version in 1..=SAVES {
        let began = Instant::now();
        let put = PutBuffer {
            session: session.clone(),
            path: source.display().to_string(),
            version: version as u64,
            text: text.replacen("x * 22", &format!("x * 22 + {version} - {version}"), 1),
        };
        let run = client.call(put).await?;
        took.push(began.elapsed());
        if version == 1 {
            before = busy()?;
        }
        if run.ending != BufferEnding::Ran || run.tests.len() < TESTS.div_ceil(FILES) - 1 {
            return Err(format!("other tests ran than those that reach the text: {run:?}").into());
        }
    }
    let processor = (busy()? - before) / (SAVES - 1) as u32;
    Ok(Typed { took, processor })
}

fn write_projects(folder: &Path) -> Result<(), Failure> {
    let (library, tests) = (folder.join("Lib"), folder.join("Tests"));
    std::fs::create_dir_all(&library)?;
    std::fs::create_dir(&tests)?;
    let mut compiled = String::new();
    for file in 0..FILES {
        let factor = file + 2;
        let code = format!(
            "namespace Lib\n\nmodule Part{file} =\n    type Item = {{ Name: string; Count: int }}\n\n    \
             let scale (x: int) = x * {factor}\n\n    \
             let describe (item: Item) = sprintf \"%s x %d\" item.Name (scale item.Count)\n"
        );
        std::fs::write(library.join(format!("Part{file}.fs")), code)?;
        write!(compiled, "<Compile Include=\"Part{file}.fs\" />")?;
    }
    let project = |items: &str| {
        format!(
            "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
             </PropertyGroup><ItemGroup>{items}</ItemGroup></Project>"
        )
    };
    std::fs::write(library.join("Lib.fsproj"), project(&compiled))?;
    let mut code = "module Tests.All\n\nopen Xunit\nopen Lib\n".to_owned();
    for number in 0..TESTS {
        let file = number % FILES;
        write!(
            code,
            "\n[<Fact>]\nlet part_{file}_case_{number} () =\n    \
             Assert.Equal({number} * {}, Part{file}.scale {number})\n",
            file + 2
        )?;
    }
    std::fs::write(tests.join("All.fs"), code)?;
    let items = "<Compile Include=\"All.fs\" /><PackageReference Include=\"xunit\" Version=\"2.9.3\" />\
                 <PackageReference Include=\"xunit.runner.visualstudio\" Version=\"3.1.5\" />\
                 <PackageReference Include=\"Microsoft.NET.Test.Sdk\" Version=\"18.11.0\" />\
                 <ProjectReference Include=\"../Lib/Lib.fsproj\" />";
    Ok(std::fs::write(tests.join("Tests.fsproj"), project(items))?)
}
