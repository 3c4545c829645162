//! Where a kernel listens: the connection file, which both sides read.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How messages are signed.
const SCHEME: &str = "hmac-sha256";

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Sockets in a folder, which only its owner can reach.
    Ipc,
    /// Ports of the loopback interface: every user of the machine can connect there and read what a kernel publishes.
    Tcp,
}

/// A channel between a kernel and its front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// The channel for requests and replies.
    Shell,
    /// What the kernel publishes.
    Iopub,
    /// What the kernel asks.
    Stdin,
    /// Requests that do not wait behind others.
    Control,
    /// Says that the kernel is there.
    Heartbeat,
}

/// The contents of a connection file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// What carries the messages.
    pub transport: Transport,
    /// The interface, or how the paths of the sockets begin.
    pub ip: String,
    shell_port: u16,
    iopub_port: u16,
    stdin_port: u16,
    control_port: u16,
    hb_port: u16,
    /// What messages are signed with.
    pub key: String,
    signature_scheme: String,
    /// The kernelspec, where it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
}

impl Connection {
    /// Sockets in a folder that is the user's alone.
    pub fn ipc(folder: &Path) -> Self {
        // A path of a socket has room for some hundred bytes.
        let name = Uuid::new_v4().simple().to_string();
        Self::at(Transport::Ipc, folder.join(&name[..12]).display().to_string(), [1, 2, 3, 4, 5])
    }

    /// Ports that are free at this moment.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn tcp() -> io::Result<Self> {
        // All five are held until all are known, so that they differ.
        let held = [0; 5].map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let mut ports = [0; 5];
        for (port, listener) in ports.iter_mut().zip(held) {
            *port = listener?.local_addr()?.port();
        }
        Ok(Self::at(Transport::Tcp, Ipv4Addr::LOCALHOST.to_string(), ports))
    }

    fn at(transport: Transport, ip: String, ports: [u16; 5]) -> Self {
        let [shell_port, iopub_port, stdin_port, control_port, hb_port] = ports;
        Self {
            transport,
            ip,
            shell_port,
            iopub_port,
            stdin_port,
            control_port,
            hb_port,
            key: Uuid::new_v4().simple().to_string(),
            signature_scheme: SCHEME.to_owned(),
            kernel_name: None,
        }
    }

    /// Reads a connection file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none that is understood here.
    pub fn read(path: &Path) -> io::Result<Self> {
        let read: Self = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        if !read.key.is_empty() && read.signature_scheme != SCHEME {
            let scheme = &read.signature_scheme;
            return Err(io::Error::other(format!("messages are to be signed by {scheme}, not {SCHEME}")));
        }
        Ok(read)
    }

    /// Writes it where only its owner reads it, since it has the key.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())
    }

    /// Where a channel is, as ZeroMQ has it.
    pub fn endpoint(&self, channel: Channel) -> String {
        let (ip, port) = (&self.ip, self.port(channel));
        match self.transport {
            Transport::Ipc => format!("ipc://{ip}-{port}"),
            Transport::Tcp => format!("tcp://{ip}:{port}"),
        }
    }

    /// The files of its sockets; none where it has ports.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let all = [Channel::Shell, Channel::Iopub, Channel::Stdin, Channel::Control, Channel::Heartbeat];
        match self.transport {
            Transport::Ipc => {
                all.map(|channel| PathBuf::from(format!("{}-{}", self.ip, self.port(channel)))).to_vec()
            }
            Transport::Tcp => Vec::new(),
        }
    }

    const fn port(&self, channel: Channel) -> u16 {
        match channel {
            Channel::Shell => self.shell_port,
            Channel::Iopub => self.iopub_port,
            Channel::Stdin => self.stdin_port,
            Channel::Control => self.control_port,
            Channel::Heartbeat => self.hb_port,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_connection_file_is_its_owners_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, path) = (Connection::ipc(folder.path()), folder.path().join("c.json"));
        connection.write(&path).unwrap();
        assert_eq!(Connection::read(&path).unwrap(), connection);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(connection.write(&path).is_err(), "nobody else's file is taken");
    }

    #[test]
    fn channels_have_places_of_their_own() {
        let folder = Path::new("/run/user/1000/mainstay");
        for connection in [Connection::ipc(folder), Connection::tcp().unwrap()] {
            let all = [Channel::Shell, Channel::Iopub, Channel::Stdin, Channel::Control, Channel::Heartbeat];
            let mut places = all.map(|channel| connection.endpoint(channel)).to_vec();
            places.sort();
            places.dedup();
            assert_eq!(places.len(), 5, "{places:?}");
        }
    }

    #[test]
    fn a_signature_that_is_not_known_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let odd = Connection { signature_scheme: "hmac-md5".to_owned(), ..Connection::ipc(folder.path()) };
        odd.write(&path).unwrap();
        assert!(Connection::read(&path).unwrap_err().to_string().contains("hmac-md5"));
    }
}
