use super::*;
use crate::replay::DivergenceKind;
use crate::swap::SwapObstacle;
use crate::{Compaction, Message, Part, PartRole, Segment, Seq, WorkerExit};

fn words(body: &EventBody) -> String {
    body.describe().line(str::to_owned)
}

#[test]
fn a_cancelled_eval_says_how_much_of_it_is_kept() {
    let job = "019a0000-0000-7000-8000-000000000001".parse().unwrap();
    let cancelled = |ending, kept| words(&EventBody::EvalCancelled { job, ending, kept, grace_ms: None });
    assert_eq!(cancelled(CancelEnding::Yielded, None), "cancelled");
    assert_eq!(
        cancelled(CancelEnding::Yielded, Some(CompletedPart { bytes: 14, bindings: Vec::new() })),
        "cancelled; the first 14 bytes of its code had completed and are kept"
    );
    assert_eq!(cancelled(CancelEnding::Killed, None), "cancelled by killing the worker");
}

#[test]
fn a_worker_that_ended_says_when_it_is_replaced() {
    let ended = |attempt, restart_after_ms| {
        words(&EventBody::WorkerExited {
            exit: WorkerExit::Code(3),
            attempt,
            restart_after_ms,
            reason: None,
            blame: None,
        })
    };
    assert_eq!(ended(0, Some(0)), "the worker ended with exit code 3 (replaced at once)");
    assert_eq!(ended(1, Some(1500)), "the worker ended with exit code 3 (replaced in 1.5 s)");
    assert_eq!(ended(6, None), "the worker ended with exit code 3 (not replaced)");
}

#[test]
fn a_line_holds_only_so_many_divergences() {
    let ready = |count: u64| {
        words(&EventBody::WarmUpCompleted {
            kernel: "fsharp".to_owned(),
            runtime: "test".to_owned(),
            language: None,
            pid: Some(1),
            replayed: 9,
            diverged: (1..=count)
                .map(|seq| Divergence {
                    requested: Seq(seq),
                    session: None,
                    kind: DivergenceKind::Ending { error: None },
                })
                .collect(),
            startup: None,
            reload: None,
            restored: None,
            duration_ms: 1,
        })
    };
    assert_eq!(ready(1), "ready: fsharp, 9 replayed; #1 ended otherwise (1 ms)");
    assert!(ready(20).ends_with("; #20 ended otherwise (1 ms)"));
    assert!(ready(23).ends_with("; #20 ended otherwise; … and 3 more (1 ms)"));
}

#[test]
fn that_only_an_expression_gave_another_value_is_not_told() {
    let values = |names: &[&str]| Divergence {
        requested: Seq(7),
        session: None,
        kind: DivergenceKind::Values {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            now: Default::default(),
        },
    };
    assert_eq!(words_of_divergences(&[values(&["it"])]), "");
    assert_eq!(tone_of_rebuilt(&[values(&["it"])]), Tone::Good);
    let told = words_of_divergences(&[values(&["it"]), values(&["it", "now"])]);
    assert_eq!(told, "; #7 gave another `it`, `now`");
}

#[test]
fn what_was_saved_is_told_in_one_line_also_where_nothing_was_to_be_exchanged() {
    let swapped = |swap: Swap| words(&EventBody::SourcesSwapped(Box::new(swap)));
    let files = [("/shop/Cart.fs".to_owned(), String::new())];
    assert_eq!(
        swapped(Swap { files: files.clone().into(), ..Swap::default() }),
        "runs as saved: Cart.fs",
        "it was taken back"
    );
    let obstacle = SwapObstacle {
        file: "/shop/Cart.fs".to_owned(),
        code: "not_compiled".to_owned(),
        name: "Cart.fs".to_owned(),
        line: 3,
        reason: "This expression was expected to have type\n    'int'    \nbut has 'string'".to_owned(),
    };
    let refused = swapped(Swap { files: files.into(), obstacles: vec![obstacle], ..Swap::default() });
    let line = "saved, and not what runs: Cart.fs (Cart.fs:3): This expression was expected to have type 'int' but has 'string'";
    assert!(refused.starts_with(line), "{refused}");
}

#[test]
fn a_message_is_told_in_one_line_each_part_by_its_role() {
    let parts = vec![
        Part::text(PartRole::Assistant, "I look.\nNow."),
        Part::tool_call("c1", "read", &serde_json::json!({ "path": "a.txt" })),
    ];
    let message = Message { parts, ..Message::default() };
    assert_eq!(
        words(&EventBody::MessageAdded(Box::new(message))),
        "assistant: I look. Now. · toolCall read: {\"path\":\"a.txt\"}"
    );
    let session = "019a0000-0000-7000-8000-0000a1b2c3d4".parse().unwrap();
    let covers = vec![Segment::new(session, 2, 6)];
    let compaction = Compaction { covers, summary: "A file.".to_owned(), metadata: Default::default() };
    assert_eq!(words(&EventBody::TranscriptCompacted(Box::new(compaction))), "compacted 4 entries: A file.");
}
