//! The least of an MCP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::Failure;
use crate::daemon::Daemon;

/// The least of an MCP client: one kept connection, one request at a time.
pub(crate) struct Mcp {
    stream: BufReader<TcpStream>,
    head: String,
    last_id: u64,
}

impl Mcp {
    pub(crate) fn connect(daemon: &Daemon, session: &str) -> Result<Self, Failure> {
        let port = daemon.record["port"].as_u64().ok_or("no port")?;
        let stream = TcpStream::connect(("127.0.0.1", u16::try_from(port)?))?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            daemon.token()?
        );
        let mut mcp = Self { stream: BufReader::new(stream), head, last_id: 0 };
        let initialize = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}});
        let (headers, _) = mcp.request("initialize", &initialize)?;
        let transport = headers.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        if let Some(id) = transport {
            mcp.head.push_str(&format!("Mcp-Session-Id: {id}\r\n"));
        }
        mcp.head.push_str("MCP-Protocol-Version: 2025-11-25\r\n");
        mcp.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        mcp.receive()?;
        mcp.call("send_code", &json!({"code": "1", "sessionId": session}))?;
        Ok(mcp)
    }

    /// A question, whose answer is no failure.
    pub(crate) fn ask(&mut self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let (_, body) = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if body.contains("\"isError\":true") || body.contains("\"error\":{") {
            Err(body.into())
        } else {
            Ok(())
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let (_, body) = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if body.contains("\"success\":true") { Ok(()) } else { Err(body.into()) }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<(String, String), Failure> {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))?;
        self.receive()
    }

    pub(crate) fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let body = message.to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// The headers and the body, whether its length was told or it came in chunks.
    pub(crate) fn receive(&mut self) -> Result<(String, String), Failure> {
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut headers)? == 0 {
                return Err("the connection ended".into());
            }
        }
        let lower = headers.to_ascii_lowercase();
        let mut body = Vec::new();
        if lower.contains("transfer-encoding: chunked") {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16)?;
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk)?;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else if let Some(length) = lower.lines().find_map(|line| line.strip_prefix("content-length:")) {
            body.resize(length.trim().parse()?, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok((headers, String::from_utf8(body)?))
    }
}
