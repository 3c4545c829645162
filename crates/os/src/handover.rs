//! Hands a listener to the program that takes this one's place in the same process, as systemd hands one to what it starts: by its number in
//! the variables `LISTEN_FDS`, `LISTEN_FDS_FIRST_FD` and `LISTEN_PID`. So nobody else gets its port in between, and who connects meanwhile waits.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;

use listenfd::ListenFd;
use rustix::io::{FdFlags, fcntl_setfd};

/// The listener that this process was given, once. It must be asked for before other threads run, since it is taken out of the environment.
pub fn inherited() -> Option<TcpListener> {
    ListenFd::from_env().take_tcp_listener(0).ok().flatten()
}

/// Has the program that the command puts in the place of this one have a listener.
///
/// # Errors
/// The descriptor could not be kept open.
pub fn hand_over(command: &mut Command, listener: &OwnedFd) -> io::Result<()> {
    fcntl_setfd(listener.as_fd(), FdFlags::empty())?;
    command
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDS_FIRST_FD", listener.as_raw_fd().to_string())
        .env("LISTEN_PID", std::process::id().to_string());
    Ok(())
}
