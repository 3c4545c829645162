//! Connections whose clients are slow, silent, or ask for too much: each ends, and others are served meanwhile.

use mainstay_model::Limits;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, answer};

/// All that comes up to the end of the connection.
async fn rest(connection: &mut TcpStream) -> String {
    let mut said = Vec::new();
    // A connection that is cut while something is on its way to it ends with an error.
    timeout(PATIENCE, connection.read_to_end(&mut said)).await.expect("the connection does not end").ok();
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn a_head_must_come_in_time() {
    let home = Home::with(Limits { request_ms: 300, ..Limits::default() }).await;
    let mut connection = home.connect().await;
    let head = home.head("GET /sessions");
    let (mut reads, mut writes) = connection.split();
    let trickle = async {
        for byte in head.as_bytes().iter().cycle() {
            // As slow as others are served meanwhile.
            assert_eq!(answer(home.request(Method::GET, "/health")).await.0, StatusCode::OK);
            if writes.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let mut said = Vec::new();
    tokio::select! {
        () = trickle => {}
        end = timeout(PATIENCE, reads.read_to_end(&mut said)) => {
            end.expect("the connection does not end").ok();
        }
    }
    assert!(!said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn a_connection_with_nothing_under_way_is_closed() {
    let home = Home::with(Limits { request_ms: 200, ..Limits::default() }).await;
    let mut silent = home.connect().await;
    assert_eq!(rest(&mut silent).await, "");
    let mut kept = home.connect().await;
    kept.write_all((home.head("GET /health") + "\r\n").as_bytes()).await.unwrap();
    let said = rest(&mut kept).await;
    assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("ok\n"), "{said}");
}

#[tokio::test]
async fn a_stream_may_be_silent_for_longer_than_a_request() {
    let home = Home::with(Limits { request_ms: 200, ..Limits::default() }).await;
    home.session("demo").await;
    let mut stream = home.stream("/eval").await;
    stream.next().await.unwrap();
    // A connection that was opened later has come to its end for its silence.
    rest(&mut home.connect().await).await;
    answer(home.post("/exec", &json!({ "code": "1 + 1" }))).await;
    stream.until(|signals| signals.get("evalResult").is_some()).await;
}

#[tokio::test]
async fn a_head_has_a_bounded_size_and_number_of_headers() {
    let home = Home::new().await;
    let many = "X: 1\r\n".repeat(98);
    let large = format!("X: {}\r\n", "x".repeat(64 * 1024));
    let fits = format!("X: {}\r\n", "x".repeat(32 * 1024));
    for (headers, status) in
        [(&*many, "200"), (&*(many.clone() + "X: 1\r\n"), "431"), (&*fits, "200"), (&*large, "431")]
    {
        let mut connection = home.connect().await;
        // Host and Authorization are the first two.
        let head = home.head("GET /health") + headers + "\r\n";
        connection.write_all(head.as_bytes()).await.ok();
        let mut said = vec![0; 12];
        timeout(PATIENCE, connection.read_exact(&mut said)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&said), format!("HTTP/1.1 {status}"), "{} bytes", head.len());
    }
}

#[tokio::test]
async fn connections_are_bounded() {
    let home = Home::with(Limits { http_connections: 1, ..Limits::default() }).await;
    let mut held = home.connect().await;
    held.write_all((home.head("GET /health") + "\r\n").as_bytes()).await.unwrap();
    held.read_exact(&mut [0; 12]).await.unwrap();
    let said = rest(&mut home.connect().await).await;
    assert!(said.starts_with("HTTP/1.1 429") && said.contains("\"too_many_connections\""), "{said}");
    drop(held);
    let served = async {
        // The daemon hears of the end of the first one sooner or later.
        loop {
            let health = home.request(Method::GET, "/health").send().await;
            if health.is_ok_and(|health| health.status() == StatusCode::OK) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, served).await.expect("the place is not given back");
}

#[tokio::test]
async fn a_client_that_never_reads_holds_nobody_up_and_ends_with_the_daemon() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut deaf = home.connect().await;
    deaf.write_all((home.head("GET /eval") + "\r\n").as_bytes()).await.unwrap();
    deaf.read_exact(&mut [0; 12]).await.unwrap();
    // More than all buffers on the way to it take together.
    for _ in 0..12 {
        let (_, eval) = answer(home.post("/exec", &json!({ "code": "flood 1000000" }))).await;
        assert_eq!(eval["success"], true, "{eval}");
    }
    home.daemon.stop.cancel();
    timeout(PATIENCE, home.daemon.shut_down()).await.expect("the daemon waits for who does not read");
    timeout(PATIENCE, home.served).await.expect("its stream goes on").unwrap();
    let said = rest(&mut deaf).await;
    assert!(said.len() < 12_000_000, "it was cut: {}", said.len());
}
