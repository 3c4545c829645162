#!/usr/bin/env python3
"""A worker of the worker protocol (docs/worker-protocol.md) that starts at once, for tests of the command line that need no compiler.

It runs a few forms of F#, and answers them as F#'s worker does. A statement is one of these, on a line of its own or before a `;`:
- `let NAME = VALUE`, `let NAME ARGUMENT… = VALUE` (a function from whole numbers to a whole number), `for NAME in VALUE .. VALUE do VALUE`,
  `while VALUE do VALUE`;
- a value: whole numbers with `+`, `-` and `*`, texts joined with `+`, tuples, names, calls of functions, `(VALUE; VALUE)`;
- `printf`, `printfn`, `eprintf`, `eprintfn` (`%d`, `%s`, `%A`, `%b`), `failwith TEXT`, `exit NUMBER`, `System.Threading.Thread.Sleep NUMBER`,
  `System.Threading.Thread.SpinWait NUMBER` (so many milliseconds, in which nothing interrupts it),
  `stdin.ReadLine()`, `Mainstay.ask TEXT`, `Mainstay.password TEXT`, `TEXT.Length`, `string VALUE`, `System.Environment.GetEnvironmentVariable TEXT`,
  `Mainstay.display (Mainstay.html TEXT)`,
  `Mainstay.display (Mainstay.image (System.Convert.FromBase64String TEXT))`, `not VALUE`, and of `System.IO.File` `Exists` and `ReadAllText`.
Anything else is rejected, so that no test passes on what it does not know.
"""

import json
import os
import re
import socket
import struct
import sys
import threading
import time
import uuid

class Rejected(Exception):
    pass

class Raised(Exception):
    """An exception of the code's: the name of its type, and its message."""

class Interrupted(Exception):
    pass

NOTHING = object()

class Function:
    """A function that code defined, with what its names meant there."""

    def __init__(self, arguments, body, scope):
        self.arguments, self.body, self.scope = arguments, body, scope

class Worker:
    def __init__(self):
        address = os.environ.pop("MAINSTAY_WORKER_ADDRESS").removeprefix("unix:")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address)
        self.writing = threading.Lock()
        self.values = {}
        self.evals = []
        self.more = threading.Condition()
        # The evals that are to stop, by the id of their request.
        self.interrupted = set()
        self.answers = {}
        # How many displays were sent, and up to which the daemon has them with all that was printed before.
        self.displays, self.displayed = 0, 0
        self.send(type="attach", token=os.environ.pop("MAINSTAY_WORKER_TOKEN"), protocol=1)

    def send(self, **message):
        frame = json.dumps(message).encode()
        with self.writing:
            self.socket.sendall(struct.pack(">I", len(frame)) + frame)

    def read(self, count):
        read = b""
        while len(read) < count:
            part = self.socket.recv(count - len(read))
            if not part:
                os._exit(0)
            read += part
        return read

    def live(self):
        threading.Thread(target=self.run_evals, daemon=True).start()
        while True:
            (length,) = struct.unpack(">I", self.read(4))
            self.take(json.loads(self.read(length)))

    def take(self, message):
        kind, id = message["type"], message.get("id")
        with self.more:
            if kind in ("eval", "reset"):
                self.evals.append(message)
            elif kind == "interrupt":
                self.interrupted.add(message["eval"])
            elif kind == "answer":
                self.answers[message["ask"]] = message
            elif kind == "displayed":
                self.displayed = message["mark"]
            self.more.notify_all()
        if kind == "hello":
            os.environ.update(message.get("variables", {}))
            os.chdir(message["workingDirectory"])
            self.ready(id)
        elif kind == "standBy":
            self.send(type="standsBy", id=id, pid=os.getpid())
        elif kind == "interrupt":
            self.send(type="interrupted", id=id)
        elif kind == "check":
            self.send(type="diagnostics", id=id, diagnostics=[])
        elif kind == "complete":
            self.send(type="completions", id=id, **self.completions(message))
        elif kind == "values":
            told = [shown(name, value) for name, value in reversed(self.values.items()) if name != "it"]
            self.send(type="values", id=id, bindings=told)
        elif kind not in ("eval", "reset", "answer", "displayed", "upcoming"):
            self.send(type="failed", id=id, code="internal", message=f"the scripted worker does not know {kind}")

    def completions(self, message):
        """The names of values that begin as the word before the cursor does."""
        line = message["code"].splitlines()[message["line"] - 1][:message["column"] - 1]
        word = re.search(r"\w*$", line)[0]
        items = [{"label": name, "kind": "value"} for name in self.values if name.startswith(word)]
        return {"items": items, "start": {"line": message["line"], "column": message["column"] - len(word)}}

    def ready(self, id):
        capabilities = ["check", "complete", "interrupt", "reset", "values"]
        self.send(type="ready", id=id, kernel="fsharp", version="scripted", runtime="scripted", pid=os.getpid(), capabilities=capabilities)

    def run_evals(self):
        while True:
            with self.more:
                self.more.wait_for(lambda: self.evals)
                message = self.evals.pop(0)
            if message["type"] == "reset":
                self.values.clear()
                self.ready(message["id"])
            else:
                self.send(type="result", id=message["id"], **Eval(self, message).run())

class Eval:
    def __init__(self, worker, message):
        self.worker, self.id, self.job = worker, message["id"], message["job"]
        self.code = message["code"]
        self.bindings, self.prompt, self.changes, self.uses_last = [], [], False, False
        # The line that the code has begun to print.
        self.begun_line = ""

    def run(self):
        began, end = time.monotonic(), {"success": False}
        value = NOTHING
        try:
            for statement in statements(self.code):
                self.stop_where_wanted()
                value = self.statement(statement)
            end = {"success": True, "outcome": "completed"}
            if value is None:
                self.prompt.append("val it: unit = ()")
            elif value is not NOTHING:
                told = shown("it", value)
                self.worker.values["it"] = value
                self.prompt.append(f"val it: {told['valueType']} = {told['value']}")
                end |= {"value": told["value"], "valueType": told["valueType"]}
        except Rejected as rejected:
            place = {"line": 1, "column": 1}
            diagnostic = {"severity": "error", "code": "FS0039", "message": str(rejected), "start": place, "end": place}
            end |= {"outcome": "rejected", "diagnostics": [diagnostic]}
        except Raised as raised:
            end |= {"outcome": "raised", "error": {"kind": raised.args[0], "message": raised.args[1]}}
        except Interrupted:
            end |= {"outcome": "interrupted"}
        except Exception as error:
            diagnostic = {"severity": "error", "code": "FS0001", "message": f"the scripted worker: {error!r}"}
            end |= {"outcome": "rejected", "diagnostics": [diagnostic]}
        sys.stdout.flush()
        sys.stderr.flush()
        took = round((time.monotonic() - began) * 1000)
        defaults = {"diagnostics": [], "display": "\n".join(self.prompt), "bindings": self.bindings}
        return defaults | {"changesState": self.changes, "usesLast": self.uses_last, "durationMs": took} | end

    def statement(self, text):
        """Runs a statement. Returns the value of an expression, where `None` is F#'s unit, and `NOTHING` for a definition."""
        if bound := re.fullmatch(r"let\s+(?:mutable\s+)?([A-Za-z_]\w*)((?:\s+[A-Za-z_]\w*)*)\s*=\s*(.+)", text):
            self.changes = True
            name, arguments = bound[1], bound[2].split()
            body = tokens_of(bound[3])
            value = Function(arguments, body, dict(self.worker.values)) if arguments else self.value(body)
            self.worker.values[name] = value
            told = shown(name, value)
            self.bindings.append(told)
            self.prompt.append(f"val {name}: {told['valueType']}" + (f" = {told['value']}" if "value" in told else ""))
            return NOTHING
        if loop := re.fullmatch(r"for\s+([A-Za-z_]\w*)\s+in\s+(\S+)\s*\.\.\s*(\S+)\s+do\s+(.+)", text):
            first, last, body = self.value(tokens_of(loop[2])), self.value(tokens_of(loop[3])), tokens_of(loop[4])
            scope = self.worker.values
            for value in range(first, last + 1):
                self.stop_where_wanted()
                self.value(body, scope | {loop[1]: value})
            return None
        if loop := re.fullmatch(r"while\s+(.+?)\s+do\s+(.+)", text):
            condition, body = tokens_of(loop[1]), tokens_of(loop[2])
            while self.value(condition):
                self.stop_where_wanted()
                self.value(body)
            return None
        return self.value(tokens_of(text))

    def value(self, tokens, scope=None):
        value, rest = self.tuple(tokens, self.worker.values if scope is None else scope)
        if rest:
            raise Rejected(f"the scripted worker does not know `{' '.join(rest)}` in `{' '.join(tokens)}`")
        return value

    def tuple(self, tokens, scope):
        value, tokens = self.sum(tokens, scope)
        parts = [value]
        while tokens[:1] == [","]:
            value, tokens = self.sum(tokens[1:], scope)
            parts.append(value)
        return (tuple(parts) if len(parts) > 1 else value), tokens

    def sum(self, tokens, scope):
        value, tokens = self.product(tokens, scope)
        while tokens and tokens[0] in "+-":
            other, rest = self.product(tokens[1:], scope)
            if type(value) is not type(other):
                raise Rejected(f"The type '{shown('', other)['valueType']}' does not match the type '{shown('', value)['valueType']}'")
            value, tokens = (value + other if tokens[0] == "+" else value - other), rest
        return value, tokens

    def product(self, tokens, scope):
        value, tokens = self.application(tokens, scope)
        while tokens and tokens[0] == "*":
            other, tokens = self.application(tokens[1:], scope)
            value *= other
        return value, tokens

    def application(self, tokens, scope):
        """A function with all of its arguments, or what stands alone."""
        first = tokens[0] if tokens else ""
        if first in PRINTS:
            return self.print(first, tokens[1:], scope)
        if first in CALLS:
            argument, rest = self.atom(tokens[1:], scope)
            self.changes = True
            return CALLS[first](self, argument), rest
        value, tokens = self.atom(tokens, scope)
        if not isinstance(value, Function) or not tokens or tokens[0] in "),;":
            return value, tokens
        arguments = {}
        for name in value.arguments:
            arguments[name], tokens = self.atom(tokens, scope)
        return self.value(value.body, value.scope | arguments), tokens

    def atom(self, tokens, scope):
        value, rest = self.simple(tokens, scope)
        while isinstance(value, str) and rest[:2] == [".", "Length"]:
            value, rest = len(value), rest[2:]
        return value, rest

    def simple(self, tokens, scope):
        if not tokens:
            raise Rejected("Incomplete structured construct")
        first, rest = tokens[0], tokens[1:]
        if first == "(" and rest[:1] == [")"]:
            return None, rest[1:]
        if first == "(":
            value, rest = self.tuple(rest, scope)
            while rest[:1] == [";"]:
                value, rest = self.tuple(rest[1:], scope)
            if rest[:1] != [")"]:
                raise Rejected("Unmatched '('")
            return value, rest[1:]
        if first == "-" and rest and rest[0].isdigit():
            return -int(rest[0]), rest[1:]
        if first.isdigit():
            return int(first), rest
        if first.startswith('"'):
            return json.loads(first), rest
        if first in ("true", "false"):
            return first == "true", rest
        if first.endswith(".Length") and isinstance(scope.get(first.removesuffix(".Length")), str):
            return len(scope[first.removesuffix(".Length")]), rest
        if first in scope:
            self.uses_last |= first == "it"
            return scope[first], rest
        raise Rejected(f"The value or constructor '{first}' is not defined.")

    def print(self, function, tokens, scope):
        """Prints a form; the arguments that it has a place for follow it."""
        self.changes = True
        form, tokens = self.atom(tokens, scope)
        arguments = []
        for _ in re.findall(r"%[dsAb]", form):
            argument, tokens = self.atom(tokens, scope)
            arguments.append(argument)
        put = lambda place: arguments.pop(0) if place[0] == "%s" else shown("", arguments.pop(0))["value"]
        stream = sys.stderr if function.startswith("e") else sys.stdout
        text = re.sub(r"%[dsAb]", put, form).replace("%%", "%") + ("\n" if function.endswith("n") else "")
        stream.write(text)
        stream.flush()
        if stream is sys.stdout:
            self.begun_line = (self.begun_line + text).rpartition("\n")[2]
        return None, tokens

    def sleep(self, milliseconds):
        self.wait(lambda: False, None if milliseconds < 0 else milliseconds / 1000)

    def fail(self, message):
        raise Raised("System.Exception", message)

    def read_file(self, path):
        try:
            with open(path) as file:
                return file.read()
        except FileNotFoundError:
            raise Raised("System.IO.FileNotFoundException", f"Could not find file '{os.path.abspath(path)}'.")

    def show(self, form):
        self.worker.displays += 1
        mark = self.worker.displays
        self.worker.send(type="display", data=dict([form]), mark=mark)
        # What is printed from here on stands behind the display.
        self.wait(lambda: self.worker.displayed >= mark, None)

    def read_line(self, _):
        """Asks with the line that the code has begun to print, as F#'s worker does."""
        prompt, self.begun_line = self.begun_line.strip(), ""
        schema = {"title": "a line of the input", "type": "string"}
        return self.ask(prompt or "the code reads a line", schema=schema)

    def ask_secret(self, prompt):
        return self.ask(prompt, schema={"type": "string", "writeOnly": True})

    def ask(self, prompt, **members):
        ask = str(uuid.uuid4())
        sys.stdout.flush()
        self.worker.send(type="asks", ask=ask, job=self.job, prompt=prompt, **members)
        self.wait(lambda: ask in self.worker.answers, None)
        answer = self.worker.answers.pop(ask)
        if "value" not in answer:
            raise Raised("System.OperationCanceledException", answer.get("refused") or "nobody answered")
        return answer["value"]

    def wait(self, has_come, seconds):
        with self.worker.more:
            self.worker.more.wait_for(lambda: has_come() or self.id in self.worker.interrupted, seconds)
        self.stop_where_wanted()

    def stop_where_wanted(self):
        if self.id in self.worker.interrupted:
            raise Interrupted()

PRINTS = ("printf", "printfn", "eprintf", "eprintfn")
# The functions of one argument, each by its method.
CALLS = {
    "System.Threading.Thread.Sleep": Eval.sleep,
    "System.Threading.Thread.SpinWait": lambda _, milliseconds: time.sleep(milliseconds / 1000),
    "System.IO.File.Exists": lambda _, path: os.path.exists(path),
    "System.IO.File.ReadAllText": Eval.read_file,
    "failwith": Eval.fail,
    "exit": lambda _, code: os._exit(code),
    "not": lambda _, value: not value,
    "stdin.ReadLine": Eval.read_line,
    "System.Console.ReadLine": Eval.read_line,
    "Mainstay.ask": Eval.ask,
    "Mainstay.password": Eval.ask_secret,
    "System.Environment.GetEnvironmentVariable": lambda _, name: os.environ.get(name),
    "string": lambda _, value: "" if value is None else str(value),
    "Mainstay.display": Eval.show,
    "Mainstay.html": lambda _, html: ("text/html", html),
    "Mainstay.image": lambda _, image: ("image/png", image),
    # Forms have their bytes in base64.
    "System.Convert.FromBase64String": lambda _, text: text,
}
TEXT = r'"(?:[^"\\]|\\.)*"'

def tokens_of(text):
    return re.findall(TEXT + r"|[A-Za-z_][\w.]*|\d+|\S", text)

def statements(code):
    """The statements of code, a line each or apart by `;` that stands in no parentheses; comments are left out."""
    for line in code.splitlines():
        line = re.sub(r"^\s*//.*", "", line)
        statement, depth = "", 0
        for part in re.findall(TEXT + r"|.", line):
            depth += (part == "(") - (part == ")")
            if part == ";" and depth <= 0:
                yield from filter(None, [statement.strip()])
                statement = ""
            else:
                statement += part
        yield from filter(None, [statement.strip()])

def shown(name, value):
    """A value as F#'s prompt tells it."""
    if isinstance(value, Function):
        arguments = " -> ".join(f"{argument}: int" for argument in value.arguments)
        return {"name": name, "valueType": f"{arguments} -> int"}
    if isinstance(value, tuple):
        parts = [shown("", part) for part in value]
        kind, text = " * ".join(part["valueType"] for part in parts), f"({', '.join(part['value'] for part in parts)})"
    elif isinstance(value, bool):
        kind, text = "bool", "true" if value else "false"
    elif isinstance(value, int):
        kind, text = "int", str(value)
    else:
        kind, text = "string", json.dumps(value, ensure_ascii=False)
    return {"name": name, "valueType": kind, "value": text}

Worker().live()
