//! Files that are run cell by cell over HTTP.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Home, answer};

#[tokio::test]
async fn a_notebook_is_run_cell_by_cell_and_goes_on_where_it_ended() {
    let home = Home::new().await;
    home.session("demo").await;
    let file = std::path::Path::new(&home.folder()).join("steps.fsx");
    std::fs::write(&file, "let x = 3\n// %%\n1 + 1\n").unwrap();
    let run = json!({ "path": file });
    let (status, ran) = answer(home.post("/sessions/demo/notebooks", &run)).await;
    assert_eq!((status, &ran["success"]), (StatusCode::OK, &json!(true)), "{ran}");
    assert_eq!((&ran["cells"][1]["line"], &ran["cells"][1]["eval"]["success"]), (&json!(3), &json!(true)));
    let (_, again) = answer(home.post("/sessions/demo/notebooks", &run)).await;
    let before: Vec<_> = again["cells"].as_array().unwrap().iter().map(|cell| &cell["ranBefore"]).collect();
    assert_eq!(before, [&json!(true), &json!(true)], "{again}");
    assert_eq!(again["cells"][1]["eval"]["seq"], ran["cells"][1]["eval"]["seq"], "it is the stored outcome");
}

#[tokio::test]
async fn what_is_no_notebook_is_refused() {
    let home = Home::new().await;
    home.session("demo").await;
    let file = std::path::Path::new(&home.folder()).join("broken.ipynb");
    std::fs::write(&file, "{").unwrap();
    let script = std::path::Path::new(&home.folder()).join("steps.fsx");
    std::fs::write(&script, "1 + 1").unwrap();
    // From the folder that the daemon is in.
    let up = "../".repeat(std::env::current_dir().unwrap().components().count() - 1);
    let relative = format!("{up}{}", script.display().to_string().trim_start_matches('/'));
    assert!(std::path::Path::new(&relative).is_file(), "{relative}");
    for (body, code) in [
        (json!({ "path": "/nowhere/a.fsx" }), "invalid_argument"),
        (json!({ "path": home.folder() }), "invalid_argument"),
        (json!({ "path": relative }), "invalid_argument"),
        (json!({ "path": file }), "notebook_invalid"),
    ] {
        let (status, refused) = answer(home.post("/sessions/demo/notebooks", &body)).await;
        assert!(status.is_client_error(), "{status}: {refused}");
        assert_eq!(refused["code"], code, "{refused}");
    }
}
