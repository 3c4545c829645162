//! Ctrl-C while a command of one's own is carried out: it is stopped, or taken back where it waits for its turn, and not only the
//! waiting for it.

use mainstay_client::Client;
use mainstay_model::{CommandId, Error};
use mainstay_protocol::Sent;
use mainstay_protocol::operations::CancelSession;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Whether a command is to be stopped.
pub(super) struct InterruptWatch {
    command: CommandId,
    stop: Interruption,
    /// Ctrl-C, also where it comes while something else is waited for.
    interrupts: Signal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    Unwanted,
    /// It has not been found in its session yet; as soon as it begins.
    Wanted,
    Asked,
}

impl InterruptWatch {
    /// From now on, of this command.
    pub(super) fn new(command: CommandId) -> Result<Self, Error> {
        Ok(Self { command, stop: Interruption::Unwanted, interrupts: interrupts()? })
    }

    /// Waits for the next Ctrl-C.
    pub(super) async fn wanted(&mut self) {
        self.interrupts.recv().await;
    }

    /// What an earlier daemon was asked to do is lost with it.
    pub(super) fn begin_again(&mut self) {
        if self.stop == Interruption::Asked {
            self.stop = Interruption::Wanted;
        }
    }

    /// Whether it was wanted before the command had begun.
    pub(super) fn is_due(&self) -> bool {
        self.stop == Interruption::Wanted
    }

    /// Stops the command; one that is not in its session yet when it begins.
    pub(super) async fn stop(&mut self, client: &Client, session: &str) -> Result<(), Error> {
        self.stop = Interruption::Wanted;
        let target = Some(self.command.clone());
        let cancel =
            CancelSession { session: session.to_owned(), target, grace_ms: None, sent: Sent::default() };
        match client.call(cancel).await {
            Ok(_) => self.stop = Interruption::Asked,
            Err(Error::NotRunning { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Every Ctrl-C from now on; none of them ends the process by itself any more.
pub(super) fn interrupts() -> Result<Signal, Error> {
    signal(SignalKind::interrupt()).map_err(|error| Error::InvalidArgument {
        argument: "terminal".to_owned(),
        reason: format!("Ctrl-C cannot be heard: {error}"),
    })
}
