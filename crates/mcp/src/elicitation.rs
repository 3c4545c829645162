//! Elicitation is an ask: what a command asks is put to the client that called for it, where that one asks people. Over a session it is
//! asked; in the newest protocol the call is answered with what is asked, and repeated with the answers. Whoever answers first wins.

use std::time::{Duration, Instant};

use mainstay_engine::ClientSubscription;
use mainstay_model::command;
use mainstay_model::{
    AskId, Error, EventBody, PendingAsk, Question, Response, SessionCommand, SessionId, Timestamp,
};
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

use super::call::Call;
use super::running_command::{InvalidAnswers, RunningCommand};
use super::state;

/// The member that has the answer where that is no object: forms have members.
const ANSWER: &str = "answer";
/// How often a client may answer what is no answer to the question before it is left to others.
const ATTEMPTS: usize = 3;

/// How a client is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElicitationMode {
    /// It shows no forms.
    Never,
    /// While its call is under way.
    InSession,
    /// By an answer to its call, which it repeats.
    ByAnswer,
}

impl ElicitationMode {
    /// How the client of a call is asked.
    pub(super) fn of(call: &Call) -> Self {
        if call.server().declines_unseen() {
            return Self::Never;
        }
        let elicitation = call.capabilities().and_then(|declared| declared.elicitation);
        // Clients older than the ways to ask show forms.
        let shows_forms = elicitation.is_some_and(|ways| ways.form.is_some() || ways.url.is_none());
        match (shows_forms, call.is_of_newest()) {
            (false, _) => Self::Never,
            (true, false) => Self::InSession,
            (true, true) => Self::ByAnswer,
        }
    }
}

/// Puts an ask to the client until someone has answered it. Of what it cannot show, and of what it declines before a person can have seen it,
/// its model is told.
pub(super) async fn put(call: &Call, pending: PendingAsk) {
    let is_over = put_to_client(call, &pending).await.unwrap_or_else(|error| {
        tracing::debug!(ask = %pending.ask.ask, %error, "an ask is left to others");
        false
    });
    if !is_over {
        call.under_way().note_ask();
    }
}

/// Puts it, and says whether it is over; else it is still asked, and its client is asked no more.
async fn put_to_client(call: &Call, pending: &PendingAsk) -> Result<bool, Error> {
    let Some(session) = call.session().filter(|_| call.client().may_be_asked(pending)) else {
        return Ok(false);
    };
    let question = &pending.ask.question;
    let mut events = call.client().subscribe(session, pending.raised).await?;
    let mut complaint = None;
    for _ in 0..ATTEMPTS {
        let Some(form) = form(question, complaint.as_deref()) else { return Ok(false) };
        let shown = Instant::now();
        let _form = call.under_way().shows_form(pending.ask.ask);
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let peer = call.peer();
        let asked = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let Ok(mut asked) = asked else { return Ok(false) };
        let answered = tokio::select! {
            biased;
            answered = &mut asked.rx => Some(answered),
            () = over(&mut events, pending.ask.ask) => None,
        };
        let Some(answered) = answered else {
            asked.cancel(Some("it needs no answer any more".to_owned())).await.ok();
            return Ok(true);
        };
        let Ok(Ok(ClientResult::ElicitResult(result))) = answered else { return Ok(false) };
        if is_unseen(call, &result, shown.elapsed()) {
            call.server().note_unseen_decline();
            return Ok(false);
        }
        match call.submit_beside(session, answer(pending, result)).await {
            Err(Error::AnswerInvalid { reason }) => complaint = Some(reason),
            // It waits for others.
            Ok(Response::Voted { .. }) => return Ok(false),
            Ok(_) | Err(Error::AskNotPending { .. }) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Whether an ask was declined, or cancelled, faster than a person can have seen it: a client without a person does that by itself.
fn is_unseen(call: &Call, result: &ElicitResult, took: Duration) -> bool {
    result.action != ElicitationAction::Accept && took < Duration::from_millis(call.limits().mcp_decline_ms)
}

/// Waits until an ask has ended.
async fn over(events: &mut ClientSubscription, ended: AskId) {
    while let Ok(event) = events.next().await {
        if matches!(&event.body, EventBody::AskEnded { ask, .. } if *ask == ended) {
            return;
        }
    }
}

/// The answer that asks a client and has it repeat its call; none where it can be shown nothing of it.
pub(super) fn required(
    call: &Call,
    running: &RunningCommand,
    pending: &[PendingAsk],
) -> Result<Option<InputRequiredResult>, Error> {
    let requests = requests(call, pending);
    if requests.is_empty() {
        return Ok(None);
    }
    let asked: Vec<AskId> = pending.iter().map(|pending| pending.ask.ask).collect();
    let state = state::seal(call, running, &asked)?;
    Ok(Some(InputRequiredResult::new(Some(requests), Some(state))))
}

/// What a client is asked that it may answer, by the ask's id, with what was wrong with the answer that its call brought.
pub(super) fn requests(call: &Call, pending: &[PendingAsk]) -> InputRequests {
    let request = |pending: &PendingAsk| {
        let form = form(&pending.ask.question, call.complaint(pending.ask.ask))?;
        Some((pending.ask.ask.to_string(), InputRequest::Elicitation(ElicitRequest::new(form))))
    };
    pending.iter().filter(|pending| call.client().may_be_asked(pending)).filter_map(request).collect()
}

/// Takes a client's answers to what is still asked since then, and says which are none, and why: that is still asked. What others have
/// answered meanwhile stays as it is, and so does what was declined faster than by a person.
///
/// # Errors
/// [`Error::InvalidArgument`] where one is none at all, and what an answer is refused with.
pub(super) async fn take(
    call: &Call,
    session: SessionId,
    (pending, since): (&[PendingAsk], Option<Timestamp>),
    mut responses: InputResponses,
) -> Result<InvalidAnswers, Error> {
    let mut invalid = InvalidAnswers::new();
    let took = since.and_then(|since| Duration::try_from(Timestamp::now().duration_since(since)).ok());
    for pending in pending {
        let Some(response) = responses.remove(&pending.ask.ask.to_string()) else { continue };
        let result: ElicitResult = serde_json::from_value(response).map_err(|error| {
            Error::InvalidArgument { argument: "inputResponses".to_owned(), reason: error.to_string() }
        })?;
        if took.is_some_and(|took| is_unseen(call, &result, took)) {
            call.server().note_unseen_decline();
            continue;
        }
        match call.submit_beside(session, answer(pending, result)).await {
            // What this client may not answer is left to others.
            Ok(_)
            | Err(Error::AskNotPending { .. } | Error::NotPermitted { .. } | Error::TrustRefused { .. }) => {}
            Err(Error::AnswerInvalid { reason }) => {
                invalid.insert(pending.ask.ask, reason);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(invalid)
}

/// A question as a form; none where a form cannot ask it, or must not: secrets are nothing for forms, says the specification.
fn form(question: &Question, complaint: Option<&str>) -> Option<ElicitRequestParams> {
    if question.is_secret() {
        return None;
    }
    let schema = match is_of_members(question) {
        true => question.schema.clone(),
        false => json!({
            "type": "object", "properties": { ANSWER: question.schema }, "required": [ANSWER],
        }),
    };
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let message = match complaint {
        Some(complaint) => format!("{} ({complaint})", question.prompt),
        None => question.prompt.clone(),
    };
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

fn is_of_members(question: &Question) -> bool {
    question.schema.get("type").is_some_and(|kind| kind == "object")
}

fn answer(pending: &PendingAsk, result: ElicitResult) -> SessionCommand {
    let ask = pending.ask.ask;
    if result.action != ElicitationAction::Accept {
        return SessionCommand::Decline(command::Decline { ask });
    }
    let mut content = result.content.unwrap_or_default();
    let value = match is_of_members(&pending.ask.question) {
        true => content,
        false => content.get_mut(ANSWER).map(Value::take).unwrap_or_default(),
    };
    SessionCommand::Answer(command::Answer::new(ask, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: Value) -> Option<Value> {
        let form = form(&Question { schema, ..Question::text("how many?") }, None)?;
        Some(serde_json::to_value(form).unwrap()["requestedSchema"].clone())
    }

    #[test]
    fn what_is_no_object_is_asked_as_one_member() {
        let number = json!({ "type": "integer", "minimum": 1 });
        let wrapped = json!({ "type": "object", "properties": { "answer": number }, "required": ["answer"] });
        assert_eq!(shown(number), Some(wrapped));
        let members = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        assert_eq!(shown(members.clone()), Some(members));
    }

    #[test]
    fn what_a_form_cannot_ask_is_left_to_others() {
        assert_eq!(shown(json!({ "type": "array" })), None);
        assert_eq!(shown(json!({ "type": "string", "writeOnly": true })), None);
        assert_eq!(shown(json!({ "type": "object", "properties": { "of": { "type": "object" } } })), None);
    }
}
