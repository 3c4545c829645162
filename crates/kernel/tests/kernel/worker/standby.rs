//! A worker that was started ahead of its session equals one that was started for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use mainstay_kernel::{StartupContext, worker};
use mainstay_model::JobEnding;
use mainstay_os::process::Launch;
use mainstay_runner::query::KernelQuery;
use tempfile::TempDir;

use super::startup::{Shop, assert_waited_for_none};
use super::{Session, WorkerProgram, has_ended, program, soon, watch};

/// A worker that stands by, and its sockets.
struct Ahead {
    standby: worker::Standby,
    sockets: TempDir,
}

impl Ahead {
    /// With these in its environment.
    async fn with(arguments: &[&str], more: &[(&str, &str)]) -> Self {
        let WorkerProgram { program, arguments: words, mut environment, .. } = program().await;
        environment.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        let launch = Launch { program, arguments: words, environment };
        let sockets = tempfile::tempdir().unwrap();
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        let standby = soon(worker::stand_by(&launch, arguments, sockets.path())).await.unwrap();
        Self { standby, sockets }
    }

    async fn start() -> Self {
        Self::with(&[], &[]).await
    }

    async fn begin(self, beginning: StartupContext, variables: &[(&str, &str)]) -> Session {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let worker = soon(self.standby.begin(beginning, None, &variables)).await.unwrap();
        Session { worker, _sockets: self.sockets }
    }
}

/// What code can find out about where it runs. Each prints one text.
const FACTS: [(&str, &str); 14] = [
    (
        "FSI numbers",
        "type First = First\nprintfn \"%s %s\" typeof<First>.FullName (typeof<First>.Assembly.GetName().Name)",
    ),
    ("`it`", "it"),
    ("folder", "printfn \"%s\" System.Environment.CurrentDirectory"),
    (
        "native folder",
        "printfn \"%s\" (System.IO.File.ResolveLinkTarget(\"/proc/self/cwd\", false).FullName)",
    ),
    ("source folder", "printfn \"%s\" __SOURCE_DIRECTORY__"),
    ("relative script", "#load \"beside.fsx\"\nprintfn \"%d\" Beside.number"),
    (
        "environment",
        "[ for e in System.Environment.GetEnvironmentVariables() |> Seq.cast<System.Collections.DictionaryEntry> -> sprintf \"%O=%O\" e.Key e.Value ]
|> List.sort |> String.concat \"\\n\" |> printfn \"%s\"",
    ),
    (
        "environment of a child process",
        "let start = System.Diagnostics.ProcessStartInfo(\"/usr/bin/env\", \"\", RedirectStandardOutput = true)
let child = System.Diagnostics.Process.Start start
child.StandardOutput.ReadToEnd().Split '\\n' |> Array.sort |> String.concat \"\\n\" |> printfn \"%s\"",
    ),
    (
        "environment of native code",
        "module Native =
    [<System.Runtime.InteropServices.DllImport(\"libc\")>]
    extern nativeint getenv(string name)
for name in [ \"OWN\"; \"WITH_BLANKS\"; \"ÜBER\"; \"HOME\" ] do
    printfn \"%s\" (System.Runtime.InteropServices.Marshal.PtrToStringUTF8(Native.getenv name))",
    ),
    ("command line", "printfn \"%A %s\" fsi.CommandLineArgs System.Environment.CommandLine"),
    ("limits", "printfn \"%s\" (System.IO.File.ReadAllText \"/proc/self/limits\")"),
    (
        "culture and time zone",
        "printfn \"%s %s %s\" System.Globalization.CultureInfo.CurrentCulture.Name System.TimeZoneInfo.Local.Id (string 1.5)",
    ),
    (
        "standard streams",
        "printfn \"%b %s\" System.Console.IsInputRedirected (System.IO.File.ResolveLinkTarget(\"/proc/self/fd/0\", false).FullName)",
    ),
    ("names", "printfn \"%A\" (squared, Leaf, task)"),
];

/// What a session answers to each of the facts, in this order: what was printed, and the compiler's complaints.
async fn facts(session: &mut Session) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for (name, code) in FACTS {
        let ran = session.eval(code).await;
        let complaints: Vec<_> = ran.report.result.diagnostics.into_iter().map(|one| one.message).collect();
        facts.push((name, format!("{}{}{}", ran.stdout, ran.stderr, complaints.join("\n"))));
    }
    facts
}

/// The variables of a session.
const OWN: [(&str, &str); 3] = [("OWN", "of the session"), ("WITH_BLANKS", " a  b=c\n"), ("ÜBER", "ä€")];

#[tokio::test]
async fn a_worker_that_is_handed_over_equals_one_that_was_started_for_the_session() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("beside.fsx"), "module Beside\nlet number = 17\n").unwrap();
    let beginning = StartupContext::in_folder(folder.path());
    let own = OWN.map(|(name, value)| (OsString::from(name), OsString::from(value))).to_vec();
    let mut fresh = Session::begin(beginning.clone(), own).await;
    // What it is told is there before its own warm-up can have run.
    let expected = facts(&mut fresh).await;
    let mut taken = Ahead::start().await.begin(beginning, &OWN).await;
    let found = facts(&mut taken).await;
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found);
    }
    let of_both = [&fresh, &taken].map(|session| session.worker.runner.process().info());
    let [fresh, taken] = of_both.map(|info| (info.kernel, info.runtime, info.references, info.startup));
    assert_eq!(fresh, taken);
}

#[tokio::test]
async fn a_worker_that_is_handed_over_asks_for_its_input() {
    let mut session = Ahead::start().await.begin(StartupContext::in_folder(Path::new("/")), &[]).await;
    let (prompts, value) = session.converse("stdin.ReadLine() + stdin.ReadLine()", &["a", "b"]).await;
    assert_eq!((prompts.len(), value.as_str()), (2, "\"ab\""));
}

#[tokio::test]
async fn nothing_of_the_warm_up_is_bound_or_told() {
    let mut session = Ahead::start().await.begin(StartupContext::in_folder(Path::new("/")), &[]).await;
    let kernel = std::sync::Arc::clone(session.worker.runner.kernel().unwrap());
    let values = soon(kernel.query(KernelQuery::Values)).await.unwrap().values().unwrap();
    assert_eq!(values, []);
    for text in ["squared", "Shape", "depth"] {
        let query = KernelQuery::Symbols { text: text.to_owned(), limit: 50 };
        let found = soon(kernel.query(query)).await.unwrap().symbols().unwrap();
        let own: Vec<_> = found.items.iter().filter(|one| one.assembly.is_none()).collect();
        assert!(own.is_empty(), "{own:?}");
    }
    assert_eq!(session.value("1 + 1").await, "2");
}

#[tokio::test]
async fn a_session_with_other_arguments_or_a_profile_gets_what_it_wants() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.fsx");
    std::fs::write(&profile, "let greeting = \"hello\"\n").unwrap();
    let beginning = StartupContext {
        arguments: vec!["--define:OTHER".to_owned()],
        profiles: vec![profile],
        ..StartupContext::in_folder(folder.path())
    };
    let mut session = Ahead::with(&["--define:DEFAULT"], &[]).await.begin(beginning, &[]).await;
    let code = "#if OTHER\nlet a = greeting\n#else\nlet a = \"\"\n#endif\n#if DEFAULT\nlet b = 1\n#else\nlet b = 2\n#endif\na, b";
    assert_eq!(session.value(code).await, "(\"hello\", 2)");
    assert_eq!(session.value("System.Environment.CurrentDirectory = __SOURCE_DIRECTORY__").await, "true");
    let first = Ahead::with(&["--define:DEFAULT"], &[]).await;
    let same = StartupContext {
        arguments: vec!["--define:DEFAULT".to_owned()],
        ..StartupContext::in_folder(folder.path())
    };
    let mut session = first.begin(same, &[]).await;
    assert_eq!(session.value("#if DEFAULT\nlet c = 1\n#else\nlet c = 2\n#endif\nc").await, "1");
}

#[tokio::test]
async fn a_worker_that_stood_by_brings_in_a_project() {
    let shop = Shop::build().await;
    let mut session = Ahead::start().await.begin(shop.beginning(), &[]).await;
    assert_eq!(session.value("total [ { Name = \"tea\"; Price = 250 } ] + free").await, "5250");
    assert_waited_for_none(&session);
}

#[tokio::test]
async fn a_folder_that_the_language_cannot_name_is_the_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a \"quoted\" name");
    std::fs::create_dir(&odd).unwrap();
    let mut session = Ahead::start().await.begin(StartupContext::in_folder(&odd), &[]).await;
    let ran = session.eval("printf \"%s\" __SOURCE_DIRECTORY__").await;
    assert_eq!(ran.stdout, odd.display().to_string());
}

#[tokio::test]
async fn a_worker_that_stood_by_can_be_reset() {
    let folder = tempfile::tempdir().unwrap();
    let beginning = StartupContext::in_folder(folder.path());
    let mut session = Ahead::start().await.begin(beginning, &OWN).await;
    session.eval("System.Environment.SetEnvironmentVariable(\"OWN\", \"changed\")\nlet x = 1").await;
    soon(session.worker.runner.kernel().unwrap().reset()).await.unwrap();
    assert_eq!(session.eval("x").await.report.ending, JobEnding::Rejected);
    assert_eq!(session.value("System.Environment.GetEnvironmentVariable \"OWN\"").await, "\"changed\"");
    assert_eq!(session.value("System.Environment.CurrentDirectory = __SOURCE_DIRECTORY__").await, "true");
}

#[tokio::test]
async fn a_standby_ends_when_it_is_given_up_and_a_dead_one_cannot_be_handed_over() {
    let ahead = Ahead::start().await;
    let process = watch(ahead.standby.pid());
    drop(ahead);
    assert!(has_ended(&process, Duration::from_secs(30)), "it goes on");
    let Ahead { standby, sockets: _sockets } = Ahead::start().await;
    let pid = rustix::process::Pid::from_raw(standby.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let beginning = StartupContext::in_folder(Path::new("/"));
    soon(standby.begin(beginning, None, &BTreeMap::new())).await.err().unwrap();
}
