//! The command `mainstay doctor`, which examines the store.

use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mainstay_home::config::Config;
use mainstay_home::environment::EnvironmentSource;
use mainstay_home::{Home, program};
use mainstay_log::{Examination, Finding, Progress, Weight, examine};
use mainstay_model::Error;
use mainstay_terminal::{self as terminal, Paint, Tone, bytes, counted, printable};
use mainstay_terminal_client::compilers::{CompilerView, compilers, compilers_text};
use mainstay_terminal_client::shims::{ShimView, StandbyView, shims, shims_text, standby, standby_text};
use serde::Serialize;

/// How often a long examination says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Examines the store: every event, session, outcome and object in it.
///
/// Best while the daemon is stopped: then the end of the write-ahead log is examined too, and no daemon can start meanwhile. Changes
/// nothing. Exits with 0 where the store is sound, with 1 where it is damaged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mainstay doctor\n  mainstay doctor --json")]
pub(super) struct Doctor {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        ask_login_shell(home);
        let (shims, standby, compilers) = (shims(home)?, standby(home)?, compilers(home)?);
        let Some(mut report) = examine_aloud(home)? else {
            if self.json {
                super::print_json(&NoStore { sound: true, store: None })?;
            }
            terminal::note(&format!("there is no store in {} yet", home.store().display()));
            return Ok(ExitCode::SUCCESS);
        };
        if let Ok(config) = Config::load(home) {
            report.note_unknown_principals(|principal| config.knows(principal));
        }
        if self.json {
            super::print_json(&ReportView { standby, compilers, ..ReportView::of(&report, &shims) })?;
        } else {
            let paint = Paint::stdout();
            print!("{}{}", report_text(&report, paint), shims_text(&shims, report.in_use, paint));
            print!("{}{}", standby_text(standby.as_ref()), compilers_text(&compilers));
        }
        Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Says why a daemon would not begin with the environment of the login shell, where that is so.
fn ask_login_shell(home: &Home) {
    let daemon = Config::load(home).map(|config| config.daemon).unwrap_or_default();
    if EnvironmentSource::chosen(daemon.environment) == EnvironmentSource::LoginShell
        && let Some(reason) = why_no_login_shell(daemon.environment_ms)
    {
        terminal::note(&format!(
            "warning: the environment of the login shell is not known ({reason}), so a daemon begins with that of whoever starts it; see what the shell's startup files do, or set `environment = \"inherited\"` in {}",
            home.config_file().display()
        ));
    }
}

/// Why the login shell does not say what is in its environment. A process of its own asks, away from this one's terminal, as a daemon would.
fn why_no_login_shell(limit_ms: u64) -> Option<String> {
    let program = program().ok()?;
    let mut command = Command::new(program);
    command.args(["environment", "--check", &limit_ms.to_string()]);
    let asked = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    (!asked.status.success()).then(|| String::from_utf8_lossy(&asked.stdout).trim().to_owned())
}

/// Examines the store, and says every second how far it is.
fn examine_aloud(home: &Home) -> Result<Option<Examination>, Error> {
    let (told, telling) = channel();
    thread::scope(|scope| {
        scope.spawn(move || tell(&telling));
        let report = examine(&home.store(), &mut |progress| {
            // Who tells it may have failed; the examination goes on.
            told.send(progress).ok();
        });
        drop(told);
        report
    })
}

fn tell(telling: &Receiver<Progress>) {
    let mut due = Instant::now() + TOLD_EVERY;
    let mut newest = None;
    loop {
        match telling.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(progress) => newest = Some(progress),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() < due {
            continue;
        }
        due = Instant::now() + TOLD_EVERY;
        match newest {
            Some(Progress { stage, done: 0 }) => terminal::note(&format!("examining {stage} …")),
            Some(Progress { stage, done }) => terminal::note(&format!("examining {stage}: {done} …")),
            None => {}
        }
    }
}

fn report_text(report: &Examination, paint: Paint) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let (tone, word) = match finding.weight() {
            Weight::Damage => (Tone::Error, "damage"),
            Weight::Note => (Tone::Warning, "note"),
        };
        let (head, what) = (paint.tone(tone, &format!("{word}:")), finding.to_string());
        text.push_str(&format!("{head} {}\n", printable(&what)));
        if finding.weight() == Weight::Damage {
            text.push_str(&format!("  lost: {}\n", finding.lost()));
        }
        text.push_str(&format!("  next: {}\n", printable(&finding.next_step())));
    }
    if report.further() > 0 {
        text.push_str(&format!("and {} more\n", report.further()));
    }
    if report.in_use {
        text.push_str("A daemon has the store open; what it was about to write was not examined.\n");
    }
    let entries = match report.entries {
        1 => "1 entry of transcripts".to_owned(),
        entries => format!("{entries} entries of transcripts"),
    };
    let history = match report.history {
        1 => "1 line of history".to_owned(),
        lines => format!("{lines} lines of history"),
    };
    text.push_str(&format!(
        "{}, {}, {}, {}, {entries}, {history} and {} can be read; the database has {}, the disk {} left\n",
        counted(report.sessions, "session"),
        counted(report.events, "event"),
        counted(report.outcomes, "outcome"),
        counted(report.objects, "object"),
        counted(report.schedules, "schedule"),
        bytes(report.database_bytes),
        bytes(report.free_bytes)
    ));
    text.push_str(&match report.damages {
        0 => paint.tone(Tone::Good, "the store is sound"),
        places => paint.tone(Tone::Error, &format!("the store is damaged in {}", counted(places, "place"))),
    });
    text.push('\n');
    text
}

#[derive(Serialize)]
struct NoStore {
    sound: bool,
    store: Option<()>,
}

/// An examination for scripts.
#[derive(Serialize)]
struct ReportView<'a> {
    sound: bool,
    store: &'a Examination,
    findings: Vec<FindingView<'a>>,
    shims: &'a [ShimView],
    #[serde(skip_serializing_if = "Option::is_none")]
    standby: Option<StandbyView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compilers: Vec<CompilerView>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingView<'a> {
    weight: Weight,
    #[serde(flatten)]
    finding: &'a Finding,
    message: String,
    lost: &'static str,
    next_step: String,
}

impl<'a> ReportView<'a> {
    fn of(report: &'a Examination, shims: &'a [ShimView]) -> Self {
        let findings = report.findings.iter().map(|finding| FindingView {
            weight: finding.weight(),
            finding,
            message: finding.to_string(),
            lost: finding.lost(),
            next_step: finding.next_step(),
        });
        let (sound, findings) = (report.is_sound(), findings.collect());
        Self { sound, store: report, findings, shims, standby: None, compilers: Vec::new() }
    }
}
