//! What a job had put out when its daemon was lost: the next goes on with what is left of its allowance.

use mainstay_model::{EventBody, JobId};

use super::DISPLAY_BYTES;

/// How much is stored of what a job has put out, by its events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PutOutSoFar {
    pub(super) text: usize,
    pub(super) forms: usize,
    pub(super) is_cut: bool,
}

impl PutOutSoFar {
    /// Takes in an event of the session.
    pub(crate) fn take_in(&mut self, of: JobId, body: &EventBody) {
        match body {
            EventBody::OutputProduced { job, text, .. } if *job == Some(of) => self.text += text.len(),
            EventBody::OutputDisplayed { job, display } if *job == Some(of) => {
                self.text += display.data.text().len() + DISPLAY_BYTES;
                self.forms += display.data.form_bytes();
            }
            EventBody::CommPublished { job, message } if *job == Some(of) => {
                self.forms += message.bytes() + DISPLAY_BYTES;
            }
            EventBody::OutputCut { job, .. } if *job == of => self.is_cut = true,
            _ => {}
        }
    }
}
