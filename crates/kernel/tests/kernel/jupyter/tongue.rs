//! The same things said in the languages of the kernels.

use mainstay_model::WorkerExit;

/// What a kernel is spoken to in.
pub(crate) struct Tongue {
    /// The kind of session.
    pub(crate) kind: &'static str,
    /// What its runtime's name has in it.
    pub(crate) language: &'static str,
    /// How the value of an expression is told.
    pub(crate) told: Told,
    /// Code that adds one and one.
    pub(crate) sum: &'static str,
    /// Defines `x` as 41.
    pub(crate) define: &'static str,
    /// Gives one more than `x`.
    pub(crate) use_it: &'static str,
    /// Prints `out` and `err`, each to its stream.
    pub(crate) print: &'static str,
    /// Raises an error with `no luck` in it.
    pub(crate) raise: &'static str,
    /// A text that is not code.
    pub(crate) nonsense: &'static str,
    /// Says `begun`, and never ends.
    pub(crate) run_on: &'static str,
    /// What an interrupt does to that.
    pub(crate) yields: Yields,
    /// Asks `Name?` and prints `hello` and the answer; none where the kernel cannot.
    pub(crate) ask: Option<&'static str>,
    /// Prints numbers from one on, each on a line, and the last of them.
    pub(crate) count: (&'static str, usize),
    /// Code that ends the process.
    pub(crate) exit: &'static str,
    pub(crate) exits_with: WorkerExit,
    /// Code that is completed at its end, and what is proposed.
    pub(crate) complete: (&'static str, &'static str),
    /// Code that needs further lines.
    pub(crate) open: &'static str,
    /// Whether the kernel says what is finished.
    pub(crate) judges: bool,
    /// Code whose last name is known, and what is said of it; none where the kernel says nothing.
    pub(crate) inspect: Option<(&'static str, &'static str)>,
    /// Whether it tells of the sum that it changes nothing, so that a replay leaves it out.
    pub(crate) proves: bool,
}

/// How the value of an expression reaches those who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Value,
    Printed,
}

/// What a kernel does when it is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yields {
    ToInterrupts,
    /// It drops an interrupt that comes before the code runs.
    OnceItRuns,
    ByEnding,
}

pub(crate) const IPYKERNEL: Tongue = Tongue {
    kind: "python3",
    language: "python",
    told: Told::Value,
    sum: "1 + 1",
    define: "x = 41",
    use_it: "x + 1",
    print: "import sys\nprint('out')\nprint('err', file=sys.stderr)",
    raise: "raise ValueError('no luck')",
    nonsense: "1 +",
    run_on: "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)",
    yields: Yields::ToInterrupts,
    ask: Some("print('hello', input('Name?'))"),
    count: ("for i in range(1, 5001): print(i)", 5_000),
    exit: "import os\nos._exit(3)",
    exits_with: WorkerExit::Code(3),
    complete: ("import os; os.getc", "getcwd"),
    open: "def f():",
    judges: true,
    inspect: Some(("len", "Return the number of items")),
    proves: true,
};

/// The wheel on PyPI ends where it is interrupted, whoever does it.
pub(crate) const XEUS_PYTHON: Tongue = Tongue { kind: "xpython", yields: Yields::ByEnding, ..IPYKERNEL };

pub(crate) const BASH: Tongue = Tongue {
    kind: "bash",
    language: "bash",
    told: Told::Printed,
    sum: "echo $((1 + 1))",
    define: "x=41",
    use_it: "echo $((x + 1))",
    print: "echo out; echo err >&2",
    raise: "ls /no-luck",
    nonsense: ")",
    run_on: "echo begun; sleep 1000",
    yields: Yields::ToInterrupts,
    ask: None,
    count: ("seq 1 5000", 5_000),
    exit: "kill -9 $PPID",
    exits_with: WorkerExit::Signal(9),
    complete: ("ech", "echo"),
    open: "for i in 1 2; do",
    judges: false,
    inspect: None,
    proves: false,
};

pub(crate) const DENO: Tongue = Tongue {
    kind: "deno",
    language: "typescript",
    told: Told::Value,
    sum: "1 + 1",
    define: "let x = 41",
    use_it: "x + 1",
    print: "console.log('out'); console.error('err')",
    raise: "throw new Error('no luck')",
    nonsense: "let let =",
    run_on: "console.log('begun'); while (true) { }",
    yields: Yields::OnceItRuns,
    ask: Some("console.log('hello', prompt('Name?'))"),
    // What code prints apart faster than it sends, it drops, whoever listens.
    count: ("console.log(Array.from({ length: 5000 }, (_, i) => i + 1).join('\\n'))", 5_000),
    exit: "Deno.exit(3)",
    exits_with: WorkerExit::Code(3),
    complete: ("Deno.readTextF", "readTextFile"),
    open: "function f() {",
    judges: true,
    inspect: None,
    proves: false,
};

pub(crate) const FSHARP: Tongue = Tongue {
    kind: "fsharp",
    language: ".net",
    told: Told::Value,
    sum: "1 + 1",
    define: "let x = 41",
    use_it: "x + 1",
    print: "printfn \"out\"; eprintfn \"err\"",
    raise: "(failwith \"no luck\" : unit)",
    nonsense: "let let =",
    run_on: "printfn \"begun\"; System.Threading.Thread.Sleep -1",
    yields: Yields::ToInterrupts,
    ask: Some("printf \"Name?\"; printfn \"hello %s\" (stdin.ReadLine())"),
    count: ("for i in 1 .. 5000 do printfn \"%d\" i", 5_000),
    exit: "exit 3",
    exits_with: WorkerExit::Code(3),
    complete: ("System.IO.File.ReadAllT", "ReadAllText"),
    open: "let f x =",
    judges: true,
    inspect: Some(("List.map", "function")),
    proves: true,
};
