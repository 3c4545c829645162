//! `let!`, `use!` and `do!` outside of any computation, in a real worker.

use mainstay_model::JobEnding;

use super::{Ran, Session, soon};

impl Ran {
    fn bound(&self) -> Vec<(&str, &str, &str)> {
        let bindings = self.report.result.bindings.iter();
        bindings
            .map(|one| (one.name.as_str(), one.value_type.as_str(), one.value.as_deref().unwrap_or_default()))
            .collect()
    }

    fn places(&self) -> Vec<(&str, u32, u32)> {
        let diagnostics = self.report.result.diagnostics.iter();
        diagnostics.map(|one| (one.code.as_str(), one.start.line, one.start.column)).collect()
    }
}

const OPENS: &str = "open System.Threading.Tasks\n";

/// One session for all of it: none of these depends on what the others define.
#[tokio::test]
async fn what_is_waited_for_is_bound_or_said_to_be_none_or_raises() {
    let mut session = Session::start().await;
    what_is_waited_for_is_bound(&mut session).await;
    code_keeps_its_places(&mut session).await;
    what_is_nothing_to_wait_for_is_said_to_be_none(&mut session).await;
    words_within_brackets_strings_and_comments_are_left_alone(&mut session).await;
    what_fails_while_it_is_waited_for_is_what_the_code_raises(&mut session).await;
}

async fn what_is_waited_for_is_bound(session: &mut Session) {
    let ran = session
        .eval(&format!(
            "{OPENS}let! one = async {{ return 1 }}
let! two =
    // It takes a while.
    let three = 3
    Task.FromResult(three - one)
let! (text: string, _) = Task.Run(fun () ->
                             printfn \"works\"
                             \"text\", 2.0)
do! Task.Delay 1
let sum = one + two
do! async {{
    let! inner = async {{ return 4 }}
    do! Async.Sleep 1
    printfn \"inner %d\" inner }}
use! stream = Task.FromResult(new System.IO.MemoryStream())
let last = stream.CanRead"
        ))
        .await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);
    assert_eq!(ran.stdout, "works\ninner 4\n");
    let bound = ran.bound();
    assert_eq!(
        bound[..4],
        [("one", "int", "1"), ("two", "int", "2"), ("text", "string", "\"text\""), ("sum", "int", "3")]
    );
    assert_eq!(bound.last(), Some(&("last", "bool", "true")));
    assert!(ran.report.changes_state);
}

async fn code_keeps_its_places(session: &mut Session) {
    let code = "let! x = async {\n           return missing }\nlet y = alsoMissing";
    let places = [("FS0039", 2, 19), ("FS0039", 3, 9)];
    assert_eq!(session.eval(&format!("let before = 1;;\n\n{code}")).await.places()[..1], [("FS0039", 4, 19)]);
    let ran = session.eval(code).await;
    assert_eq!(ran.places()[..1], places[..1]);
    let kernel = session.worker.runner.kernel().unwrap();
    for file in [None, Some("/a.fsx".to_owned())] {
        let checked = soon(kernel.check(code.to_owned(), file)).await.unwrap();
        let found: Vec<_> =
            checked.iter().map(|one| (one.code.as_str(), one.start.line, one.start.column)).collect();
        assert_eq!(found, places);
    }
}

async fn what_is_nothing_to_wait_for_is_said_to_be_none(session: &mut Session) {
    let ran = session.eval("let! x = 5").await;
    assert_eq!(ran.report.ending, JobEnding::Rejected);
    let [diagnostic] = ran.report.result.diagnostics.as_slice() else { panic!("{:?}", ran.places()) };
    insta::assert_snapshot!(diagnostic.message, @"What `let!`, `use!` and `do!` wait for here is an Async, a Task or a ValueTask, and this is of type 'int'.");
}

async fn words_within_brackets_strings_and_comments_are_left_alone(session: &mut Session) {
    let ran = session
        .eval("(*\nlet! no = 1\n*)\nlet text = \"\nlet! x = 1\ndo! y\"\nlet work = async {\n    let! a = async { return 5 }\n    return a }\nlet! five = work")
        .await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{:?}", ran.report.result.diagnostics);
    assert_eq!(ran.bound()[0].2, "\"\nlet! x = 1\ndo! y\"");
    assert_eq!(session.value("five").await, "5");
}

async fn what_fails_while_it_is_waited_for_is_what_the_code_raises(session: &mut Session) {
    let ran = session.eval("let! x = async { return failwith<int> \"no\" }").await;
    let JobEnding::Raised(raised) = &ran.report.ending else { panic!("{:?}", ran.report.ending) };
    assert_eq!((raised.kind.as_str(), raised.message.as_str()), ("System.Exception", "no"));
}

#[tokio::test]
async fn an_interrupt_ends_the_wait_and_the_work() {
    let mut session = Session::start().await;
    let job = session
        .submit(
            "let mutable ended = false
let! x = async {
    use! __ = Async.OnCancel(fun () -> ended <- true)
    printfn \"waits\"
    do! Async.Sleep 600000
    return 1 }",
        )
        .await;
    assert!(session.prints("waits").await);
    session.worker.runner.process().interrupt().await;
    let ran = session.end_of(job).await;
    assert!(matches!(ran.report.ending, JobEnding::Interrupted { .. }), "{:?}", ran.report.ending);
    assert_eq!(session.value("1 + 1").await, "2");
}
