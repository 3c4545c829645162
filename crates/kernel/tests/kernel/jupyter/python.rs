//! What a Python kernel tells through its helper, which IPython runs in ipykernel and in xeus-python.

use mainstay_model::ask::InputRead;
use mainstay_model::{Binding, DisplayId, Form, JobEnding, TextPosition};
use mainstay_runner::AskAnswer;
use mainstay_runner::query::{KernelAnswer, KernelQuery, Members, Symbols};

use crate::jupyter::session::{Session, soon};
use crate::jupyter::tongue::{IPYKERNEL, Tongue, XEUS_PYTHON};

const BOTH: [&Tongue; 2] = [&IPYKERNEL, &XEUS_PYTHON];

/// What Python cannot be proven to leave as it was, and what can.
const PURE: &[(&str, bool)] = &[
    ("1 + 1", true),
    ("x", true),
    ("[y * 2 for y in items if y > 1]", true),
    ("{k: len(v) for k, v in {'a': 'b'}.items()}", true),
    ("f'{x} and {x:>5}'", true),
    ("print(x, 'is', items)", true),
    ("sorted(items)[0:2]", true),
    ("'a,b'.split(',')", true),
    ("items.index(2) if items else None", true),
    ("pass", true),
    ("# nothing", true),
    ("x += 1", false),
    ("import math", false),
    ("items.append(3)", false),
    ("items.sort()", false),
    ("odd", false),
    ("odd + 1", false),
    ("[odd]", false),
    ("holder", false),
    ("f()", false),
    ("[f() for _ in items]", false),
    ("print(x, file=open('/dev/null', 'w'))", false),
    ("sorted(items, key=f)", false),
    ("(z := 3)", false),
    ("exec('w = 1')", false),
    ("%time 1", false),
    ("!true", false),
    ("len(items); len = f", false),
    ("len(items)", false),
];

#[tokio::test]
async fn only_what_is_proven_to_change_nothing_is_left_out_of_a_replay() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let defined = session
            .eval(
                "x, items = 1, [1, 2]\nclass Odd:\n    def __repr__(self): global x; x += 1; return 'odd'\n    \
                 def __add__(self, other): global x; x += 1; return 0\nodd = Odd()\nholder = [odd]\ndef f(*_): return 1",
            )
            .await;
        assert_eq!(defined.report.ending, JobEnding::Completed);
        for (code, is_pure) in PURE {
            let report = session.eval(code).await.report;
            assert_eq!((report.ending, report.changes_state), (JobEnding::Completed, !is_pure), "{code}");
        }
    }
}

#[tokio::test]
async fn a_mark_says_what_cannot_be_proven() {
    let mut session = Session::start(&XEUS_PYTHON).await;
    for (code, changes) in [("# mainstay: pure\nimport math", false), ("#mainstay:stateful\n1", true)] {
        assert_eq!(session.eval(code).await.report.changes_state, changes, "{code}");
    }
}

#[tokio::test]
async fn what_code_bound_is_told_with_its_types() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let code = "import json as j\nfrom os import path\nn: int = 3\nfor i in range(2): pass\n\
                    def greet(name: str) -> str: return 'hi'\nclass C: pass\nc = C()\na, *b = [1, 2, 3]\n\
                    with open('/dev/null') as file: pass\n(w := 5)";
        let bindings = session.eval(code).await.report.result.bindings;
        let told: Vec<_> = bindings
            .iter()
            .map(|Binding { name, value_type, value }| {
                format!("{name}: {value_type} = {}", value.as_deref().unwrap_or("…"))
            })
            .collect();
        insta::allow_duplicates! { insta::assert_snapshot!(told.join("\n"), @"
        j: module = …
        path: module = …
        n: int = 3
        i: int = 1
        greet: (name: str) -> str = …
        C: type = …
        c: C = …
        a: int = 1
        b: list = [2, 3]
        file: _io.TextIOWrapper = …
        w: int = 5
        "); }
        let KernelAnswer::Values(values) = session.kernel().query(KernelQuery::Values).await.unwrap() else {
            panic!("other than asked for");
        };
        let names: Vec<_> = values.iter().map(|value| value.name.as_str()).collect();
        assert_eq!(names, ["w", "file", "b", "a", "c", "C", "greet", "i", "n", "path", "j"]);
    }
}

#[tokio::test]
async fn whether_it_uses_the_value_before_is_told() {
    let mut session = Session::start(&XEUS_PYTHON).await;
    for (code, uses) in [("1", false), ("_ + 1", true), ("Out", true), ("_1", true), ("_name = 1", false)] {
        assert_eq!(session.eval(code).await.report.result.uses_last, uses, "{code}");
    }
}

#[tokio::test]
async fn code_that_the_compiler_refuses_says_where() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let report = session.eval("x = 1\ny = 'é' +").await.report;
        assert_eq!((report.ending, report.changes_state), (JobEnding::Rejected, false));
        assert_eq!(report.result.diagnostics[0].start, TextPosition { line: 2, column: 10 });
        let checked = soon(session.kernel().check("def f(:\n  pass".to_owned(), None)).await.unwrap();
        assert_eq!((checked.len(), checked[0].code.as_str()), (1, "SyntaxError"));
        let fine = "import asyncio\n%matplotlib inline\nawait asyncio.sleep(0)\nx = !ls";
        assert_eq!(soon(session.kernel().check(fine.to_owned(), None)).await, Ok(Vec::new()));
        assert_eq!(session.eval("x").await.report.result.value, None, "nothing of it ran");
    }
}

#[tokio::test]
async fn of_code_that_is_interrupted_what_had_ended_is_kept() {
    let mut session = Session::start(&IPYKERNEL).await;
    let done =
        "import time\ndef wait():\n    print('begun', flush=True)\n    while True: time.sleep(0.01)\nx = 1";
    let job = session.submit(&format!("{done}\nwait()\ny = 2")).await;
    session.prints("begun").await;
    soon(session.worker.runner.process().interrupt()).await;
    let report = session.end_of(job).await.report;
    assert_eq!(report.ending, JobEnding::Interrupted { kept: done.len() });
    let names: Vec<_> = report.result.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["time", "wait", "x"]);
}

#[tokio::test]
async fn an_interrupt_that_comes_while_a_cell_is_looked_at_is_that_of_its_code() {
    let mut session = Session::start(&IPYKERNEL).await;
    // The helper parses each cell before it runs.
    let interrupts_next = "import ast, os, signal\nparse = ast.parse\ndef interrupted(*given, **named):\n    \
                               ast.parse = parse\n    os.kill(os.getpid(), signal.SIGINT)\n    return parse(*given, **named)\n\
                               ast.parse = interrupted";
    session.eval(interrupts_next).await;
    let ran = session.eval("x = 1").await.report;
    assert!(ran.result.bindings.is_empty(), "{ran:?}");
    let JobEnding::Raised(error) = &ran.ending else { panic!("{:?}", ran.ending) };
    assert_eq!(error.kind, "KeyboardInterrupt");
    // What comes later is as ever.
    session.eval("x = 2").await;
    assert_eq!(session.eval("x").await.report.result.value.as_deref(), Some("2"));
    let handler = "import signal; signal.getsignal(signal.SIGINT).__name__";
    assert_eq!(session.eval(handler).await.report.result.value.as_deref(), Some("'default_int_handler'"));
}

#[tokio::test]
async fn code_that_awaits_something_is_interrupted() {
    let mut session = Session::start(&IPYKERNEL).await;
    for waits_for_print in [true, false, false, false, true] {
        let job =
            session.submit("import asyncio\nprint('begun', flush=True)\nawait asyncio.sleep(1e6)").await;
        if waits_for_print {
            session.prints("begun").await;
        }
        soon(session.worker.runner.process().interrupt()).await;
        let ending = session.end_of(job).await.report.ending;
        assert!(matches!(ending, JobEnding::Interrupted { .. }), "{ending:?}");
    }
    assert_eq!(session.eval("1 + 1").await.report.result.value.as_deref(), Some("2"));
}

#[tokio::test]
async fn questions_are_answered_while_code_runs_where_the_kernel_can() {
    let mut session = Session::start(&IPYKERNEL).await;
    session.eval("number = 3").await;
    session.submit(IPYKERNEL.run_on).await;
    session.prints("begun").await;
    let end = TextPosition { line: 1, column: 4 };
    let completions = soon(session.kernel().complete("num".to_owned(), end)).await.unwrap();
    assert!(completions.items.iter().any(|item| item.label == "number"), "{completions:?}");
}

#[tokio::test]
async fn names_are_explored_without_running_code() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let code = "class Box:\n    \"\"\"Holds things.\n\n    More of it.\"\"\"\n    size: int = 3\n    @property\n    \
                    def full(self): global opened; opened = True; return 1\n    \
                    def put(self, what: str, /) -> bool:\n        \"Takes it in.\"\n        return True\nbox = Box()\nopened = False";
        session.eval(code).await;
        let members = async |name: &str| match session
            .kernel()
            .query(KernelQuery::Members { name: name.to_owned() })
            .await
        {
            Ok(KernelAnswer::Members(members)) => members,
            other => panic!("{other:?}"),
        };
        let Members { kind, documentation, members: held, .. } = members("Box").await;
        assert_eq!((kind.as_str(), documentation.as_deref()), ("class", Some("Holds things.")));
        let held: Vec<_> = held
            .iter()
            .map(|member| {
                let signature = member.signature.as_deref().unwrap_or_default();
                format!("{} {} {signature}", member.kind, member.name)
            })
            .collect();
        assert_eq!(
            held,
            ["property full property", "function put (self, what: str, /) -> bool", "value size int"]
        );
        assert_eq!(members("box").await.members.len(), 3);
        assert!(members("os.path").await.members.is_empty() || members("os.path").await.kind == "module");
        let query = KernelQuery::Symbols { text: "bo".to_owned(), limit: 5 };
        let KernelAnswer::Symbols(Symbols { items, found }) = session.kernel().query(query).await.unwrap()
        else {
            panic!("other than asked for");
        };
        let names: Vec<_> = items.iter().map(|symbol| symbol.full_name.as_str()).collect();
        assert_eq!((names, found), (vec!["Box", "box"], 2));
        assert_eq!(session.eval("opened").await.report.result.value.as_deref(), Some("False"));
    }
}

#[tokio::test]
async fn tables_plots_and_what_changes_are_shown() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let table = "import pandas as pd\npd.DataFrame({'city': ['Ulm', 'Bonn'], 'people': [126, 330]})";
        let ran = session.eval(table).await;
        assert_eq!(ran.report.ending, JobEnding::Completed);
        assert!(ran.displays[0].is_value && ran.displays[0].data.form("text/html").is_some());
        assert!(ran.report.result.value.unwrap().contains("Bonn"));
        let plot = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9]); plt.show()";
        let ran = session.eval(plot).await;
        assert_eq!(ran.report.ending, JobEnding::Completed);
        let picture = ran.displays.iter().find_map(|display| display.data.picture()).expect("a picture");
        assert!(picture.size().is_some_and(|(width, height)| width > 100 && height > 100), "{picture}");
        let bar = "from IPython.display import display, HTML\nbar = display(HTML('<i>0</i>'), display_id='bar')\n\
                   bar.update(HTML('<i>1</i>'))";
        let shown = session.eval(bar).await.displays;
        let forms: Vec<_> = shown.iter().map(|display| display.data.form("text/html")).collect();
        let html = |text: &str| Form::Text(text.to_owned());
        assert_eq!(forms, [Some(&html("<i>0</i>")), Some(&html("<i>1</i>"))]);
        assert!(shown.iter().all(|display| display.id == DisplayId::new("bar").ok()));
    }
}

#[tokio::test]
async fn a_figure_that_is_drawn_at_the_end_stands_behind_the_value() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let plot = "%matplotlib inline\nimport pandas as pd\npd.DataFrame({'a': [1, 4]}).plot()";
        let ran = session.eval(plot).await;
        let shown: Vec<_> =
            ran.displays.iter().map(|shown| (shown.is_value, shown.data.picture().is_some())).collect();
        assert_eq!(shown, [(true, false), (false, true)], "{:?}", ran.displays);
        assert_eq!(ran.displays[0].data.text(), "<Axes: >");
        assert_eq!(ran.report.result.value.as_deref(), Some("<Axes: >"));
    }
}

#[tokio::test]
async fn an_error_while_a_value_is_shown_is_told_as_what_it_is_and_the_value_is_shown() {
    let mut session = Session::start(&IPYKERNEL).await;
    let code = "class Odd:\n    def __repr__(self): return 'odd'\n    def _repr_html_(self): raise ValueError('boom')\nOdd()";
    let ran = session.eval(code).await;
    let JobEnding::Raised(error) = &ran.report.ending else { panic!("{:?}", ran.report.ending) };
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("ValueError", "boom"));
    assert!(error.stack.as_deref().unwrap().contains("_repr_html_"), "{error:?}");
    let shown: Vec<_> = ran.displays.iter().map(|shown| (shown.is_value, shown.data.text())).collect();
    assert_eq!((shown, ran.report.result.value.as_deref()), (vec![(true, "odd")], Some("odd")));
}

#[tokio::test]
async fn data_is_shown_under_the_type_that_code_gives_it() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        let code = "from IPython.display import display\nclass Chart:\n    \
                    def _repr_mimebundle_(self, **_): return {'application/vnd.vegalite.v6.json': {'mark': 'bar'}, 'text/plain': 'chart'}\n\
                    display(Chart())\nChart()";
        let shown = session.eval(code).await.displays;
        let form = Form::Json(serde_json::json!({ "mark": "bar" }));
        let forms: Vec<_> = shown
            .iter()
            .map(|shown| {
                (shown.is_value, shown.data.text(), shown.data.form("application/vnd.vegalite.v6.json"))
            })
            .collect();
        assert_eq!(forms, [(false, "chart", Some(&form)), (true, "chart", Some(&form))]);
    }
}

#[tokio::test]
async fn what_is_asked_secretly_says_so() {
    let mut session = Session::start(&IPYKERNEL).await;
    let job = session.submit("import getpass\nlen(getpass.getpass('Key: '))").await;
    let (ask, question) = session.asks(job).await;
    assert_eq!(
        (question.prompt.as_str(), &question.schema["writeOnly"]),
        ("Key: ", &serde_json::json!(true))
    );
    session.worker.runner.process().answer(AskAnswer::open(ask, Ok("secret".into()))).await;
    assert_eq!(session.end_of(job).await.report.result.value.as_deref(), Some("6"));
}

/// Runs code that is answered in this order; what of its input it asks for, and what it prints.
async fn reads(session: &mut Session, code: &str, answers: &[&str]) -> (Vec<InputRead>, String) {
    let job = session.submit(code).await;
    let mut asked = Vec::new();
    for answer in answers {
        let (ask, question) = session.asks(job).await;
        asked.push(question.input_read().unwrap());
        session.worker.runner.process().answer(AskAnswer::open(ask, Ok((*answer).into()))).await;
    }
    let ran = session.end_of(job).await;
    assert_eq!(ran.report.ending, JobEnding::Completed, "{code}");
    (asked, ran.stdout)
}

#[tokio::test]
async fn each_way_to_read_the_input_asks_for_what_it_reads() {
    use InputRead::{Line, Lines, Rest};
    const END: &str = "\u{4}";
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        session.eval("import sys, getpass").await;
        for (code, answers, asked, printed) in [
            ("print(input())", &["Ada"][..], &[Line][..], "Ada\n"),
            ("print(getpass.getpass('Key?'))", &["Ada"], &[Line], "Ada\n"),
            ("print([sys.stdin.readline()] * 2)", &["Ada"], &[Line], "['Ada\\n', 'Ada\\n']\n"),
            ("print([sys.stdin.readline()])", &[END], &[Line], "['']\n"),
            ("print([sys.stdin.readline()])", &["\u{4}QWRh", END], &[Line; 2], "['Ada']\n"),
            ("print([sys.stdin.read()])", &["a\nb"], &[Rest], "['a\\nb']\n"),
            (
                "print([sys.stdin.readline(), sys.stdin.read()])",
                &["a", "b"],
                &[Line, Rest],
                "['a\\n', 'b']\n",
            ),
            ("print(list(sys.stdin))", &["a\nb", "c", END], &[Lines; 3], "['a\\n', 'b\\n', 'c\\n']\n"),
            ("print(sys.stdin.readlines())", &["é", "\u{4}Yg==", END, END], &[Lines; 4], "['é\\n', 'b']\n"),
            (
                "print([sys.stdin.read(1), input(), input('? ')])",
                &["ab", "c"],
                &[Lines, Line],
                "['a', 'b', 'c']\n",
            ),
            ("print([sys.stdin.buffer.read()])", &["\u{4}/wA="], &[Rest], "[b'\\xff\\x00']\n"),
            ("print([sys.stdin.buffer.readline()])", &["a"], &[Lines], "[b'a\\n']\n"),
            ("next(sys.stdin)", &["a\nleft"], &[Lines], ""),
            ("print([sys.stdin.read()])", &["new"], &[Rest], "['new']\n"),
        ] {
            assert_eq!(
                reads(&mut session, code, answers).await,
                (asked.to_vec(), printed.to_owned()),
                "{code}"
            );
        }
        for asks in ["input()", "getpass.getpass()"] {
            let code = format!("try: {asks}\nexcept EOFError: print('end')");
            assert_eq!(reads(&mut session, &code, &[END]).await.1, "end\n", "{asks}");
            let job = session.submit(asks).await;
            let (ask, _) = session.asks(job).await;
            session.worker.runner.process().answer(AskAnswer::open(ask, Ok(END.into()))).await;
            let JobEnding::Raised(error) = session.end_of(job).await.report.ending else { panic!("{asks}") };
            assert_eq!(
                (error.kind.as_str(), error.message.as_str()),
                ("EOFError", "EOF when reading a line")
            );
            let stack = error.stack.unwrap();
            assert!(stack.contains(asks) && !stack.contains("own_input"), "nothing of the helper: {stack}");
            assert!(!stack.contains("kernelbase"), "nor of the kernel: {stack}");
        }
    }
}

#[tokio::test]
async fn code_that_waits_for_its_input_is_interrupted() {
    let mut session = Session::start(&IPYKERNEL).await;
    for code in ["input()", "import sys; sys.stdin.read()", "for line in sys.stdin: pass"] {
        let job = session.submit(code).await;
        session.asks(job).await;
        soon(session.worker.runner.process().interrupt()).await;
        let ending = session.end_of(job).await.report.ending;
        assert!(matches!(ending, JobEnding::Interrupted { .. }), "{code} {ending:?}");
    }
    assert_eq!(
        reads(&mut session, "print([input(), sys.stdin.readline()])", &["a", "b"]).await.1,
        "['a', 'b\\n']\n"
    );
}

#[tokio::test]
async fn code_that_asks_to_exit_ends_the_kernel_by_itself() {
    let mut session = Session::start(&IPYKERNEL).await;
    let job = session.submit("exit()").await;
    let (_, last_words) = session.exit().await;
    assert_eq!(last_words.map(|words| words.blame.job), Some(job));
}

#[tokio::test]
async fn documentation_that_is_asked_for_by_a_question_mark_is_shown() {
    let mut session = Session::start(&IPYKERNEL).await;
    let shown = session.eval("len?").await.displays;
    assert!(shown[0].data.text().contains("Return the number of items"), "{shown:?}");
}

#[tokio::test]
async fn what_code_leaves_running_prints_beside_later_code() {
    let mut session = Session::start(&IPYKERNEL).await;
    let begins = "import threading\ngo = threading.Event()\ndef late(): go.wait(); print('late')\n\
                  thread = threading.Thread(target=late); thread.start()";
    session.eval(begins).await;
    let ran = session.eval("go.set(); thread.join(); print('own')").await;
    assert!(ran.stdout.contains("own"), "{}", ran.stdout);
    assert_eq!(ran.report.ending, JobEnding::Completed);
}

#[tokio::test]
async fn what_is_printed_to_one_stream_after_another_comes_after_it() {
    for tongue in BOTH {
        let mut session = Session::start(tongue).await;
        // As `tqdm` ends its bar: the end of the line is not flushed.
        let bar = "import sys\nfor done in range(3): sys.stderr.write(f'\\r{done}/2'); sys.stderr.flush()\n\
                   sys.stderr.write('\\n')\nprint('after')\nsys.stderr.write('error\\n')\nprint('last')";
        let ran = session.eval(bar).await;
        assert_eq!(ran.printed, "\r0/2\r1/2\r2/2\nafter\nerror\nlast\n", "{}", tongue.kind);
    }
}

#[tokio::test]
async fn what_the_session_prints_past_the_kernel_is_told_as_well() {
    let mut session = Session::start(&XEUS_PYTHON).await;
    let ran = session.eval("import subprocess\nsubprocess.run(['echo', 'from beside']).returncode").await;
    assert_eq!((ran.stdout.as_str(), ran.report.result.value.as_deref()), ("from beside\n", Some("0")));
}
