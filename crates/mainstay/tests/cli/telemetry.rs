//! What a collector of telemetry hears of a daemon: whole traces and the daemon's numbers, nothing that anyone said, and at no cost where it
//! is away.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support;
use crate::support::World;
use crate::support::collector::Collector;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Text;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
/// Told apart from everything else that is exported.
const SECRET: &str = "hunter-7f3a91";

/// A daemon whose settings name this endpoint, with more settings of telemetry.
fn daemon(endpoint: &str, settings: &str) -> World {
    let world = World::scripted();
    let config = format!("[telemetry]\nendpoint = \"{endpoint}\"\n{settings}");
    std::fs::write(world.home().join("config.toml"), config).unwrap();
    let started = world
        .command()
        .args(["-d", "--port", "0"])
        .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
        .output()
        .unwrap();
    assert!(started.status.success(), "{started:?}");
    world
}

fn token(world: &World) -> String {
    std::fs::read_to_string(world.home().join("token")).unwrap().trim().to_owned()
}

pub(crate) fn request(world: &World, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let port = world.run(["status", "--json"]).json()["port"].as_u64().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    let (token, length) = (token(world), body.len());
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn post(world: &World, path: &str, headers: &str, body: &Value) -> (u16, String) {
    request(world, "POST", path, headers, &body.to_string())
}

fn traced(flags: &str) -> String {
    format!("traceparent: 00-{TRACE}-{PARENT}-{flags}\r\nPrefer: wait=120\r\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_trace(collector: &Collector, trace: &str) -> Vec<Span> {
    collector.spans().into_iter().filter(|span| hex(&span.trace_id) == trace).collect()
}

fn attribute(span: &Span, name: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == name)?;
    Some(match attribute.value.clone()?.value? {
        Text::StringValue(text) => text,
        Text::IntValue(number) => number.to_string(),
        Text::BoolValue(is_so) => is_so.to_string(),
        other => panic!("{name} is {other:?}"),
    })
}

/// The spans below this one, as they began, each within its parent.
fn tree(spans: &[Span], parent: &[u8], depth: usize) -> String {
    const SHOWN: [&str; 6] = [
        "http.response.status_code",
        "mainstay.action",
        "mainstay.replayed",
        "mainstay.ending",
        "mainstay.outcomes",
        "error.type",
    ];
    let mut below: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
    below.sort_by_key(|span| (span.start_time_unix_nano, span.end_time_unix_nano));
    let mut text = String::new();
    for span in below {
        let shown = SHOWN.iter().filter_map(|name| Some(format!(" {name}={}", attribute(span, name)?)));
        let failed = span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error);
        let failed = if failed { " ERROR" } else { "" };
        let line = format!("{}{}{}{failed}\n", "  ".repeat(depth), span.name, shown.collect::<String>());
        text.push_str(&line);
        text.push_str(&tree(spans, &span.span_id, depth + 1));
    }
    text
}

fn assert_within_their_parents(spans: &[Span]) {
    for span in spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        let Some(parent) = spans.iter().find(|other| other.span_id == span.parent_span_id) else { continue };
        assert!(parent.start_time_unix_nano <= span.start_time_unix_nano, "{span:?} in {parent:?}");
        assert!(span.end_time_unix_nano <= parent.end_time_unix_nano, "{span:?} in {parent:?}");
    }
}

fn bytes_of_parent() -> Vec<u8> {
    PARENT
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn one_trace_leads_from_a_request_to_the_commit_of_its_outcome() {
    let collector = Collector::start();
    let world = daemon(&collector.endpoint(), "");
    let created = json!({ "workingDirectory": world.work(), "name": "traced" });
    let (status, answer) = post(&world, "/sessions", "Prefer: wait=120\r\n", &created);
    assert!((200..300).contains(&status), "{status} {answer}");
    assert_eq!(post(&world, "/stop?session=traced", "Prefer: wait=60\r\n", &json!({})).0, 200);
    let code = json!({ "code": format!("\"{SECRET}\"") });
    // At rest, it waits for its turn until there is a worker.
    let (status, answer) = post(&world, "/exec?session=traced", &traced("01"), &code);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(SECRET), "the code ran: {answer}");
    let prints = json!({ "code": format!("printfn \"{SECRET}\"; failwith \"{SECRET}\"") });
    assert_eq!(post(&world, "/exec?session=traced", "Prefer: wait=60\r\n", &prints).0, 200);
    assert_eq!(world.run(["stop"]).code, 0);
    let spans = of_trace(&collector, TRACE);
    insta::assert_snapshot!(tree(&spans, &bytes_of_parent(), 0), @"
    POST /exec http.response.status_code=200
      command mainstay.action=eval
        admission
        lane
        commit mainstay.outcomes=0
          commit.queue
          commit.write
          commit.flush
        commit mainstay.outcomes=0
          commit.queue
          commit.write
          commit.flush
        job mainstay.ending=completed
          worker
          commit mainstay.outcomes=1
            commit.queue
            commit.write
            commit.flush
    ");
    assert_within_their_parents(&spans);
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    assert!(named("lane").end_time_unix_nano <= named("job").start_time_unix_nano);
    assert!(named("admission").end_time_unix_nano <= named("lane").start_time_unix_nano);
    assert_eq!(attribute(named("POST /exec"), "http.route").unwrap(), "/exec");
    assert_eq!(attribute(named("command"), "mainstay.session"), attribute(named("job"), "mainstay.session"));
    let (token, work) = (token(&world), world.work());
    let path = work.parent().unwrap().to_str().unwrap();
    for received in collector.received() {
        for (what, secret) in [("code", SECRET), ("the token", token.as_str()), ("a path", path)] {
            let holds = received.body.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
            assert!(!holds, "{what} was exported: {}", String::from_utf8_lossy(&received.body));
        }
    }
}

#[test]
fn what_is_refused_fails_or_was_there_before_says_so_in_its_trace() {
    let collector = Collector::start();
    let world = daemon(&collector.endpoint(), "");
    assert_eq!(world.eval("let x = 1")["success"], true);
    assert_eq!(post(&world, "/cancel", &traced("01"), &json!({ "target": "nothing" })).0, 409);
    let failing = json!({ "code": "failwith \"no\"", "commandId": "again" });
    assert_eq!(post(&world, "/exec", &traced("01"), &failing).0, 200);
    assert_eq!(post(&world, "/exec", &traced("01"), &failing).0, 200);
    assert_eq!(world.run(["stop"]).code, 0);
    let spans = of_trace(&collector, TRACE);
    insta::assert_snapshot!(tree(&spans, &bytes_of_parent(), 0), @"
    POST /cancel http.response.status_code=409
      command mainstay.action=cancel error.type=not_running ERROR
        admission
    POST /exec http.response.status_code=200
      command mainstay.action=eval
        admission
        commit mainstay.outcomes=0
          commit.queue
          commit.write
          commit.flush
        job mainstay.ending=failed ERROR
          worker
          commit mainstay.outcomes=1
            commit.queue
            commit.write
            commit.flush
    POST /exec http.response.status_code=200
      command mainstay.action=eval mainstay.replayed=true
        admission
    ");
    assert_within_their_parents(&spans);
}

#[test]
fn calls_over_mcp_and_the_local_socket_are_traced_as_requests_are() {
    let collector = Collector::start();
    let world = daemon(&collector.endpoint(), "");
    assert_eq!(world.eval("let x = 1")["success"], true);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "send_code", "arguments": { "code": "x + 1" }, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = format!(
        "{}Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: send_code\r\n",
        traced("01")
    );
    let (status, answer) = post(&world, "/mcp", &headers, &call);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(world.run(["stop"]).code, 0);
    let spans = collector.spans();
    let below = |name: &str| {
        let is_of = |span: &&Span| span.name == name;
        let request = spans.iter().find(is_of).unwrap_or_else(|| panic!("{name}: {spans:#?}"));
        let command = spans.iter().find(|span| span.parent_span_id == request.span_id).unwrap();
        assert_eq!(command.trace_id, request.trace_id);
        (hex(&request.trace_id), attribute(command, "mainstay.action").unwrap())
    };
    assert_eq!(below("POST /mcp"), (TRACE.to_owned(), "eval".to_owned()));
    assert_eq!(below("session/eval").1, "eval");
}

#[test]
fn a_trace_that_is_not_recorded_elsewhere_is_not_exported_here() {
    let collector = Collector::start();
    let world = daemon(&collector.endpoint(), "sampling-ratio = 1.0\n");
    assert_eq!(request(&world, "GET", "/sessions", &traced("00"), "").0, 200);
    assert_eq!(request(&world, "GET", "/asks", "", "").0, 200);
    assert_eq!(world.run(["stop"]).code, 0);
    assert_eq!(of_trace(&collector, TRACE), []);
    assert!(collector.spans().iter().any(|span| span.name == "GET /asks"), "{:?}", collector.spans());
}

#[test]
fn it_is_told_the_numbers_that_prometheus_reads_with_the_headers_of_the_file() {
    let collector = Collector::start();
    let headers = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(headers.path(), format!("authorization=Bearer {SECRET}\n")).unwrap();
    let world = daemon(&collector.endpoint(), &format!("headers-file = \"{}\"\n", headers.path().display()));
    assert_eq!(world.eval("1 + 1")["value"], "2");
    let (_, read) = request(&world, "GET", "/metrics", "", "");
    // Counted once it is answered.
    let (_, read_again) = request(&world, "GET", "/metrics", "", "");
    let names = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert!(names(&read).is_subset(&names(&read_again)));
    let told = |metrics: &[Metric]| metrics.iter().map(|metric| metric.name.clone()).collect::<BTreeSet<_>>();
    let metrics = collector.metrics_that(|metrics| told(metrics) == names(&read_again));
    let data = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().data.clone().unwrap();
    let Data::Sum(jobs) = data("mainstay_jobs_total") else { panic!("a counter is a sum") };
    assert!(jobs.is_monotonic);
    assert_eq!(jobs.aggregation_temporality(), AggregationTemporality::Cumulative);
    assert_eq!(jobs.data_points.len(), 1);
    let Data::Histogram(times) = data("mainstay_job_seconds") else { panic!("times are a histogram") };
    assert_eq!(times.data_points[0].count, 1);
    let bounds = |text: &str| {
        let buckets = text.lines().filter(|line| line.starts_with("mainstay_job_seconds_bucket"));
        buckets
            .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect::<Vec<f64>>()
    };
    let finite: Vec<f64> = bounds(&read).into_iter().filter(|bound| bound.is_finite()).collect();
    assert_eq!(times.data_points[0].explicit_bounds, finite);
    let Data::Gauge(live) = data("mainstay_live_sessions") else { panic!("how much there is is a gauge") };
    assert_eq!(live.data_points.len(), 1);
    let received = collector.received();
    assert!(
        received.iter().all(|request| request.head.contains(&format!("authorization: Bearer {SECRET}\r\n")))
    );
    assert!(received.iter().all(|request| !String::from_utf8_lossy(&request.body).contains(SECRET)));
    let log = std::fs::read_to_string(world.home().join("logs/daemon.log")).unwrap();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_collector_that_is_away_costs_a_line_in_the_log() {
    // Bound, and nobody answers there once it is dropped.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = daemon(&format!("http://{nobody}"), "");
    for _ in 0..3 {
        assert_eq!(world.eval("1 + 1")["value"], "2");
    }
    let log = || std::fs::read_to_string(world.home().join("logs/daemon.log")).unwrap();
    assert!(support::within(Duration::from_secs(60), || log().contains("telemetry is not delivered")));
    assert_eq!(world.run(["stop"]).code, 0);
    assert_eq!(log().matches("telemetry is not delivered").count(), 1, "{}", log());
}

#[test]
fn a_collector_that_never_answers_does_not_hold_the_daemon_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let world = daemon(&format!("http://{}", silent.local_addr().unwrap()), "");
    assert_eq!(world.eval("1 + 1")["value"], "2");
    let began = Instant::now();
    assert_eq!(world.run(["stop"]).code, 0);
    // It waits two seconds for the collector, and less than that for all else.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    drop(silent);
}

#[test]
fn settings_that_nothing_could_work_with_end_the_daemon_with_their_name() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[telemetry]\nendpoint = \"localhost\"\n").unwrap();
    let refused = world.run(["-d", "--port", "0"]);
    assert_eq!(refused.code, 1);
    insta::assert_snapshot!(refused.stderr, @"
    error: telemetry.endpoint is not valid: it must begin with `http://` and name a host, as in `http://localhost:4318` [invalid_argument]
      Correct it and try again.
    ");
    std::fs::remove_file(world.home().join("config.toml")).unwrap();
    let refused = world
        .command()
        .args(["-d", "--port", "0"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
        .env("OTEL_TRACES_SAMPLER", "sometimes")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("OTEL_TRACES_SAMPLER is not valid"),
        "{refused:?}"
    );
}
