//! Definitions that run together when a session is rebuilt: nothing that anybody can see differs from running each alone.

use mainstay_model::{Diagnostic, EvalResult};
use mainstay_runner::query::{KernelAnswer, KernelQuery};
use mainstay_runner::{Kernel, Upcoming};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::smoke::session_on;
use super::*;

/// What came of a cell.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) ending: JobEnding,
    result: EvalResult,
    changes_state: bool,
    stdout: String,
    stderr: String,
}

/// What a session has at last, as far as it can be asked.
#[derive(Debug, PartialEq)]
struct Rest {
    values: KernelAnswer,
    symbols: KernelAnswer,
    found: Vec<Diagnostic>,
}

impl Session {
    fn kernel(&self) -> &dyn Kernel {
        self.worker.runner.kernel().unwrap().as_ref()
    }

    async fn run(&mut self, job: JobId, code: &str, file: Option<&str>) -> Seen {
        let (code, file, command_line) = (code.to_owned(), file.map(str::to_owned), None);
        self.kernel().run(Submission { job, code, file, command_line, is_withheld: false }).await;
        let Ran { stdout, stderr, report } = self.end_of(job).await;
        let JobReport { ending, result, changes_state, .. } = report;
        Seen { ending, result, changes_state, stdout, stderr }
    }

    /// Runs cells, each of which the worker knows of ahead, together with those behind it, in batches of so many.
    pub(super) async fn replay(&mut self, cells: &[String], file: Option<&str>, batch: usize) -> Vec<Seen> {
        let mut seen = Vec::new();
        for batch in cells.chunks(batch) {
            let jobs: Vec<_> = batch.iter().map(|_| JobId::from_uuid(uuid::Uuid::now_v7())).collect();
            let upcoming = jobs.iter().zip(batch).map(|(job, code)| Upcoming {
                job: *job,
                code: code.clone(),
                file: file.map(str::to_owned),
            });
            self.kernel().expect(upcoming.collect()).await;
            for (job, code) in jobs.into_iter().zip(batch) {
                seen.push(self.run(job, code, file).await);
            }
        }
        seen
    }

    async fn run_each(&mut self, cells: &[String], file: Option<&str>) -> Vec<Seen> {
        let mut seen = Vec::new();
        for cell in cells {
            seen.push(self.run(JobId::from_uuid(uuid::Uuid::now_v7()), cell, file).await);
        }
        seen
    }

    async fn rest(&self) -> Rest {
        let ask = |query| soon(self.kernel().query(query));
        let symbols = KernelQuery::Symbols { text: "a".to_owned(), limit: 300 };
        let uses = "let used = [ string a0; string a1; string a2 ]\nf0 1, f1 1, { A0 = 1 }";
        Rest {
            values: ask(KernelQuery::Values).await.unwrap(),
            symbols: ask(symbols).await.unwrap(),
            found: soon(self.kernel().check(uses.to_owned(), None)).await.unwrap(),
        }
    }
}

/// What only running code tells of the session: which submission names stand in, and what frames say.
const PROBES: &[&str] = &[
    "a0, a1, a2",
    "try string (f0 3) with e -> e.StackTrace",
    "try string (f1 3) with e -> e.ToString()",
    "typeof<T0>.FullName, typeof<T1>.FullName",
    "<@ f0, a0 @>",
    "it",
    "({ A0 = 4 }).ToString()",
    "let last = 1",
    "System.Reflection.MethodBase.GetCurrentMethod().DeclaringType.FullName.Length > 0",
];

/// Where a session counts from: what it had run before is not the same in all of them.
async fn anchor_of(session: &mut Session) -> i64 {
    session.eval("type Anchor = { Anchored: int }").await;
    let name = session.value("typeof<Anchor>.FullName").await;
    name.trim_matches('"').strip_prefix("FSI_").unwrap().split('+').next().unwrap().parse().unwrap()
}

/// As text in which the numbers of submissions count from the anchor.
fn told(what: &impl std::fmt::Debug, anchor: i64) -> String {
    let text = format!("{what:?}");
    let mut parts = text.split("FSI_");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number: i64 = part[..part.len() - rest.len()].parse().unwrap_or_default();
        told.push_str(&format!("FSI_+{}{rest}", number - anchor));
    }
    told
}

async fn are_alike(
    alone: &mut Session,
    together: &mut Session,
    cells: &[String],
    file: Option<&str>,
    batch: usize,
) {
    let (here, there) = tokio::join!(anchor_of(alone), anchor_of(together));
    let expected = alone.run_each(cells, file).await;
    let seen = together.replay(cells, file, batch).await;
    for ((cell, seen), expected) in cells.iter().zip(seen).zip(expected) {
        assert_eq!(told(&seen, there), told(&expected, here), "{cell}\nof {cells:#?}");
    }
    assert_eq!(told(&together.rest().await, there), told(&alone.rest().await, here), "{cells:#?}");
    let probes: Vec<_> = PROBES.iter().map(|probe| (*probe).to_owned()).collect();
    let expected = alone.run_each(&probes, None).await;
    let seen = together.run_each(&probes, None).await;
    for ((probe, seen), expected) in probes.iter().zip(seen).zip(expected) {
        assert_eq!(told(&seen, there), told(&expected, here), "{probe}\nof {cells:#?}");
    }
}

/// A cell over few names, so that names are used, given anew and used again.
fn cell() -> impl Strategy<Value = String> {
    let name = (0..3_u8, 0..3_u8, 0..100_i32);
    (0..36_usize, name).prop_map(|(kind, (one, other, number))| {
        let texts = [
            format!("let a{one} = {number}"),
            format!("let a{one} = {number} * 2 - 1"),
            format!("let a{one} = \"{number}\""),
            format!("let a{one} = [ {number}; 1 ]"),
            format!("let a{one} = ({number}, 'c', 1.5)"),
            format!("let a{one}, a{other} = {number}, 2"),
            format!("let f{one} x = x + {number}"),
            format!("let f{one} (x: int) : int = x * {number}"),
            format!("let f{one} x = f{other} (f{other} x)"),
            format!("let f{one} a b = a + b"),
            format!("let f{one} x = failwithf \"no %d\" (x + {number})"),
            format!("let f{one} x = a{other}"),
            format!("let rec f{one} x = if x > 3 then x else f{one} (x + 1)"),
            format!("let inline f{one} x = x + x"),
            format!("let f{one} = fun x -> x + {number}"),
            format!("/// Says {number}.\nlet f{one} (x: int) =\n    let y = x\n    y + {number}"),
            format!("type T{one} = {{ A{other}: int }}"),
            format!("type T{one} = A{other} of int | B{other}"),
            format!("type T{one}(a: int) =\n    member _.A{other} = a + {number}"),
            format!("let f{one} (t: T{other}) = t"),
            format!("let f{one} x = match x with {number} -> 1"),
            format!("let f{one} t = {{ A{other} = t }}"),
            format!("let a{one} = f{other} {number}"),
            format!("let a{one} = a{other}"),
            format!("let a{one} = printfn \"{number}\"; {number}"),
            format!("let mutable a{one} = {number}"),
            format!("printfn \"%d\" {number}"),
            format!("a{one}"),
            format!("let a{one} = it"),
            format!("let a{one} = [ {number} ] |> List.map (fun x -> 10 / (x % 5))"),
            format!("let a{one} = wrong{number}"),
            "open System".to_owned(),
            format!("let (+) a b = a - b - {number}"),
            format!("[<Struct>] type T{one} = {{ A{other}: int }}"),
            format!("let a{one} = __SOURCE_DIRECTORY__, __SOURCE_FILE__, __LINE__, {number}"),
            format!("let f{one} x = __SOURCE_FILE__, __LINE__, x + {number}"),
        ];
        texts[kind].clone()
    })
}

/// Sessions' cells, as they were sent and from a file.
async fn mean_the_same(alone: &mut Session, together: &mut Session, cases: usize) {
    let mut runner = TestRunner::default();
    for case in 0..cases {
        let cells = proptest::collection::vec(cell(), 30).new_tree(&mut runner).unwrap().current();
        let file = [None, Some("/tmp/cells.fsx")][case / 2 % 2];
        are_alike(alone, together, &cells, file, [30, 7][case % 2]).await;
        let (first, second) = tokio::join!(alone.kernel().reset(), together.kernel().reset());
        first.and(second).unwrap();
    }
}

#[tokio::test]
async fn cells_that_run_together_mean_what_they_mean_alone() {
    let (mut alone, mut together) = tokio::join!(Session::start(), Session::start());
    mean_the_same(&mut alone, &mut together, 8).await;
}

#[tokio::test]
async fn cells_that_run_together_mean_what_they_mean_alone_on_fsharp_11() {
    let variable = "MAINSTAY_TEST_DOTNET_FSHARP_11";
    let (Some((mut alone, _)), Some((mut together, _))) =
        tokio::join!(session_on(variable), session_on(variable))
    else {
        return;
    };
    mean_the_same(&mut alone, &mut together, 4).await;
}

/// One cell a paragraph.
fn cells_of(text: &str) -> Vec<String> {
    text.split("\n\n").map(|cell| cell.trim_matches('\n').to_owned()).collect()
}

#[tokio::test]
async fn definitions_of_each_kind_run_together_as_alone() {
    let cells = cells_of(include_str!("replayed.fsx"));
    let (mut alone, mut together) = tokio::join!(Session::start(), Session::start());
    are_alike(&mut alone, &mut together, &cells, None, 30).await;
}

#[tokio::test]
async fn definitions_in_a_row_are_one_assembly_and_others_are_apart() {
    for file in [None, Some("/tmp/cells.fsx")] {
        let mut session = Session::start().await;
        let cells = cells_of(
            "type A = { X: int }\n\nlet f (a: A) = a.X\n\ntype B = One | Two\n\nprintfn \"alone\"\n\n\
         let g x = x + 1\n\nlet h x = g x\n\ntype C = { Y: B }",
        );
        session.replay(&cells, file, 30).await;
        let same = |one: &str, other: &str| format!("typeof<{one}>.Assembly = typeof<{other}>.Assembly");
        assert_eq!(session.value(&same("A", "B")).await, "true");
        assert_eq!(session.value(&same("A", "C")).await, "false");
        assert_eq!(
            session.value("typeof<A>.FullName.Split('+').[0] <> typeof<B>.FullName.Split('+').[0]").await,
            "true"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_compiled_together_runs_alone_and_leaves_nothing_behind() {
    let mut session = Session::start().await;
    // The compiler warns of the second one.
    let cells = cells_of(
        "type A = { X: int }\n\nlet f x = match x with 1 -> 2\n\ntype B = One | Two\n\nlet lonely () = One",
    );
    let seen = session.replay(&cells, None, 30).await;
    let warnings: Vec<_> = seen.iter().map(|seen| seen.result.diagnostics.len()).collect();
    assert_eq!(warnings, [0, 1, 0, 0]);
    assert_eq!(session.value("typeof<A>.Assembly = typeof<B>.Assembly").await, "false");
    // A service that compiled them twice would have two of each.
    let query = KernelQuery::Symbols { text: "lonely".to_owned(), limit: 300 };
    let found = soon(session.kernel().query(query)).await.unwrap().symbols().unwrap();
    assert_eq!(found.items.len(), 1, "{found:?}");
}

#[tokio::test]
async fn code_that_is_not_what_was_announced_runs_alone() {
    let mut session = Session::start().await;
    let job = |_| JobId::from_uuid(uuid::Uuid::now_v7());
    let jobs: Vec<_> = (0..3).map(job).collect();
    let code = |number: usize| format!("let a{number} = {number}");
    let upcoming =
        jobs.iter().enumerate().map(|(number, job)| Upcoming { job: *job, code: code(number), file: None });
    session.kernel().expect(upcoming.collect()).await;
    let seen = session.run(jobs[0], "let other = 5", None).await;
    assert_eq!(seen.result.bindings[0].name, "other");
    assert_eq!(session.value("other").await, "5");
}
