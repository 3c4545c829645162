//! A collector of telemetry: it takes what is sent over HTTP, keeps the bytes, and answers.
#![allow(unreachable_pub, reason = "as in the rest of the support")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Listens until it is dropped.
pub struct Collector {
    port: u16,
    kept: Arc<(Mutex<Vec<Received>>, Condvar)>,
}

/// One request that the collector received.
#[derive(Clone)]
pub struct Received {
    /// Its first line and its headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept: Arc<(Mutex<Vec<Received>>, Condvar)> = Arc::default();
        let keeping = Arc::clone(&kept);
        std::thread::spawn(move || {
            // It keeps connections, as collectors do.
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let received = receive(&stream);
                open.push(stream);
                keeping.0.lock().unwrap().push(received);
                keeping.1.notify_all();
            }
        });
        Self { port, kept }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All that was received.
    pub fn received(&self) -> Vec<Received> {
        self.kept.0.lock().unwrap().clone()
    }

    /// The spans that were received.
    pub fn spans(&self) -> Vec<Span> {
        let spans = |received: &Received| {
            let request = ExportTraceServiceRequest::decode(received.body.as_slice()).unwrap();
            let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
            scopes.flat_map(|scope| scope.spans).collect::<Vec<_>>()
        };
        self.received().iter().filter(|received| received.is_of("/v1/traces")).flat_map(spans).collect()
    }

    /// Waits until metrics were received that fit; gives them.
    pub fn metrics_that(&self, fit: impl Fn(&[Metric]) -> bool) -> Vec<Metric> {
        let last = |kept: &Vec<Received>| {
            kept.iter().filter(|received| received.is_of("/v1/metrics")).map(metrics).find(|these| fit(these))
        };
        let (kept, changed) = &*self.kept;
        let limit = Duration::from_secs(60);
        let (kept, timeout) =
            changed.wait_timeout_while(kept.lock().unwrap(), limit, |kept| last(kept).is_none()).unwrap();
        assert!(!timeout.timed_out(), "no such metrics came");
        last(&kept).unwrap()
    }
}

fn metrics(received: &Received) -> Vec<Metric> {
    let request = ExportMetricsServiceRequest::decode(received.body.as_slice()).unwrap();
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).collect()
}

impl Received {
    fn is_of(&self, path: &str) -> bool {
        self.head.starts_with(&format!("POST {path} HTTP/1.1\r\n"))
    }
}

fn receive(mut stream: &TcpStream) -> Received {
    let mut lines = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(lines.read_line(&mut head).unwrap(), 0, "the head ends early: {head}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
    });
    let mut body = vec![0; length.unwrap()];
    lines.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{\"partialSuccess\":{}}").unwrap();
    Received { head, body }
}
