//! `#r "nuget: …"`: packages of the source that the SDK under test is set to.

use mainstay_model::JobEnding;

use super::Session;

#[tokio::test]
async fn a_package_prints_nothing_of_the_script_that_is_made_for_it() {
    let mut session = Session::start().await;
    for reference in ["nuget: Newtonsoft.Json, 13.0.3", "nuget: FParsec"] {
        let ran = session.eval(&format!("#r \"{reference}\"\nlet one = 1")).await;
        assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report);
        assert_eq!((&*ran.report.result.display, &*ran.stdout), ("val one: int = 1", ""), "{reference}");
    }
    assert_eq!(session.value("Newtonsoft.Json.JsonConvert.SerializeObject [ 1; 2 ]").await, "\"[1,2]\"");
}
