//! What the directives of code bring in: how a check sees it before the code has run, and what a restore of packages says.

use std::fs;

use mainstay_model::{Diagnostic, Severity};

use super::*;

impl Session {
    /// What a check says of code, or of a file's.
    async fn check(&self, code: &str, file: Option<&Path>) -> Vec<Diagnostic> {
        let file = file.map(|path| path.to_str().unwrap().to_owned());
        soon(self.worker.runner.kernel().unwrap().check(code.to_owned(), file)).await.unwrap()
    }
}

/// A line for each: its place, its code, and the first line of what it says.
fn told(diagnostics: &[Diagnostic]) -> Vec<String> {
    let line = |one: &Diagnostic| {
        let first = one.message.lines().next().unwrap_or_default();
        format!("{}:{} {} {first}", one.start.line, one.start.column, one.code)
    };
    diagnostics.iter().map(line).collect()
}

const FPARSEC: &str = "#r \"nuget: FParsec\"\nopen FParsec\nlet number: Parser<int, unit> = pint32";

#[tokio::test]
async fn a_check_sees_what_scripts_define_that_have_not_run() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("plain.fsx", "#load \"deep/inner.fsx\"\nlet twice x = 2 * Shapes.Inner.one + x\n"),
        (
            "deep/inner.fsx",
            "// first\n[<AutoOpen>]\nmodule Shapes.Inner\n\nlet one = 1\nlet opened = \"a\"\n",
        ),
        (
            "types.fs",
            "namespace Shop\n\ntype Item = { Price: int }\n\nmodule Items =\n    let free = { Price = 0 }\n",
        ),
        ("more.fs", "namespace Shop\n\nmodule More =\n    let two = [ Items.free; { Price = 2 } ]\n"),
        ("2nd one.fsx", "#if INTERACTIVE\nlet second =\n    \"\"\"a\nb\"\"\"\n#endif\n"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let beginning = StartupContext::in_folder(folder.path());
    let session = Session::begin(beginning, Vec::new()).await;
    let code = "#load \"plain.fsx\" \"types.fs\" \"more.fs\"
#load @\"2nd one.fsx\"
open Shop
let three: int = Plain.twice 1
let price: int = Items.free.Price + List.length More.two
let text: string = ``2nd one``.second
let wrong: int = Shapes.Inner.opened";
    insta::assert_snapshot!(told(&session.check(code, None).await).join("\n"), @"7:18 FS0001 This expression was expected to have type");

    // A file's code looks from the file's folder.
    let file = folder.path().join("deep/other.fsx");
    let code = "#load \"inner.fsx\" \"../types.fs\"\nlet sum: int = Shapes.Inner.one + Shop.Items.free.Price";
    assert_eq!(session.check(code, Some(&file)).await, []);
    assert_eq!(told(&session.check("#load \"nothing.fsx\"", Some(&file)).await).len(), 1);

    // Nothing of it is there afterwards.
    assert_eq!(session.check("Shapes.Inner.one", None).await[0].code, "FS0039");
}

#[tokio::test]
async fn an_error_of_a_script_is_told_where_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.fsx"), "#load \"b.fsx\"\nlet a = 1\n").unwrap();
    fs::write(folder.path().join("b.fsx"), "let b: int =\n  \"no\"\n").unwrap();
    let session = Session::begin(StartupContext::in_folder(folder.path()), Vec::new()).await;
    let found = session.check("let x = 1\n  #load \"a.fsx\"\nlet y = A.a", None).await;
    let [error] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((error.start.line, error.start.column, error.code.as_str()), (2, 3, "FS0001"));
    let place = format!("{}(2,3): ", folder.path().join("b.fsx").display());
    assert!(error.message.starts_with(&place), "{}", error.message);
}

#[tokio::test]
async fn a_check_sees_packages_that_nothing_refers_to_yet_and_leaves_none_behind() {
    let mut session = Session::start().await;
    assert_eq!(session.check(FPARSEC, None).await, []);
    assert_eq!(session.check("open FParsec", None).await[0].code, "FS0039");
    assert_eq!(session.eval("open FParsec").await.report.ending, JobEnding::Rejected);

    // The session takes another version than the one that was looked at.
    let name = "typeof<Newtonsoft.Json.JsonConvert>.Assembly.Location.Split('/') |> Array.find (fun part -> part.StartsWith \"13.\")";
    let code = format!("#r \"nuget: Newtonsoft.Json, 13.0.3\"\nlet x: int = {name}");
    assert_eq!(told(&session.check(&code, None).await).len(), 1);
    let ran = session.eval("#r \"nuget: Newtonsoft.Json, 13.0.4\"").await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);
    assert_eq!(session.value(name).await, "\"13.0.4\"");
}

#[tokio::test]
async fn a_completion_sees_scripts_and_the_packages_of_earlier_checks() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tools.fsx"), "let hammer = 1\nlet saw = 2\n").unwrap();
    let session = Session::begin(StartupContext::in_folder(folder.path()), Vec::new()).await;
    let kernel = session.worker.runner.kernel().unwrap().clone();
    assert_eq!(session.check("#r \"nuget: FParsec\"", None).await, []);
    for (code, wanted) in [
        ("#load \"tools.fsx\"\nTools.ha", "hammer"),
        ("#r \"nuget: FParsec\"\nFParsec.CharParsers.pint3", "pint32"),
    ] {
        let column = u32::try_from(code.lines().last().unwrap().len()).unwrap() + 1;
        let cursor = mainstay_model::TextPosition { line: 2, column };
        let proposed = soon(kernel.complete(code.to_owned(), cursor)).await.unwrap();
        assert!(proposed.items.iter().any(|item| item.label == wanted), "{code}: {proposed:?}");
        assert_eq!(proposed.start.unwrap().line, 2);
    }
}

#[tokio::test]
async fn while_code_runs_a_check_says_that_it_cannot_look_into_references() {
    let mut session = Session::start().await;
    let job = session.submit("printfn \"runs\"; System.Threading.Thread.Sleep 600000").await;
    assert!(session.prints("runs").await);
    let found = session.check(FPARSEC, None).await;
    assert_eq!((found[0].severity, found[0].code.as_str()), (Severity::Info, "code_runs"), "{found:?}");
    session.worker.runner.process().interrupt().await;
    session.end_of(job).await;
    assert_eq!(session.check(FPARSEC, None).await, []);
}

#[tokio::test]
async fn what_a_restore_warns_of_is_told_once_and_not_printed() {
    let mut session = Session::start().await;
    let ran = session.eval("let before = 1\n#r \"nuget: Plotly.NET\"").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let diagnostics = &ran.report.result.diagnostics;
    assert!(diagnostics.iter().all(|one| one.severity == Severity::Warning), "{diagnostics:?}");
    insta::assert_snapshot!(told(diagnostics).join("\n"), @r"
    2:1 NU1603 DynamicObj 8.0.0 depends on Fable.Core (>= 4.3.0) but Fable.Core 4.3.0 was not found. Fable.Core 5.3.0 was resolved instead.
    2:1 NU1605 Detected package downgrade: FSharp.Core from 10.1.403 to 10.1.401. Reference the package directly from the project to select a different version.
    ");
    let ran = session.eval("#r \"nuget: FParsec\"").await;
    assert_eq!((ran.stdout.as_str(), ran.report.result.diagnostics.as_slice()), ("", &[][..]));

    let ran = session.eval("#r \"nuget: Not.There\"").await;
    assert_eq!(ran.report.ending, JobEnding::Rejected);
    let [error] = ran.report.result.diagnostics.as_slice() else { panic!("{:?}", ran.report.result) };
    assert_eq!((error.severity, error.code.as_str()), (Severity::Error, "NU1101"));
    assert!(error.message.starts_with("Unable to find package Not.There."), "{}", error.message);
    assert_eq!(session.check("#r \"nuget: Not.There\"", None).await[0].code, "NU1101");
}

#[tokio::test]
async fn packages_without_a_version_are_all_that_the_session_rests_on() {
    let mut session = Session::start().await;
    session
        .eval("#r \"nuget: Newtonsoft.Json\"\nlet text = Newtonsoft.Json.JsonConvert.SerializeObject [ 1 ]")
        .await;
    let ran = session.eval("#r \"nuget: FParsec\"\nFParsec.CharParsers.pint32").await;
    let rests = ran.report.references.expect("there is more than before");
    let names: Vec<_> = rests.keys().collect();
    assert_eq!(names, ["FParsec.dll", "Newtonsoft.Json.dll"]);
    let ran = session.eval("text.Length").await;
    assert_eq!(ran.report.references, None, "nothing has changed");
}
