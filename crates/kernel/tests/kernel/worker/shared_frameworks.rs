//! `#r "framework: …"`: shared frameworks that are installed beside the runtime.

use std::path::Path;

use mainstay_model::JobEnding;

use super::{Session, soon, support};

const WEB: &str = "#r \"framework: Microsoft.AspNetCore.App\"
open Microsoft.AspNetCore.Builder
let app = WebApplication.CreateBuilder([||]).Build()
app.GetType().Name";

#[tokio::test]
async fn code_that_refers_to_a_shared_framework_runs_with_it_and_is_checked_then() {
    // The SDK 3.1 from npm comes without it.
    let sdk = support::search(Path::new("/")).configured.unwrap();
    if !sdk.join("shared/Microsoft.AspNetCore.App").is_dir() {
        return;
    }
    let mut session = Session::start().await;
    let kernel = session.worker.runner.kernel().unwrap().clone();
    let ran = session.eval(WEB).await;
    assert_eq!(ran.report.result.value.as_deref(), Some("\"WebApplication\""));
    // Of the assemblies of a framework nothing is said, though each is referred to.
    assert!(!ran.report.result.display.contains(".dll"), "{}", ran.report.result.display);
    assert_eq!(soon(kernel.check(WEB.to_owned(), None)).await.unwrap(), []);
    assert_eq!(
        session.value("let s = \"\"\"\n#r \"framework: X\"\n\"\"\"\ns.Trim()").await,
        "\"#r \"framework: X\"\""
    );
}

#[tokio::test]
async fn one_that_is_not_installed_is_named_beside_those_that_are() {
    let mut session = Session::start().await;
    let ran = session.eval("#r \"framework: Microsoft.Nothing.App\"").await;
    assert_eq!(ran.report.ending, JobEnding::Rejected);
    let said = &ran.report.result.diagnostics[0].message;
    assert!(said.contains("no shared framework Microsoft.Nothing.App is installed"), "{said}");
    assert!(said.contains("Microsoft.NETCore.App"), "{said}");
}
