#!/usr/bin/env python3
"""A worker of the worker protocol (docs/worker-protocol.md) that starts at once, for tests of the command line that need no compiler.

It runs a few forms of F#, and answers them as F#'s worker does: `let NAME = VALUE`, values, sums and products of whole numbers, texts
joined with `+`, `printf`, `printfn`, `eprintfn` (`%d`, `%s`, `%A`), `failwith TEXT`, `exit NUMBER`, `System.Threading.Thread.Sleep NUMBER`, `Mainstay.ask TEXT`.
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
    pass

class Interrupted(Exception):
    pass

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
            self.more.notify_all()
        if kind == "hello":
            self.ready(id)
        elif kind == "interrupt":
            self.send(type="interrupted", id=id)
        elif kind == "check":
            self.send(type="diagnostics", id=id, diagnostics=[])
        elif kind == "values":
            told = [shown(name, value) for name, value in reversed(self.values.items()) if name != "it"]
            self.send(type="values", id=id, bindings=told)
        elif kind not in ("eval", "reset", "answer", "displayed", "upcoming"):
            self.send(type="failed", id=id, code="internal", message=f"the scripted worker does not know {kind}")

    def ready(self, id):
        capabilities = ["check", "interrupt", "reset", "values"]
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

    def run(self):
        began, end = time.monotonic(), {"success": False}
        value = None
        try:
            for statement in statements(self.code):
                self.stop_where_wanted()
                value = self.statement(statement)
            end = {"success": True, "outcome": "completed"}
            if value is not None:
                told = shown("it", value)
                self.worker.values["it"] = value
                self.prompt.append(f"val it: {told['valueType']} = {told['value']}")
                end |= {"value": told["value"], "valueType": told["valueType"]}
        except Rejected as rejected:
            place = {"line": 1, "column": 1}
            diagnostic = {"severity": "error", "code": "FS0039", "message": str(rejected), "start": place, "end": place}
            end |= {"outcome": "rejected", "diagnostics": [diagnostic]}
        except Raised as raised:
            end |= {"outcome": "raised", "error": {"kind": "System.Exception", "message": str(raised)}}
        except Interrupted:
            end |= {"outcome": "interrupted"}
        sys.stdout.flush()
        sys.stderr.flush()
        took = round((time.monotonic() - began) * 1000)
        defaults = {"diagnostics": [], "display": "\n".join(self.prompt), "bindings": self.bindings}
        return defaults | {"changesState": self.changes, "usesLast": self.uses_last, "durationMs": took} | end

    def statement(self, text):
        if bound := re.fullmatch(r"let\s+(?:mutable\s+)?([A-Za-z_]\w*)\s*=\s*(.+)", text):
            self.changes = True
            value = self.value(bound[2])
            self.worker.values[bound[1]] = value
            told = shown(bound[1], value)
            self.bindings.append(told)
            self.prompt.append(f"val {bound[1]}: {told['valueType']} = {told['value']}")
            return None
        if call := re.fullmatch(r"(printfn?|eprintfn?)\s+(\"(?:[^\"\\]|\\.)*\")(.*)", text):
            self.changes = True
            stream = sys.stderr if call[1].startswith("e") else sys.stdout
            stream.write(self.formatted(json.loads(call[2]), call[3]) + ("\n" if call[1].endswith("n") else ""))
            stream.flush()
            return None
        if call := re.fullmatch(r"(?:System\.)?(?:Threading\.)?Thread\.Sleep\s*\(?\s*(-?\d+)\s*\)?", text):
            self.changes = True
            self.wait(lambda: False, None if int(call[1]) < 0 else int(call[1]) / 1000)
            return None
        if call := re.fullmatch(r"failwith\s+(.+)", text):
            self.changes = True
            raise Raised(self.value(call[1]))
        if call := re.fullmatch(r"exit\s+(\d+)", text):
            os._exit(int(call[1]))
        return self.value(text)

    def value(self, text):
        text = text.strip()
        if call := re.fullmatch(r"Mainstay\.ask\s+(\".*\")", text):
            self.changes = True
            return self.ask(json.loads(call[1]))
        if text in ("true", "false"):
            return text == "true"
        tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|\d+|[-+*()]|\S', text)
        value, rest = self.sum(tokens)
        if rest:
            raise Rejected(f"the scripted worker does not know `{text}`")
        return value

    def sum(self, tokens):
        value, tokens = self.product(tokens)
        while tokens and tokens[0] in "+-":
            other, rest = self.product(tokens[1:])
            value, tokens = (value + other if tokens[0] == "+" else value - other), rest
        return value, tokens

    def product(self, tokens):
        value, tokens = self.atom(tokens)
        while tokens and tokens[0] == "*":
            other, tokens = self.atom(tokens[1:])
            value *= other
        return value, tokens

    def atom(self, tokens):
        if not tokens:
            raise Rejected("Incomplete structured construct")
        first, rest = tokens[0], tokens[1:]
        if first == "(":
            value, rest = self.sum(rest)
            if rest[:1] != [")"]:
                raise Rejected("Unmatched '('")
            return value, rest[1:]
        if first == "-" and rest and rest[0].isdigit():
            return -int(rest[0]), rest[1:]
        if first.isdigit():
            return int(first), rest
        if first.startswith('"'):
            return json.loads(first), rest
        if first in self.worker.values:
            self.uses_last |= first == "it"
            return self.worker.values[first], rest
        raise Rejected(f"The value or constructor '{first}' is not defined.")

    def formatted(self, form, rest):
        values = iter(re.findall(r'"(?:[^"\\]|\\.)*"|\([^()]*\)|\S+', rest))

        def put(match):
            value = self.value(next(values))
            return value if match[0] == "%s" else shown("", value)["value"]

        return re.sub(r"%[dsAb]", put, form).replace("%%", "%")

    def ask(self, prompt):
        ask = str(uuid.uuid4())
        sys.stdout.flush()
        self.worker.send(type="asks", ask=ask, job=self.job, prompt=prompt)
        self.wait(lambda: ask in self.worker.answers, None)
        answer = self.worker.answers.pop(ask)
        if "value" not in answer:
            raise Raised(answer.get("refused") or "nobody answered")
        return answer["value"]

    def wait(self, has_come, seconds):
        with self.worker.more:
            self.worker.more.wait_for(lambda: has_come() or self.id in self.worker.interrupted, seconds)
        self.stop_where_wanted()

    def stop_where_wanted(self):
        if self.id in self.worker.interrupted:
            raise Interrupted()

def statements(code):
    """The statements of code, a line each or apart by `;`; comments are left out."""
    for line in code.splitlines():
        line = re.sub(r"^\s*//.*", "", line)
        for statement in re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^";])+', line):
            if statement.strip():
                yield statement.strip()

def shown(name, value):
    """A value as F#'s prompt tells it."""
    if isinstance(value, bool):
        kind, text = "bool", "true" if value else "false"
    elif isinstance(value, int):
        kind, text = "int", str(value)
    else:
        kind, text = "string", json.dumps(value, ensure_ascii=False)
    return {"name": name, "valueType": kind, "value": text}

Worker().live()
