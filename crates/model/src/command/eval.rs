//! The command that runs code.

use serde::{Deserialize, Serialize};

use super::request::{Accepted, Decided, Request, Rules};
use super::{SessionCommand, validate_code};
use crate::affordance::Action;
use crate::command_line::CommandLine;
use crate::decide::{Draft, Effect, Identity};
use crate::entry::Origin;
use crate::error::Error;
use crate::event::EventBody;
use crate::id::JobId;
use crate::limits::Limits;

/// Run code in the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Eval {
    /// The code to be run.
    pub code: String,
    /// The file whose text it is, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The command line that the code is given; without it, the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<CommandLine>,
    /// The entry it is brought from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Whether it, and what comes of it, is stored nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

impl Eval {
    /// What of it may be stored.
    fn stored(&self) -> Self {
        match self.withheld {
            true => Self { code: String::new(), file: None, command_line: None, ..self.clone() },
            false => self.clone(),
        }
    }
}

impl Request for Eval {
    fn rules(&self) -> Rules {
        Rules { runs_job: true, ..Rules::serial(Action::Eval) }
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        validate_code(&self.code, limits)?;
        self.command_line.as_ref().map_or(Ok(()), |line| line.validate(limits))
    }

    /// Of what is withheld nothing counts: a hash of a secret that can be guessed tells it. Of a command line its arguments count.
    fn fingerprinted(&self) -> Option<SessionCommand> {
        let form = match &self.command_line {
            _ if self.withheld => Self { origin: None, ..self.stored() },
            Some(line) => Self { command_line: line.asked(), ..self.clone() },
            None => return None,
        };
        Some(SessionCommand::Eval(form))
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        let language = draft.session.language();
        if let Some(line) = &self.command_line {
            line.check_taken(&draft.session.kind, language.as_ref())?;
        }
        let Accepted { metadata, identity, deadline, grants, fresh } = accepted;
        draft.check_life(grants.as_deref())?;
        let Identity { command, key, fingerprint, .. } = identity;
        let job = JobId::from_uuid(fresh);
        let Self { code, file, command_line, .. } = self.clone();
        draft.effect(Effect::Run { job, code, file, command_line });
        let Self { code, file, command_line, origin, withheld } = self.stored();
        let requested = EventBody::EvalRequested {
            job,
            command,
            fingerprint,
            key,
            deadline,
            grants,
            code,
            file,
            command_line,
            origin,
            withheld,
        };
        draft.record(metadata, requested);
        Ok(Decided::GoesOn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::CommandFingerprint;

    #[test]
    fn other_arguments_make_another_command_and_another_spelling_of_the_script_does_not() {
        let fingerprint = |line: Option<(&str, &str)>| {
            let command_line = line.map(|(script, argument)| {
                let arguments = argument.split_whitespace().map(str::to_owned).collect();
                CommandLine { script: script.to_owned(), arguments }
            });
            let file = Some("/home/ada/a.fsx".to_owned());
            let eval = Eval { code: "1".to_owned(), file, command_line, origin: None, withheld: false };
            CommandFingerprint::of("", &*SessionCommand::Eval(eval).fingerprinted())
        };
        assert_eq!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("./a.fsx", "x"))));
        assert_ne!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("a.fsx", "y"))));
        assert_ne!(fingerprint(Some(("a.fsx", "x"))), fingerprint(Some(("a.fsx", ""))));
        assert_eq!(fingerprint(Some(("a.fsx", ""))), fingerprint(None));
    }
}
