//! The page, as its HTML and its streams say it.

use mainstay_gateway::{Kinds, KnownKind, Missing};
use mainstay_model::{Limits, SessionKind};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Home, answer};

/// A stream of the page, as it comes.
struct Feed {
    response: reqwest::Response,
    read: String,
}

impl Feed {
    async fn open(home: &Home, path: &str, last: Option<&str>) -> Self {
        let mut request = home.get(path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, read: String::new() }
    }

    /// Reads until something was said, and how far the page is then: all of it.
    async fn until(&mut self, said: &str) -> String {
        loop {
            if let Some((_, after)) = self.read.split_once(said)
                && let Some((_, after)) = after.split_once("\nid: ")
                && after.contains('\n')
            {
                return std::mem::take(&mut self.read);
            }
            let piece = self
                .response
                .chunk()
                .await
                .unwrap()
                .unwrap_or_else(|| panic!("{said} is not said: {}", self.read));
            self.read.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }
}

fn last_id(read: &str) -> &str {
    read.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap()
}

async fn page(home: &Home, path: &str) -> (StatusCode, String) {
    let response = home.get(path).send().await.unwrap();
    let headers = response.headers();
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(policy.ends_with("base-uri 'none'; form-action 'self'; frame-ancestors 'none'"), "{policy}");
    assert_eq!(
        (&headers["x-content-type-options"], &headers["referrer-policy"]),
        (&"nosniff".parse().unwrap(), &"no-referrer".parse().unwrap())
    );
    assert_eq!(headers["cache-control"], "no-store");
    (response.status(), response.text().await.unwrap())
}

#[tokio::test]
async fn a_session_is_a_page_with_its_cells_and_what_may_be_done() {
    let home = Home::new().await;
    let session = home.session("<demo>").await;
    answer(home.post(&format!("/sessions/{session}/exec"), &json!({ "code": "printfn \"<i>\"" }))).await;
    let (status, html) = page(&home, &format!("/ui/sessions/{session}")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(html.contains("&lt;demo&gt;") && html.contains("&lt;i&gt;") && !html.contains("<i>"), "{html}");
    assert!(html.contains("data-do=\"reset\"") && !html.contains("data-do=\"cancel\""), "{html}");
    let (_, list) = page(&home, "/ui").await;
    assert!(list.contains(&format!("/ui/sessions/{session}")), "{list}");
    for path in ["/ui/health", "/ui/search?q=printfn", &format!("/ui/sessions/{session}/lineage")] {
        let (status, html) = page(&home, path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(!html.contains("<demo>"), "{path}");
    }
}

#[tokio::test]
async fn sessions_of_one_name_are_told_apart_in_the_list() {
    let home = Home::new().await;
    let elsewhere = std::env::temp_dir().display().to_string();
    let sessions =
        [home.session("main").await, home.session_in(&elsewhere, "main").await, home.session("other").await];
    let (_, list) = page(&home, "/ui").await;
    let ids = sessions.map(|session| format!("<span>{}</span>", &session[session.len() - 8..]));
    assert_eq!(ids.map(|id| list.contains(&id)), [true, true, false], "{list}");
}

#[tokio::test]
async fn who_may_not_see_a_session_finds_none() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    for path in ["", "/stream", "/stream?after=1", "/older?before=9", "/lineage", "/entries?seq=1"] {
        let path = format!("/ui/sessions/{session}{path}");
        let response = home.request(Method::GET, &path).bearer_auth("hers").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let check = home.request(Method::POST, &format!("/ui/sessions/{session}/check")).bearer_auth("hers");
    let check =
        check.header("Content-Type", "application/json").body(r#"{"code": "1"}"#).send().await.unwrap();
    assert_eq!(check.status(), StatusCode::NOT_FOUND);
    let list =
        home.request(Method::GET, "/ui").bearer_auth("hers").send().await.unwrap().text().await.unwrap();
    assert!(!list.contains("demo"), "{list}");
    let health = home.request(Method::GET, "/ui/health").bearer_auth("hers").send().await.unwrap();
    assert_eq!(health.status(), StatusCode::FORBIDDEN);
    assert_eq!(home.request(Method::GET, "/ui").send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_happens_is_sent_as_it_happens_and_a_connection_goes_on_where_the_last_one_ended() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let path = format!("/ui/sessions/{session}/stream");
    let mut feed = Feed::open(&home, &path, None).await;
    let exec = format!("/sessions/{session}/exec");
    answer(home.post_async(&exec, &json!({ "code": "wait" }))).await;
    let read = feed.until("waiting").await;
    let read = if read.contains("data-do=\"cancel\"") {
        read
    } else {
        read + &feed.until("data-do=\"cancel\"").await
    };
    let last = last_id(&read).to_owned();
    drop(feed);
    answer(home.post(&format!("/sessions/{session}/cancel"), &json!({}))).await;
    answer(home.post(&exec, &json!({ "code": "printfn \"after\"" }))).await;
    // What went on is sent whole, what was over by then is not sent again.
    let read = Feed::open(&home, &path, Some(&last)).await.until("after\n").await;
    assert!(read.contains("waiting") && read.contains("cancelled by local · http"), "{read}");
    let read = Feed::open(&home, &path, Some(last_id(&read))).await.until("id=\"head\"").await;
    assert!(!read.contains("waiting") && !read.contains("after"), "{read}");
    // Of one that was deleted nothing comes any more.
    answer(
        home.request(Method::DELETE, &format!("/sessions/{session}"))
            .bearer_auth("secret")
            .header("Prefer", "wait=20"),
    )
    .await;
    let gone = home.get(&path).header("Last-Event-ID", "3").send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn older_cells_are_had_page_by_page() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    for number in 0..130 {
        answer(home.post(
            &format!("/sessions/{session}/exec"),
            &json!({ "code": format!("printfn \"no {number}.\"") }),
        ))
        .await;
    }
    let (_, html) = page(&home, &format!("/ui/sessions/{session}")).await;
    let shown = |html: &str| {
        (0..130).filter(|number| html.contains(&format!(">no {number}.\n<"))).collect::<Vec<_>>()
    };
    assert_eq!(shown(&html), (30..130).collect::<Vec<_>>());
    let older = html.split_once("/older?before=").unwrap().1.split_once('"').unwrap().0;
    let (_, read) = page(&home, &format!("/ui/sessions/{session}/older?before={older}")).await;
    assert_eq!(shown(&read.replace("\ndata: elements ", "\n")), (0..30).collect::<Vec<_>>());
    assert!(!read.contains("/older?before="), "{read}");
}

#[tokio::test]
async fn what_the_page_loads_is_kept_for_ever_under_its_hash() {
    let home = Home::new().await;
    let shell = home.request(Method::GET, "/ui").header("Accept", "text/html").send().await.unwrap();
    let html = shell.text().await.unwrap();
    let assets: Vec<&str> = html.split('"').filter(|text| text.starts_with("/ui/assets/")).collect();
    assert_eq!(assets.len(), 3, "{html}");
    let imported = ["live.js", "origin.js"].map(|name| assets[2].replace("page.js", name));
    for asset in assets.into_iter().chain(imported.iter().map(String::as_str)) {
        // Whoever was not let in yet loads them too.
        let response = home.request(Method::GET, asset).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers()["cache-control"].to_str().unwrap().contains("immutable"));
        let tag = response.headers()["etag"].clone();
        let again = home.get(asset).header("If-None-Match", tag).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }
    let unknown = home.get("/ui/assets/0000000000000000/page.css").send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_editor_is_told_what_is_wrong_and_what_could_stand_there() {
    let home = Home::new().await;
    let session = home.session("demo").await;
    let typed = json!({ "code": "<x>", "cursor": { "line": 1, "column": 3 } });
    let (_, problems) = answer(home.post(&format!("/ui/sessions/{session}/check"), &typed)).await;
    insta::assert_snapshot!(problems.as_str().unwrap(), @r#"<ul class="problems"><li class="error"><b>error</b> <span class="place" data-line="1" data-column="1">1:1</span> <span class="id">FS0039</span> <span class="message">The value or constructor '&lt;x&gt;' is not defined.</span></li></ul>"#);
    let (_, completions) = answer(home.post(&format!("/ui/sessions/{session}/complete"), &typed)).await;
    insta::assert_snapshot!(completions.as_str().unwrap(), @r#"<div role="option" id="completion-0" aria-selected="false" data-line="1" data-column="2"><span class="label">map0</span> <span class="kind">method</span> <span class="detail">('a -&gt; 'b) -&gt; 'a list -&gt; 'b list</span></div><div role="option" id="completion-1" aria-selected="false" data-line="1" data-column="2"><span class="label">map1</span> <span class="kind">method</span> <span class="detail">('a -&gt; 'b) -&gt; 'a list -&gt; 'b list</span></div>"#);
}

/// A kind of session that is known.
fn kind(kind: &str, name: &str, missing: Option<Missing>) -> KnownKind {
    let language = Some(kind.trim_end_matches('3').to_owned());
    KnownKind { kind: SessionKind::new(kind).unwrap(), name: name.to_owned(), language, missing, tools: None }
}

/// COBOL cannot start, bash is preferred to F#, and a folder has a kernel of its own.
fn kinds() -> Kinds {
    let missing = Missing {
        reason: "no <COBOL> was found".to_owned(),
        next_step: "Run `mainstay kernel install cobol`.".to_owned(),
    };
    Kinds::new(move |folder, _| {
        let own = folder.map(|folder| kind("own", &folder.display().to_string(), None));
        let all = [
            kind("cobol", "COBOL", Some(missing.clone())),
            kind("bash", "Bash", None),
            kind("fsharp3", "F# 3", None),
        ];
        all.into_iter().chain(own).collect()
    })
}

#[tokio::test]
async fn the_kinds_that_can_be_created_come_first_and_the_others_say_what_they_lack() {
    let home = Home::with_kinds(kinds()).await;
    let names = async |path: &str| {
        let (_, kinds) = answer(home.get(path)).await;
        let names = kinds.as_array().unwrap().iter().map(|kind| kind["kind"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("/kinds").await, ["bash", "fsharp3", "cobol"]);
    assert_eq!(names("/kinds?workingDirectory=/w").await, ["bash", "fsharp3", "own", "cobol"]);
    let (_, kinds) = answer(home.get("/kinds")).await;
    let missing =
        json!({ "reason": "no <COBOL> was found", "nextStep": "Run `mainstay kernel install cobol`." });
    assert_eq!(kinds[2]["missing"], missing);

    let (_, html) = page(&home, "/ui").await;
    let choices = |html: &str| {
        let values = html.split("<option value=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0);
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(choices(&html), ["bash", "fsharp3"]);
    let why = "<b>COBOL</b>: no &lt;COBOL&gt; was found. Run <code>mainstay kernel install cobol</code>.";
    assert!(html.contains(why), "{html}");
    let (_, patch) = page(&home, "/ui/kinds?folder=/w").await;
    assert_eq!(choices(&patch), ["bash", "fsharp3", "own"]);

    // A session of it makes a kind the first, also under the name of its language.
    let create = json!({ "workingDirectory": home.folder(), "kind": "fsharp" });
    assert_eq!(answer(home.post("/sessions", &create)).await.0, StatusCode::CREATED);
    assert_eq!(names("/kinds").await, ["fsharp3", "bash", "cobol"]);
    assert_eq!(choices(&page(&home, "/ui").await.1), ["fsharp3", "bash"]);
}

#[tokio::test]
async fn a_result_stands_with_its_call_also_where_that_is_on_the_page_before() {
    let home = Home::new().await;
    let mut lines = Vec::new();
    let mut say = |kind: &str, message: serde_json::Value| {
        let (at, before) = (lines.len(), lines.len().checked_sub(1).map(|last| format!("u{last}")));
        let mut line = json!({ "type": kind, "uuid": format!("u{at}"), "parentUuid": before, "sessionId": "s", "cwd": "/w",
            "timestamp": "2026-02-13T13:29:20Z" });
        line.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        lines.push(line.to_string());
    };
    let call = json!({ "type": "tool_use", "id": "c1", "name": "Read", "input": { "path": "a" } });
    let result = json!({ "type": "tool_result", "tool_use_id": "c1", "content": "what stands there" });
    say("user", json!({ "message": { "content": "look" } }));
    say("assistant", json!({ "message": { "id": "m1", "content": [call] } }));
    say("system", json!({ "content": "a notice" }));
    say("user", json!({ "message": { "content": [result] } }));
    for number in 0..99 {
        say("user", json!({ "message": { "content": format!("more {number}") } }));
    }
    let file = lines.join("\n");
    let (_, made) = answer(home.post("/import", &json!({ "file": file, "name": "talk" }))).await;
    let id = made["session"]["session"].as_str().unwrap();
    let (_, newest) = page(&home, &format!("/ui/sessions/{id}")).await;
    assert!(newest.contains("a notice") && newest.contains("more 98"), "{newest}");
    assert!(!newest.contains("what stands there"), "the call is on the page before");
    let (_, older) = newest.split_once("/older?before=").unwrap();
    let before = older.split_once('"').unwrap().0;
    let (_, older) = page(&home, &format!("/ui/sessions/{id}/older?before={before}")).await;
    assert!(older.contains("what stands there") && !older.contains("a notice"), "{older}");
}

#[tokio::test]
async fn a_reset_is_asked_about_where_something_would_be_lost_also_of_a_worker_that_does_not_answer() {
    let home = Home::with(Limits { query_ms: 3_600_000, ..Limits::default() }).await;
    let session = home.session("demo").await;
    let question = async |how: &str| {
        let response = home.get(&format!("/ui/sessions/{session}/reset?how={how}")).send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };
    assert_eq!(question("reset").await, (StatusCode::NO_CONTENT, String::new()));
    assert_eq!(question("other").await.0, StatusCode::BAD_REQUEST);
    answer(home.post("/exec", &json!({ "code": "let a = 3" }))).await;
    let (_, asked) = question("reset").await;
    assert!(asked.contains("This drops what this session has defined, with 1 value (rex)."), "{asked}");
    answer(home.post("/exec", &json!({ "code": "let stuck = 3" }))).await;
    for (how, says) in [("hardReset", "a new worker takes the place"), ("rebuild", "Where the build fails")] {
        let (_, asked) = question(how).await;
        assert!(
            asked.contains("This drops what this session has defined.") && asked.contains(says),
            "{asked}"
        );
    }
}
