//! Mainstay as a Jupyter kernel: a process that a front end starts by its kernelspec, and that speaks to a session of the daemon. The
//! session outlives it; who opens the notebook again gets it back. Source: the messaging protocol of Jupyter, version 5.4.
//!
//! `channels` has the sockets, `seat` the session, `shell` what is asked of it, one after the other, `execution` code that runs, `comm`
//! what is said beside it, `output` what front ends are told of both, `control` what does not wait behind that. `registration` writes the kernelspec.

mod channels;
mod comm;
mod content;
mod control;
mod execution;
mod language;
mod output;
mod registration;
mod session_binding;
mod shell;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_home::Home;
use mainstay_kernel::jupyter::connection::Connection;
use mainstay_model::{CommandId, Error};
use rustix::process::{Pid, getppid};
use serde_json::json;
use tokio::time::sleep;

pub(crate) use self::registration::{Registration, registered};
pub(crate) use self::session_binding::BindingTarget;

use self::channels::Channels;
use self::control::Control;
use self::session_binding::SessionBinding;
use self::shell::Shell;

/// How often it is looked whether the front end is there.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The command whose code runs, as far as a front end has asked for it.
type Running = Arc<Mutex<Option<CommandId>>>;

/// Serves a front end until it says that this is enough, or is gone.
///
/// # Errors
/// [`Error::InvalidArgument`] where the connection file cannot be used, and what stands in the way of a session.
pub(crate) async fn serve(home: &Home, connection_file: &Path, wanted: BindingTarget) -> Result<(), Error> {
    let front_end = getppid();
    tokio::select! {
        served = serve_front_end(home, connection_file, wanted) => served,
        () = is_gone(front_end) => Ok(()),
    }
}

/// Ends when the front end does, which started this process: nobody else would end it.
async fn is_gone(front_end: Option<Pid>) {
    while getppid() == front_end {
        sleep(BETWEEN_LOOKS).await;
    }
}

async fn serve_front_end(home: &Home, connection_file: &Path, wanted: BindingTarget) -> Result<(), Error> {
    let unusable = |error: std::io::Error| Error::InvalidArgument {
        argument: connection_file.display().to_string(),
        reason: error.to_string(),
    };
    let connection = Connection::read(connection_file).map_err(unusable)?;
    let Channels { voice, shell, control, stdin } = Channels::bind(&connection).await?;
    voice.publish(None, "status", &json!({ "execution_state": "starting" })).await;
    let seat = SessionBinding::take(home, wanted, connection_file).await?;
    let running = Running::default();
    let caller = Control::new(home.clone(), &seat, Arc::clone(&running), Arc::clone(&voice));
    let shell = Shell::new(seat, voice, running, shell, stdin);
    tokio::select! {
        () = caller.serve(control) => {}
        () = shell.serve() => {}
    }
    Ok(())
}
