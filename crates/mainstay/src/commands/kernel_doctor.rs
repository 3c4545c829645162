//! `mainstay kernel doctor`: whether sessions of a kind can run here, and what mends it where they cannot.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mainstay_embedded::kernel_file;
use mainstay_home::Home;
use mainstay_home::search::jupyter_kernels;
use mainstay_kernel::fsharp::{Problem, Report, Search, examine};
use mainstay_kernel::jupyter::{Kernelspec, Start, launch};
use mainstay_model::{Error, Limits, SessionKind};
use mainstay_runner::Environment;
use mainstay_terminal::{Paint, Tone, printable};
use mainstay_terminal_client::paths::working_directory;
use serde::Serialize;
use tokio::time::timeout;

use super::kernel::{found_line, spec_line};

/// What was found out of a Jupyter kernel: it was started, asked what it is, and ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KernelReport {
    kernelspec: Option<Kernelspec>,
    answer: Option<Answer>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    kernel: String,
    runtime: String,
    after_ms: u64,
}

/// Examines what F# sessions need, and prints it.
pub(super) fn fsharp(search: &Search, json: bool) -> Result<ExitCode, Error> {
    let report = examine(search, &working_directory()?, kernel_file);
    if json {
        super::print_json(&report)?;
    } else {
        print_report(&report);
    }
    Ok(exit_code(&report.problems))
}

/// Examines the kernel of another kind, by starting one.
pub(super) async fn jupyter(home: &Home, kind: &SessionKind, json: bool) -> Result<ExitCode, Error> {
    let folder = working_directory()?;
    let kernelspecs = jupyter_kernels(home, Some(&folder)).kernelspecs();
    let mut examined = KernelReport { kernelspec: None, answer: None, problems: Vec::new() };
    let answered = match kernelspecs.choose(kind) {
        Ok(spec) => {
            examined.kernelspec = Some(spec.clone());
            ask(spec.clone()).await
        }
        Err(error) => Err(error),
    };
    match answered {
        Ok(answer) => examined.answer = Some(answer),
        Err(error) => {
            let remedy = examined.kernelspec.as_ref().map_or_else(|| error.next_step(), remedy);
            examined.problems.push(Problem { what: error.to_string(), remedy });
        }
    }
    if json {
        super::print_json(&examined)?;
    } else {
        print(&examined);
    }
    Ok(exit_code(&examined.problems))
}

/// What helps where a kernel that is found does not answer.
fn remedy(spec: &Kernelspec) -> String {
    let file = spec.folder.join("kernel.json");
    format!(
        "Mend or remove {}; what it starts must answer. `mainstay kernel list` shows the other kinds.",
        file.display()
    )
}

async fn ask(kernelspec: Kernelspec) -> Result<Answer, Error> {
    let failed = |error: std::io::Error| Error::WorkerFailed { reason: error.to_string() };
    let sockets = tempfile::tempdir().map_err(failed)?;
    let start = Start {
        kernelspec,
        working_directory: working_directory()?,
        sockets: sockets.path().to_owned(),
        environment: Environment::default(),
        files: kernel_file,
        snapshots: None,
    };
    let began = Instant::now();
    let limit = Duration::from_millis(Limits::default().worker_start_ms);
    let started = timeout(limit, launch(start)).await.map_err(|_| Error::WorkerFailed {
        reason: format!("it does not answer within {} s", limit.as_secs()),
    })??;
    let info = started.runner.process().info();
    let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Answer { kernel: info.kernel, runtime: info.runtime, after_ms })
}

fn exit_code(problems: &[Problem]) -> ExitCode {
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(KernelReport { kernelspec, answer, problems }: &KernelReport) {
    let paint = Paint::stdout();
    kernelspec.iter().for_each(|spec| println!("{}", spec_line(spec, paint)));
    print_problems(problems, paint);
    if let Some(Answer { kernel, runtime, after_ms }) = answer {
        let what = format!("{} on {}", printable(kernel), printable(runtime));
        let text = format!("{what} answers {after_ms} ms after its start: such sessions can run");
        println!("{}", paint.tone(Tone::Good, &text));
    }
}

fn print_report(report: &Report) {
    let paint = Paint::stdout();
    for found in &report.sdks {
        println!("{}", found_line(found, paint));
    }
    report.note.iter().for_each(|note| println!("{}", paint.tone(Tone::Warning, note)));
    print_problems(&report.problems, paint);
    if report.problems.is_empty() {
        println!("{}", paint.tone(Tone::Good, "F# sessions can run"));
    }
}

fn print_problems(problems: &[Problem], paint: Paint) {
    for problem in problems {
        println!("{} {}", paint.tone(Tone::Error, "missing:"), problem.what);
        println!("  {}", paint.tone(Tone::Name, &problem.remedy));
    }
}
