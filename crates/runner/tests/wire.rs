//! What goes between the engine and a runner can be written to a stream and read back, so that a runner may live in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;

use mainstay_model::{Error, JobId};
use mainstay_model::{Principal, SessionId, SessionKind, TextPosition};
use mainstay_runner::query::{
    Completeness, KernelAnswer, KernelQuery, Member, Members, Review, Symbol, Symbols, Tests,
};
use mainstay_runner::{Conversation, Environment, RunnerSpec, Submission};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

fn is_read_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *value, "{text}");
}

#[test]
fn a_start_is_read_back_as_it_was() {
    let environment: Environment = [("PATH".to_owned(), "/usr/bin".to_owned())].into_iter().collect();
    is_read_back(&RunnerSpec {
        session: SessionId::from_uuid(Uuid::from_u128(1)),
        kind: SessionKind::fsharp(),
        owner: Principal::local(),
        working_directory: PathBuf::from("/home/ada/demo"),
        project: Some(PathBuf::from("/home/ada/demo/demo.fsproj")),
        arguments: vec!["--langversion:preview".to_owned()],
        environment,
        conversation: Some(Conversation { name: "demo".to_owned(), ..Conversation::default() }),
        gathered: Some(json!({ "assemblies": ["/tmp/demo.dll"] })),
    });
}

#[test]
fn each_question_and_answer_is_read_back_as_it_was() {
    let cursor = TextPosition { line: 1, column: 3 };
    let (text, code) = ("Map".to_owned(), "1 +".to_owned());
    for query in [
        KernelQuery::Members { name: text.clone() },
        KernelQuery::Symbols { text: text.clone(), limit: 50 },
        KernelQuery::Values,
        KernelQuery::Tests { pattern: Some(text.clone()), category: None },
        KernelQuery::Review { code: code.clone() },
        KernelQuery::Completeness { code: code.clone() },
        KernelQuery::Inspection { code: code.clone(), cursor, in_detail: true },
        KernelQuery::Comms { target: None },
    ] {
        is_read_back(&query);
    }
    let member =
        Member { name: text.clone(), kind: "method".to_owned(), signature: None, documentation: None };
    let symbol = Symbol {
        name: text.clone(),
        full_name: text.clone(),
        assembly: None,
        kind: "module".to_owned(),
        signature: None,
        documentation: None,
    };
    for answer in [
        KernelAnswer::Members(Members { members: vec![member], ..Members::default() }),
        KernelAnswer::Symbols(Symbols { items: vec![symbol], found: 7 }),
        KernelAnswer::Values(Vec::new()),
        KernelAnswer::Tests(Tests::default()),
        KernelAnswer::Review(Review::default()),
        KernelAnswer::Completeness(Completeness::Incomplete { indent: "  ".to_owned() }),
        KernelAnswer::Inspection(None),
        KernelAnswer::Comms(BTreeMap::new()),
    ] {
        is_read_back(&answer);
    }
}

#[test]
fn code_and_answers_of_people_are_read_back_as_they_were() {
    is_read_back(&Submission {
        job: JobId::from_uuid(Uuid::from_u128(2)),
        code: "1 + 1".to_owned(),
        file: Some("/home/ada/a.fsx".to_owned()),
        command_line: None,
        is_withheld: true,
    });
    is_read_back(&Ok::<_, Error>(json!("yes")));
    is_read_back(&Err::<serde_json::Value, _>(Error::Unauthorized));
}
