//! What the daemon listens on: its port, the port of the pi protocol where there is one, and its local socket.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use mainstay_gateway::authorities::Authorities;
use mainstay_gateway::protocol::Protocols;
use mainstay_gateway::{Daemon, local_socket, port};
use mainstay_home::Home;
use mainstay_home::config::{DEFAULT_PORT, Ports, Remote};
use mainstay_model::Error;
use mainstay_pi_protocol::PiProtocol;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;

use crate::certificates;

/// What the daemon listens on.
pub(crate) struct Listeners {
    own: TcpListener,
    pub(crate) port: u16,
    /// The listener and the port of the pi protocol, where it has a port of its own.
    pub(crate) pi: Option<(TcpListener, u16)>,
    /// The listener for other machines, its address, and what it is served with, where there is one.
    pub(crate) remote: Option<(TcpListener, SocketAddr, Remote)>,
    local: UnixListener,
    /// The path of the local socket.
    pub(crate) socket: PathBuf,
    /// The folder of the sockets of the daemon and of its workers.
    pub(crate) folder: PathBuf,
}

impl Listeners {
    /// Opens all of them, and empties the folder of the sockets. An inherited listener is taken where it has the port that is asked for.
    pub(crate) async fn open(
        home: &Home,
        ports: Ports,
        inherited: Option<std::net::TcpListener>,
        remote: Option<Remote>,
    ) -> Result<Self, Error> {
        let is_wanted = |port: u16| ports.own.is_none_or(|asked| asked == 0 || asked == port);
        let inherited = inherited.and_then(go_on).filter(|(_, port)| is_wanted(*port));
        let (own, port) = match inherited {
            Some(listening) => listening,
            None => listen(home, ports.own).await?,
        };
        let pi = match ports.pi {
            Some(port) => Some(port::listen(port).await?),
            None => None,
        };
        let remote = match remote {
            Some(remote) => {
                let (listener, address) = port::listen_remote(remote.address).await?;
                Some((listener, address, remote))
            }
            None => None,
        };
        let folder = home.empty_run_folder()?;
        let socket = folder.join("daemon.sock");
        let local = local_socket::listen(&socket)?;
        Ok(Self { own, port, pi, remote, local, socket, folder })
    }

    /// The descriptor of its own port, which keeps that open.
    pub(crate) fn own_descriptor(&self) -> Result<OwnedFd, Error> {
        let copied = self.own.as_fd().try_clone_to_owned();
        copied.map_err(|error| Error::DaemonFailed { reason: format!("its port cannot be kept: {error}") })
    }

    /// Serves them in tasks, until the daemon stops.
    pub(crate) fn serve(self, daemon: &Daemon, protocols: &Protocols, tasks: &mut JoinSet<()>) {
        tasks.spawn(port::serve(self.own, daemon.clone(), protocols.clone()));
        if let Some((listener, port)) = self.pi {
            tracing::info!(port, "the pi protocol is served");
            let (daemon, protocols) = (daemon.clone(), protocols.clone());
            tasks.spawn(port::serve_alone(listener, port, daemon, protocols, PiProtocol::NAME));
        }
        if let Some((listener, address, Remote { tls, names, files, .. })) = self.remote {
            tracing::info!(%address, ?names, "other machines are served");
            let (daemon, protocols) = (daemon.clone(), protocols.clone());
            let reached = Authorities::remote(names, address.port());
            tasks.spawn(certificates::renew(files, tls.clone()));
            tasks.spawn(async move { port::serve_remote(listener, tls, reached, &daemon, protocols).await });
        }
        tasks.spawn(local_socket::serve(self.local, daemon.clone(), protocols.clone()));
    }
}

/// A listener that was handed over, with its port; none where it is unfit.
fn go_on(listener: std::net::TcpListener) -> Option<(TcpListener, u16)> {
    let port = listener.local_addr().ok()?.port();
    listener.set_nonblocking(true).ok()?;
    Some((TcpListener::from_std(listener).ok()?, port))
}

/// A port that was asked for must be free. Otherwise it is the one that the last daemon of this home had, since pages, links and the secrets of
/// browsers are bound to it; else the default; else any free one.
async fn listen(home: &Home, asked: Option<u16>) -> Result<(TcpListener, u16), Error> {
    if let Some(port) = asked {
        return port::listen(port).await;
    }
    let last = home.last_port();
    for port in last.into_iter().chain([DEFAULT_PORT]) {
        match port::listen(port).await {
            Ok(listening) => return kept(home, last, listening),
            Err(Error::PortTaken { port }) => tracing::warn!(port, "the port is taken; another is used"),
            // What the file says may be nothing that this user may have.
            Err(error) if port == DEFAULT_PORT => return Err(error),
            Err(error) => tracing::warn!(port, %error, "the port of before cannot be had"),
        }
    }
    kept(home, last, port::listen(0).await?)
}

/// Remembers the port that was got.
fn kept(home: &Home, last: Option<u16>, listening: (TcpListener, u16)) -> Result<(TcpListener, u16), Error> {
    if last != Some(listening.1) {
        home.keep_port(listening.1)?;
    }
    Ok(listening)
}
