//! Evals and questions by each road.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstay_model::TextPosition;
use mainstay_runner::query::KernelQuery;
use serde_json::json;

use crate::Failure;
use crate::bare_worker::Bare;
use crate::daemon::{Daemon, create, eval};
use crate::fsi::Fsi;
use crate::mcp::Mcp;
use crate::spread::{Spread, print_row, spread};

/// Each road is taken in turns, so that what the machine does meanwhile hits all of them.
const ROUNDS: usize = 10;
const EVALS_A_ROUND: usize = 50;

/// `1+1` in `dotnet fsi`, on the bare worker, over the local socket, and over MCP's HTTP. Each road has a worker of its own, since a session of the
/// compiler gets slower with every submission.
pub(crate) async fn roads(
    daemon: &Daemon,
    dotnet: &Path,
    folder: &Path,
    disk: Spread,
) -> Result<(), Failure> {
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
