//! Having something done that is no code: by an agent, a build, or a message to a kernel's widgets.

use super::request::{Accepted, Decided, Request, Rules};
use super::{validate_code, validate_prompt};
use crate::affordance::Action;
use crate::agent::JobSpec;
use crate::decide::Draft;
use crate::error::Error;
use crate::limits::Limits;

impl Request for JobSpec {
    fn rules(&self) -> Rules {
        let action = match self {
            Self::Comm(_) => Action::Comm,
            Self::Build | Self::Rebuild => Action::Rebuild,
            Self::Turn { .. } | Self::Compaction { .. } | Self::Shell { .. } | Self::Setting(_) => {
                Action::Prompt
            }
        };
        Rules { runs_job: true, ..Rules::serial(action) }
    }

    fn validate(&self, limits: &Limits) -> Result<(), Error> {
        match self {
            Self::Turn { prompt } => validate_prompt(prompt, limits),
            Self::Shell { line, .. } => validate_code(line, limits),
            Self::Compaction { instructions } => {
                instructions.as_deref().map_or(Ok(()), |instructions| validate_code(instructions, limits))
            }
            Self::Comm(message) => message.validate(limits),
            Self::Setting(_) | Self::Build | Self::Rebuild => Ok(()),
        }
    }

    fn decide(&self, draft: &mut Draft<'_>, accepted: Accepted) -> Result<Decided, Error> {
        if matches!(self, Self::Build | Self::Rebuild) {
            draft.check_project()?;
        }
        draft.request(accepted, self.clone())?;
        Ok(Decided::GoesOn)
    }
}
