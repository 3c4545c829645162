//! A program that makes requests of the OpenAPI document, also strange ones: nothing may break, and nothing be answered that is in no
//! document.

use std::path::PathBuf;

use tokio::process::Command;

use crate::support::Home;

/// The document has 503 for what this machine or a session's worker lacks, as sessions without a real kernel do here: that breaks nothing.
const SETTINGS: &str =
    "[checks]\nnot_a_server_error.expected-statuses = [\"2xx\", \"3xx\", \"4xx\", \"503\"]\n";
/// What must hold of every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method";

#[tokio::test(flavor = "multi_thread")]
async fn no_request_breaks_anything_or_is_answered_otherwise_than_the_document_says() {
    let python = std::env::var_os("MAINSTAY_TEST_PYTHON")
        .expect("MAINSTAY_TEST_PYTHON names a Python with schemathesis; `cargo xtask test` sets it");
    let home = Home::new().await;
    home.session("demo").await;
    std::fs::write(PathBuf::from(home.folder()).join("schemathesis.toml"), SETTINGS).unwrap();
    let base = format!("http://127.0.0.1:{}", home.port);
    let tried = Command::new(PathBuf::from(python).with_file_name("st"))
        .arg("run")
        .arg(format!("{base}/openapi.json"))
        .args(["--url", &base, "--header", "Authorization: Bearer secret", "--checks", CHECKS])
        // Streams do not end by themselves, and the daemon is needed until all was tried.
        .args([
            "--exclude-operation-id-regex",
            "^get_.*(eval|status|events|diagnostics|completions)$|shutdown",
        ])
        .args(["--phases", "fuzzing", "--max-examples", "10", "--request-timeout", "20", "--seed", "1"])
        .args(["--continue-on-failure", "--no-color", "--generation-database", "none"])
        .current_dir(home.folder())
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{told}\n{}", String::from_utf8_lossy(&tried.stderr));
    assert!(told.contains("cases"), "it tried something: {told}");
}
