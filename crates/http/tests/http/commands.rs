//! Commands: accepted at once, or answered once they have ended; carried out once.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Home, answer};

#[tokio::test]
async fn a_command_is_accepted_and_its_outcome_is_found_by_its_id() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let response = home.post_async("/exec", &json!({ "code": "1 + 1" })).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    let accepted: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(accepted["session"], session);
    assert_eq!(place, format!("/commands/{}", accepted["commandId"].as_str().unwrap()));
    let mut stream = home.stream(&format!("/eval?after={}", accepted["seq"])).await;
    stream.until(|signals| signals.get("evalResult").is_some()).await;
    let (_, command) = answer(home.get(&place)).await;
    assert_eq!(
        (&command["state"], &command["outcome"]["response"]["value"]),
        (&json!("ended"), &json!("2")),
        "{command}"
    );
}

#[tokio::test]
async fn who_prefers_to_wait_is_told_what_came_of_it() {
    let home = Home::new().await;
    home.session("demo").await;
    let response = home.post("/exec", &json!({ "code": "1 + 1" })).send().await.unwrap();
    assert_eq!(response.headers()["preference-applied"], "wait");
    assert_eq!(response.status(), StatusCode::OK);
    let eval: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!((&eval["success"], &eval["value"]), (&json!(true), &json!("2")));
    let (_, failed) = answer(home.post("/exec", &json!({ "code": "failwith \"no\"" }))).await;
    assert_eq!(
        (&failed["success"], &failed["ending"]),
        (&json!(false), &json!("raised")),
        "a failure is told as one"
    );
    // What does not end in time goes on.
    let slow = home.post_async("/exec", &json!({ "code": "wait" })).header("Prefer", "wait=0");
    assert_eq!(answer(slow).await.0, StatusCode::ACCEPTED);
    let (status, _) = answer(home.post("/cancel", &json!({}))).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_command_with_a_key_is_carried_out_once() {
    let home = Home::new().await;
    home.session("demo").await;
    let keyed_at = |path: &str, code: &str| {
        home.post(path, &json!({ "code": code })).header("Idempotency-Key", "\"once\"")
    };
    let keyed = |code: &str| keyed_at("/exec?session=demo", code);
    let (_, first) = answer(keyed("let a = 3")).await;
    let (_, second) = answer(keyed("let a = 3")).await;
    assert_eq!((&second["seq"], &second["replayed"]), (&first["seq"], &json!(true)));
    let (status, problem) = answer(keyed("let b = 3")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("key_conflict")));
    let (status, problem) = answer(keyed_at("/exec", "let a = 3")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "the most recent may be another the next time: {problem}");
    let create = json!({ "workingDirectory": home.folder(), "name": "keyed" });
    let create = || home.post("/sessions", &create).header("Idempotency-Key", "k");
    assert_eq!(answer(create()).await.1["session"], answer(create()).await.1["session"]);
    assert_eq!(answer(home.get("/sessions")).await.1.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_session_is_the_one_that_is_named_or_the_most_recent() {
    let home = Home::new().await;
    let (first, second) = (home.session("first").await, home.session("second").await);
    for (path, wanted) in [
        ("/exec".to_owned(), &second),
        ("/exec?session=first".to_owned(), &first),
        (format!("/sessions/{second}/exec"), &second),
        ("/sessions/first/exec".to_owned(), &first),
    ] {
        let (_, eval) = answer(home.post(&path, &json!({ "code": "1 + 1" }))).await;
        assert_eq!(eval["session"], **wanted, "{path}");
    }
    let (status, problem) = answer(home.get("/sessions/third")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("session_not_found")));
}

#[tokio::test]
async fn a_session_is_forked_renamed_reset_put_to_rest_and_deleted() {
    let home = Home::new().await;
    home.session("demo").await;
    answer(home.post("/exec", &json!({ "code": "let a = 3" }))).await;
    let (status, fork) = answer(home.post("/sessions/demo/fork", &json!({ "name": "branch" }))).await;
    assert_eq!(
        (status, &fork["name"], &fork["state"]),
        (StatusCode::CREATED, &json!("branch"), &json!("Ready"))
    );
    let names = async |session: &str| {
        answer(home.post(&format!("/sessions/{session}/exec"), &json!({ "code": "names" }))).await.1["value"]
            .clone()
    };
    assert_eq!(names("branch").await, "\"a\"");
    for (path, body) in [
        ("/sessions/branch/rename", json!({ "name": "other" })),
        ("/sessions/other/reset", json!({})),
        ("/sessions/demo/stop", json!({ "commandId": "stop-it" })),
    ] {
        let (status, ended) = answer(home.post(path, &body)).await;
        assert_eq!((status, &ended["state"]), (StatusCode::OK, &json!("ended")), "{path}: {ended}");
    }
    assert_eq!(names("other").await, "\"\"");
    let (_, entries) = answer(home.get("/sessions/other/entries")).await;
    assert_eq!(entries[0]["entry"]["content"], "let a = 3", "{entries}");
    let (_, found) = answer(home.get("/search?q=names")).await;
    assert_eq!(found.as_array().unwrap().len(), 2, "{found}");
    let (_, lineage) = answer(home.get("/sessions/other/lineage")).await;
    assert_eq!(lineage.as_array().unwrap().len(), 2);
    let delete = home.request(Method::DELETE, "/sessions/other").bearer_auth("secret");
    assert_eq!(answer(delete).await.0, StatusCode::ACCEPTED);
    assert_eq!(answer(home.get("/sessions/other")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn asks_are_listed_and_answered() {
    let home = Home::new().await;
    home.session("demo").await;
    let (_, accepted) = answer(home.post_async("/exec", &json!({ "code": "stdin.ReadLine()" }))).await;
    let mut events = home.stream(&format!("/events?after={}&kinds=askRaised", accepted["seq"])).await;
    events.next().await.unwrap();
    let (_, asks) = answer(home.get("/asks")).await;
    let ask = asks[0]["ask"].as_str().unwrap();
    let said = json!({ "value": "hello", "commandId": "said" });
    let (status, _) = answer(home.post(&format!("/asks/{ask}"), &said)).await;
    assert_eq!(status, StatusCode::OK);
    let mut eval = home.stream(&format!("/eval?after={}", accepted["seq"])).await;
    let told = eval.until(|signals| signals.get("evalResult").is_some()).await;
    assert_eq!(told.last().unwrap()["evalResult"]["result"], "\"hello\"", "{told:?}");
    let (status, again) = answer(home.post(&format!("/asks/{ask}"), &said)).await;
    assert_eq!(status, StatusCode::OK, "sent again, it is answered as the first time: {again}");
    let (status, problem) = answer(home.post(&format!("/asks/{ask}"), &json!({ "value": "again" }))).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("ask_not_pending")));
}

#[tokio::test]
async fn a_script_is_loaded_by_its_path() {
    let home = Home::new().await;
    home.session("demo").await;
    let file = format!("{}/script.fsx", home.folder());
    std::fs::write(&file, "1 + 1").unwrap();
    let (_, eval) = answer(home.post("/load", &json!({ "file": file }))).await;
    assert_eq!(eval["value"], "2", "{eval}");
    for wrong in ["script.fsx", "/nowhere/script.fsx", "/"] {
        let (status, problem) = answer(home.post("/load", &json!({ "file": wrong }))).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_argument")),
            "{problem}"
        );
    }
}

#[tokio::test]
async fn code_is_checked_and_completed_where_it_was_asked_and_for_who_listens() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut diagnostics = home.stream("/diagnostics").await;
    let mut completions = home.stream("/completions").await;
    assert_eq!(diagnostics.next().await.unwrap(), json!({ "diagnostics": {} }));
    assert_eq!(completions.next().await.unwrap(), json!({ "completions": null }));
    let check = json!({ "code": "unused", "file": "/tmp/a.fsx" });
    let (status, checked) = answer(home.post("/diagnostics", &check)).await;
    assert_eq!(
        (status, checked["diagnostics"].as_array().map(Vec::len)),
        (StatusCode::OK, Some(2)),
        "{checked}"
    );
    let told = diagnostics.next().await.unwrap();
    assert_eq!(told["diagnostics"]["/tmp/a.fsx"], checked["diagnostics"]);
    let late = home.stream("/diagnostics").await.next().await.unwrap();
    assert_eq!(late, told, "who comes later is told what there is");
    let (status, accepted) =
        answer(home.post_async("/completions", &json!({ "code": "na", "commandId": "c" }))).await;
    assert_eq!((status, &accepted["commandId"]), (StatusCode::ACCEPTED, &json!("c")));
    let told = completions.next().await.unwrap();
    assert_eq!(told["completions"]["commandId"], "c", "{told}");
    answer(home.post("/reset", &json!({}))).await;
    let cleared = diagnostics.next().await.unwrap();
    assert_eq!(cleared, json!({ "diagnostics": { "/tmp/a.fsx": null } }));
}

#[tokio::test]
async fn the_daemon_ends_when_it_is_asked_to_and_so_do_its_streams() {
    let home = Home::new().await;
    home.session("demo").await;
    let mut status = home.stream("/status").await;
    status.next().await.unwrap();
    assert_eq!(answer(home.post("/shutdown", &json!({}))).await.0, StatusCode::ACCEPTED);
    home.daemon.stop.cancelled().await;
    home.daemon.shut_down().await;
    while status.next().await.is_some() {}
}

#[tokio::test]
async fn the_daemon_is_measured() {
    let home = Home::new().await;
    home.session("demo").await;
    answer(home.post("/exec", &json!({ "code": "1 + 1" }))).await;
    answer(home.post("/exec", &json!({ "code": "failwith \"x\"" }))).await;
    let (status, told) = answer(home.get("/metrics")).await;
    assert_eq!(status, StatusCode::OK);
    let told = told.as_str().unwrap();
    for line in [
        "mainstay_jobs_total{kind=\"fsharp\",ending=\"completed\"} 1",
        "mainstay_jobs_total{kind=\"fsharp\",ending=\"failed\"} 1",
        "mainstay_job_seconds_count{kind=\"fsharp\"} 2",
        "mainstay_http_requests_total{method=\"POST\",path=\"/exec\",status=\"200\"} 2",
        "mainstay_live_sessions 1",
        "# TYPE mainstay_commit_seconds histogram",
    ] {
        assert!(told.lines().any(|there| there == line), "{line} is not in\n{told}");
    }
    let hers = home.request(Method::GET, "/metrics").bearer_auth("hers");
    assert_eq!(answer(hers).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn what_is_sent_again_is_answered_at_once_also_while_it_runs() {
    let home = Home::new().await;
    home.session("first").await;
    let exec = json!({ "code": "wait", "commandId": "same" });
    let (_, first) = answer(home.post_async("/exec", &exec)).await;
    home.session("second").await;
    let (status, again) = answer(home.post_async("/exec", &exec)).await;
    assert_eq!(
        (status, &again),
        (StatusCode::ACCEPTED, &first),
        "where it was sent, and behind the same event"
    );
    answer(home.post("/cancel?session=first", &json!({}))).await;

    // A merge under a key runs its inputs once.
    answer(home.post("/exec?session=first", &json!({ "code": "let a = 3" }))).await;
    let (_, entries) = answer(home.get("/sessions/first/entries")).await;
    let count = entries.as_array().unwrap().len() as u64;
    let merge = json!({ "from": "first", "entries": [[count - 2, count]] });
    let merge = || home.post("/merge?session=second", &merge).header("Idempotency-Key", "m");
    let (_, merged) = answer(merge()).await;
    assert_eq!(merged["success"], true, "{merged}");
    assert_eq!(answer(merge()).await.1["ran"][0]["eval"]["seq"], merged["ran"][0]["eval"]["seq"]);
    let (status, problem) = answer(home.post("/completions", &json!({ "code": "a", "line": 0 }))).await;
    assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_argument")));
}

#[tokio::test]
async fn what_a_session_has_is_read() {
    let home = Home::new().await;
    home.session("demo").await;
    let (_, members) = answer(home.get("/members?name=Dog")).await;
    assert_eq!((&members["bases"], &members["members"][0]["name"]), (&json!(["Animal"]), &json!("Name")));
    let (_, symbols) = answer(home.get("/sessions/demo/symbols?text=Dog&limit=1")).await;
    assert_eq!((&symbols["items"][0]["fullName"], &symbols["found"]), (&json!("Pets.Dog"), &json!(2)));
    let (_, values) = answer(home.get("/values")).await;
    assert_eq!(values[0]["name"], "rex");
    let (status, problem) = answer(home.get("/members")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("bad_request")));
}
