//! Dialect A §12: questions to people.

use serde_json::{Map, Value, json};

use super::session::{Session, concerns, is_terminal};
use crate::json::{items, kind, short, text};
use crate::probe::{Behaviour, Probe};
use crate::scenario::{Stop, Verdict, expect, scenarios};

scenarios! {
    "a.12.1.request" Must
        "A job that asks sends human.input.request or human.choice.request, with its job_id and a prompt."
        => request;
    "a.12.1.invalid" Must
        "An answer that response_schema does not allow is answered with a nack INVALID_ARGUMENT."
        => invalid;
    "a.12.1.still-open" Must
        "After an invalid answer the request can still be answered."
        => still_open;
    "a.12.1.valid" Must
        "After a valid answer the job goes on to its end."
        => valid;
    "a.12.1.unknown" Must
        "An answer to a request that never was is answered with a nack."
        => unknown;
    "a.12.3.first-wins" Must
        "A second answer to a request does not change the outcome."
        => first_wins;
    "a.12.4.expires" Must
        "Every request has expires_at."
        => expires;
}

/// A request of a job, and what identifies the job.
struct Asked {
    session: Session,
    request: Value,
    command: String,
    job: String,
}

async fn ask(probe: &Probe) -> Result<Asked, Stop> {
    let work = Session::work(probe, Behaviour::Asks)?;
    let mut session = Session::open(probe).await?;
    let command = session.send("tool.invoke", work).await?;
    let accepted = session.answer(&command, &["job.accepted"]).await?;
    let job = super::session::job_id(&accepted)?;
    let expected = "human.input.request or human.choice.request";
    let asks = |message: &Value| matches!(kind(message), "human.input.request" | "human.choice.request");
    let request = session.peer.take(expected, asks).await?;
    Ok(Asked { session, request, command, job })
}

impl Asked {
    /// Answers the request, and returns the id of the answer.
    async fn answer(&mut self, payload: Value) -> Result<String, Stop> {
        let kind = kind(&self.request).replace(".request", ".response");
        let mut answer = self.session.envelope(&kind, payload);
        answer["correlation_id"] = self.request["id"].clone();
        answer["job_id"] = json!(self.job);
        answer["payload"]["responded_by"] = json!("arcp-conformance");
        answer["payload"]["responded_at"] = json!(jiff::Timestamp::now().to_string());
        self.session.peer.send(answer).await
    }

    fn valid(&self) -> Value {
        if kind(&self.request) == "human.choice.request" {
            let option = items(&self.request, "/payload/options").first().map(|option| text(option, "/id"));
            return json!({ "choice_id": option.unwrap_or_default() });
        }
        let default = self.request.pointer("/payload/default").filter(|default| !default.is_null());
        let schema = &self.request["payload"]["response_schema"];
        json!({ "value": default.cloned().unwrap_or_else(|| example(schema)) })
    }

    fn invalid(&self) -> Result<Value, Stop> {
        if kind(&self.request) == "human.choice.request" {
            return Ok(json!({ "choice_id": "arcp-conformance.no-such-choice" }));
        }
        let schema = &self.request["payload"]["response_schema"];
        match text(schema, "/type") {
            "" => Err(Stop::skipped("the request's response_schema names no type")),
            "string" => Ok(json!({ "value": 7 })),
            _ => Ok(json!({ "value": "arcp-conformance" })),
        }
    }

    async fn end(&mut self) -> Result<Value, Stop> {
        self.session.end(&self.command, &self.job).await
    }

    async fn refused(&mut self, id: &str) -> Verdict {
        let refused = self.session.refusal(id, &["INVALID_ARGUMENT"]).await?;
        expect(kind(&refused) == "nack", "a nack", || short(&refused))
    }
}

/// Returns a value that a simple schema allows.
fn example(schema: &Value) -> Value {
    if let Some(one) = items(schema, "/enum").first() {
        return one.clone();
    }
    match text(schema, "/type") {
        "string" => json!("arcp-conformance"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => {
            let required = items(schema, "/required").iter().filter_map(Value::as_str);
            let fields = required.map(|name| (name.to_owned(), example(&schema["properties"][name])));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}

async fn request(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    asked.session.clean_up(&asked.job).await?;
    let named = text(&asked.request, "/job_id") == asked.job;
    let whole = named && !text(&asked.request, "/payload/prompt").is_empty();
    expect(whole, "the job_id and a prompt", || short(&asked.request))
}

async fn expires(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    asked.session.clean_up(&asked.job).await?;
    let time = text(&asked.request, "/payload/expires_at").parse::<jiff::Timestamp>();
    expect(time.is_ok(), "expires_at as a time", || short(&asked.request))
}

async fn invalid(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    let answer = asked.invalid()?;
    let id = asked.answer(answer).await?;
    let refused = asked.refused(&id).await;
    asked.session.clean_up(&asked.job).await?;
    refused
}

async fn still_open(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    let (wrong, right) = (asked.invalid()?, asked.valid());
    let id = asked.answer(wrong).await?;
    asked.session.round_trip().await?;
    let early = asked.session.about(&asked.command, &asked.job).into_iter().find(|each| is_terminal(each));
    expect(early.is_none(), &format!("a job that still waits after the answer {id}"), || {
        early.map(short).unwrap_or_default()
    })?;
    asked.answer(right).await?;
    succeeded(&asked.end().await?)
}

fn succeeded(end: &Value) -> Verdict {
    expect(matches!(kind(end), "job.completed" | "tool.result"), "job.completed or tool.result", || {
        short(end)
    })
}

async fn valid(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    let answer = asked.valid();
    asked.answer(answer).await?;
    succeeded(&asked.end().await?)
}

async fn unknown(probe: &Probe) -> Verdict {
    let mut session = Session::open(probe).await?;
    let mut answer =
        session.envelope("human.input.response", json!({ "value": 1, "responded_by": "nobody" }));
    answer["correlation_id"] = json!("msg_nobody");
    let id = session.peer.send(answer).await?;
    let codes = ["NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "UNIMPLEMENTED"];
    session.refusal(&id, &codes).await.map(drop)
}

async fn first_wins(probe: &Probe) -> Verdict {
    let mut asked = ask(probe).await?;
    let answer = asked.valid();
    asked.answer(answer.clone()).await?;
    succeeded(&asked.end().await?)?;
    asked.answer(answer).await?;
    asked.session.round_trip().await?;
    asked.session.peer.settle().await;
    let ends = asked
        .session
        .peer
        .received()
        .filter(|message| is_terminal(message) && concerns(message, &asked.command, &asked.job));
    let ends = ends.count();
    expect(ends == 1, "one terminal event", || ends.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_what_a_schema_requires() {
        let schema = json!({
            "type": "object", "required": ["branch", "count"],
            "properties": { "branch": { "enum": ["main"] }, "count": { "type": "integer", "minimum": 3 } },
        });
        assert_eq!(example(&schema), json!({ "branch": "main", "count": 3 }));
    }
}
