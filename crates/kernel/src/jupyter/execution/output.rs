//! What a kernel publishes for people: text, displays and comms, told as notices.

use std::collections::BTreeMap;

use mainstay_model::display::PLAIN;
use mainstay_model::{Bundle, Display, DisplayId, JobId, OutputStream, RunnerNotice};
use serde_json::{Map, Value};

use crate::jupyter::comm;
use crate::jupyter::content::{DisplayData, Stream};
use crate::jupyter::wire::{Malformed, Message};

/// What a kernel published that belongs to a job, or to none.
///
/// # Errors
/// [`Malformed`] where that says something else than its type.
pub(in crate::jupyter) fn published(
    job: Option<JobId>,
    message: &Message,
) -> Result<Option<RunnerNotice>, Malformed> {
    match message.header.msg_type.as_str() {
        "stream" => {
            let Stream { name, text } = message.read()?;
            let stream = if name == "stderr" { OutputStream::Stderr } else { OutputStream::Stdout };
            Ok((!text.is_empty()).then_some(RunnerNotice::Output { job, stream, text }))
        }
        "display_data" => {
            let DisplayData { data, metadata, transient } = message.read()?;
            Ok(Some(shown(job, transient.display_id, bundle(data, metadata))))
        }
        "update_display_data" => {
            let DisplayData { data, metadata, transient } = message.read()?;
            let display =
                Display { is_update: true, ..display(transient.display_id, bundle(data, metadata)) };
            Ok(Some(RunnerNotice::Display { job, display: Box::new(display) }))
        }
        // What is of no interest here is passed over.
        _ => {
            let comm = comm::read(message)?;
            Ok(comm.map(|message| RunnerNotice::Comm { job, message: Box::new(message) }))
        }
    }
}

/// The notice that something is shown.
pub(super) fn shown(job: Option<JobId>, id: Option<String>, data: Bundle) -> RunnerNotice {
    RunnerNotice::Display { job, display: Box::new(display(id, data)) }
}

/// What is shown under a name.
pub(super) fn display(id: Option<String>, data: Bundle) -> Display {
    // What cannot be a name names nothing.
    let id = id.and_then(|id| DisplayId::new(id).ok());
    Display { id, is_value: false, is_update: false, is_in_place: false, data }
}

/// What is shown, its plain text without colours: it is read by people and programs that know none.
pub(super) fn bundle(mut data: BTreeMap<String, Value>, metadata: Map<String, Value>) -> Bundle {
    if let Some(Value::String(text)) = data.get_mut(PLAIN) {
        *text = plain(text);
    }
    Bundle::from(data).with_metadata(metadata)
}

/// Text without the escapes by which a terminal colours it.
pub(super) fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| ('@'..='~').contains(&c)).map_or("", |(_, rest)| rest);
    }
    plain + rest
}
