//! The code of the stories, in each language. `total` counts what was printed over all stories; `kept` is 41.

/// What runs the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// The scripted worker in the place of F#'s.
    Scripted,
    FSharp,
    /// Python, as ipykernel runs it.
    Python,
    XeusPython,
}

use Language::{FSharp, Python, Scripted, XeusPython};

impl Language {
    /// The kind of session.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Scripted | FSharp => "fsharp",
            Python => "python3",
            XeusPython => "xpython",
        }
    }

    /// Whether code that is interrupted stops, and its worker lives on.
    pub(super) const fn yields(self) -> bool {
        !matches!(self, XeusPython)
    }

    /// Whether all is told that is printed at once. What xeus-python loses never comes to its socket (docs/jupyter.md).
    pub(super) const fn floods(self) -> bool {
        !matches!(self, XeusPython)
    }

    /// What a session begins with.
    pub(super) const fn definitions(self) -> &'static str {
        match self {
            Scripted => "let total = 0\nlet kept = 41",
            FSharp => "let mutable total = 0\nlet kept = 41",
            Python => {
                "import time\ntotal = 0\nkept = 41\n\
                 def counted(message):\n    global total\n    total += 1\n    print(total, flush=True)\n\
                 get_ipython().kernel.comm_manager.register_target('count', lambda comm, message: comm.on_msg(counted))"
            }
            XeusPython => "import time\ntotal = 0\nkept = 41",
        }
    }

    /// Prints so many numbers with a pause after each.
    pub(super) fn counts(self, lines: u64, pause_ms: u64) -> String {
        match self {
            Scripted => format!(
                "for n in 1 .. {lines} do (printfn \"%d\" (total + n); System.Threading.Thread.Sleep {pause_ms})\n\
                 let total = total + {lines}"
            ),
            FSharp => format!(
                "for _ in 1 .. {lines} do\n    total <- total + 1\n    printfn \"%d\" total\n    System.Threading.Thread.Sleep {pause_ms}"
            ),
            Python | XeusPython => format!(
                "for _ in range({lines}):\n    total += 1\n    print(total, flush=True)\n    time.sleep({pause_ms} / 1000)"
            ),
        }
    }

    /// Prints so many numbers at once.
    pub(super) fn flood(self, lines: u64) -> String {
        match self {
            Scripted => {
                format!("for n in 1 .. {lines} do printfn \"%d\" (total + n)\nlet total = total + {lines}")
            }
            FSharp => format!("for _ in 1 .. {lines} do\n    total <- total + 1\n    printfn \"%d\" total"),
            Python | XeusPython => format!("for _ in range({lines}):\n    total += 1\n    print(total)"),
        }
    }

    /// Prints a number, reads a line, and prints it with the next number.
    pub(super) const fn asks(self) -> &'static str {
        match self {
            Scripted => {
                "printfn \"%d\" (total + 1)\nlet line = stdin.ReadLine()\nprintfn \"%s %d\" line (total + 2)\n\
                 let total = total + 2"
            }
            FSharp => {
                "printfn \"%d\" (total + 1)\nlet line = stdin.ReadLine()\nprintfn \"%s %d\" line (total + 2)\n\
                 total <- total + 2"
            }
            Python | XeusPython => {
                "print(total + 1, flush=True)\nline = input()\nprint(line, total + 2)\ntotal += 2"
            }
        }
    }

    /// Prints numbers from one on, and stops some time after it is interrupted.
    pub(super) const fn stops_late(self) -> &'static str {
        match self {
            Scripted => "for n in 1 .. 100000 do (printfn \"%d\" n; System.Threading.Thread.SpinWait 150)",
            FSharp => {
                "try\n    for n in 1 .. 100000 do\n        printfn \"%d\" n\n        System.Threading.Thread.Sleep 20\n\
                 finally\n    let watch = System.Diagnostics.Stopwatch.StartNew()\n    while watch.ElapsedMilliseconds < 300L do ()"
            }
            Python | XeusPython => {
                "n = 0\ntry:\n    while True:\n        n += 1\n        print(n, flush=True)\n        time.sleep(.02)\n\
                 except KeyboardInterrupt:\n    end = time.monotonic() + .3\n    while time.monotonic() < end: pass\n    raise"
            }
        }
    }

    /// Prints one, and never stops.
    pub(super) const fn never_stops(self) -> &'static str {
        match self {
            Scripted => "printfn \"1\"; System.Threading.Thread.SpinWait 1000000",
            FSharp => "printfn \"1\"\ntry () finally (while true do ())",
            Python | XeusPython => {
                "print(1, flush=True)\nwhile True:\n    try: time.sleep(1)\n    except KeyboardInterrupt: pass"
            }
        }
    }
}
