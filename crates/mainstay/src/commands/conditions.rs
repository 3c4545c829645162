//! Under what name and conditions a command is sent.

use clap::Args;
use jiff::SignedDuration;
use mainstay_model::{CommandId, IdempotencyKey, Version};
use mainstay_protocol::{Conditions, Sent};
use uuid::Uuid;

/// The flags for what a command may say beside what it asks.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Conditions")]
struct ConditionArgs {
    /// What is wanted done once, whatever the command's id: the same key gets the first one's answer
    #[arg(long, value_name = "KEY", value_parser = |text: &str| IdempotencyKey::new(text))]
    key: Option<IdempotencyKey>,

    /// Run only after this command has succeeded; may be given again
    #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    depends_on: Vec<CommandId>,

    /// Run only if the session has this version (`mainstay session show --json`)
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,

    /// Give up, and stop what runs, after this long from now: 90s, 500ms, 2m
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    timeout: Option<u64>,
}

/// The flags for a command's name and conditions.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SentArgs {
    /// A name of your own for this command: given again, it gets the same answer and is not carried out twice
    #[arg(long, value_name = "ID", value_parser = |text: &str| CommandId::new(text))]
    id: Option<CommandId>,

    #[command(flatten)]
    conditions: ConditionArgs,
}

impl SentArgs {
    /// As they are sent.
    pub(super) fn sent(self) -> Sent {
        let Self { id, conditions } = self;
        let ConditionArgs { key, depends_on, if_version, timeout } = conditions;
        let conditions =
            Conditions { key, depends_on, if_version: if_version.map(Version), timeout_ms: timeout };
        Sent { command: id, conditions }
    }

    /// The same under a new id where none was given, so that it can be sent again when the daemon is lost.
    pub(super) fn named(self) -> (CommandId, Conditions) {
        let Sent { command, conditions } = self.sent();
        (command.unwrap_or_else(|| CommandId::from_uuid(Uuid::now_v7())), conditions)
    }
}

pub(super) fn milliseconds(text: &str) -> Result<u64, String> {
    let duration: SignedDuration = text.parse().map_err(|_| "write it as 90s, 500ms or 2m".to_owned())?;
    match u64::try_from(duration.as_millis()) {
        Ok(milliseconds @ 1..) => Ok(milliseconds),
        Ok(0) | Err(_) => Err("it must be at least 1 ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_their_unit() {
        for (text, expected) in [("90s", 90_000), ("500ms", 500), ("2m", 120_000), ("1m 30s", 90_000)] {
            assert_eq!(milliseconds(text), Ok(expected), "{text}");
        }
        for bad in ["90", "-1s", "0s", "soon", ""] {
            assert!(milliseconds(bad).is_err(), "{bad}");
        }
    }
}
