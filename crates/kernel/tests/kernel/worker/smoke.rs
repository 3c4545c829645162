//! What every supported SDK must do, also those that the whole suite does not run on: SDK 3.1, and F# 11. `cargo xtask test` names
//! their roots where it can provide them.

use std::env;

use mainstay_embedded::kernel_file;
use mainstay_kernel::fsharp::{SdkVersion, Search};
use mainstay_model::{TestSelection, TextPosition};
use mainstay_runner::query::KernelQuery;

use super::*;

/// A session on the SDK that a variable names; none where it names none.
pub(super) async fn session_on(variable: &str) -> Option<(Session, SdkVersion)> {
    let program = program_of(variable).await?;
    let sdk = program.sdk.clone();
    Some((Session::with(program, StartupContext::in_folder(Path::new("/")), Vec::new()).await, sdk))
}

/// The worker of the SDK that a variable names; none where it names none.
pub(super) async fn program_of(variable: &str) -> Option<WorkerProgram> {
    let Some(root) = env::var_os(variable) else {
        eprintln!("{variable} names no SDK: nothing is tested");
        return None;
    };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let search =
        Search { configured: Some(PathBuf::from(root)), ..Search::from_env(target.join("test-tools")) };
    Some(prepare(&search, kernel_file, &|_| ()).await.unwrap())
}

/// A definition of each kind, and a value that depends on them.
const CODE: &str = "
type Shape = { Sides: int }
let square = { Sides = 4 }
let mutable count = 1
count <- square.Sides + count";

async fn works(variable: &str) {
    let Some((mut session, sdk)) = session_on(variable).await else { return };
    let ran = session.eval(CODE).await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);
    assert_eq!(session.value("count").await, "5");
    let ran = session.eval("printfn \"printed\"; failwith<int> \"no\"").await;
    let JobEnding::Raised(raised) = &ran.report.ending else { panic!("{:?}", ran.report.ending) };
    assert_eq!((raised.kind.as_str(), raised.message.as_str()), ("System.Exception", "no"));
    assert_eq!(ran.stdout, "printed\n");

    let kernel = session.worker.runner.kernel().unwrap();
    let found = soon(kernel.check("let n: string = square.Sides".into(), None)).await.unwrap();
    assert_eq!(found.iter().map(|one| (one.start.line, one.start.column)).collect::<Vec<_>>(), [(1, 17)]);
    // SDK 3.1 knows no packages.
    if sdk.major() >= 5 {
        let code = "#r \"nuget: FParsec\"\nopen FParsec\nlet number: Parser<int, unit> = pint32";
        assert_eq!(soon(kernel.check(code.into(), None)).await.unwrap(), []);
        assert_eq!(soon(kernel.check("open FParsec".into(), None)).await.unwrap()[0].code, "FS0039");
    }
    for (code, wanted) in [("square.Si", "Sides"), ("System.String.Joi", "Join"), ("List.len", "length")] {
        let column = u32::try_from(code.len()).unwrap() + 1;
        let cursor = TextPosition { line: 1, column };
        let proposed = soon(kernel.complete(code.to_owned(), cursor)).await.unwrap();
        assert!(proposed.items.iter().any(|item| item.label == wanted), "{code}: {proposed:?}");
    }
    let query = KernelQuery::Members { name: "List".to_owned() };
    let list = soon(kernel.query(query)).await.unwrap().members().unwrap();
    let length = list.members.iter().find(|member| member.name == "length").unwrap();
    let documentation = length.documentation.as_deref().unwrap_or_default();
    // npm's SDK 3.1 comes without the documentation of its library.
    let expected = if sdk.major() < 5 { "" } else { "Returns the length" };
    assert!(documentation.starts_with(expected), "{documentation:?}");
    let values = soon(kernel.query(KernelQuery::Values)).await.unwrap().values().unwrap();
    assert!(values.iter().any(|one| one.name == "count" && one.value.as_deref() == Some("5")), "{values:?}");

    let tests = "type FactAttribute() = inherit System.Attribute()";
    assert_eq!(session.eval(tests).await.report.ending, JobEnding::Completed);
    let ran = session.eval(&TestSelection::default().code()).await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);

    // Replay: a worker that is given the same code has the same values.
    let (mut again, _) = session_on(variable).await.unwrap();
    again.eval(CODE).await;
    assert_eq!(again.value("count").await, "5");
    let row = ["type One = { X: int }", "let f (one: One) = one.X", "type Other = { Y: int }", "let n = 3"];
    for seen in again.replay(&row.map(str::to_owned), None, row.len()).await {
        assert_eq!(seen.ending, JobEnding::Completed, "{seen:?}");
    }
    assert_eq!(again.value("f { X = n }").await, "3");
    // They were compiled together; on SDK 3.1 all of a session is one assembly.
    assert_eq!(again.value("typeof<One>.Assembly = typeof<Other>.Assembly").await, "true");
    // A type that takes the place of an older one is the one that what stands behind it in the row means.
    let row = ["type One = { Z: int }", "let g (one: One) = one", "let m = 4"];
    for seen in again.replay(&row.map(str::to_owned), None, row.len()).await {
        assert_eq!(seen.ending, JobEnding::Completed, "{seen:?}");
    }
    assert_eq!(again.value("(g { Z = m }).Z").await, "4");

    let job = session.submit("printf \"waits\"; System.Threading.Thread.Sleep 600000").await;
    assert!(session.prints("waits").await);
    session.worker.runner.process().interrupt().await;
    let ran = session.end_of(job).await;
    assert!(matches!(ran.report.ending, JobEnding::Interrupted { .. }), "{:?}", ran.report.ending);
    assert_eq!(session.value("count").await, "5");
}

#[tokio::test]
async fn sdk_3_1_runs_sessions() {
    works("MAINSTAY_TEST_DOTNET_3_1").await;
}

#[tokio::test]
async fn fsharp_11_runs_sessions() {
    works("MAINSTAY_TEST_DOTNET_FSHARP_11").await;
}

#[tokio::test]
async fn the_sdk_under_test_runs_sessions() {
    works("MAINSTAY_TEST_DOTNET").await;
}
