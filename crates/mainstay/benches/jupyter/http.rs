//! A client of HTTP that costs nothing worth measuring.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A connection that is kept.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    host: String,
    authorization: String,
}

impl Http {
    pub(crate) fn to(port: u16, authorization: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let host = format!("127.0.0.1:{port}");
        Self { stream: BufReader::new(stream), host, authorization: authorization.to_owned() }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &str, body: Option<&Value>) {
        let (host, authorization) = (&self.host, &self.authorization);
        let body = body.map(Value::to_string).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(head.as_bytes()).unwrap();
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stream.read_line(&mut line).unwrap(), 0, "the connection ended");
        line
    }

    /// How long the body is; none where it comes in chunks.
    pub(crate) fn skip_head(&mut self) -> Option<usize> {
        let mut length = None;
        loop {
            let line = self.line().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse().unwrap());
            }
            if line.trim().is_empty() {
                return length;
            }
        }
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: &Value) -> Value {
        self.send(method, path, headers, Some(body));
        let answer = match self.skip_head() {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        };
        serde_json::from_slice(&answer).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let length = usize::from_str_radix(self.line().trim(), 16).unwrap();
            all.extend(self.bytes(length));
            self.line();
            if length == 0 {
                return all;
            }
        }
    }
}
