//! When the daemon goes away: find out whether that was meant, get another, and go on with the same session.

use mainstay_model::Error;
use mainstay_protocol::operations::GetSession;
use mainstay_terminal::{note, printable, show_error};
use mainstay_terminal_client::connect::{Connection, MOST_LOSSES, connect_again};
use mainstay_terminal_client::daemon_fate::DaemonFate;
use mainstay_terminal_client::link::{Link, is_loss};

use crate::prompt_loop::{CLIENT_NAME, PromptLoop};

impl PromptLoop {
    /// Connects again and goes on with the session; says whether that worked. A daemon that was told to stop is not started
    /// again before something is to be done.
    pub(crate) async fn reconnect(&mut self) -> bool {
        let mut pid = self.link.client.daemon.pid;
        let mut connection = if std::mem::replace(&mut self.is_disconnected, false) {
            note("starting the daemon …");
            self.start_again().await
        } else {
            note("the connection to the daemon is lost");
            self.find_again(pid).await
        };
        let mut losses = 0;
        let resumed = loop {
            let resumed = match connection {
                Ok(Some(reached)) => {
                    pid = reached.client.daemon.pid;
                    self.resume(reached).await
                }
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            if losses == MOST_LOSSES || !resumed.as_ref().is_err_and(is_loss) {
                break resumed;
            }
            losses += 1;
            connection = self.find_again(pid).await;
        };
        let is_back = resumed.unwrap_or_else(|error| {
            show_error(&error);
            false
        });
        self.is_disconnected = !is_back;
        self.update_source();
        is_back
    }

    /// The way to the daemon that goes on in the place of the one that was lost; none where it was told to stop, or after Ctrl-C.
    async fn find_again(&mut self, pid: u32) -> Result<Option<Connection>, Error> {
        let home = self.home.clone();
        let fate = tokio::select! {
            fate = DaemonFate::of(&home, CLIENT_NAME, pid) => fate,
            _ = self.interrupts.recv() => return Ok(None),
        };
        match fate {
            DaemonFate::There(connection) => Ok(Some(*connection)),
            DaemonFate::Stopped => {
                note("the daemon was stopped; what you run next starts it again");
                Ok(None)
            }
            DaemonFate::Crashed => {
                note("the daemon ended unexpectedly; starting another …");
                self.start_again().await
            }
        }
    }

    async fn start_again(&mut self) -> Result<Option<Connection>, Error> {
        tokio::select! {
            connection = connect_again(&self.home, CLIENT_NAME) => connection.map(Some),
            _ = self.interrupts.recv() => {
                note("not connected; what you run next tries again");
                Ok(None)
            }
        }
    }

    async fn resume(&mut self, connection: Connection) -> Result<bool, Error> {
        let session = connection.client.call(GetSession { session: self.link.reference() }).await?;
        let session = self.settled(&connection.client, session).await?;
        note(&format!("connected again: {} is {}", printable(&session.name), session.state));
        self.link = Link::resume(connection, session, self.link.seen()).await?;
        Ok(true)
    }
}
