//! Streams: state on connection, then changes; resumed without a gap and without anything twice.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Home, Stream, answer};

#[tokio::test]
async fn an_eval_is_told_from_its_beginning_to_its_end() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut stream = home.stream("/eval").await;
    assert_eq!(stream.next().await.unwrap()["eval"]["state"], "idle");
    let exec = json!({ "code": "printfn \"hi\"", "commandId": "mine" });
    answer(home.post("/exec", &exec).header("Mainstay-Client", "nvim")).await;
    let told = stream.until(|signals| signals.get("evalResult").is_some()).await;
    let [begun, printed, ended] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        (&begun["eval"]["state"], &begun["eval"]["code"], &begun["eval"]["by"], &begun["eval"]["commandId"]),
        (&json!("running"), &json!("printfn \"hi\""), &json!("nvim"), &json!("mine"))
    );
    assert_eq!(
        (&printed["evalOutput"]["stream"], &printed["evalOutput"]["text"]),
        (&json!("stdout"), &json!("hi\n"))
    );
    assert_eq!((&ended["eval"]["state"], &ended["evalResult"]["success"]), (&json!("ended"), &json!(true)));

    // Who comes later is told the last one, from its beginning.
    let mut late = home.stream("/eval").await;
    let again = late.until(|signals| signals.get("evalResult").is_some()).await;
    assert_eq!(again[1..], told, "behind the first, which says that nothing ran before");
}

#[tokio::test]
async fn a_stream_goes_on_behind_the_last_event_that_was_heard() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let events = async |after: Option<&str>| {
        let mut request = home.get(&format!("/sessions/{session}/events"));
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        Stream::of(request).await
    };
    let mut first = events(None).await;
    let mut seqs: Vec<u64> = Vec::new();
    let seq = |signals: &Value| signals["event"]["seq"].as_u64().unwrap();
    seqs.extend(first.until(|signals| signals["event"]["kind"] == "warmUpCompleted").await.iter().map(seq));
    let id = first.id.clone().unwrap();
    drop(first);
    for _ in 0..3 {
        answer(home.post("/exec", &json!({ "code": "1 + 1" }))).await;
    }
    let mut second = events(Some(&id)).await;
    while seqs.len() < seqs.last().map_or(0, |last| *last as usize) || *seqs.last().unwrap() < 9 {
        seqs.push(seq(&second.next().await.unwrap()));
    }
    let all: Vec<u64> = (1..=*seqs.last().unwrap()).collect();
    assert_eq!(seqs, all);
    for wrong in ["x", "-1", "999999", "1 2"] {
        let (status, problem) =
            answer(home.get(&format!("/sessions/{session}/events")).header("Last-Event-ID", wrong)).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_argument")),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn the_events_of_all_sessions_are_told_in_the_order_of_the_log() {
    let home = Home::new().await;
    let (first, second) = (home.session("first").await, home.session("second").await);
    let mut stream = home.stream("/events?session=*&kinds=sessionCreated,sessionRenamed").await;
    let told = [stream.next().await.unwrap(), stream.next().await.unwrap()];
    assert_eq!([&told[0]["event"]["session"], &told[1]["event"]["session"]], [&json!(first), &json!(second)]);
    answer(home.post("/sessions/first/rename", &json!({ "name": "renamed" }))).await;
    let renamed = stream.next().await.unwrap();
    assert_eq!(renamed["event"]["body"]["name"], "renamed", "{renamed}");
    let (status, _) = answer(home.get("/events?kinds=nonsense")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_status_tells_what_may_be_done_now() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut stream = home.stream("/status").await;
    let ready = stream.next().await.unwrap();
    assert_eq!((&ready["status"]["state"], &ready["status"]["evalCount"]), (&json!("Ready"), &json!(0)));
    let actions = |signals: &Value| -> Vec<String> {
        signals["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|action| action.as_str().unwrap().to_owned())
            .collect()
    };
    assert!(actions(&ready).contains(&"eval".to_owned()) && !actions(&ready).contains(&"cancel".to_owned()));
    answer(home.post_async("/exec", &json!({ "code": "wait" }))).await;
    let busy = stream.until(|signals| signals["status"]["state"] == "Evaluating").await.pop().unwrap();
    assert!(actions(&busy).contains(&"cancel".to_owned()), "{busy}");
    let (status, problem) = answer(home.post("/reset", &json!({}))).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("not_offered")));
    assert_eq!(problem["offered"], busy["actions"], "what is offered is what is told");
    answer(home.post("/cancel", &json!({}))).await;
    let ready = stream.until(|signals| signals["status"]["state"] == "Ready").await.pop().unwrap();
    assert_eq!(ready["status"]["evalCount"], 1);
}

#[tokio::test]
async fn a_slow_client_misses_nothing_and_holds_nobody_up() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut slow = home.stream("/eval").await;
    let flood = json!({ "code": "flood 900000" });
    for _ in 0..4 {
        let (_, eval) = answer(home.post("/exec", &flood)).await;
        assert_eq!(eval["success"], true, "{eval}");
    }
    let mut printed = 0;
    for _ in 0..4 {
        let told = slow.until(|signals| signals.get("evalResult").is_some()).await;
        printed += told
            .iter()
            .filter_map(|signals| signals["evalOutput"]["text"].as_str())
            .map(str::len)
            .sum::<usize>();
    }
    assert_eq!(printed, 4 * ("x".repeat(900_000) + " end").len());
}

#[tokio::test]
async fn a_stream_of_a_session_ends_with_it() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut stream = home.stream("/events").await;
    home.request(reqwest::Method::DELETE, "/sessions/demo").bearer_auth("secret").send().await.unwrap();
    stream.until(|signals| signals["event"]["kind"] == "sessionDeleted").await;
    assert_eq!(stream.next().await, None);
}
