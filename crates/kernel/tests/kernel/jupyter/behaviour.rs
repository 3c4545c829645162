//! What every kernel does, whatever its language: the same tests over all of them.

use mainstay_model::{Error, JobEnding, TextPosition, WorkerExit};
use mainstay_runner::AskAnswer;
use mainstay_runner::query::{Completeness, KernelAnswer, KernelQuery};
use rustix::process::{Pid, Signal, kill_process};

use crate::jupyter::session::{Session, soon};
use crate::jupyter::tongue::{Told, Tongue, Yields};

/// The tests of a module for a kernel.
macro_rules! of_kernel {
    ($name:ident, $tongue:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&$tongue).await;
            })*
        }
    };
}

macro_rules! of_kernels {
    ($($name:ident: $tongue:expr),* $(,)?) => {
        $(of_kernel!($name, $tongue, [
            an_expression_has_a_value,
            what_is_defined_stays,
            what_is_printed_is_told_by_stream_and_before_the_end,
            an_error_is_told_and_the_session_goes_on,
            many_lines_come_whole_and_in_order,
            code_is_completed,
            code_is_judged_before_it_runs,
            an_interrupt_ends_the_code,
            an_interrupt_right_behind_the_code_ends_it,
            a_question_is_asked_and_answered,
            a_reset_leaves_nothing,
            a_kernel_that_is_killed_is_gone,
            a_kernel_that_ends_says_how,
            nothing_is_left_of_a_kernel,
        ]);)*
    };
}

of_kernels! {
    ipykernel: crate::jupyter::tongue::IPYKERNEL,
    xeus_python: crate::jupyter::tongue::XEUS_PYTHON,
    bash: crate::jupyter::tongue::BASH,
    deno: crate::jupyter::tongue::DENO,
    fsharp: crate::jupyter::tongue::FSHARP,
}

/// The value of an expression, however the language tells it.
async fn told(session: &mut Session, code: &str, told: Told) -> String {
    let ran = session.eval(code).await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{code}");
    match told {
        Told::Value => ran.report.result.value.unwrap(),
        Told::Printed => ran.stdout.trim_end().to_owned(),
    }
}

async fn an_expression_has_a_value(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
    assert_eq!(session.eval(tongue.sum).await.report.changes_state, !tongue.proves);
    let info = session.worker.runner.process().info();
    assert!(info.runtime.to_lowercase().contains(tongue.language), "{info:?}");
}

async fn what_is_defined_stays(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    let ran = session.eval(tongue.define).await;
    assert_eq!(ran.report.ending, JobEnding::Completed);
    assert!(ran.report.changes_state, "a definition is replayed");
    assert_eq!(told(&mut session, tongue.use_it, tongue.told).await, "42");
}

async fn what_is_printed_is_told_by_stream_and_before_the_end(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    let ran = session.eval(tongue.print).await;
    // Some kernels have one stream for both.
    assert_eq!((ran.stdout + &ran.stderr).lines().collect::<Vec<_>>(), ["out", "err"]);
    assert_eq!(session.aside, []);
}

async fn an_error_is_told_and_the_session_goes_on(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    let ran = session.eval(tongue.raise).await;
    let JobEnding::Raised(error) = ran.report.ending else { panic!("{:?}", ran.report.ending) };
    let said = ran.stdout + &error.message;
    assert!(said.contains("no luck") || said.contains("no-luck"), "{said}");
    let nonsense = session.eval(tongue.nonsense).await.report.ending;
    assert!(matches!(nonsense, JobEnding::Raised(_) | JobEnding::Rejected), "{nonsense:?}");
    assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
}

async fn many_lines_come_whole_and_in_order(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    let (code, lines) = tongue.count;
    let ran = session.eval(code).await;
    let printed: Vec<&str> = ran.stdout.lines().collect();
    let first_other = (1..=lines).zip(&printed).find(|(number, line)| number.to_string() != **line);
    assert_eq!((first_other, printed.len()), (None, lines));
}

async fn code_is_completed(tongue: &Tongue) {
    let session = Session::start(tongue).await;
    let (code, wanted) = tongue.complete;
    let end = TextPosition { line: 1, column: code.len() as u32 + 1 };
    let completions = soon(session.kernel().complete(code.to_owned(), end)).await.unwrap();
    let start = completions.start.unwrap().column as usize;
    let whole: Vec<_> =
        completions.items.iter().map(|item| format!("{}{}", &code[..start - 1], item.label)).collect();
    assert!(whole.iter().any(|whole| whole.ends_with(wanted)), "{whole:?}");
    let members = session.kernel().query(KernelQuery::Members { name: "no_such_name".to_owned() }).await;
    assert!(matches!(members, Err(Error::InvalidArgument { .. })), "{members:?}");
    let symbols = session.kernel().query(KernelQuery::Symbols { text: wanted.to_owned(), limit: 3 }).await;
    assert!(matches!(symbols, Ok(KernelAnswer::Symbols(_))), "{symbols:?}");
}

async fn code_is_judged_before_it_runs(tongue: &Tongue) {
    let session = Session::start(tongue).await;
    let judged = async |code: &str| {
        let query = KernelQuery::Completeness { code: code.to_owned() };
        soon(session.kernel().query(query)).await.unwrap().completeness().unwrap()
    };
    let (whole, open) = (judged(tongue.sum).await, judged(tongue.open).await);
    assert_eq!(whole, if tongue.judges { Completeness::Complete } else { Completeness::Unknown });
    match open {
        Completeness::Incomplete { .. } => assert!(tongue.judges),
        other => assert_eq!((other, tongue.judges), (Completeness::Unknown, false)),
    }
    let inspect = async |code: &str| {
        let cursor = TextPosition { line: 1, column: code.len() as u32 + 1 };
        let query = KernelQuery::Inspection { code: code.to_owned(), cursor, in_detail: false };
        soon(session.kernel().query(query)).await.unwrap().inspection().unwrap()
    };
    if let Some((code, wanted)) = tongue.inspect {
        let told = inspect(code).await.unwrap();
        assert!(told.text().contains(wanted), "{told:?}");
    }
    assert_eq!(inspect("no_such_name").await, None);
}

async fn an_interrupt_ends_the_code(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    let job = session.submit(tongue.run_on).await;
    session.prints("begun").await;
    soon(session.worker.runner.process().interrupt()).await;
    match tongue.yields {
        Yields::ToInterrupts | Yields::OnceItRuns => {
            let ending = session.end_of(job).await.report.ending;
            assert!(matches!(ending, JobEnding::Interrupted { .. }), "{ending:?}");
            assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
        }
        // The engine starts another, and replays.
        Yields::ByEnding => drop(session.exit().await),
    }
}

async fn an_interrupt_right_behind_the_code_ends_it(tongue: &Tongue) {
    if tongue.yields != Yields::ToInterrupts {
        return;
    }
    let mut session = Session::start(tongue).await;
    for _ in 0..10 {
        let job = session.submit(tongue.run_on).await;
        soon(session.worker.runner.process().interrupt()).await;
        let ending = session.end_of(job).await.report.ending;
        assert!(matches!(ending, JobEnding::Interrupted { .. }), "{ending:?}");
    }
    assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
}

async fn a_question_is_asked_and_answered(tongue: &Tongue) {
    let Some(code) = tongue.ask else { return };
    let mut session = Session::start(tongue).await;
    let job = session.submit(code).await;
    let (ask, question) = session.asks(job).await;
    assert_eq!(question.prompt.trim(), "Name?");
    session.worker.runner.process().answer(AskAnswer::open(ask, Ok("Ada é".into()))).await;
    let ran = session.end_of(job).await;
    assert!(ran.stdout.contains("hello Ada é"), "{}", ran.stdout);
    let unanswered = session.submit(code).await;
    let (ask, _) = session.asks(unanswered).await;
    session.worker.runner.process().answer(AskAnswer::open(ask, Err(Error::Cancelled))).await;
    // However the language takes the end of its input, the code ends.
    session.end_of(unanswered).await;
    assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
}

async fn a_reset_leaves_nothing(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    session.eval(tongue.define).await;
    let info = soon(session.kernel().reset()).await.unwrap();
    assert_eq!(session.worker.runner.process().info(), info);
    let ran = session.eval(tongue.use_it).await;
    assert_ne!(
        (ran.report.ending, ran.report.result.value, ran.stdout.trim_end()),
        (JobEnding::Completed, Some("42".to_owned()), "42")
    );
    assert_eq!(told(&mut session, tongue.sum, tongue.told).await, "2");
}

async fn a_kernel_that_is_killed_is_gone(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    session.submit(tongue.run_on).await;
    session.prints("begun").await;
    let pid = session.worker.runner.process().info().pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(session.exit().await, (WorkerExit::Signal(9), None));
    assert_eq!(soon(session.worker.notices.recv()).await, None, "its end is the last that is heard");
}

async fn a_kernel_that_ends_says_how(tongue: &Tongue) {
    let mut session = Session::start(tongue).await;
    session.submit(tongue.exit).await;
    let (exit, _) = session.exit().await;
    assert_eq!(exit, tongue.exits_with);
}

async fn nothing_is_left_of_a_kernel(tongue: &Tongue) {
    let session = Session::start(tongue).await;
    let Session { worker, sockets, .. } = session;
    let (watch, mut notices) =
        (crate::jupyter::session::watch(worker.runner.process().info().pid.unwrap()), worker.notices);
    drop(worker.runner);
    while soon(notices.recv()).await.is_some() {}
    assert!(crate::jupyter::session::has_ended(&watch));
    assert_eq!(std::fs::read_dir(sockets.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_is_dropped_while_the_daemon_is_busy() {
    let mut session = Session::start(&crate::jupyter::tongue::IPYKERNEL).await;
    let [go, told] = ["go", "told"].map(|name| session.sockets.path().join(name));
    let code = format!(
        "import os\nprint('begun', flush=True)\nwhile not os.path.exists({go:?}): pass\n\
         for n in range(5000): print(n, flush=True)\nopen({told:?}, 'w').close()"
    );
    let job = session.submit(&code).await;
    session.prints("begun").await;
    std::fs::write(&go, "").unwrap();
    // All but what takes in what the kernel publishes stands still here.
    while !told.exists() {
        std::thread::yield_now();
    }
    let printed = session.end_of(job).await.stdout;
    let expected: String = (0..5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(printed.len(), expected.len());
    assert!(printed == expected, "in order");
}
