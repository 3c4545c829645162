"""What Mainstay asks of a Python kernel beyond the messages of Jupyter: whether code is proven to have changed nothing, what it bound, what
is wrong with code, and what a name stands for. It is run in IPython's shell under a name of its own, and leaves none in the session's.

Nothing here runs the session's code: attributes are looked at without calling properties, and a value is written only where its type and
the types of all that it holds are Python's own. Python 3.8 and later."""

import ast
import base64
import builtins
import getpass
import inspect
import io
import json
import os
import reprlib
import signal
import sys
import threading
import types

#: How much of a value, a signature or a documentation is told, in characters.
TEXT = 200
#: How many items of a value are looked at before it counts as unknown.
ITEMS = 1000
#: How many members or names are told of.
NAMES = 500

ATOMS = (bool, int, float, complex, str, bytes, type(None), range, slice, type(Ellipsis))
BOXES = (list, tuple, set, frozenset, dict)
#: What of Python's own neither changes anything nor calls back into code that might.
PURE_FUNCTIONS = frozenset(
    "abs all any ascii bin bool bytes chr complex dict divmod enumerate float format frozenset hash hex int isinstance issubclass len list "
    "max min oct ord pow print range repr reversed round set slice sorted str sum tuple type zip".split()
)
PURE_METHODS = {
    str: frozenset(name for name in dir(str) if not name.startswith("_")),
    bytes: frozenset(name for name in dir(bytes) if not name.startswith("_")),
    int: frozenset(["bit_length", "to_bytes", "conjugate"]),
    float: frozenset(["is_integer", "hex", "conjugate", "as_integer_ratio"]),
    list: frozenset(["copy", "count", "index"]),
    tuple: frozenset(["count", "index"]),
    dict: frozenset(["copy", "get", "items", "keys", "values"]),
    set: frozenset("copy difference intersection isdisjoint issubset issuperset symmetric_difference union".split()),
    frozenset: frozenset("copy difference intersection isdisjoint issubset issuperset symmetric_difference union".split()),
}
ORIGINALS = {name: getattr(builtins, name) for name in PURE_FUNCTIONS}


class Told:
    """What is told, in a form that comes through IPython's display of an expression as it is."""

    def __init__(self, what):
        self.what = what

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"application/json": self.what, "text/plain": ""}


def is_plain(value, room=None):
    """Whether a value and all that it holds is of Python's own types, so that no code of anyone else's runs when it is used."""
    room = [ITEMS] if room is None else room
    room[0] -= 1
    if room[0] < 0:
        return False
    kind = type(value)
    if kind in ATOMS:
        return True
    if kind is dict:
        return all(is_plain(key, room) and is_plain(item, room) for key, item in value.items())
    return kind in BOXES and all(is_plain(item, room) for item in value)


class Purity:
    """Whether code is proven to change nothing of the session, going by the names as they are before it runs."""

    def __init__(self, names):
        self.names = names
        self.local = set()

    def is_pure(self, tree):
        return all(isinstance(part, ast.Expr) and self.plain(part.value) or isinstance(part, ast.Pass) for part in tree.body)

    def all(self, nodes):
        return all(node is None or self.plain(node) for node in nodes)

    def plain(self, node):
        """Whether evaluating it gives a value of Python's own types and does nothing else."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id in self.local or (node.id in self.names and is_plain(self.names[node.id]))
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return self.all(node.elts)
        if isinstance(node, ast.Dict):
            return self.all(node.keys) and self.all(node.values)
        if isinstance(node, ast.Starred):
            return self.plain(node.value)
        if isinstance(node, ast.BinOp):
            return self.all([node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            return self.plain(node.operand)
        if isinstance(node, ast.BoolOp):
            return self.all(node.values)
        if isinstance(node, ast.Compare):
            return self.all([node.left] + node.comparators)
        if isinstance(node, ast.IfExp):
            return self.all([node.test, node.body, node.orelse])
        if isinstance(node, ast.Subscript):
            index = node.slice
            return self.plain(node.value) and self.plain(getattr(index, "value", index) if type(index).__name__ == "Index" else index)
        if isinstance(node, ast.Slice):
            return self.all([node.lower, node.upper, node.step])
        if isinstance(node, ast.JoinedStr):
            return self.all(node.values)
        if isinstance(node, ast.FormattedValue):
            return self.all([node.value, node.format_spec])
        if isinstance(node, (ast.ListComp, ast.SetComp)):
            return self.loops(node, [node.elt])
        if isinstance(node, ast.DictComp):
            return self.loops(node, [node.key, node.value])
        if isinstance(node, ast.Call):
            return self.call(node)
        return False

    def loops(self, node, results):
        before = set(self.local)
        try:
            for part in node.generators:
                if part.is_async or not self.plain(part.iter):
                    return False
                targets = part.target.elts if isinstance(part.target, (ast.Tuple, ast.List)) else [part.target]
                if not all(isinstance(target, ast.Name) for target in targets):
                    return False
                self.local.update(target.id for target in targets)
                if not self.all(part.ifs):
                    return False
            return self.all(results)
        finally:
            self.local = before

    def call(self, node):
        """A call of one of Python's own functions, or of a method of a value whose type is written there or known."""
        if not self.all(node.args) or not all(word.arg != "file" and self.plain(word.value) for word in node.keywords):
            return False
        if isinstance(node.func, ast.Name):
            name = node.func.id
            is_own = name not in self.names and name not in self.local and getattr(builtins, name, None) is ORIGINALS.get(name)
            # What is given to `print` or `sorted` is plain, and so is no function.
            return name in PURE_FUNCTIONS and is_own
        if isinstance(node.func, ast.Attribute):
            kind = self.kind(node.func.value)
            return node.func.attr in PURE_METHODS.get(kind, ()) and self.plain(node.func.value)
        return False

    def kind(self, node):
        if isinstance(node, ast.Constant):
            return type(node.value)
        if isinstance(node, ast.JoinedStr):
            return str
        if isinstance(node, ast.Name) and node.id not in self.local:
            return type(self.names.get(node.id))
        return {ast.List: list, ast.Tuple: tuple, ast.Dict: dict, ast.Set: set}.get(type(node))


def bound_names(tree):
    """The names that a cell binds at its top level, in order."""
    found = {}

    def bind(node):
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found[part.id] = None

    def visit(node):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                found[(alias.asname or alias.name.split(".")[0])] = None
        elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            pass
        elif isinstance(node, ast.Name):
            bind(node)
        else:
            if isinstance(node, ast.ExceptHandler) and node.name:
                found.pop(node.name, None)
            for part in ast.iter_child_nodes(node):
                visit(part)

    for part in tree.body:
        visit(part)
    return [name for name in found if name != "*"]


def uses_last(tree):
    """Whether code may look at what earlier cells gave."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and (node.id in ("_", "__", "___", "Out", "In", "_ih", "_oh") or node.id[:1] == "_" and node.id[1:].isdigit()):
            return True
    return False


def cut(text, limit=TEXT):
    return text if len(text) <= limit else text[: limit - 1] + "…"


def type_name(value):
    """How a type is written in annotations."""
    kind = type(value)
    if kind is types.ModuleType:
        return "module"
    if inspect.isroutine(value):
        return "function"
    if isinstance(value, type):
        return "type"
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__qualname__


def shown(value):
    """A value in a few words, where writing it runs nobody's code."""
    try:
        return cut(reprlib.repr(value)) if is_plain(value) else None
    except RecursionError:  # it holds itself
        return None


def signature(value):
    if not (inspect.isroutine(value) or isinstance(value, type)):
        return None
    try:
        return cut(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return None


def binding(name, value):
    told = {"name": name, "valueType": signature(value) if inspect.isroutine(value) and signature(value) else type_name(value)}
    text = shown(value)
    if text is not None:
        told["value"] = text
    return told


def documentation(value):
    """What the author of a module, a class or a function says first of it."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    is_known = inspect.isroutine(value) or type(value) in (type, property, types.ModuleType)
    text = value.__doc__ if is_known else None
    return cut(inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")) if isinstance(text, str) and text.strip() else None


def kind_of(value):
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if inspect.isroutine(value) or isinstance(value, (staticmethod, classmethod)):
        return "function"
    if isinstance(value, property):
        return "property"
    return "value"


#: What stands in front of the name of a part of the input that is asked for; as an answer the end, and in front of bytes in base64.
END_OF_INPUT = "\x04"


class RawInput(io.RawIOBase):
    """The bytes of a cell's input. What is read is asked for, as the kernel asks for what `input` reads."""

    mode, name = "rb", "<stdin>"

    def __init__(self):
        self.ask = None  # while a cell runs
        self.unread = memoryview(b"")
        self.part = "lines"
        self.process = os.getpid()

    def readable(self):
        return True

    def fileno(self):
        return 0

    def readinto(self, room):
        if not self.unread:
            self.unread = memoryview(self.asked(self.part))
        count = min(len(room), len(self.unread))
        room[:count] = self.unread[:count]
        self.unread = self.unread[count:]
        return count

    def readall(self):
        unread, self.unread = bytes(self.unread), memoryview(b"")
        return unread + self.asked("rest")

    def asked(self, part):
        # A process that this one forked has no line to whoever answers.
        if self.ask is None or os.getpid() != self.process:
            return b""
        try:
            answer = self.ask(END_OF_INPUT + part)
        except EOFError:
            return b""
        if answer.startswith(END_OF_INPUT):
            return base64.b64decode(answer[1:])
        return (answer if part == "rest" else answer + "\n").encode("utf-8", "surrogatepass")


class Input(io.TextIOWrapper):
    """`sys.stdin`, and `input` and `getpass` beside it. `readline` asks for a line, all else reads ahead."""

    #: The kernel makes these anew for each cell.
    ASKING = ((builtins, "input"), (getpass, "getpass"))

    def __init__(self):
        self.source = RawInput()
        self.kernels = {}
        super().__init__(io.BufferedReader(self.source), encoding="utf-8")

    def readline(self, size=-1):
        self.source.part = "line"
        try:
            return super().readline(size)
        finally:
            self.source.part = "lines"

    def __next__(self):
        line = super().readline()
        if not line:
            raise StopIteration
        return line

    def begin(self):
        """A cell begins: what an earlier one left unread is not its input."""
        self.end()
        for module, name in self.ASKING:
            kernels = getattr(module, name)
            self.kernels[name] = kernels
            setattr(module, name, getattr(self, "own_" + name))
        self.source.ask = self.kernels["input"]

    def end(self):
        """A cell has ended: what still runs is at the end of its input."""
        self.source.ask = None
        self.source.unread = memoryview(b"")
        try:
            self.read()
        except ValueError:  # closed, or no text
            pass
        for module, name in self.ASKING:
            if name in self.kernels:
                setattr(module, name, self.kernels.pop(name))

    def begun_line(self):
        """What was read ahead, up to the end of its line."""
        asks, self.source.ask = self.source.ask, None
        try:
            return "" if self.closed else self.readline()
        finally:
            self.source.ask = asks

    def own_input(self, prompt="", /):
        line = self.begun_line()
        if not line:
            return self.answered("input", prompt)
        print(prompt, end="", flush=True)
        return (line if line.endswith("\n") else line + self.readline()).rstrip("\n")

    def own_getpass(self, *arguments, **named):
        return self.answered("getpass", *arguments, **named)

    def answered(self, name, *arguments, **named):
        """What the kernel's own function gives; xeus-python does not know the end of the input."""
        try:
            answer = self.kernels[name](*arguments, **named)
        except EOFError:
            answer = END_OF_INPUT
        if answer == END_OF_INPUT:
            raise EOFError("EOF when reading a line") from None
        return answer


def send_held(stream):
    """Has what a stream of ipykernel holds back just now sent before all that is sent after it. ipykernel 6 holds back one text, which may grow
    until it is sent. What is given to the thread that sends keeps its order only if it is given at once: what that thread would give itself
    first, a flush that is due could overtake."""
    if not hasattr(stream, "_flush_buffers"):
        stream.pub_thread.schedule(stream._flush)
        return
    for parent, text in stream._flush_buffers():
        if text:
            stream.session.pid = os.getpid()
            message = stream.session.msg("stream", {"name": stream.name, "text": text}, parent=parent)
            stream.session.send(stream.pub_thread, message, ident=stream.topic)


class Order:
    """While a cell runs, has what was printed to one stream sent before what is printed to another after it, as a terminal has it: ipykernel
    sends what each of them holds back on its own, so that the end of a progress bar would come behind the lines printed after it. Nothing
    waits for that. IPython puts writers of its own into the streams for each cell."""

    #: A kernel drops what is not read in time once a thousand messages wait: a cell that goes to and fro more often is sent as before.
    MOST = 200

    def __init__(self):
        self.written = None
        self.writers = []
        self.left = 0

    def begin(self):
        self.end()
        self.left = self.MOST
        streams = [sys.stdout, sys.stderr]
        if all(hasattr(stream, "_flush") and hasattr(getattr(stream, "pub_thread", None), "schedule") for stream in streams):
            for stream in streams:
                self.writers.append((stream, stream.write, self.in_order(stream, stream.write)))
                stream.write = self.writers[-1][-1]

    def in_order(self, stream, write):
        def write_in_order(string):
            before, self.written = self.written, stream
            if before is not None and before is not stream and self.left > 0:
                self.left -= 1
                send_held(before)
            return write(string)

        return write_in_order

    def end(self):
        for stream, before, ours in self.writers:
            if stream.write is ours:
                stream.write = before
        self.writers = []
        self.written = None


class Interrupts:
    """Keeps an interrupt for the code of a cell. Between the moment at which a kernel says that a cell begins and the one at which its code runs,
    the kernel looks at the cell itself; an interrupt that comes then would end that, and the code would run, or the cell would have no end.
    Only ipykernel leaves interrupts to Python."""

    #: What runs in the place of a cell that was interrupted before it ran.
    CODE = "raise KeyboardInterrupt"

    def __init__(self, shell):
        self.before = None
        self.came = False
        self.shell = shell
        handlers = getattr(getattr(shell, "kernel", None), "shell_handlers", {})
        if "execute_request" in handlers:
            handlers["execute_request"] = self.held_while(handlers["execute_request"])

    def held_while(self, handler):
        """The same handler of ipykernel, with interrupts held until the code runs that it has run."""

        async def handle(*given):
            before = self.hold()
            # Code may have taken it out.
            if self not in self.shell.ast_transformers:
                self.shell.ast_transformers.append(self)
            try:
                result = handler(*given)
                return await result if inspect.isawaitable(result) else result
            finally:
                self.release()
                if before is not None:
                    self.before = None

        return handle

    def hold(self):
        """From now on an interrupt is kept. Gives what it would have done; nothing in a thread that is not told of any."""
        if self.before is not None or threading.current_thread() is not threading.main_thread():
            return None
        self.came = False
        self.before = signal.signal(signal.SIGINT, self.note)
        return self.before

    def note(self, number, frame):
        self.came = True

    def release(self):
        # While code runs that awaits something, ipykernel takes interrupts in another way.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == self.note:
            signal.signal(signal.SIGINT, self.before)

    def visit(self, tree):
        """IPython has a cell changed by this right before it is run."""
        self.release()
        if self.came:
            self.came = False
            tree.body[:0] = ast.parse(self.CODE).body
        return tree


class Helper:
    def __init__(self, shell):
        Interrupts(shell)
        self.order = Order()
        self.input = sys.stdin = Input()
        self.shell = shell
        self.cell = None
        self.told = {}
        self.command_line = None
        self.own_command_line = None
        self.known = frozenset(shell.user_ns)
        self.snapshots = None
        shell.events.register("pre_run_cell", self.before)
        shell.events.register("post_run_cell", self.after)

    def run_next_with(self, command_line):
        """The next cell has this in `sys.argv`, and those after it what is there now."""
        self.command_line = command_line

    def before(self, info=None):
        """Looks at a cell before it runs: afterwards its names are others."""
        self.input.begin()
        self.order.begin()
        if self.command_line is not None:
            self.own_command_line, sys.argv, self.command_line = sys.argv, self.command_line, None
        if self.snapshots is not None:
            self.snapshots.begins()
        code = getattr(info, "raw_cell", "")
        self.told = {}
        self.cell = cell = {"code": code, "tree": None, "error": None, "isPure": False, "usesLast": True}
        transformed = getattr(info, "transformed_cell", None) or self.transformed(code)
        try:
            tree = ast.parse(transformed)
        except (SyntaxError, ValueError) as error:
            cell["error"] = error
            return
        except (RecursionError, MemoryError):
            return
        cell["tree"], cell["transformed"] = tree, transformed
        try:
            cell["usesLast"] = uses_last(tree)
            cell["isPure"] = transformed.strip() == code.strip() and Purity(self.shell.user_ns).is_pure(tree)
        except RecursionError:
            pass

    def transformed(self, code):
        try:
            return self.shell.transform_cell(code)
        except Exception:
            return code

    def after(self, result=None):
        """Tells of the cell that has run. It goes along with the reply, which costs less than an expression that the kernel is asked for;
        only some kernels send nothing along with an error."""
        self.input.end()
        self.order.end()
        if self.own_command_line is not None:
            sys.argv, self.own_command_line = self.own_command_line, None
        cell, self.cell = self.cell, None
        if cell is not None:
            if self.snapshots is not None:
                self.snapshots.ends(cell.get("transformed", ""))
            self.told = self.seen(cell)
            self.shell.payload_manager.write_payload({"source": "mainstay", "report": self.told})

    def report(self):
        """What was told of the cell that ran last."""
        return self.told

    def seen(self, cell):
        """What became of a cell."""
        told = {"isPure": cell["isPure"], "usesLast": cell["usesLast"], "bindings": []}
        names = self.shell.user_ns
        if cell["tree"] is not None:
            bound = [name for name in bound_names(cell["tree"]) if name in names]
            told["bindings"] = [binding(name, names[name]) for name in bound[:NAMES]]
            told["kept"] = self.kept(cell)
            last = names.get("_") if cell["tree"].body and isinstance(cell["tree"].body[-1], ast.Expr) else None
            if last is not None:
                told["valueType"] = type_name(last)
        if cell["error"] is not None:
            told["rejected"] = diagnostic(cell["error"], cell["code"])
        return told

    def kept(self, cell):
        """How many bytes of a cell that was left early had come to their end: all statements before the one that was under way."""
        trace = getattr(sys, "last_traceback", None)
        body, code = cell["tree"].body, cell["code"]
        line = None
        while trace is not None:
            if trace.tb_frame.f_code.co_name == "<module>" and trace.tb_frame.f_globals is self.shell.user_ns:
                line = trace.tb_lineno
            trace = trace.tb_next
        if line is None or self.transformed(code).rstrip("\n") != code.rstrip("\n"):
            return 0
        done = [part.end_lineno for part in body if part.end_lineno < line]
        lines = code.split("\n")
        return len("\n".join(lines[: max(done)]).encode()) if done else 0

    def keep_snapshots(self):
        """From now on it is known of each cell what it did, so that snapshots can be written."""
        from mainstay_snapshot import Snapshots

        self.snapshots = Snapshots(self.shell, self.known)

    def keep(self, folder, limit, jobs):
        return self.snapshots.keep(folder, limit, jobs)

    def misfit(self, folder):
        return self.snapshots.misfit(folder)

    def restore(self, folder):
        return self.snapshots.restore(folder)

    def check(self, code):
        code = self.transformed(code)
        try:
            compile(code, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return [diagnostic(error, code)]
        except (RecursionError, MemoryError):
            pass
        return []

    def own(self):
        names = self.shell.user_ns
        hidden = self.shell.user_ns_hidden
        return [name for name in names if not name.startswith("_") and name not in self.known and name not in hidden]

    def values(self):
        names = self.shell.user_ns
        return [binding(name, names[name]) for name in reversed(self.own()[-NAMES:])]

    def find(self, name):
        """What a dotted name stands for, without running any property."""
        first, *rest = name.split(".")
        value = self.shell.user_ns[first] if first in self.shell.user_ns else getattr(builtins, first, sys.modules.get(first, self))
        if value is self:
            return None
        for part in rest:
            try:
                value = value.__dict__[part] if isinstance(value, types.ModuleType) else inspect.getattr_static(value, part)
            except (AttributeError, KeyError):
                return None
        return (value,)

    def members(self, name):
        found = self.find(name)
        if found is None:
            return None
        value = found[0]
        told = {"name": name, "kind": kind_of(value), "members": []}
        if documentation(value):
            told["documentation"] = documentation(value)
        if isinstance(value, type):
            told["bases"] = [base.__qualname__ for base in value.__mro__[1:] if base is not object]
        for member in sorted(member_names(value))[:NAMES]:
            try:
                held = value.__dict__[member] if isinstance(value, types.ModuleType) else inspect.getattr_static(value, member)
            except (AttributeError, KeyError):
                continue
            told["members"].append(self.described({"name": member}, held))
        return told

    def described(self, told, value):
        told["kind"] = kind_of(value)
        written = signature(value) if told["kind"] in ("function", "class") else type_name(value)
        if written:
            told["signature"] = written
        if documentation(value):
            told["documentation"] = documentation(value)
        return told

    def symbols(self, text, limit):
        """What the session defined, and what the modules that it brought in hold, with a text in the name."""
        names, text, found = self.shell.user_ns, text.lower(), []
        for name in self.own():
            value = names[name]
            if text in name.lower():
                found.append((not name.lower().startswith(text), self.described({"name": name, "fullName": name}, value)))
            if isinstance(value, types.ModuleType):
                for member in member_names(value):
                    full = name + "." + member
                    if text in (full if "." in text else member).lower():
                        held = value.__dict__.get(member)
                        told = self.described({"name": member, "fullName": full, "assembly": value.__name__}, held)
                        found.append((not member.lower().startswith(text), told))
        found.sort(key=lambda one: (one[0], len(one[1]["fullName"]), one[1]["fullName"]))
        return {"items": [told for _, told in found[:limit]], "found": len(found)}


def member_names(value):
    """Those that are not hidden, as they are held: a `__dir__` of the value's own would be code."""
    names = set()
    if isinstance(value, types.ModuleType):
        names.update(value.__dict__)
    else:
        for base in (value.__mro__ if isinstance(value, type) else type(value).__mro__):
            if base is not object:
                names.update(base.__dict__)
        own = inspect.getattr_static(value, "__dict__", None)
        if isinstance(own, dict):
            names.update(own)
    return [name for name in names if isinstance(name, str) and not name.startswith("_")]


def diagnostic(error, code):
    """What the compiler says, with lines and columns from 1, in UTF-16 code units."""
    lines = code.split("\n")

    def place(line, column):
        line = min(max(line or 1, 1), len(lines))
        before = lines[line - 1][: max((column or 1) - 1, 0)]
        return {"line": line, "column": len(before.encode("utf-16-le")) // 2 + 1}

    start = place(getattr(error, "lineno", 1), getattr(error, "offset", 1))
    end_line, end_column = getattr(error, "end_lineno", None), getattr(error, "end_offset", None)
    end = place(end_line, end_column) if end_line and end_column and end_column > 0 else start
    return {
        "severity": "error",
        "code": type(error).__name__,
        "message": str(getattr(error, "msg", None) or error),
        "start": start,
        "end": max(start, end, key=lambda one: (one["line"], one["column"])),
    }


def hear_once():
    """ipykernel publishes what processes and C code print, and also writes it to where it would have gone, where it is heard again. What
    is sent there by itself still goes there."""
    for stream in (sys.stdout, sys.stderr):
        there = getattr(stream, "_original_stdstream_copy", None)
        if there is not None:
            stream._original_stdstream_copy = os.open(os.devnull, os.O_WRONLY)
            stream.fileno = lambda there=there: there


def install(shell):
    module = types.ModuleType("mainstay_kernel")
    helper = Helper(shell)
    for name in ("report", "run_next_with", "check", "values", "members", "symbols", "keep_snapshots", "keep", "misfit", "restore"):
        def call(arguments="[]", function=getattr(helper, name)):
            return Told(function(*json.loads(arguments)))
        setattr(module, name, call)
    sys.modules["mainstay_kernel"] = module


hear_once()
install(get_ipython())  # noqa: F821
