//! How an eval's code ended its worker, as the event that ended the eval says.

use mainstay_gateway::rpc::api::ListEvents;
use mainstay_gateway::rpc::client::Client;
use mainstay_gateway::view::EvalView;
use mainstay_model::{Error, EvalEnding, EventBody, Failure, Seq, WorkerExit};

/// The code that the eval's own code called `exit` with; none where it did not.
pub(crate) async fn own_exit_code(client: &Client, eval: &EvalView) -> Result<Option<i32>, Error> {
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
