//! A client's connection to the program over WebSocket, which may be lost at any moment.

use std::net::TcpStream;

use serde_json::Value;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

use super::port;
use crate::support::World;

/// Where the program is, and the connection to it while there is one.
pub(super) struct Connection {
    url: String,
    socket: Option<WebSocket<MaybeTlsStream<TcpStream>>>,
}

impl Connection {
    /// To the daemon of a world, which stays at its port.
    pub(super) fn to(world: &World) -> Self {
        Self { url: format!("ws://127.0.0.1:{}/arcp", port(world)), socket: None }
    }

    /// Connects anew; none where there is no daemon.
    pub(super) fn open(&mut self) -> Option<()> {
        self.socket = Some(connect(&self.url).ok()?.0);
        Some(())
    }

    /// Sends an envelope; none where the connection is lost.
    pub(super) fn send(&mut self, envelope: &Value) -> Option<()> {
        self.socket.as_mut()?.send(Message::text(envelope.to_string())).ok()
    }

    /// The next envelope; none where the connection is lost.
    pub(super) fn read(&mut self) -> Option<Value> {
        loop {
            match self.socket.as_mut()?.read().ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }
}
