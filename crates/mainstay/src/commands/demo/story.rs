//! What the demo does, step by step, in either language. Pure.

use super::world::Runtime;

/// All that is shown.
pub(super) struct Story {
    pub(super) chapters: Vec<Chapter>,
}

/// Steps that show one thing.
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) steps: Vec<Step>,
}

/// One step, which the demo tells and takes.
pub(super) enum Step {
    /// A command of this program, and what its output must have in it.
    Run { arguments: &'static [&'static str], answer: Option<&'static str> },
    /// The process that runs the session's code is killed.
    KillWorker,
    /// The daemon is killed likewise.
    KillDaemon,
    /// A client of MCP runs code, as an agent would.
    Agent { code: &'static str, answer: &'static str },
    /// The page's address is shown.
    Page,
}

/// The same in each language: it makes a list of 15 primes, counts them, and adds one more.
struct Code {
    new: &'static [&'static str],
    make: &'static [&'static str],
    count: &'static [&'static str],
    count_of_first: &'static [&'static str],
    count_of_fork: &'static [&'static str],
    add_in_fork: &'static [&'static str],
    agent: &'static str,
}

const FSHARP: Code = Code {
    new: &["session", "new", "--kind", "fsharp", "--no-project", "--name", "demo"],
    make: &[
        "eval",
        "let primes = [ for n in 2 .. 50 do if Seq.forall (fun d -> n % d <> 0) { 2 .. n - 1 } then n ]",
    ],
    count: &["eval", "primes.Length"],
    count_of_first: &["eval", "--session", "demo", "primes.Length"],
    count_of_fork: &["eval", "--session", "what-if", "primes.Length"],
    add_in_fork: &["eval", "--session", "what-if", "let primes = primes @ [ 53 ]"],
    agent: "List.sum primes",
};

const PYTHON: Code = Code {
    new: &["session", "new", "--kind", "python", "--name", "demo"],
    make: &["eval", "primes = [n for n in range(2, 50) if all(n % d for d in range(2, n))]"],
    count: &["eval", "len(primes)"],
    count_of_first: &["eval", "--session", "demo", "len(primes)"],
    count_of_fork: &["eval", "--session", "what-if", "len(primes)"],
    add_in_fork: &["eval", "--session", "what-if", "primes = primes + [53]"],
    agent: "sum(primes)",
};

impl Story {
    pub(super) fn of(runtime: &Runtime) -> Self {
        let code = match runtime {
            Runtime::Fsharp { .. } => FSHARP,
            Runtime::Python { .. } => PYTHON,
        };
        let run = |arguments, answer| Step::Run { arguments, answer };
        let chapter = |title, steps| Chapter { title, steps };
        Self {
            chapters: vec![
                chapter(
                    "A session runs code, and stays when the command that sent it has ended.",
                    vec![run(code.new, None), run(code.make, None), run(code.count, Some("15"))],
                ),
                chapter(
                    "The process that runs the code is killed. The next one has its values again.",
                    vec![Step::KillWorker, run(code.count, Some("15"))],
                ),
                chapter(
                    "The daemon is killed. The next one goes on with the process that runs.",
                    vec![Step::KillDaemon, run(code.count, Some("15"))],
                ),
                chapter(
                    "A fork goes its own way.",
                    vec![
                        run(&["session", "fork", "demo", "--name", "what-if"], None),
                        run(code.add_in_fork, None),
                        run(code.count_of_fork, Some("16")),
                        run(code.count_of_first, Some("15")),
                    ],
                ),
                chapter(
                    "An agent uses the same session over MCP (`mainstay mcp install` tells yours of it).",
                    vec![Step::Agent { code: code.agent, answer: "328" }],
                ),
                chapter(
                    "All of it is in one log, which commands, the page and programs read.",
                    vec![run(&["session", "transcript", "demo"], Some("328")), Step::Page],
                ),
            ],
        }
    }
}
