//! The protocol over WebSocket: who is let in, and that the frames are the same.

use futures::{SinkExt, StreamExt};
use mainstay_gateway::port;
use mainstay_pi_protocol::PiProtocol;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::{Home, quick};

/// A daemon on a port of its own.
async fn served() -> (Home, u16) {
    let (listener, port) = port::listen(0).await.unwrap();
    let (home, _script) = Home::on_port(port, mainstay_model::Limits { connections: 1, ..quick() }).await;
    tokio::spawn(port::serve(listener, home.daemon.clone(), home.protocols()));
    (home, port)
}

async fn status(address: &str, headers: &[(&'static str, &str)]) -> Result<(), u16> {
    let mut request = address.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok(_) => Ok(()),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn only_who_shows_the_token_and_comes_from_this_machine_is_let_in() {
    let (_home, port) = served().await;
    let address = format!("ws://127.0.0.1:{port}/pi");
    assert_eq!(status(&address, &[]).await, Err(401));
    assert_eq!(status(&address, &[("authorization", "Bearer wrong")]).await, Err(401));
    let token = ("authorization", "Bearer secret");
    assert_eq!(status(&address, &[token, ("origin", "http://evil.example")]).await, Err(403));
    assert_eq!(status(&address, &[token]).await, Ok(()));
    assert_eq!(status(&format!("{address}?token=secret"), &[]).await, Ok(()));
    assert_eq!(status(&format!("{address}?token=wrong"), &[]).await, Err(401));
}

#[tokio::test]
async fn a_port_of_its_own_speaks_it_at_the_root_behind_the_same_checks() {
    let (home, port) = served().await;
    let (listener, pi_port) = port::listen(0).await.unwrap();
    tokio::spawn(port::serve_alone(
        listener,
        pi_port,
        home.daemon.clone(),
        home.protocols(),
        PiProtocol::NAME,
    ));
    let address = format!("ws://127.0.0.1:{pi_port}/");
    let token = ("authorization", "Bearer secret");
    assert_eq!(status(&address, &[]).await, Err(401));
    assert_eq!(status(&address, &[token, ("origin", "http://evil.example")]).await, Err(403));
    for (of, is_let_in) in [(port, Err(403)), (pi_port, Ok(()))] {
        let host = format!("127.0.0.1:{of}");
        assert_eq!(status(&address, &[token, ("host", &host)]).await, is_let_in);
    }
    assert_eq!(status(&format!("ws://127.0.0.1:{pi_port}/mcp"), &[token]).await, Err(404));
}

#[tokio::test]
async fn a_client_is_greeted_and_answered_and_one_too_many_is_told_to_come_later() {
    let (home, port) = served().await;
    let address = format!("ws://127.0.0.1:{port}/pi?token=secret");
    let (mut socket, _) = connect_async(&address).await.unwrap();
    let mut frames = Vec::new();
    socket.send(Message::text(json!({ "id": "1", "type": "list_sessions" }).to_string())).await.unwrap();
    while frames.len() < 6 {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        frames.push(frame["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        frames,
        [
            "server_ready",
            "startup_recovery_summary",
            "command_accepted",
            "command_started",
            "command_finished",
            "response"
        ]
    );
    let (mut second, _) = connect_async(&address).await.unwrap();
    let Some(Ok(Message::Close(Some(close)))) = second.next().await else { panic!("it is closed") };
    assert_eq!(
        (u16::from(close.code), close.reason.as_str()),
        (1013, "Connection limit reached (1 connections)")
    );
    home.daemon.stop.cancel();
    home.daemon.shut_down().await;
    let mut last = None;
    while let Some(Ok(message)) = socket.next().await {
        last = Some(message);
    }
    let Some(Message::Close(Some(close))) = last else { panic!("{last:?} is no close") };
    assert_eq!(u16::from(close.code), 1001);
}
