//! How an eval's code wanted to end: its worker, as the event that ended the eval says, or itself, by Python's `SystemExit`.

use mainstay_client::Client;
use mainstay_model::{Error, EvalEnding, EventBody, Failure, RaisedError, Seq, WorkerExit};
use mainstay_protocol::operations::ListEvents;
use mainstay_protocol::view::EvalView;

/// What Python raises where code calls `sys.exit`.
const SYSTEM_EXIT: &str = "SystemExit";

/// The code that a `SystemExit` with this message stands for. Source: Python's `sys.exit`.
fn code_of(message: &str) -> i32 {
    match message.trim() {
        "" | "None" => 0,
        text => text.parse().unwrap_or(1),
    }
}

/// The code that the eval's own code called `exit` with; none where it did not.
pub async fn own_exit_code(client: &Client, eval: &EvalView) -> Result<Option<i32>, Error> {
    if let Some(RaisedError { message, .. }) = eval.error.as_ref().filter(|error| error.kind == SYSTEM_EXIT) {
        return Ok(Some(code_of(message)));
    }
    if eval.ending != (EvalEnding::WorkerExited { exit: WorkerExit::Unknown }).name() {
        return Ok(None);
    }
    let after = Seq(eval.seq.0.saturating_sub(1));
    let end = ListEvents { session: eval.session.to_string(), after, limit: Some(1) };
    let end = client.call(end).await?.pop().map(|event| event.body);
    Ok(match end {
        Some(EventBody::EvalFailed {
            failure: Failure::WorkerExited { exit: WorkerExit::Code(code) },
            ..
        }) => Some(code),
        Some(_) | None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_exit_means_what_python_ends_with() {
        assert_eq!(["", "None", "0", "3", "no such file"].map(code_of), [0, 0, 0, 3, 1]);
    }
}
