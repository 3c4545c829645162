//! How a browser is let in.

use mainstay_gateway::browser::link;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Home, answer};

/// The code of a link, on behalf of who has this token.
fn code(home: &Home, token: &str) -> String {
    let principal = home.daemon.tokens.access_of(token).unwrap().principal;
    let url = link(&home.daemon, principal, "/ui");
    // Browsers send the fragment of an address to nobody.
    url.strip_prefix(&format!("http://127.0.0.1:{}/ui#enter=", home.port)).unwrap().to_owned()
}

/// Redeems a code, as the page does.
fn enter(home: &Home, code: &str) -> reqwest::RequestBuilder {
    let request = home.request(Method::POST, "/ui/enter").header("Content-Type", "application/json");
    request.body(json!({ "code": code }).to_string())
}

/// The secret that a link gives.
async fn secret(home: &Home, token: &str) -> String {
    let (status, said) = answer(enter(home, &code(home, token))).await;
    assert_eq!(status, StatusCode::OK);
    said["secret"].as_str().unwrap().to_owned()
}

async fn sessions(home: &Home, secret: &str) -> (StatusCode, Value) {
    answer(home.request(Method::GET, "/sessions").bearer_auth(secret)).await
}

#[tokio::test]
async fn a_link_lets_a_browser_in_once_and_its_secret_stays() {
    let home = Home::new().await;
    let code = code(&home, "secret");
    let response = enter(&home, &code).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(!response.headers().contains_key("set-cookie"), "{:?}", response.headers());
    assert_eq!(answer(enter(&home, &code)).await.0, StatusCode::UNAUTHORIZED, "it works once");
    assert_eq!(sessions(&home, &secret(&home, "secret").await).await.0, StatusCode::OK);
}

#[tokio::test]
async fn nothing_that_a_browser_sends_by_itself_lets_it_in() {
    let home = Home::new().await;
    let secret = secret(&home, "secret").await;
    let address = format!("/sessions?secret={secret}&token={secret}&code={secret}");
    for path in ["/sessions", &address, "/ui/stream", "/openapi.json"] {
        for name in [format!("mainstay_{}", home.port), "mainstay".to_owned(), "Authorization".to_owned()] {
            let request = home.request(Method::GET, path).header("Cookie", format!("{name}={secret}"));
            assert_eq!(answer(request).await.0, StatusCode::UNAUTHORIZED, "{path} {name}");
        }
    }
}

#[tokio::test]
async fn a_page_of_another_port_is_not_let_in() {
    let home = Home::new().await;
    let (secret, code) = (secret(&home, "secret").await, code(&home, "secret"));
    for origin in ["http://evil.example", "http://127.0.0.1:1", "null"] {
        let request = home.request(Method::GET, "/sessions").bearer_auth(&secret).header("Origin", origin);
        assert_eq!(answer(request).await.0, StatusCode::FORBIDDEN, "{origin}");
        assert_eq!(answer(enter(&home, &code).header("Origin", origin)).await.0, StatusCode::FORBIDDEN);
    }
    let form = home.request(Method::POST, "/ui/enter").body(format!("code={code}"));
    assert_ne!(form.send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(answer(enter(&home, &code)).await.0, StatusCode::OK, "nothing has used it up");
}

#[tokio::test]
async fn a_secret_stands_for_who_asked_for_its_link() {
    let home = Home::new().await;
    home.session("demo").await;
    let secret = secret(&home, "hers").await;
    assert_eq!(sessions(&home, &secret).await, (StatusCode::OK, json!([])));
    assert_eq!(sessions(&home, &format!("{secret}0")).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn an_address_gives_browsers_a_document_without_content() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let visit = |path: &str| home.request(Method::GET, path).header("Accept", "text/html,*/*;q=0.8").send();
    let list = visit("/ui").await.unwrap();
    assert_eq!(
        (list.status(), &list.headers()["cache-control"]),
        (StatusCode::OK, &"no-store".parse().unwrap())
    );
    let list = list.text().await.unwrap();
    assert!(list.contains("<noscript>") && list.contains("mainstay web"), "{list}");
    // Whether something is there is not told either.
    for path in [format!("/ui/sessions/{session}"), "/ui/sessions/none".to_owned()] {
        assert_eq!(visit(&path).await.unwrap().text().await.unwrap(), list);
    }
    let frame = visit("/ui/frame").await.unwrap();
    let policy = frame.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox allow-scripts; script-src 'sha256-"), "{policy}");
    let others = home.request(Method::GET, "/ui").send().await.unwrap();
    assert_eq!(others.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn people_are_told_in_a_page_what_programs_are_told_in_json() {
    let home = Home::new().await;
    let media =
        |response: &reqwest::Response| response.headers()["content-type"].to_str().unwrap().to_owned();
    for (path, host, status) in [
        ("/sessions", "", StatusCode::UNAUTHORIZED),
        ("/openapi.json", "", StatusCode::UNAUTHORIZED),
        ("/ui", "evil.example", StatusCode::FORBIDDEN),
    ] {
        let ask = |accept: &str| {
            let request = home.request(Method::GET, path).header("Accept", accept);
            if host.is_empty() { request } else { request.header("Host", host) }.send()
        };
        let page = ask("text/html,*/*;q=0.8").await.unwrap();
        assert_eq!((page.status(), media(&page)), (status, "text/html; charset=utf-8".to_owned()), "{path}");
        assert!(page.headers().contains_key("content-security-policy"));
        assert!(page.text().await.unwrap().contains("<h1>"));
        let problem = ask("*/*").await.unwrap();
        assert_eq!(
            (problem.status(), media(&problem)),
            (status, "application/problem+json".to_owned()),
            "{path}"
        );
    }
    let root = home.request(Method::GET, "/").header("Accept", "text/html").send().await.unwrap();
    assert_eq!(
        (root.status(), &root.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/ui".parse().unwrap())
    );
    assert_eq!(answer(home.request(Method::GET, "/")).await.0, StatusCode::NOT_FOUND);
}
