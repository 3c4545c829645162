//! From the save of a source to the results of the tests that reach it, as `mainstay test --watch` prints them, beside `dotnet test` of the
//! tests of that function.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
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
/// How often where tests are of another framework than xUnit 2.
const SAVES_OF_OTHERS: usize = 20;

/// A framework of tests, and how a project has 500 of its tests.
struct Framework {
    name: &'static str,
    opens: &'static str,
    /// What a test is, where `$NAME`, `$EXPECTED` and `$ACTUAL` stand for what is its own.
    test: &'static str,
    /// What stands before all tests, and behind them.
    around: [&'static str; 2],
    packages: &'static str,
    /// What `dotnet` is called with for the tests that reach the function that is saved.
    peer: &'static [&'static str],
}

const XUNIT_2: Framework = Framework {
    name: "xUnit 2",
    opens: "Xunit",
    test: "\n[<Fact>]\nlet $NAME () =\n    Assert.Equal($EXPECTED, $ACTUAL)\n",
    around: ["", ""],
    packages: "<PackageReference Include=\"xunit\" Version=\"2.9.3\" />\
               <PackageReference Include=\"xunit.runner.visualstudio\" Version=\"3.1.5\" />\
               <PackageReference Include=\"Microsoft.NET.Test.Sdk\" Version=\"18.11.0\" />",
    peer: &["test", "--nologo", "--filter", "DisplayName~part_20_"],
};

const OTHERS: [Framework; 3] = [
    Framework {
        name: "xUnit 3",
        packages: "<PackageReference Include=\"xunit.v3.mtp-off\" Version=\"4.0.2\" />\
                   <PackageReference Include=\"xunit.runner.visualstudio\" Version=\"4.0.1\" />\
                   <PackageReference Include=\"Microsoft.NET.Test.Sdk\" Version=\"18.11.0\" />",
        ..XUNIT_2
    },
    Framework {
        name: "NUnit",
        opens: "NUnit.Framework",
        test: "\n[<Test>]\nlet $NAME () =\n    Assert.That($ACTUAL, Is.EqualTo(box ($EXPECTED)))\n",
        around: ["", ""],
        packages: "<PackageReference Include=\"NUnit\" Version=\"5.0.0\" />\
                   <PackageReference Include=\"NUnit3TestAdapter\" Version=\"6.3.1\" />\
                   <PackageReference Include=\"Microsoft.NET.Test.Sdk\" Version=\"18.11.0\" />",
        peer: &["test", "--nologo", "--filter", "FullyQualifiedName~part_20_"],
    },
    Framework {
        name: "Expecto",
        opens: "Expecto",
        test: "    test \"$NAME\" { Expect.equal ($ACTUAL) ($EXPECTED) \"\" }\n",
        around: [
            "\n[<Tests>]\nlet all = testList \"all\" [\n",
            "]\n\n[<EntryPoint>]\nlet main arguments = runTestsInAssemblyWithCLIArgs [] arguments\n",
        ],
        packages: "<PackageReference Include=\"Expecto\" Version=\"11.1.1\" />",
        peer: &["run", "--", "--filter-test-case", "part_20_"],
    },
];

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

/// What saves of one function of a library of 30 files take, which 500 tests call.
struct Saved {
    /// Until the tests that reach it have run.
    reached: Vec<Duration>,
    /// Until all tests have run.
    all: Vec<Duration>,
    /// The same tests by `dotnet`.
    peer: Vec<Duration>,
}

/// A function of the library, which is changed at each save.
struct Changed {
    source: PathBuf,
    text: String,
}

impl Changed {
    fn of(folder: &Path) -> Result<Self, Failure> {
        let source = folder.join("Lib/Part20.fs");
        let text = std::fs::read_to_string(&source)?;
        Ok(Self { source, text })
    }

    fn version(&self, number: usize) -> String {
        self.text.replacen("x * 22", &format!("x * 22 + {number} - {number}"), 1)
    }

    fn save(&self, number: usize) -> Result<(), Failure> {
        Ok(std::fs::write(&self.source, self.version(number))?)
    }
}

/// Saves so often, as `mainstay test --watch` sees it.
async fn saved(
    daemon: &Daemon,
    folder: &Path,
    saves: usize,
) -> Result<(Vec<Duration>, Vec<Duration>), Failure> {
    let mut watch = Watch::start(&daemon.home, &folder.join("Tests"))?;
    let first = watch.report()?;
    if first["passed"] != TESTS {
        return Err(format!("not all tests ran: {first}").into());
    }
    let changed = Changed::of(folder)?;
    let (mut reached, mut all) = (Vec::new(), Vec::new());
    for number in 1..=saves {
        tokio::time::sleep(REST).await;
        let began = Instant::now();
        changed.save(number)?;
        let report = watch.report()?;
        reached.push(began.elapsed());
        let count = TESTS.div_ceil(FILES) - 1;
        if report["failed"] != 0 || report["passed"].as_u64() < Some(count as u64) {
            return Err(format!("other tests ran than those that reach the change: {report}").into());
        }
        watch.report()?;
        all.push(began.elapsed());
    }
    std::fs::write(&changed.source, &changed.text)?;
    Ok((reached, all))
}

/// How long `dotnet` takes for the tests that reach the function, built as it was saved.
fn by_peer(
    daemon: &Daemon,
    folder: &Path,
    framework: &Framework,
    runs: usize,
) -> Result<Vec<Duration>, Failure> {
    let dotnet = choose(&Search::from_env(&daemon.home))?.parts()?.host;
    let changed = Changed::of(folder)?;
    let mut took = Vec::new();
    for number in 1..=runs {
        changed.save(number)?;
        let began = Instant::now();
        let ran = Command::new(&dotnet).args(framework.peer).current_dir(folder.join("Tests")).output()?;
        took.push(began.elapsed());
        if !ran.status.success() {
            return Err(String::from_utf8_lossy(&ran.stdout).into_owned().into());
        }
    }
    Ok(took)
}

/// What saves take where tests are of each framework, and what texts do that are not saved.
pub(crate) async fn live_tests(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let tested = folder.join("tested");
    write_projects(&tested, &XUNIT_2)?;
    let (reached, all) = saved(daemon, &tested, SAVES).await?;
    let typed = typed(daemon, &tested).await?;
    let measured = measured(daemon, &tested.join("Tests")).await?;
    let peer = by_peer(daemon, &tested, &XUNIT_2, RUNS)?;
    println!("\n| a function of a library of {FILES} files is saved | median | longest |\n|---|---|---|");
    let row = |framework: &Framework, saved: Saved| {
        let Framework { name, peer, .. } = framework;
        print_row(&format!("{name}: until the tests that reach it have run, of 500"), spread(saved.reached));
        print_row(&format!("{name}: until all 500 have"), spread(saved.all));
        print_row(&format!("{name}: `dotnet {}`", peer.join(" ")), spread(saved.peer));
    };
    row(&XUNIT_2, Saved { reached, all, peer });
    for (number, framework) in OTHERS.iter().enumerate() {
        let folder = folder.join(format!("other{number}"));
        write_projects(&folder, framework)?;
        let (reached, all) = saved(daemon, &folder, SAVES_OF_OTHERS).await?;
        row(framework, Saved { reached, all, peer: by_peer(daemon, &folder, framework, RUNS)? });
    }
    print_row("an unsaved text, the first of which starts the mirror", spread(typed.took));
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
async fn typed(daemon: &Daemon, folder: &Path) -> Result<Typed, Failure> {
    let changed = Changed::of(folder)?;
    let client = daemon.connect().await?;
    let session = create(&client, &folder.join("Tests")).await?;
    let mut took = Vec::new();
    let mut before = busy()?;
    for version in 1..=SAVES {
        let began = Instant::now();
        let put = PutBuffer {
            session: session.clone(),
            path: changed.source.display().to_string(),
            version: version as u64,
            text: changed.version(version),
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

fn write_projects(folder: &Path, framework: &Framework) -> Result<(), Failure> {
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
    let project = |output: &str, items: &str| {
        format!(
            "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
             <OutputType>{output}</OutputType></PropertyGroup><ItemGroup>{items}</ItemGroup></Project>"
        )
    };
    std::fs::write(library.join("Lib.fsproj"), project("Library", &compiled))?;
    let [before, behind] = framework.around;
    let mut code = format!("module Tests.All\n\nopen {}\nopen Lib\n{before}", framework.opens);
    for number in 0..TESTS {
        let file = number % FILES;
        code += &framework
            .test
            .replace("$NAME", &format!("part_{file}_case_{number}"))
            .replace("$EXPECTED", &format!("{number} * {}", file + 2))
            .replace("$ACTUAL", &format!("Part{file}.scale {number}"));
    }
    std::fs::write(tests.join("All.fs"), code + behind)?;
    let items = format!(
        "<Compile Include=\"All.fs\" />{}<ProjectReference Include=\"../Lib/Lib.fsproj\" />",
        framework.packages
    );
    Ok(std::fs::write(tests.join("Tests.fsproj"), project("Exe", &items))?)
}
