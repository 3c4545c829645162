//! Cells of a line: code that is accepted, prints and ends.

use mainstay_log::Append;
use mainstay_model::{CommandFingerprint, Display, EvalResult, EventBody, JobId, OutputStream, Seq};
use serde_json::json;
use uuid::Uuid;

use super::{Line, command_id};

impl Line {
    /// The append that accepts code, taken for done.
    pub fn request(&mut self, code: &str) -> Append {
        let requested = self.last_seq().next();
        self.requested = Some(requested);
        self.append(vec![EventBody::EvalRequested {
            job: job(requested),
            command: command_id("c"),
            fingerprint: CommandFingerprint::from_stored("f".to_owned()),
            key: None,
            deadline: None,
            grants: None,
            code: code.to_owned(),
            file: None,
            command_line: None,
            withheld: false,
            origin: None,
        }])
    }

    /// What the code prints.
    pub fn print(&mut self, text: &str) -> Append {
        let (job, text) = (self.requested.map(job), text.to_owned());
        self.append(vec![EventBody::OutputProduced { job, stream: OutputStream::Stdout, text }])
    }

    /// What it shows: plain text, and HTML of so many bytes.
    pub fn show(&mut self, text: &str, bytes: usize) -> Append {
        let forms = json!({ "text/plain": text, "text/html": "h".repeat(bytes) });
        let data = serde_json::from_value(forms).expect("a bundle");
        let (job, display) = (
            self.requested.map(job),
            Display { id: None, is_value: false, is_update: false, is_in_place: false, data },
        );
        self.append(vec![EventBody::OutputDisplayed { job, display: Box::new(display) }])
    }

    /// Ends the cell that runs.
    pub fn finish(&mut self, display: &str) -> Append {
        let requested = self.requested.expect("a cell runs");
        let result = EvalResult { display: display.to_owned(), ..EvalResult::default() };
        let job = job(requested);
        let end = EventBody::EvalCompleted { job, result, changes_state: true, duration_ms: 1 };
        let mut append = self.append(vec![end]);
        append.events[0].metadata.causation = Some(requested);
        append
    }
}

fn job(requested: Seq) -> JobId {
    JobId::from_uuid(Uuid::from_u128(requested.0.into()))
}
