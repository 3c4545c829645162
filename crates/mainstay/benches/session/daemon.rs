//! A daemon of its own, and sessions in it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mainstay_client::Client;
use mainstay_model::{Admission, SessionKind};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::{CreateSession, Eval, SettleSession};
use serde_json::Value;

use crate::Failure;

/// A daemon of its own, stopped with the value.
pub(crate) struct Daemon {
    child: std::process::Child,
    pub(crate) home: PathBuf,
    pub(crate) record: Value,
}

impl Daemon {
    pub(crate) fn start(home: &Path) -> Result<Self, Failure> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mainstay"))
            .args(["serve", "--announce", "--port", "0"])
            .env("MAINSTAY_HOME", home)
            .env("MAINSTAY_ENVIRONMENT", "inherited")
            // A build that tests were made with has no standby and no warm compiler otherwise.
            .env("MAINSTAY_TEST_STANDBY", "1")
            .env("MAINSTAY_TEST_WARM_COMPILERS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line)?;
        Ok(Self { child, home: home.to_owned(), record: announced["ready"].clone() })
    }

    pub(crate) fn token(&self) -> Result<String, Failure> {
        Ok(std::fs::read_to_string(self.home.join("token"))?.trim().to_owned())
    }

    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let socket = self.record["socket"].as_str().ok_or("no socket")?;
        Ok(Client::connect(Path::new(socket), self.token()?, "bench").await?.0)
    }
}

impl Daemon {
    /// Kills it as a crash would; returns its home.
    pub(crate) fn lose(mut self) -> Result<PathBuf, Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.home.clone())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

/// A session of F# that takes code.
pub(crate) async fn create(client: &Client, folder: &Path) -> Result<String, Failure> {
    create_of_kind(client, SessionKind::fsharp(), folder).await
}

/// A session of any kind that takes code.
pub(crate) async fn create_of_kind(
    client: &Client,
    kind: SessionKind,
    folder: &Path,
) -> Result<String, Failure> {
    let create = CreateSession {
        command: None,
        kind,
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

pub(crate) fn eval(session: &str, code: &str) -> Eval {
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
