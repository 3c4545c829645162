//! The principal's own history of what it submitted.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Home, answer};

fn line(number: u128, folder: &str, text: &str) -> Value {
    json!({ "id": uuid::Uuid::from_u128(number), "at": "2026-02-13T13:29:20Z", "folder": folder, "text": text })
}

#[tokio::test]
async fn a_line_is_kept_once_and_found_by_its_words_and_seen_by_nobody_else() {
    let home = Home::new().await;
    for (number, folder, text) in
        [(1, "/a", "let one = 1"), (2, "/b", "let two = 2"), (1, "/a", "let one = 1"), (3, "/a", "one + two")]
    {
        let (status, kept) = answer(home.post("/history", &line(number, folder, text))).await;
        assert_eq!((status, kept["number"].is_u64()), (StatusCode::OK, true), "{kept}");
    }
    let texts = async |query: &str| -> Vec<String> {
        let (_, page) = answer(home.get(&format!("/history?{query}"))).await;
        let lines = page["lines"].as_array().unwrap().clone();
        lines.iter().map(|line| line["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("").await, ["one + two", "let two = 2", "let one = 1"]);
    assert_eq!(texts("folder=/a").await, ["one + two", "let one = 1"]);
    assert_eq!(texts("q=ONE+let").await, ["let one = 1"]);
    let (_, page) = answer(home.get("/history?limit=1")).await;
    let number = page["lines"][0]["number"].as_u64().unwrap();
    assert_eq!(texts(&format!("before={number}&limit=1")).await, ["let two = 2"]);
    let (_, whole) = answer(home.get(&format!("/history/{number}"))).await;
    assert_eq!(whole, json!({ "text": "one + two" }));

    let hers = home.request(Method::GET, "/history").bearer_auth("hers");
    assert_eq!(answer(hers).await.1["lines"], json!([]));
    let hers = home.request(Method::GET, &format!("/history/{number}")).bearer_auth("hers");
    assert_eq!(answer(hers).await.0, StatusCode::BAD_REQUEST);
    for path in ["/history/none", "/history/99"] {
        let (status, problem) = answer(home.get(path)).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_argument")),
            "{path}"
        );
    }
}
