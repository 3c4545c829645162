//! `mainstay serve`: the daemon in the foreground.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use mainstay_daemon::background::detach;
use mainstay_daemon::{Ended, ServeOptions, serve, supervisor::supervise};
use mainstay_home::config::{Ports, RemoteOptions};
use mainstay_home::{DaemonRecord, Home, program};
use mainstay_model::Error;
use mainstay_os::handover::{self, hand_over};
use mainstay_terminal::note;

/// Runs the daemon in the foreground.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mainstay serve\n  mainstay serve --port 0 --supervised\n  mainstay serve --listen 0.0.0.0:37750 --certificate box.pem --key box.key"
)]
pub(super) struct Serve {
    /// The loopback port to listen on, 0 for any free one [default: 37749, or any free one where that is taken]
    #[arg(long)]
    port: Option<u16>,

    /// A loopback port for the pi protocol alone, at `/`, 0 for any free one
    #[arg(long)]
    pi_port: Option<u16>,

    /// The address and port on which other machines reach it over TLS, as in 0.0.0.0:37750
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// The file with its certificate for other machines, in PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,

    /// The file with the private key of the certificate, in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Start the daemon again after a crash, with back-off
    #[arg(long)]
    supervised: bool,

    /// Do not watch the files that sessions rest on
    #[arg(long)]
    no_watch: bool,

    /// Write one line of JSON to standard output once it serves or has failed to; the log goes to a file
    #[arg(long, hide = true)]
    announce: bool,

    /// Start it in the background, in a session of its own, and end
    #[arg(long, hide = true)]
    detach: bool,

    /// Why its environment is not the one that it should have
    #[arg(long, hide = true)]
    environment_note: Option<String>,
}

impl Serve {
    pub(super) fn run(self, home: &Home) -> Result<ExitCode, Error> {
        let ports = Ports { own: self.port, pi: self.pi_port };
        let Self { listen, certificate: certificate_file, key: key_file, .. } = self;
        let remote = RemoteOptions { listen, certificate_file, key_file };
        if self.detach {
            let arguments = ports
                .arguments()
                .chain(remote.arguments())
                .chain(self.supervised.then(|| "--supervised".to_owned()));
            return detach(home, arguments.chain(self.no_watch.then(|| "--no-watch".to_owned())));
        }
        let Self { no_watch, announce, environment_note, .. } = self;
        let inherited = handover::inherited();
        let options = ServeOptions { ports, remote, no_watch, announce, environment_note };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::DaemonFailed { reason: error.to_string() })?;
        if self.supervised {
            runtime.block_on(supervise(home, options))
        } else {
            let ready = |DaemonRecord { version, port, remote, .. }: &DaemonRecord| {
                if let Some(remote) = remote {
                    note(&format!("other machines reach it on {remote} over TLS"));
                }
                note(&format!("mainstay {version} serves on 127.0.0.1:{port}; Ctrl-C stops it"));
            };
            let ended = runtime.block_on(serve(home, options, inherited, ready))?;
            drop(runtime);
            match ended {
                Ended::Stopped => Ok(ExitCode::SUCCESS),
                Ended::BeginsAnew { program, listener } => {
                    let error = begin_anew(program, &listener);
                    home.tell_failure(std::process::id(), &error);
                    Err(error)
                }
            }
        }
    }
}

/// Puts a program in the place of this one, in the same process, with the same arguments and the same port; returns only where that fails.
fn begin_anew(named: Option<PathBuf>, listener: &OwnedFd) -> Error {
    let program = match named.map_or_else(program, Ok) {
        Ok(program) => program,
        Err(error) => return Error::DaemonFailed { reason: error.to_string() },
    };
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    let error = hand_over(&mut command, listener).map_or_else(|error| error, |()| command.exec());
    Error::DaemonFailed { reason: format!("it cannot begin anew as `{}`: {error}", program.display()) }
}
