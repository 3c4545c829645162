//! Who connects to a shim: what it says first, and how it is refused.

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::FIRST_MESSAGE;
use crate::messages::{Hello, OLDEST_PROTOCOL, PROTOCOL, Refusal, Welcome};
use crate::stream::{Incoming, Outgoing, framed};

/// Someone who has said hello.
pub(super) struct Visitor {
    pub(super) hello: Hello,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
}

impl Visitor {
    /// Hears who it is that has connected; none where it says nothing that is understood.
    pub(super) async fn of(stream: UnixStream) -> Option<Self> {
        let (mut incoming, outgoing) = framed(stream);
        let hello = timeout(FIRST_MESSAGE, incoming.next::<Hello>()).await;
        let hello = hello.ok()?.ok()??;
        Some(Self { hello, incoming, outgoing })
    }

    pub(super) async fn refuse(mut self, reason: Refusal) {
        tracing::warn!(%reason, "a daemon is refused");
        self.outgoing.send(&Welcome::Refused { reason }).await.ok();
    }
}

/// The version that both sides speak, where there is one.
pub(super) fn common_protocol(hello: &Hello) -> Result<u32, Refusal> {
    let common = PROTOCOL.min(hello.protocol);
    match common >= OLDEST_PROTOCOL && common >= hello.oldest_protocol {
        true => Ok(common),
        false => Err(Refusal::Protocol { newest: PROTOCOL, oldest: OLDEST_PROTOCOL }),
    }
}
