//! What the daemon costs, in one run: starting it, its memory, sessions until they are ready, and evals and questions by each road, beside
//! the bare worker, `dotnet fsi` of the same SDK and the bare disk. `cargo xtask bench` runs it with the release build.

mod fsi;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mainstay_kernel::fsharp::{Search, choose, prepare, project};
use mainstay_kernel::worker;
use mainstay_model::{Admission, JobId, RunnerNotice, SessionKind, TextPosition};
use mainstay_os::process::Launch;
use mainstay_rpc::api::{CreateSession, Eval, ForkSession, GetStatus, Sent, SettleSession, StopSession};
use mainstay_rpc::client::Client;
use mainstay_runner::query::KernelQuery;
use mainstay_runner::{StartedRunner, Submission, Upcoming};
use serde_json::{Value, json};

use fsi::Fsi;

type Failure = Box<dyn std::error::Error>;

/// Each road is taken in turns, so that what the machine does meanwhile hits all of them.
const ROUNDS: usize = 10;
const EVALS_A_ROUND: usize = 50;
const STARTS: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // `cargo test --benches` only wants to know that it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    let target =
        Path::new(env!("CARGO_BIN_EXE_mainstay")).ancestors().nth(2).ok_or("no target folder")?.to_owned();
    let folder = tempfile::Builder::new().prefix("bench").tempdir_in(&target)?;
    let home = folder.path().join("home");
    std::fs::create_dir(&home)?;
    println!("| what | median | p99 |\n|---|---|---|");
    let disk = disk(&folder.path().join("disk"))?;
    print_row("bare 4 KB write + fdatasync", disk);
    start_up(&home)?;
    memory(&Daemon::start(&home)?, folder.path()).await?;
    let fresh = folder.path().join("fresh");
    std::fs::create_dir(&fresh)?;
    std::fs::rename(home.join("kernels"), fresh.join("kernels"))?;
    let daemon = Daemon::start(&fresh)?;
    until_ready(&daemon, folder.path()).await?;
    let dotnet = choose(&Search::from_env(&fresh))?.parts()?.host;
    beside_fsi(&daemon, &dotnet, folder.path()).await?;
    replay(&fresh, &dotnet, folder.path()).await?;
    roads(&daemon, &dotnet, folder.path(), disk).await?;
    drop(daemon);
    live_fork(&Daemon::start(&fresh)?, folder.path()).await
}

/// How many definitions a session has that is forked live, and how often it is.
const DEFINITIONS: usize = 200;
const FORKS: usize = 5;

/// A fork of a live session with many definitions: until it is answered, and until its worker has the values.
async fn live_fork(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let session = create(&client, folder).await?;
    let mut evals = Vec::new();
    for number in 0..DEFINITIONS {
        let began = Instant::now();
        client.call(eval(&session, &format!("let value{number} = {number} * 2"))).await?;
        evals.push(began.elapsed());
    }
    println!(
        "| {DEFINITIONS} definitions, one eval each | {:.2} s in all | |",
        evals.iter().sum::<Duration>().as_secs_f64()
    );
    let (mut answered, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..FORKS {
        let began = Instant::now();
        let fork = ForkSession {
            command: None,
            session: session.clone(),
            entries: None,
            name: None,
            before_reset: false,
        };
        let child = client.call(fork).await?.session.session.to_string();
        answered.push(began.elapsed());
        client.call(SettleSession { session: child.clone(), timeout_ms: 600_000 }).await?;
        ready.push(began.elapsed());
        client.call(StopSession { session: child, sent: Sent::default() }).await?;
    }
    print_row("a fork of them, answered", spread(answered));
    print_row("the same, with all values", spread(ready));
    Ok(())
}

/// How many definitions are replayed, how many of them are announced at once, and how often that is done.
const REPLAYED: usize = 300;
const ROW: usize = 30;
const REPLAYS: usize = 5;

/// A new session until it has given a first value, and what its process holds in memory then, beside `dotnet fsi`.
async fn beside_fsi(daemon: &Daemon, dotnet: &Path, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_memory, mut their_memory) = (0, 0);
    for _ in 0..SESSIONS {
        let began = Instant::now();
        let fsi = Fsi::start(dotnet, folder)?;
        theirs.push(began.elapsed());
        their_memory = fsi.resident_bytes()?;
        drop(fsi);
        let began = Instant::now();
        let session = create(&client, folder).await?;
        client.call(eval(&session, "1+1")).await?;
        ours.push(began.elapsed());
        client.call(StopSession { session, sent: Sent::default() }).await?;
        let mut bare = Bare::start(&daemon.home, folder).await?;
        bare.eval("1+1").await?;
        our_memory = bare.started.runner.process().usage().ok_or("no usage")?.resident_bytes;
    }
    println!("\n| a new session, to its first value | median | longest |\n|---|---|---|");
    print_row("Mainstay", spread(ours));
    print_row("`dotnet fsi`", spread(theirs));
    println!("\n| memory after a first value | resident |\n|---|---|");
    println!("| worker | {:.0} MB |", our_memory as f64 / 1e6);
    println!("| `dotnet fsi` | {:.0} MB |", their_memory as f64 / 1e6);
    Ok(())
}

/// A worker from its start until it has many definitions again, one by one and in rows that it may run together, and `dotnet fsi` that is
/// given the same, line by line.
async fn replay(home: &Path, dotnet: &Path, folder: &Path) -> Result<(), Failure> {
    let cells: Vec<_> = (0..REPLAYED)
        .map(|number| match number % 2 {
            0 => format!("let value{number} = {number} * 2"),
            _ => format!("let add{number} x = x + {number}"),
        })
        .collect();
    let (mut alone, mut together, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPLAYS {
        let began = Instant::now();
        let mut fsi = Fsi::start(dotnet, folder)?;
        cells.iter().try_for_each(|cell| fsi.eval(cell))?;
        theirs.push(began.elapsed());
        for (series, row) in [(&mut alone, 1), (&mut together, ROW)] {
            let began = Instant::now();
            let mut bare = Bare::start(home, folder).await?;
            for cells in cells.chunks(row) {
                bare.replay(cells).await?;
            }
            series.push(began.elapsed());
        }
    }
    let (alone, together) = (spread(alone), spread(together));
    println!("\n| start, and replay of {REPLAYED} definitions | median | longest |\n|---|---|---|");
    print_row("one by one", alone);
    print_row("in rows of 30", together);
    print_row("`dotnet fsi`, a line each", spread(theirs));
    let ratio = together.median.as_secs_f64() / alone.median.as_secs_f64();
    println!("| in rows, of one by one | {:.0} % | |", ratio * 100.0);
    Ok(())
}

/// Middle and near-worst of a series.
#[derive(Clone, Copy)]
struct Spread {
    median: Duration,
    p99: Duration,
}

fn spread(mut series: Vec<Duration>) -> Spread {
    series.sort_unstable();
    Spread { median: series[series.len() / 2], p99: series[series.len() * 99 / 100] }
}

fn print_row(what: &str, spread: Spread) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    println!("| {what} | {:.2} ms | {:.2} ms |", ms(spread.median), ms(spread.p99));
}

fn disk(path: &Path) -> Result<Spread, Failure> {
    let file = File::create(path)?;
    file.set_len(1024 * 4096)?;
    file.sync_all()?;
    let mut series = Vec::new();
    for block in 0..500_u64 {
        let began = Instant::now();
        file.write_all_at(&[7; 4096], block * 4096)?;
        file.sync_data()?;
        series.push(began.elapsed());
    }
    Ok(spread(series))
}

/// From the start of the process to the line that says it serves, with an empty store and with this one's.
fn start_up(home: &Path) -> Result<(), Failure> {
    let mut series = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let daemon = Daemon::start(home)?;
        series.push(began.elapsed());
        drop(daemon);
    }
    print_row("daemon start to ready", spread(series));
    Ok(())
}

/// A daemon of its own, stopped with the value.
struct Daemon {
    child: std::process::Child,
    home: PathBuf,
    record: Value,
}

impl Daemon {
    fn start(home: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
            .args(["serve", "--announce", "--port", "0"])
            .env("MAINSTAY_HOME", home)
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line)?;
        Ok(Self { child, home: home.to_owned(), record: announced["ready"].clone() })
    }

    fn token(&self) -> Result<String, Failure> {
        Ok(std::fs::read_to_string(self.home.join("token"))?.trim().to_owned())
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let socket = self.record["socket"].as_str().ok_or("no socket")?;
        Ok(Client::connect(Path::new(socket), self.token()?, "bench").await?.0)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

async fn create(client: &Client, folder: &Path) -> Result<String, Failure> {
    let create = CreateSession {
        command: None,
        kind: SessionKind::fsharp(),
        working_directory: folder.display().to_string(),
        project: None,
        no_project: false,
        fsi_args: None,
        name: None,
    };
    let session = client.call(create).await?.session.to_string();
    client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
    Ok(session)
}

async fn memory(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    println!("\n| the daemon alone | resident |\n|---|---|");
    for (sessions, row) in [(0, "idle"), (1, "1 F# session"), (9, "10 F# sessions")] {
        for _ in 0..sessions {
            let session = create(&client, folder).await?;
            client.call(eval(&session, "let x = 1")).await?;
        }
        let resident = client.call(GetStatus {}).await?.resident_bytes.unwrap_or_default();
        println!("| {row} | {:.1} MB |", resident as f64 / 1e6);
    }
    Ok(())
}

fn eval(session: &str, code: &str) -> Eval {
    Eval {
        session: session.to_owned(),
        code: code.to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        admission: Admission::Queue,
        sent: Sent::default(),
    }
}

/// `1+1` in `dotnet fsi`, on the bare worker, over the local socket, and over MCP's HTTP. Each road has a worker of its own, since a session of the
/// compiler gets slower with every submission.
async fn roads(daemon: &Daemon, dotnet: &Path, folder: &Path, disk: Spread) -> Result<(), Failure> {
    let mut bare = Bare::start(&daemon.home, folder).await?;
    let client = daemon.connect().await?;
    let session = create(&client, folder).await?;
    let agents = create(&client, folder).await?;
    let mut mcp = Mcp::connect(daemon, &agents)?;
    let mut fsi = Fsi::start(dotnet, folder)?;
    let (mut by_fsi, mut by_worker, mut by_socket, mut by_mcp) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (mut peer, mut worker, mut socket, mut http) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..EVALS_A_ROUND {
            let began = Instant::now();
            fsi.eval("1+1")?;
            peer.push(began.elapsed());
            let began = Instant::now();
            bare.eval("1+1").await?;
            worker.push(began.elapsed());
            let began = Instant::now();
            client.call(eval(&session, "1+1")).await?;
            socket.push(began.elapsed());
            let began = Instant::now();
            mcp.call("send_code", &json!({"code": "1+1", "sessionId": agents}))?;
            http.push(began.elapsed());
        }
        // The first round warms the compilers up.
        if round > 0 {
            by_fsi.append(&mut peer);
            by_worker.append(&mut worker);
            by_socket.append(&mut socket);
            by_mcp.append(&mut http);
        }
    }
    println!("\n| eval of `1+1` | median | p99 |\n|---|---|---|");
    let (worker, socket, http) = (spread(by_worker), spread(by_socket), spread(by_mcp));
    print_row("`dotnet fsi`, through its standard input", spread(by_fsi));
    print_row("bare, on the worker's socket", worker);
    print_row("over the daemon's socket, durable", socket);
    print_row("over MCP's HTTP, durable", http);
    let overhead = socket.median.saturating_sub(worker.median);
    println!(
        "\nThe daemon adds {:.2} ms to the median over its socket: {:.2} fdatasync of this disk.",
        overhead.as_secs_f64() * 1000.0,
        overhead.as_secs_f64() / disk.median.as_secs_f64()
    );
    questions(&bare, &mut mcp, &agents).await
}

/// How many files the project has that sessions are opened for, and how often one is.
const FILES: usize = 50;
const SESSIONS: usize = 5;

/// From the creation of a session to Ready: with nothing, and for a project.
async fn until_ready(daemon: &Daemon, folder: &Path) -> Result<(), Failure> {
    let client = daemon.connect().await?;
    let project = folder.join("project");
    write_project(&project)?;
    let file = project.join("Bench.fsproj");
    let sdk = choose(&Search::from_env(&daemon.home))?;
    let began = Instant::now();
    let built = project::build(&file, &sdk, &mainstay_runner::Environment::default(), &|_| {}).await?;
    if !built.success {
        return Err(built.output.into());
    }
    println!("\n| a session, from its creation to Ready | median | longest |\n|---|---|---|");
    println!("| (the build of {FILES} files by itself) | {:.2} s | |", began.elapsed().as_secs_f64());
    for (project, row) in [(None, "bare"), (Some(&file), "for a project of 50 files")] {
        let mut series = Vec::new();
        for _ in 0..SESSIONS {
            let began = Instant::now();
            let create = CreateSession {
                command: None,
                kind: SessionKind::fsharp(),
                working_directory: folder.display().to_string(),
                project: project.map(|file| file.display().to_string()),
                no_project: false,
                fsi_args: None,
                name: None,
            };
            let session = client.call(create).await?.session.to_string();
            client.call(SettleSession { session: session.clone(), timeout_ms: 120_000 }).await?;
            series.push(began.elapsed());
            client.call(StopSession { session, sent: Sent::default() }).await?;
        }
        print_row(row, spread(series));
    }
    Ok(())
}

fn write_project(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir(folder)?;
    let names: Vec<String> = (1..=FILES).map(|number| format!("Part{number}")).collect();
    for name in &names {
        let functions =
            (1..=10).map(|number| format!("    let double{number} (x: int) = x * 2 + {number}\n"));
        let code =
            format!("namespace Bench\ntype {name} = {{ Name: string; Size: int }}\nmodule {name}s =\n");
        std::fs::write(folder.join(format!("{name}.fs")), code + &functions.collect::<String>())?;
    }
    let compiled = names.iter().map(|name| format!("<Compile Include=\"{name}.fs\" />"));
    let text = format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>net10.0</TargetFramework>\
         </PropertyGroup><ItemGroup>{}</ItemGroup></Project>",
        compiled.collect::<String>()
    );
    Ok(std::fs::write(folder.join("Bench.fsproj"), text)?)
}

/// Questions that change nothing, on the bare worker and over MCP's HTTP.
async fn questions(bare: &Bare, mcp: &mut Mcp, session: &str) -> Result<(), Failure> {
    const CODE: &str = "List.ma";
    let cursor = TextPosition { line: 1, column: 8 };
    let kernel = bare.started.runner.kernel().ok_or("it is no kernel")?;
    println!("\n| question | bare, median | p99 | over MCP's HTTP, median | p99 |\n|---|---|---|---|---|");
    let rows = [
        ("check", "check_code", json!({"code": "let d : int = \"a\"", "sessionId": session})),
        (
            "completion",
            "get_completions",
            json!({"code": CODE, "line": 1, "column": 8, "sessionId": session}),
        ),
        ("explore", "explore_type", json!({"name": "System.DateTime", "sessionId": session})),
    ];
    for (what, tool, arguments) in rows {
        let (mut by_worker, mut by_mcp) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS * 10 {
            let began = Instant::now();
            match what {
                "check" => drop(kernel.check("let d : int = \"a\"".to_owned(), None).await?),
                "completion" => drop(kernel.complete(CODE.to_owned(), cursor).await?),
                _ => drop(kernel.query(KernelQuery::Members { name: "System.DateTime".to_owned() }).await?),
            }
            let worker = began.elapsed();
            let began = Instant::now();
            mcp.ask(tool, &arguments)?;
            // The first round warms the compilers up.
            if round > 0 {
                by_worker.push(worker);
                by_mcp.push(began.elapsed());
            }
        }
        let (worker, http) = (spread(by_worker), spread(by_mcp));
        let ms = |duration: Duration| format!("{:.2} ms", duration.as_secs_f64() * 1000.0);
        let cells = [worker.median, worker.p99, http.median, http.p99].map(ms).join(" | ");
        println!("| {what} | {cells} |");
    }
    Ok(())
}

/// A worker without a daemon.
struct Bare {
    started: StartedRunner,
    _sockets: tempfile::TempDir,
}

impl Bare {
    async fn start(home: &Path, folder: &Path) -> Result<Self, Failure> {
        let program = prepare(&Search::from_env(home), mainstay_embedded::kernel_file, &|_| {}).await?;
        let sockets = tempfile::tempdir()?;
        let launch = Launch {
            program: program.program,
            arguments: program.arguments,
            environment: program.environment,
        };
        let started =
            worker::launch(&launch, mainstay_kernel::StartupContext::in_folder(folder), None, sockets.path())
                .await?;
        Ok(Self { started, _sockets: sockets })
    }

    async fn eval(&mut self, code: &str) -> Result<(), Failure> {
        self.run(JobId::from_uuid(uuid::Uuid::now_v7()), code).await
    }

    /// Runs cells as a replay does, each a job of its own.
    async fn replay(&mut self, cells: &[String]) -> Result<(), Failure> {
        let upcoming: Vec<_> = cells
            .iter()
            .map(|code| Upcoming {
                job: JobId::from_uuid(uuid::Uuid::now_v7()),
                code: code.clone(),
                file: None,
            })
            .collect();
        if upcoming.len() > 1 {
            self.started.runner.kernel().ok_or("it is no kernel")?.expect(upcoming.clone()).await;
        }
        for Upcoming { job, code, .. } in upcoming {
            self.run(job, &code).await?;
        }
        Ok(())
    }

    async fn run(&mut self, job: JobId, code: &str) -> Result<(), Failure> {
        let kernel = self.started.runner.kernel().ok_or("it is no kernel")?;
        kernel
            .run(Submission {
                job,
                code: code.to_owned(),
                file: None,
                command_line: None,
                is_withheld: false,
            })
            .await;
        while let Some(notice) = self.started.notices.recv().await {
            if let RunnerNotice::Finished { .. } = notice {
                return Ok(());
            }
        }
        Err("the worker ended".into())
    }
}

/// The least of an MCP client: one kept connection, one request at a time.
struct Mcp {
    stream: BufReader<TcpStream>,
    head: String,
    last_id: u64,
}

impl Mcp {
    fn connect(daemon: &Daemon, session: &str) -> Result<Self, Failure> {
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
    fn ask(&mut self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let (_, body) = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if body.contains("\"isError\":true") || body.contains("\"error\":{") {
            Err(body.into())
        } else {
            Ok(())
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let (_, body) = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if body.contains("\"success\":true") { Ok(()) } else { Err(body.into()) }
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<(String, String), Failure> {
        self.last_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}))?;
        self.receive()
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let body = message.to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// The headers and the body, whether its length was told or it came in chunks.
    fn receive(&mut self) -> Result<(String, String), Failure> {
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
