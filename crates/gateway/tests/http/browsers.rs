//! How a browser is let in.

use mainstay_gateway::rpc::api::GetLink;
use mainstay_gateway::rpc::client::Client;
use mainstay_gateway::rpc::server::{listen, serve};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Home, answer};

/// The path of a link, on behalf of who has this token.
async fn link(home: &Home, token: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    tokio::spawn(serve(listen(&socket).unwrap(), home.daemon.clone()));
    let (client, _events) = Client::connect(&socket, token.to_owned(), "cli").await.unwrap();
    let url = client.call(GetLink { session: None }).await.unwrap().url;
    url.strip_prefix(&format!("http://127.0.0.1:{}", home.port)).unwrap().to_owned()
}

/// The cookie that a link gives.
async fn cookie(home: &Home, token: &str) -> String {
    let response = home.request(Method::GET, &link(home, token).await).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(response.headers()["location"], "/ui");
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_link_lets_a_browser_in_once_and_its_cookie_stays() {
    let home = Home::new().await;
    let path = link(&home, "secret").await;
    let enter = || home.request(Method::GET, &path).send();
    assert_eq!(enter().await.unwrap().status(), StatusCode::SEE_OTHER);
    assert_eq!(enter().await.unwrap().status(), StatusCode::UNAUTHORIZED, "it works once");
    let cookie = cookie(&home, "secret").await;
    assert_eq!(
        answer(home.request(Method::GET, "/sessions").header("Cookie", &cookie)).await.0,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_cookie_alone_changes_nothing_but_from_our_own_page() {
    let home = Home::new().await;
    home.session("demo").await;
    let cookie = cookie(&home, "secret").await;
    let exec = || {
        home.request(Method::POST, "/exec")
            .header("Cookie", &cookie)
            .header("Content-Type", "application/json")
            .header("Prefer", "wait=20")
            .body(json!({ "code": "1 + 1" }).to_string())
    };
    assert_eq!(answer(exec()).await.0, StatusCode::UNAUTHORIZED, "it came along by itself");
    assert_eq!(answer(exec().header("Origin", "http://evil.example")).await.0, StatusCode::FORBIDDEN);
    let own = format!("http://127.0.0.1:{}", home.port);
    assert_eq!(answer(exec().header("Origin", own)).await.1["value"], "2");
}

#[tokio::test]
async fn a_cookie_stands_for_who_asked_for_its_link() {
    let home = Home::new().await;
    home.session("demo").await;
    let cookie = cookie(&home, "hers").await;
    let (_, sessions) = answer(home.request(Method::GET, "/sessions").header("Cookie", &cookie)).await;
    assert_eq!(sessions, json!([]));
    let forged = format!("{cookie}0");
    assert_eq!(
        answer(home.request(Method::GET, "/sessions").header("Cookie", forged)).await.0,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn who_was_not_let_in_reads_how_to_be() {
    let home = Home::new().await;
    let response = home.request(Method::GET, "/ui").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let page = response.text().await.unwrap();
    assert!(page.contains("<h1>") && page.contains("mainstay web"), "{page}");
}
