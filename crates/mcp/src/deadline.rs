//! Every call is answered in time: before its client's patience ends, as soon as its code asks what only its model can answer, or when it has
//! ended. What it began goes on in any of these cases, and `get_result` waits for it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use super::call::Call;
use super::get_result::{Awaited, still_running};
use super::orphans::{Orphan, left_behind};
use super::running_calls::{CallResult, RunningCall};
use super::tool_result::answered;

/// The longest that a client which wants to hear of a call hears nothing: some give a silent call up.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a call that is answered at once is given to find the session that it is about.
const BEGINS: Duration = Duration::from_secs(1);
/// How many calls that have ended one answer tells of at most.
const NEWS: usize = 5;

/// What answers a call that is carried out so, and waits `wait` for its end; with no limit where it waits itself.
pub(super) async fn answer(
    call: &Arc<Call>,
    wait: Option<Duration>,
    carried_out: impl Future<Output = CallResult> + Send + 'static,
) -> Result<CallToolResponse, ErrorData> {
    // Looked for first: the call itself may be what stops it.
    let left_behind = left_behind(call).await;
    let under_way = Arc::clone(call.under_way());
    call.calls().begin(&under_way);
    let most = call.limits().mcp_results;
    let ending = Arc::clone(call);
    // From before it begins, so that nothing it asks is missed.
    let asks = under_way.asks();
    let carried_out = tokio::spawn(carried_out);
    let abort = carried_out.abort_handle();
    tokio::spawn(async move {
        let ended = carried_out.await;
        // Where it panicked there is an answer too.
        let ended = ended.unwrap_or_else(|error| Err(ErrorData::internal_error(error.to_string(), None)));
        ending.calls().end(ending.under_way(), ended, most);
    });
    let response = tokio::select! {
        biased;
        instead = call.answered_instead() => {
            // Its command goes on; what is to be done behind that is done by the call that repeats it.
            abort.abort();
            call.calls().mark_told(&under_way, call.server().connection);
            return Ok(instead);
        }
        response = first_answer(call, &under_way, wait, asks) => response?,
    };
    Ok(match response {
        CallToolResponse::Complete(result) => {
            CallToolResponse::Complete(with_news(call, result, &left_behind))
        }
        other => other,
    })
}

async fn first_answer(
    call: &Arc<Call>,
    under_way: &Arc<RunningCall>,
    wait: Option<Duration>,
    mut asks: watch::Receiver<u64>,
) -> Result<CallToolResponse, ErrorData> {
    let mut waited = std::pin::pin!(async {
        match wait {
            Some(wait) => {
                sleep(wait).await;
                // What is said of how far it is begins with its session.
                timeout(BEGINS, under_way.has_session()).await.ok();
            }
            None => std::future::pending().await,
        }
    });
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_unwanted = false;
    loop {
        tokio::select! {
            biased;
            ended = under_way.ended() => {
                // Nobody hears of a call that was given up; it is news for the next one. Whether a client that has gone hears of it is
                // known once the answer is sent.
                if under_way.is_client_gone() {
                    under_way.leave();
                } else if !is_unwanted {
                    call.calls().mark_told(under_way, call.server().connection);
                }
                return ended.clone().map(CallToolResponse::from);
            }
            () = call.is_unwanted(), if !is_unwanted => {
                is_unwanted = true;
                let reason = call.reason_of_cancel().await;
                match call.habits().is_given_up(reason.as_deref(), under_way.began.elapsed()) {
                    true => under_way.give_up(),
                    false => call.cancel(),
                }
            }
            Ok(()) = asks.changed(), if wait.is_some() => break,
            () = &mut waited => break,
            _ = heartbeat.tick() => {
                if call.wants_progress() && call.silence() >= HEARTBEAT {
                    call.tell(under_way.heartbeat()).await;
                }
            }
        }
    }
    under_way.leave();
    let still = still_running(call, under_way.command(), Some(under_way)).await;
    answered(call, still.map(Awaited::Still)).await.map(CallToolResponse::from)
}

/// The result, behind what others left running, and what has become of calls that this connection left.
fn with_news(call: &Call, mut result: CallToolResult, left_behind: &[Orphan]) -> CallToolResult {
    let news = call.calls().news(call.server().connection, NEWS);
    let of = |left: &Arc<RunningCall>| {
        let ending = match left.end() {
            Some(Ok(result)) if result.is_error != Some(true) => "ok",
            Some(Ok(_) | Err(_)) | None => "failed",
        };
        format!(
            "note: {} of before has ended meanwhile, {ending}: get_result {} tells it\n",
            left.tool,
            left.command()
        )
    };
    let goes_on = |left: &Arc<RunningCall>| {
        format!(
            "note: {} of before, which was given up, still runs: get_result {} waits for it\n",
            left.tool,
            left.command()
        )
    };
    let given_up = call.calls().given_up(call.server().connection);
    let left_behind = left_behind.iter().map(|orphan| format!("{orphan}\n"));
    let left_behind = left_behind.chain(given_up.iter().map(goes_on));
    let notes: String = left_behind.chain(news.iter().map(of)).collect();
    if !notes.is_empty()
        && let Some(ContentBlock::Text(text)) = result.content.first_mut()
    {
        text.text.insert_str(0, &notes);
    }
    if let (Some(created), Some(ContentBlock::Text(text))) = (call.created(), result.content.first_mut()) {
        text.text.push_str(&format!("\n{created}"));
    }
    result
}
