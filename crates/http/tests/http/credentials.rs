//! Credentials that expire while a stream is told by them.

use mainstay_test_support::signed_token::signed_token;
use reqwest::{Method, StatusCode};

use crate::sockets::request;
use crate::support::Home;
use mainstay_model::Timestamp;

/// As long as streams take to be opened on a busy machine: the test waits so long.
const SHORT: i64 = 4;

#[tokio::test]
async fn a_stream_ends_with_the_credentials_that_it_was_asked_with() {
    let home = Home::new().await;
    home.session("demo").await;
    let token = signed_token("ada", &[], Timestamp::now().as_second() + SHORT);
    let bearer = format!("Bearer {token}");
    let socket = request(&home, "/stream?of=events", &[("authorization", &bearer)]).await;
    let mut socket = socket.unwrap_or_else(|refused| panic!("{refused:?}"));
    let get = |path| home.request(Method::GET, path).bearer_auth(&token);
    let events = get("/events").send().await.unwrap();
    assert_eq!(events.status(), StatusCode::OK);
    let told = events.text().await.expect("the stream comes to its end");
    assert!(told.contains("event:"), "{told}");
    assert_eq!(socket.closed().await, 1008);
    assert_eq!(get("/events").send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}
