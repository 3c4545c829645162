//! Asks that wait for an answer, in words, and answering them.

use mainstay_client::Client;
use mainstay_model::vote::Vote;
use mainstay_model::{Error, Question, Source, Timestamp};
use mainstay_protocol::operations::{AnswerAsk, Answered, ListAsks};
use mainstay_protocol::view::AskView;
use mainstay_terminal::{Paint, Tone, ago, printable};
use serde_json::Value;

use crate::events::person_name;

/// The question of the ask of this id, or end of an id. One that is not there, or is not the only one, the daemon knows how to refuse.
pub async fn question(client: &Client, reference: &str) -> Result<Option<Question>, Error> {
    let asks = client.call(ListAsks { session: None }).await?;
    let mut found = asks.into_iter().filter(|view| view.ask.answers_to(reference));
    Ok(found.next().filter(|_| found.next().is_none()).map(|view| view.question))
}

/// Answers the ask of this id, or end of an id, with what a person typed.
pub async fn answer(client: &Client, reference: &str, text: &str) -> Result<Answered, Error> {
    let question = question(client, reference).await?;
    let value = question.map_or_else(|| Value::String(text.to_owned()), |question| question.value_of(text));
    client.call(AnswerAsk { ask: reference.to_owned(), command: None, value }).await
}

/// What waits for an answer.
pub fn asks_text(asks: &[AskView], paint: Paint, now: Timestamp) -> String {
    match asks {
        [] => "nothing waits for an answer\n".to_owned(),
        asks => asks.iter().map(|ask| ask_text(ask, paint, now)).collect(),
    }
}

/// An ask, in two lines.
fn ask_text(ask: &AskView, paint: Paint, now: Timestamp) -> String {
    let AskView { short_id, session_name, question, source, raised_at, deadline, votes, .. } = ask;
    let by = match source {
        Source::Worker => "code that runs".to_owned(),
        source => person_name(source),
    };
    let until = match deadline {
        Some(deadline) if *deadline > now => {
            format!(", {} s left", deadline.duration_since(now).as_secs().max(0))
        }
        Some(_) => ", its time is over".to_owned(),
        None => String::new(),
    };
    let facts = format!("asked by {} in {session_name}, {}{until}", printable(&by), ago(*raised_at, now));
    let mut text = format!(
        "{} {}\n    {}\n",
        paint.tone(Tone::Name, short_id),
        printable(&question_text(question)),
        paint.tone(Tone::Faint, &printable(&facts)),
    );
    if question.needed_answers() > 1 {
        let votes = votes_text(question, votes);
        text.push_str(&format!("    {}\n", paint.tone(Tone::Faint, &printable(&votes))));
    }
    text
}

/// How many must give the same answer, and who has answered what.
fn votes_text(question: &Question, votes: &[Vote]) -> String {
    let said = votes.iter().map(|vote| format!("; {} answered {}", vote.source.principal(), vote.value));
    format!("{} must give the same answer{}", question.needed_answers(), said.collect::<String>())
}

/// How many more must give the same answer.
pub fn missing_text(missing: u32) -> String {
    format!("{missing} more must answer the same")
}

/// What is asked, and what an answer must be where that is not any text.
pub fn question_text(question: &Question) -> String {
    format!("{} {}", question.prompt.trim_end(), wanted(question)).trim_end().to_owned()
}

/// What says nothing of which text is wanted.
fn is_plain(key: &str) -> bool {
    ["type", "title", "writeOnly"].contains(&key)
}

/// What an answer must be, in words where there are short ones.
fn wanted(question: &Question) -> String {
    let Question { schema, default, .. } = question;
    let words = match (&schema["enum"], schema["type"].as_str()) {
        (Value::Array(choices), _) => {
            let choice = |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            choices.iter().map(choice).collect::<Vec<_>>().join(", ")
        }
        (_, Some("boolean")) => "yes or no".to_owned(),
        (_, Some("string"))
            if schema.as_object().is_some_and(|schema| schema.keys().all(|key| is_plain(key))) =>
        {
            String::new()
        }
        (_, _) => schema.to_string(),
    };
    match default {
        Some(default) => format!("({words}; {default} if nobody answers)").replace("(; ", "("),
        None if words.is_empty() => words,
        None => format!("({words})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use mainstay_model::Principal;

    fn shown(schema: Value, default: Option<Value>) -> String {
        let now: Timestamp = "2026-02-13T13:30:20Z".parse().unwrap();
        let ask = AskView {
            ask: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            short_id: "a1b2c3d4".to_owned(),
            session: "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap(),
            session_name: "demo".to_owned(),
            question: Question { schema, default, ..Question::text("Deploy?") },
            votes: Vec::new(),
            source: Source::Client { principal: Principal::local(), name: "cli".to_owned() },
            job: None,
            command: None,
            raised_at: "2026-02-13T13:29:20Z".parse().unwrap(),
            deadline: Some("2026-02-13T13:31:20Z".parse().unwrap()),
        };
        ask_text(&ask, Paint::plain(), now)
    }

    #[test]
    fn what_several_must_answer_says_who_has() {
        let source = Source::Client { principal: Principal::new("ada").unwrap(), name: "cli".to_owned() };
        let vote = Vote { source, value: json!("green"), channel: None, lease: None };
        let question = Question { quorum: Some(2), ..Question::text("Which?") };
        insta::assert_snapshot!(votes_text(&question, &[]), @"2 must give the same answer");
        insta::assert_snapshot!(votes_text(&question, &[vote]), @r#"2 must give the same answer; ada answered "green""#);
    }

    #[test]
    fn an_ask_says_what_it_wants() {
        insta::assert_snapshot!(shown(json!({ "type": "boolean" }), Some(json!(false))), @"
        a1b2c3d4 Deploy? (yes or no; false if nobody answers)
            asked by cli in demo, 1 min ago, 60 s left
        ");
        insta::assert_snapshot!(shown(json!({ "enum": ["blue", 2] }), None), @"
        a1b2c3d4 Deploy? (blue, 2)
            asked by cli in demo, 1 min ago, 60 s left
        ");
        insta::assert_snapshot!(shown(json!({ "type": "string" }), Some(json!("x"))), @r#"
        a1b2c3d4 Deploy? ("x" if nobody answers)
            asked by cli in demo, 1 min ago, 60 s left
        "#);
        insta::assert_snapshot!(shown(json!({ "type": "integer", "minimum": 1 }), None), @r#"
        a1b2c3d4 Deploy? ({"minimum":1,"type":"integer"})
            asked by cli in demo, 1 min ago, 60 s left
        "#);
    }
}
