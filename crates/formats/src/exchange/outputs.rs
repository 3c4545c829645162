//! What came of cells as notebooks have it: outputs of nbformat 4.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use super::displays::{self, lines};
use super::documents::{DocumentCell, Ending, PutOut};
use super::kernel::Kernel;
use super::{ExportedEvent, Item};
use mainstay_model::diagnostic::Diagnostic;
use mainstay_model::display::{Bundle, Display};
use mainstay_model::eval::RaisedError;
use mainstay_model::event::EventBody;
use mainstay_model::id::{CommandId, DisplayId};

/// How wide IPython's title of an error is.
const TITLE_COLUMNS: usize = 75;
/// The end of that.
const TITLE: &str = "Traceback (most recent call last)";

/// What came of a session's cells, for a notebook.
#[derive(Debug)]
pub struct Outputs<'a> {
    kernel: &'a Kernel,
    cells: HashMap<&'a CommandId, &'a [ExportedEvent]>,
    /// What stands now under the names that code gave to what it showed, wherever it showed it.
    latest: BTreeMap<&'a DisplayId, &'a Bundle>,
}

impl<'a> Outputs<'a> {
    /// Of all that a session of this kernel has.
    pub fn of(kernel: &'a Kernel, items: &'a [Item]) -> Self {
        let mut outputs = Self { kernel, cells: HashMap::new(), latest: BTreeMap::new() };
        for item in items {
            let Item::Cell { events, .. } = item else { continue };
            for ExportedEvent { body, .. } in events {
                if let EventBody::EvalRequested { command, .. } = body {
                    outputs.cells.insert(command, events);
                }
                if let EventBody::OutputDisplayed { display, .. } = body
                    && !kernel.shows_in_place()
                {
                    outputs.latest.extend(display.id.iter().map(|id| (id, &display.data)));
                }
            }
        }
        outputs
    }

    /// The outputs of the cell that this command ran, under this number.
    pub fn of_command(&self, command: &CommandId, number: u64) -> Option<Vec<Value>> {
        let events = self.cells.get(command)?;
        Some(self.of_shown(&DocumentCell::of(self.kernel, events), number))
    }

    pub(super) fn of_shown(&self, shown: &DocumentCell<'_>, number: u64) -> Vec<Value> {
        let mut outputs: Vec<Value> =
            shown.put_out.iter().flat_map(|put_out| self.put_out(put_out, number)).collect();
        outputs.extend(self.ending(shown, number));
        outputs
    }

    fn put_out(&self, put_out: &PutOut<'_>, number: u64) -> Vec<Value> {
        match put_out {
            PutOut::Printed { stdout, stderr, .. } => [("stdout", stdout), ("stderr", stderr)]
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(name, text)| json!({ "output_type": "stream", "name": name, "text": lines(text) }))
                .collect(),
            // It stands where its name was shown.
            PutOut::Updated(_) => Vec::new(),
            PutOut::Value(display) => {
                let bundle = self.latest(display);
                let (data, metadata) = (displays::notebook(bundle), bundle.metadata());
                vec![
                    json!({ "output_type": "execute_result", "execution_count": number, "data": data, "metadata": metadata }),
                ]
            }
            PutOut::Displayed(display) => {
                let bundle = self.latest(display);
                let (data, metadata) = (displays::notebook(bundle), bundle.metadata());
                vec![json!({ "output_type": "display_data", "data": data, "metadata": metadata })]
            }
        }
    }

    fn latest<'b>(&self, display: &'b Display) -> &'b Bundle
    where
        'a: 'b,
    {
        display.id.as_ref().and_then(|id| self.latest.get(id).copied()).unwrap_or(&display.data)
    }

    fn ending(&self, shown: &DocumentCell<'_>, number: u64) -> Option<Value> {
        Some(match &shown.ending {
            Ending::Completed if shown.given.trim().is_empty() && shown.value.is_none() => return None,
            Ending::Completed => {
                let value = shown.value.map(|value| self.latest(value));
                let mut data = value.map(displays::notebook).unwrap_or_default();
                let metadata = value.map(|value| value.metadata().clone()).unwrap_or_default();
                // The line's end is none of the value's.
                let text = shown.given.strip_suffix('\n').unwrap_or(&shown.given);
                data.insert("text/plain".to_owned(), json!(lines(text)));
                json!({ "output_type": "execute_result", "execution_count": number, "data": data, "metadata": metadata })
            }
            Ending::Raised(error) => {
                let RaisedError { kind, message, .. } = error;
                error_output(kind, message, &traceback(self.kernel, error))
            }
            Ending::Rejected(Some(diagnostic)) if self.kernel.tells_like_ipython() => {
                rejected(shown.code, diagnostic, number)
            }
            Ending::Rejected(_) => told("rejected", &shown.given),
            Ending::Failed(why) => told(why, &shown.given),
        })
    }
}

/// All that is to be read of an error, without colours: who shows a notebook shows nothing else of it.
fn traceback(kernel: &Kernel, error: &RaisedError) -> Vec<String> {
    traceback_around(kernel, error, error.stack.as_deref().unwrap_or_default())
}

/// The same for who shows colours, as the kernel has them.
pub fn coloured_traceback(kernel: &Kernel, error: &RaisedError) -> Vec<String> {
    let coloured = error.coloured_stack.as_deref().or(error.stack.as_deref());
    traceback_around(kernel, error, coloured.unwrap_or_default())
}

fn traceback_around(kernel: &Kernel, error: &RaisedError, shown: &str) -> Vec<String> {
    let RaisedError { kind, message, stack, .. } = error;
    let error = format!("{kind}: {message}");
    let stack = stack.as_deref().unwrap_or_default();
    let mut traceback: Vec<String> = shown.lines().map(str::to_owned).collect();
    if let (true, Some(first)) = (kernel.tells_like_ipython(), stack.lines().next()) {
        // The title of what led to it stands there, where something did.
        if !first.contains(TITLE) {
            let columns = TITLE_COLUMNS.saturating_sub(kind.chars().count());
            traceback.insert(0, format!("{kind}{TITLE:>columns$}"));
        }
        traceback.insert(0, "-".repeat(TITLE_COLUMNS));
    }
    if !stack.contains(&error) {
        let at = if kernel.tells_like_ipython() { traceback.len() } else { 0 };
        traceback.insert(at, error);
    }
    traceback
}

/// An end of which there is a text.
fn told(why: &str, text: &str) -> Value {
    let text = text.trim_end();
    error_output(why, text, &text.lines().map(str::to_owned).collect::<Vec<_>>())
}

/// Code that its language does not take, as IPython says so.
fn rejected(code: &str, diagnostic: &Diagnostic, number: u64) -> Value {
    let Diagnostic { code: kind, message, start, .. } = diagnostic;
    let mut traceback = vec![format!("  Cell In[{number}], line {}", start.line)];
    if let Some(line) = code.lines().nth((start.line as usize).saturating_sub(1)) {
        let before = line.chars().take((start.column as usize).saturating_sub(1));
        let blank: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        traceback.extend([format!("    {line}"), format!("    {blank}^")]);
    }
    traceback.push(format!("{kind}: {message}"));
    error_output(kind, message, &traceback)
}

fn error_output(kind: &str, message: &str, traceback: &[String]) -> Value {
    json!({ "output_type": "error", "ename": kind, "evalue": message, "traceback": traceback })
}
