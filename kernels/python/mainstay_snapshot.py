"""Keeps what a Python session's names have, so that a rebuilt session need not compute it again: by pickle, in a folder that is the user's alone.

A snapshot is written by a process that is forked off while no cell runs, so no cell waits for it. What shares a mutable part is pickled as one,
and large buffers lie in files of their own, called by their hash, so that only what has changed is written. What a snapshot cannot keep is named with
the reason, and each cell with the names that it binds and mentions: from that it is decided elsewhere which cells have to run again. Python 3.8 and
later, with cloudpickle where that is there."""

import _abc
import abc
import ast
import enum
import fcntl
import gc
import hashlib
import importlib
import io
import json
import marshal
import os
import pickle
import re
import resource
import signal
import symtable
import sys
import types
import warnings

VERSION = 1
#: A buffer that is smaller lies in the pickle of its value.
SMALL = 64 * 1024
#: How many objects are looked at for what shares a part with what.
OBJECTS = 2_000_000
#: How long writing a snapshot may take, in seconds of processor time.
SECONDS = 120
#: Names that code may use to look at any other name.
DYNAMIC = frozenset(["exec", "eval", "globals", "locals", "vars", "__main__", "In", "Out"])
#: Magics that only set something up, and are run again as imports are.
SETTING_UP = frozenset(["matplotlib", "pylab", "load_ext", "autoreload", "config", "precision"])
#: Magics that run the Python that they are given.
RUNNING = frozenset(["time", "timeit", "prun", "capture", "memit"])
#: What of a library is kept on its own (`libraries`), so that setting it patches nothing.
KEPT_APART = frozenset(["rcParams", "options", "environ"])
#: Libraries whose objects live in front ends, or in the kernel.
NOT_KEPT = frozenset(["ipywidgets", "comm", "ipykernel", "zmq"])
#: Decorators of Python's own that keep no state.
PLAIN_DECORATORS = frozenset(["property", "staticmethod", "classmethod", "abstractmethod", "dataclass", "total_ordering", "unique", "wraps"])
#: What a pickle names rather than holds, where it is a module's.
BY_REFERENCE = (type, types.FunctionType, types.ModuleType)
ATOMS = (bool, int, float, complex, str, bytes, type(None), range, slice, type(Ellipsis), type(NotImplemented))
MARK = re.compile(r"\s*#\s*mainstay:\s*rerun\s*$")
#: Names that IPython gives what was entered and what came of it.
OWN = re.compile(r"_i{0,3}$|_i?\d+$|_{2,3}$")


def last_value(names):
    """Whether `_` is the value of a cell, as IPython has it, and no name of the session's own code."""
    return "_" in names and "_oh" in names and any(names["_"] is value for value in names["_oh"].values())


def is_atom(value, depth=3):
    """Whether nobody can change it, so that it does not matter who else has it."""
    kind = type(value)
    if kind in ATOMS or issubclass(kind, (enum.Enum, types.ModuleType)):
        return True
    return kind is tuple and depth > 0 and len(value) <= 100 and all(is_atom(item, depth - 1) for item in value)


def is_active(value, names):
    """Whether it is code of the session's, or has such code: who uses it may use any name that the code mentions."""
    kind = type(value)
    if kind.__module__ == "__main__" or issubclass(kind, type) and value.__module__ == "__main__":
        return True
    if kind is types.MethodType:
        return is_active(value.__func__, names) or is_active(value.__self__, names)
    if kind is types.FunctionType:
        return value.__globals__ is names
    frame = value.gi_frame if kind is types.GeneratorType else value.cr_frame if kind is types.CoroutineType else None
    return frame is not None and frame.f_globals is names


def fingerprint(value):
    """What tells whether a function or a class was changed: what it holds, by identity. JSON gives it back as it is."""
    kind = type(value)
    if kind is types.FunctionType and value.__module__ == "__main__":
        held = [value.__code__, value.__defaults__, value.__kwdefaults__, *value.__dict__.values()]
        return [list(value.__dict__), list(map(id, held))]
    if issubclass(kind, type) and value.__module__ == "__main__":
        held = {name: id(part) for name, part in vars(value).items() if name not in ("__dict__", "__weakref__", "__annotations__")}
        registered = len(_abc._get_dump(value)[0]) if kind is abc.ABCMeta else 0
        return [list(held), list(held.values()), registered]
    return None


def is_hooked(value):
    """Whether making a class runs code of the session's."""
    if not issubclass(type(value), type):
        return False
    hooks = any(base.__module__ == "__main__" and "__init_subclass__" in vars(base) for base in value.__mro__[1:])
    return hooks or type(value).__module__ == "__main__"


def is_defined(value):
    """Whether a name that a cell imports or defines has nothing in it that can be changed, but for what `fingerprint` sees."""
    kinds = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    return issubclass(type(value), kinds) or is_atom(value) or type(value).__name__ == "ufunc"


class Code:
    """What the text of a cell says: what it binds, what it mentions, and whether running it again does nothing but define."""

    def __init__(self, code, names):
        self.names = names
        self.binds, self.mentions, self.declares, self.needs = set(), set(), set(), set()
        self.is_dynamic = self.patches = self.is_definition = self.is_decorated = False
        self.must_rerun = bool(MARK.match(code.lstrip().split("\n", 1)[0]))
        try:
            tree = self.read(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.is_dynamic = True
        else:
            defines = bool(tree.body) and all(map(self.defines, tree.body))
            # What a decorator does beside is not known, and to define again costs little.
            self.must_rerun |= defines and self.is_decorated
            self.is_definition = defines and not self.must_rerun and not self.patches

    def read(self, code):
        """Notes what some code says, and gives its tree."""
        tree = ast.parse(code)
        self.note_names(symtable.symtable(code, "<cell>", "exec"), True)
        self.visit(tree)
        return tree

    def note_names(self, table, is_outermost):
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if is_outermost and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
                self.binds.add(name)
            if is_outermost and symbol.is_referenced() or not is_outermost and symbol.is_global():
                self.mentions.add(name)
                if not is_outermost and symbol.is_assigned():
                    self.declares.add(name)
        for child in table.get_children():
            self.note_names(child, False)

    def defines(self, node):
        """Whether a statement only gives a meaning to names, and that the same whenever it runs."""
        if isinstance(node, (ast.Import, ast.Pass)):
            return True
        if isinstance(node, ast.ImportFrom):
            return all(alias.name != "*" for alias in node.names)
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or magic(node.value)[0] in SETTING_UP
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            parts = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            self.need([part.annotation for part in parts if part is not None] + [node.returns] + node.decorator_list)
            defaults = given.defaults + [part for part in given.kw_defaults if part is not None]
            self.is_decorated |= not all(map(is_plain_decorator, node.decorator_list))
            return all(map(is_constant, defaults))
        if isinstance(node, ast.ClassDef):
            given = node.bases + [word.value for word in node.keywords]
            self.need(given + node.decorator_list)
            self.is_decorated |= not all(map(is_plain_decorator, node.decorator_list))
            return all(map(is_dotted, given)) and all(map(self.belongs_to_class, node.body))
        return False

    def need(self, nodes):
        """Notes what has to be there for a definition to run."""
        self.needs.update(part.id for node in nodes if node is not None for part in ast.walk(node) if isinstance(part, ast.Name))

    def belongs_to_class(self, node):
        """Whether a statement in a class only defines, and leaves nothing there that can be changed."""
        if isinstance(node, ast.Assign):
            return is_constant(node.value)
        if isinstance(node, ast.AnnAssign):
            self.need([node.annotation])
            return node.value is None or is_constant(node.value) or getattr(getattr(node.value, "func", None), "id", None) == "field"
        return self.defines(node)

    def visit(self, node):
        if isinstance(node, ast.Call) and magic(node)[0] is not None:
            return self.visit_magic(*magic(node))
        if isinstance(node, ast.Name) and node.id == "get_ipython":
            self.is_dynamic = True
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            self.note_store(node)
        for part in ast.iter_child_nodes(node):
            self.visit(part)

    def visit_magic(self, name, text):
        """Code may stand in the text that a magic is given."""
        if name in RUNNING:
            try:
                self.read(text)
            except (SyntaxError, ValueError):
                self.is_dynamic = True
        elif name == "system":
            self.is_dynamic |= "$" in text or "{" in text
        elif name not in SETTING_UP:
            self.is_dynamic = True

    def note_store(self, node):
        """What is put into a module, or a class, is no name's value."""
        path = []
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            path.append(getattr(node, "attr", None))
            node = node.value
        root = self.names.get(node.id) if isinstance(node, ast.Name) else None
        is_definition = issubclass(type(root), (types.ModuleType, types.FunctionType, type)) and not KEPT_APART.intersection(path)
        # As a method writes its class, where it does not write its name.
        is_class = getattr(node, "id", None) == "cls" or getattr(getattr(node, "func", None), "id", None) == "type" or "__class__" in path[1:]
        self.patches |= is_definition or is_class

    def record(self):
        """What is decided from."""
        mentions = self.mentions - {"get_ipython"}
        looks = mentions & DYNAMIC or any(OWN.match(name) and name != "_" and not name.startswith("__") for name in mentions)
        return {
            "binds": sorted(self.binds),
            "mentions": sorted(mentions),
            "declares": sorted(self.declares),
            "needs": sorted(self.needs),
            "isDefinition": self.is_definition,
            "isDynamic": self.is_dynamic or bool(looks),
            "mustRerun": self.must_rerun or self.patches,
            "patches": self.patches,
        }


def is_constant(node):
    """Whether it is a value that nobody can change."""
    if isinstance(node, ast.Tuple):
        return all(map(is_constant, node.elts))
    return isinstance(node, ast.Constant) or isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def is_plain_decorator(node):
    """Whether a decorator of Python's own leaves nothing behind that can be changed."""
    return (getattr(node, "func", None) or node).__dict__.get("id") in PLAIN_DECORATORS


def is_dotted(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def magic(node):
    """The magic that a call is, as IPython writes it, and the text it is given; `system` for a command of the shell, none for any other call."""
    function = getattr(node, "func", None)
    shell = getattr(function, "value", None)
    if not (isinstance(function, ast.Attribute) and isinstance(shell, ast.Call) and getattr(shell.func, "id", None) == "get_ipython"):
        return None, ""
    given = [part.value if isinstance(part, ast.Constant) else None for part in node.args]
    if None in given or not all(isinstance(part, str) for part in given):
        return "", ""
    if function.attr in ("system", "getoutput"):
        return "system", " ".join(given)
    return (given[0], given[-1]) if function.attr in ("run_line_magic", "run_cell_magic") and len(given) > 1 else ("", "")


def held_by_modules(own):
    """What modules hold under a name, by its id: it is theirs, whoever refers to it."""
    found = {}
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or vars(module) is own or sys.modules.get(module.__name__) is not module:
            continue
        for name, value in list(vars(module).items()):
            if type(value) not in ATOMS and type(value) not in (tuple, frozenset):
                found.setdefault(id(value), (module.__name__, name, is_library(module)))
    return found


def is_library(module):
    """Whether a module comes with Python or was installed, so that what it holds is there again once it is imported."""
    file = getattr(module, "__file__", None) or ""
    return not file or "site-packages" in file or "dist-packages" in file or file.startswith((sys.base_prefix, sys.prefix, "<"))


def is_copying_on_write():
    """Whether tables of pandas that share memory are copied before one of them is changed, as since version 3."""
    pandas = sys.modules.get("pandas")
    version = getattr(pandas, "__version__", "0").split(".")[0]
    return version.isdigit() and int(version) >= 3


class Objects:
    """Which names have a mutable part in common: these are pickled as one, so that it is one part again."""

    def __init__(self, names, skipped):
        self.names = names
        self.left = OBJECTS
        self.owner = {}
        self.copies_on_write = is_copying_on_write()
        self.parent = {name: name for name in names}
        self.arrays = {}
        #: What has memory that arrays may see, by its id, where a name leads to it.
        self.memory = set()
        # What a module holds is its own, whoever refers to it.
        own = self.own = skipped[0]
        self.held = held_by_modules(own)
        self.skipped = {*self.held, *map(id, skipped)}
        self.too_many = set()
        #: The names that lead to code of the session's.
        self.active = set()
        for name in names:
            if not self.walk(name, names[name]):
                self.too_many.add(name)

    def root(self, name):
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def walk(self, name, value):
        heap = [value]
        while heap:
            value = heap.pop()
            kind = type(value)
            if kind in ATOMS:
                continue
            if is_active(value, self.own):
                self.active.add(name)
            if id(value) in self.skipped or isinstance(value, types.ModuleType):
                continue
            if isinstance(value, type) and value.__module__ != "__main__" or isinstance(value, types.CodeType):
                continue
            if kind is not tuple and kind is not frozenset and kind.__name__.lower().find("dtype") < 0:
                other = self.owner.get(id(value))
                if other is not None:
                    self.parent[self.root(name)] = self.root(other)
                    continue
                self.owner[id(value)] = name
            self.left -= 1
            if self.left < 0:
                return False
            if is_array(value):
                self.note_array(name, value)
            heap.extend(self.parts(value))
        return True

    def note_array(self, name, value):
        """Arrays of which the one sees the memory of the other belong together."""
        base = base_of(value)
        self.arrays.setdefault(id(base), {})[id(value)] = value
        other = self.owner.setdefault(("memory", id(base)), name)
        self.parent[self.root(name)] = self.root(other)

    def parts(self, value):
        """What it holds: for code no more than belongs to it alone."""
        if isinstance(value, types.FunctionType):
            return [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *(value.__closure__ or ()), value.__dict__]
        if isinstance(value, (types.GeneratorType, types.CoroutineType, types.FrameType)):
            frame = getattr(value, "gi_frame", None) or getattr(value, "cr_frame", None) or value
            local = getattr(frame, "f_locals", None)
            return list(local.values()) if isinstance(local, dict) and frame.f_code.co_name != "<module>" else []
        if isinstance(value, types.BuiltinFunctionType):
            return [value.__self__]
        if is_array(value):
            return items_of(value)
        if isinstance(value, (bytearray, memoryview)):
            self.memory.add(id(value))
        held = gc.get_referents(value)
        if type(value).__module__ == "__main__":
            held.append(type(value))
        if self.copies_on_write and type(value).__module__.startswith("pandas."):
            # What shares memory there is copied once it is written to: as good as a copy.
            return [part for one in held for part in (items_of(one) if is_array(one) else [one])]
        return held

    def groups(self):
        """The names that belong together, in the order of the first of each."""
        found = {}
        for name in self.names:
            found.setdefault(self.root(name), []).append(name)
        return list(found.values())

    def is_shared(self, base):
        """Whether others see the memory of an array that is the base of its own."""
        return len(self.arrays.get(id(base), ())) > 1 or id(base.base) in self.memory

    def owns_memory(self, base):
        """Whether nobody sees it but arrays that are based on this one: it is its own, or what a pickle gave it."""
        memory = base.base
        owner = memory.obj if type(memory) is memoryview else memory
        is_private = id(memory) not in self.memory and id(owner) not in self.memory
        return memory is None or type(owner) in (bytes, bytearray) and is_private


def is_full(cell):
    try:
        cell.cell_contents
        return True
    except ValueError:
        return False


def is_array(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, "ndarray", ()))


def base_of(array):
    """The array whose memory it sees."""
    while is_array(array.base):
        array = array.base
    return array


def items_of(array):
    return [item for item in array.flat if type(item) not in ATOMS] if array.dtype.hasobject else []


def view_of(base, shape, dtype, offset, strides, is_writeable):
    """An array that sees a part of another one's memory."""
    view = sys.modules["numpy"].ndarray(shape, dtype, base if base.flags.c_contiguous else base.T, offset, strides)
    view.flags.writeable = is_writeable
    return view


#: The cells of closures that a snapshot has given so far, by what stands for each in it: functions may share one.
CELLS = {}


def empty_function(code, names, cells):
    """A function whose values come later: they may refer to it."""
    closure = tuple(CELLS.setdefault(cell, types.CellType()) for cell in cells)
    return types.FunctionType(marshal.loads(code), names, None, None, closure or None)


def fill_function(function, state):
    contents, state = state
    for cell, value in zip(function.__closure__ or (), contents):
        if value:
            cell.cell_contents = value[0]
    for name, value in state.items():
        setattr(function, name, value)


class TooLarge(Exception):
    pass


class Counted(io.BytesIO):
    """Takes no more than so many bytes."""

    def __init__(self, room):
        super().__init__()
        self.room = room

    def write(self, data):
        self.take(memoryview(data).nbytes)
        return super().write(data)

    def take(self, count):
        self.room -= count
        if self.room < 0:
            raise TooLarge()


def best_pickler():
    """The pickler that can do most: cloudpickle's, which some libraries bring along, else Python's own."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        if name.split(".")[0] in sys.modules or name == "cloudpickle":
            try:
                return importlib.import_module(name).CloudPickler
            except Exception:
                continue
    return pickle.Pickler


def pickler_class(names, definitions, objects):
    """A pickler for the names of a session. `definitions` has, by the id of its object, the name of what a cell defines that runs again."""
    base = best_pickler()

    class SessionPickler(base):
        def persistent_id(self, value):
            if value is names:
                return ("names",)
            name = definitions.get(id(value))
            if name is not None:
                return ("name", name)
            held = objects.held.get(id(value))
            if held is None or issubclass(type(value), BY_REFERENCE):
                return None
            if not held[2]:
                raise pickle.PicklingError("it is what the module `%s` has" % held[0])
            return ("module", *held[:2])

        def reducer_override(self, value):
            reduced = NotImplemented
            if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
                return importlib.import_module, (value.__name__,)
            if type(value) is types.FunctionType and value.__globals__ is names:
                return reduced_function(value, names)
            if is_array(value):
                reduced = reduced_array(value, objects)
            elif is_hooked(value):
                raise pickle.PicklingError("making it runs code of the session's")
            elif issubclass(type(value), BaseException) and (value.__traceback__ or value.__cause__ or value.__context__):
                raise pickle.PicklingError("its traceback is of code that ran")
            elif issubclass(type(value), io.IOBase) and type(value) not in (io.BytesIO, io.StringIO):
                raise pickle.PicklingError("it is an open file")
            elif type(value) is memoryview:
                raise pickle.PicklingError("it is a view of another's memory")
            elif type(value).__module__.split(".")[0] in NOT_KEPT:
                raise pickle.PicklingError("%s belongs to its kernel" % type(value).__qualname__)
            if reduced is NotImplemented and base is not pickle.Pickler:
                return super().reducer_override(value)
            return reduced

    return SessionPickler


def reduced_function(value, names):
    """A function with the session's names as its own. What it holds comes after it, since that may refer to it."""
    cells = value.__closure__ or ()
    contents = [(cell.cell_contents,) if is_full(cell) else () for cell in cells]
    kept = ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__")
    state = {name: getattr(value, name) for name in kept}
    state.update(value.__dict__)
    made = empty_function, (marshal.dumps(value.__code__), names, tuple(map(id, cells)))
    return (*made, (contents, state), None, None, fill_function)


def reduced_array(value, objects):
    """An array that sees another one's memory goes on doing so; no other is changed."""
    if type(value).__name__ == "memmap":
        raise pickle.PicklingError("its memory is a file")
    base = base_of(value)
    if base is value and base.base is None or not objects.is_shared(base):
        return NotImplemented
    if base is value and objects.owns_memory(base):
        return NotImplemented
    is_plain = type(base) is type(value) is sys.modules["numpy"].ndarray and not value.dtype.hasobject
    if not is_plain or not objects.owns_memory(base) or not (base.flags.c_contiguous or base.flags.f_contiguous):
        raise pickle.PicklingError("its memory belongs to something else too")
    offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return view_of, (base, value.shape, value.dtype, offset, value.strides, value.flags.writeable)


class Writer:
    """Writes one snapshot, in a process of its own."""

    def __init__(self, folder, limit, names, own, records, libraries):
        self.folder, self.room, self.names, self.own, self.records, self.libraries = folder, limit, names, own, records, libraries
        self.files = set()
        self.kept, self.not_kept = [], {}

    def write(self):
        if self.is_rebuilding():
            return
        self.look_at_definitions()
        defined = settled(self.records)
        rerun = self.rerun_names()
        definitions = {}
        for name in self.own:
            value = self.names[name]
            if name in defined and isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
                definitions[id(value)] = name
        values = {name: self.names[name] for name in self.own if name not in defined}
        objects = Objects(values, [self.names, *(self.names[name] for name in definitions.values())])
        pickler = pickler_class(self.names, definitions, objects)
        inert = set()
        for group in objects.groups():
            if rerun.isdisjoint(group):
                self.keep(pickler, objects, group)
            else:
                marked = "its cell runs again"
                shares = "it shares a part with `%s`, whose cell runs again" % min(rerun.intersection(group))
                self.not_kept.update((name, marked if name in rerun else shares) for name in group)
            if not objects.active.intersection(group):
                inert.update(group)
        self.inert = inert.difference(*(record["active"] for record in self.records))
        self.save(pickler)

    def is_rebuilding(self):
        """Whether there is a snapshot that has all that this one would have, and more: then the session is about to be given its values."""
        try:
            before = {cell["job"] for cell in contents(self.folder)["cells"]}
        except (OSError, ValueError, KeyError):
            return False
        return {record["job"] for record in self.records} < before

    def look_at_definitions(self):
        """A function or a class that was changed since its cell ran is not what that cell would give."""
        for record in self.records:
            now = {name: fingerprint(self.names.get(name)) for name in record.get("fingerprints", {})}
            if record["isDefinition"] and (now != record["fingerprints"] or any(map(is_hooked, map(self.names.get, now)))):
                record["isDefinition"] = False

    def rerun_names(self):
        """The names whose values come from cells that run again whatever is kept, and what such a cell puts into a module."""
        found = set()
        for record in self.records:
            if record["mustRerun"]:
                found.update(record["binds"])
            if record["patches"]:
                found.update(name for name in record["mentions"] if not is_atom(self.names.get(name)))
        return found

    def keep(self, pickler, objects, group):
        values = {name: self.names[name] for name in group}
        if objects.too_many.intersection(group):
            return self.not_kept.update(dict.fromkeys(group, "it has too many parts"))
        try:
            part = self.pickled(pickler, values)
        except OSError:
            # The disk is full: what was kept before stays.
            raise
        except TooLarge:
            reasons = dict.fromkeys(group, "it is larger than what `snapshot-bytes` leaves for it")
        except BaseException as error:
            reasons = self.reasons(pickler, values, error)
        else:
            return self.kept.append({"names": group, **part})
        self.not_kept.update(reasons)

    def reasons(self, pickler, values, error):
        """Why each name of a group is not kept: it cannot be, or it shares a part with one that cannot."""
        found = {}
        for name, value in values.items():
            try:
                self.pickled(pickler, {name: value}, is_trial=True)
            except BaseException as error:
                found[name] = in_a_line(error)
        shares = "it shares a part with `%s`" % next(iter(found), "") if found else in_a_line(error)
        return {name: found.get(name, shares) for name in values}

    def pickled(self, pickler, values, is_trial=False):
        stream, buffers = Counted(self.room), []

        def out_of_band(buffer):
            with buffer.raw() as raw:
                if raw.nbytes < SMALL:
                    return True
                stream.take(raw.nbytes)
            buffers.append(buffer)
            return False

        try:
            pickler(stream, protocol=5, buffer_callback=out_of_band).dump(values)
        except OSError as error:
            raise pickle.PicklingError(in_a_line(error))
        CELLS.clear()
        try:
            unpickler_class(self.names)(io.BytesIO(stream.getbuffer()), buffers=[buffer.raw() for buffer in buffers]).load()
        except BaseException as error:
            raise pickle.PicklingError("it does not come back: " + in_a_line(error))
        if is_trial:
            return None
        told = [{"hash": self.file(buffer.raw()), "readOnly": buffer.raw().readonly} for buffer in buffers]
        self.room = stream.room
        return {"pickle": self.file(stream.getbuffer()), "buffers": told, "bytes": stream.getbuffer().nbytes + sum(one.raw().nbytes for one in buffers)}

    def file(self, data):
        """Writes a file that is called by the hash of its bytes, unless it is there."""
        name = digest(data)
        self.files.add(name)
        path = os.path.join(self.folder, name)
        if not (os.path.exists(path) and os.path.getsize(path) == memoryview(data).nbytes):
            write_file(path, data)
        return name

    def save(self, pickler):
        told = {
            "version": VERSION,
            "python": sys.version,
            "packages": packages(),
            "cells": self.records,
            "kept": self.kept,
            "notKept": self.not_kept,
            "hasLastValue": last_value(self.names),
            "inert": sorted(self.inert),
            "libraries": self.kept_libraries(pickler),
        }
        write_file(os.path.join(self.folder, "snapshot.json"), json.dumps(told).encode())
        sync(self.folder)
        for name in os.listdir(self.folder):
            if name not in self.files and name not in ("snapshot.json", "lock"):
                os.unlink(os.path.join(self.folder, name))

    def kept_libraries(self, pickler):
        """Each library on its own, so that one that cannot be kept costs no other."""
        found = {}
        for name, value in self.libraries.state().items():
            try:
                found[name] = self.pickled(pickler, value)
            except Exception:
                pass
        return found


def in_a_line(error):
    return " ".join(str(error).split())[:200] or type(error).__name__


def settled(records):
    """The names that only definitions bind. What needs a name that others bind to be run is none."""
    while True:
        bound = {name for record in records if not record["isDefinition"] for name in record["binds"]}
        wrong = [record for record in records if record["isDefinition"] and bound.intersection(record["needs"])]
        for record in wrong:
            record["isDefinition"] = False
        if not wrong:
            return {name for record in records if record["isDefinition"] for name in record["binds"]} - bound


def packages():
    """The versions of the libraries that are loaded: what another one has written may mean something else to it."""
    found = {}
    for name, module in list(sys.modules.items()):
        version = getattr(module, "__version__", None)
        if "." not in name and isinstance(version, str):
            found[name] = version
    return found


def digest(data):
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def write_file(path, data):
    """Writes a file as a whole, or not at all, even if the machine is lost."""
    try:
        with open(path + ".new", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
    except OSError:
        os.unlink(path + ".new")
        raise


def sync(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Libraries:
    """What cells set in libraries, and no name has."""

    def __init__(self):
        self.first = self.surroundings()
        self.random = self.warnings = None

    def before_fork(self):
        """Python begins its random numbers anew in a process that was forked off, and there warnings are silent."""
        random = sys.modules.get("random")
        self.random = random and random.getstate()
        self.warnings = list(warnings.filters)

    @staticmethod
    def surroundings():
        return {"folder": os.getcwd(), "path": list(sys.path), "environment": dict(os.environ), "warnings": list(warnings.filters)}

    def state(self):
        """What is another than at the start, and what libraries have that were loaded since."""
        now = {**self.surroundings(), "warnings": self.warnings}
        state = {name: value for name, value in now.items() if value != self.first[name]}
        if "environment" in state:
            before, now = self.first["environment"], state["environment"]
            changed = {name: text for name, text in now.items() if before.get(name) != text}
            state["environment"] = {**changed, **dict.fromkeys(set(before) - set(now))}
        random, numpy, pandas, matplotlib = map(sys.modules.get, ("random", "numpy", "pandas", "matplotlib"))
        if random is not None:
            state["random"] = self.random
        if numpy is not None:
            state["numpy.random"] = numpy.random.get_state()
            state["numpy.printing"] = numpy.get_printoptions()
            state["numpy.errors"] = numpy.geterr()
        if "decimal" in sys.modules:
            state["decimal"] = sys.modules["decimal"].getcontext()
        if matplotlib is not None:
            state["matplotlib"] = {name: value for name, value in dict.items(matplotlib.rcParams) if not name.startswith("backend")}
        if pandas is not None:
            state["pandas"] = {name: pandas.get_option(name) for name in pandas_options(pandas)}
        return state

    def restore_all(self, state):
        """What is not told is as it was when the process started, whatever cells have done that ran again."""
        for name, value in {**self.first, "environment": {}, **state}.items():
            try:
                self.restore(name, value)
            except Exception:
                pass

    def restore(self, name, value):
        if name == "folder":
            os.chdir(value)
        elif name == "path":
            sys.path[:] = value
        elif name == "environment":
            wanted = {**self.first["environment"], **value}
            for key in set(os.environ) | set(wanted):
                if wanted.get(key) is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = wanted[key]
        elif name == "warnings":
            warnings.filters[:] = value
            getattr(warnings, "_filters_mutated", bool)()
        elif name == "random":
            importlib.import_module("random").setstate(value)
        elif name == "numpy.random":
            importlib.import_module("numpy").random.set_state(value)
        elif name == "numpy.printing":
            importlib.import_module("numpy").set_printoptions(**value)
        elif name == "numpy.errors":
            importlib.import_module("numpy").seterr(**value)
        elif name == "decimal":
            importlib.import_module("decimal").setcontext(value)
        elif name == "matplotlib":
            dict.update(importlib.import_module("matplotlib").rcParams, value)
        elif name == "pandas":
            pandas = importlib.import_module("pandas")
            for option, chosen in value.items():
                if pandas.get_option(option) != chosen:
                    pandas.set_option(option, chosen)


def pandas_options(pandas):
    return list(getattr(getattr(pandas, "_config", None), "config", pandas).__dict__.get("_registered_options", ()))


class Snapshots:
    """The snapshots of a session, for the helper that runs beside its code."""

    def __init__(self, shell, known):
        self.shell, self.known = shell, known
        self.libraries = Libraries()
        self.first_last_value = shell.user_ns.get("_")
        #: A record of each cell, or its code and what it changed, while nobody has looked at that.
        self.cells = []
        self.before = {}

    def begins(self):
        self.before = {name: id(value) for name, value in self.shell.user_ns.items()}

    def ends(self, code):
        """A cell has run. Whatever is strange about its values is no trouble of its author's."""
        try:
            self.cells.append(self.seen(code))
        except Exception:
            # Of what cannot be read it is not known what it did.
            self.cells.append(("?", set(), set(), set(), {}, True))

    def seen(self, code):
        """A cell's code, what it changed, and what is known of the values that it left."""
        names, before = self.shell.user_ns, self.before
        changed = {name for name, value in names.items() if before.get(name) != id(value)} | (set(before) - set(names))
        changed = {name for name in changed if not OWN.match(name) or name == "_" and last_value(names)}
        atoms = {name for name in changed if name in names and is_atom(names[name])}
        there = {name: names[name] for name in changed if name in names}
        active = {name for name, value in there.items() if is_active(value, names)}
        prints = {name: fingerprint(value) for name, value in there.items()}
        is_state = not all(map(is_defined, there.values()))
        return code, changed, atoms, active, {name: told for name, told in prints.items() if told}, is_state

    def own(self):
        """The names that the session's code has bound."""
        names, hidden = self.shell.user_ns, self.shell.user_ns_hidden
        own = [name for name in names if isinstance(name, str) and name not in self.known and name not in hidden and not OWN.match(name)]
        return own + ["_"] if "_" in names and names["_"] is not self.first_last_value else own

    def record(self, cell):
        code, changed, atoms, active, prints, is_state = cell
        told = Code(code, self.shell.user_ns).record()
        told["isDefinition"] = told["isDefinition"] and not is_state
        told["binds"] = sorted(changed.union(told["binds"]))
        return {**told, "atoms": sorted(atoms), "active": sorted(active), "fingerprints": prints}

    def keep(self, folder, limit, jobs):
        """Has a snapshot written, unless one is being written; whether it is."""
        if len(jobs) != len(self.cells):
            raise ValueError("%d cells have run, and %d jobs are known" % (len(self.cells), len(jobs)))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(folder, "lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self.cells = [cell if isinstance(cell, dict) else self.record(cell) for cell in self.cells]
        self.libraries.before_fork()
        # Another thread may hold the lock of an import for ever in the process that is forked off.
        best_pickler()
        try:
            with warnings.catch_warnings():
                # Other threads stay behind, and so do the locks they hold: a process that hangs for one ends by its timer.
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                self.write(folder, limit, jobs, lock)
            os.waitpid(child, 0)
        finally:
            os.close(lock)
        return True

    def write(self, folder, limit, jobs, lock):
        """In a process of its own, which belongs to nobody and holds nothing of the session's; it never comes back."""
        try:
            if os.fork():
                os._exit(0)
            null = os.open(os.devnull, os.O_RDWR)
            for name in os.listdir("/dev/fd"):
                if int(name) not in (lock, null):
                    replace(int(name), null)
            first_to_go()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            signal.alarm(2 * SECONDS)
            os.nice(10)
            gc.disable()
            sys.stdout = sys.stderr = open(os.devnull, "w")
            warnings.simplefilter("ignore")
            records = [{**cell, **job} for job, cell in zip(jobs, self.cells)]
            Writer(folder, limit, self.shell.user_ns, self.own(), records, self.libraries).write()
        except BaseException as error:
            try:
                write_file(os.path.join(folder, "failed"), repr(error).encode())
                left = set(os.listdir(folder)) - files_of(folder) - {"lock", "failed"}
                for name in left:
                    os.unlink(os.path.join(folder, name))
            except BaseException:
                pass
        finally:
            os._exit(0)

    def misfit(self, folder):
        """Why a snapshot is of no use here, where it is of none."""
        told = contents(folder)
        if told["version"] != VERSION:
            return "it was written by another version of Mainstay"
        return "it was written by another version of Python" if told["python"] != sys.version else None

    def restore(self, folder):
        """Gives the names of a snapshot their values, once the cells have run that have to; why not, where it cannot."""
        told = contents(folder)
        names = self.shell.user_ns
        CELLS.clear()
        try:
            values = {}
            for part in told["kept"]:
                values.update(unpickled(folder, part, names))
            state = {name: unpickled(folder, part, names) for name, part in told["libraries"].items()}
        except Exception as error:
            return "%s: %s" % (type(error).__name__, error)
        CELLS.clear()
        now = packages()
        for name, version in told["packages"].items():
            if now.get(name, version) != version:
                return "%s was %s, and is %s" % (name, version, now[name])
        known = set(values) | set(told["notKept"])
        defined = settled(told["cells"])
        for name in set(self.own()) - known - defined:
            del names[name]
        names.update(values)
        if "_" in values and told["hasLastValue"]:
            names["_oh"][0] = self.shell.displayhook._ = values["_"]
        self.libraries.restore_all(state)
        self.cells = told["cells"]
        for cell in self.cells:
            # They are by the identities of a process.
            cell["fingerprints"] = {name: fingerprint(names.get(name)) for name in cell["fingerprints"]}
        return None


def replace(descriptor, null):
    """Has nothing come of what is read from or written to a descriptor. Its number is given to no other file."""
    try:
        os.dup2(null, descriptor)
    except OSError:
        pass


def first_to_go():
    """Where memory runs out, this process is ended before any other."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def files_of(folder):
    """The files that the snapshot of a folder consists of."""
    told = contents(folder)
    parts = [*told["kept"], *told["libraries"].values()]
    return {"snapshot.json", *(part["pickle"] for part in parts), *(one["hash"] for part in parts for one in part["buffers"])}


def contents(folder):
    with open(os.path.join(folder, "snapshot.json"), "rb") as file:
        return json.loads(file.read())


def unpickler_class(names):
    class SessionUnpickler(pickle.Unpickler):
        def persistent_load(self, key):
            if key[0] == "module":
                return getattr(importlib.import_module(key[1]), key[2])
            return names if key[0] == "names" else names[key[1]]

        def find_class(self, module, name):
            if module == "__main__":
                raise pickle.UnpicklingError("`%s` is only known where it is defined; with cloudpickle more is kept" % name)
            return super().find_class(module, name)

    return SessionUnpickler


def unpickled(folder, part, names):
    """A part of a snapshot, each file checked against its name."""

    def read(name):
        with open(os.path.join(folder, name), "rb") as file:
            data = bytearray(os.fstat(file.fileno()).st_size)
            file.readinto(data)
        if digest(data) != name:
            raise ValueError("the file %s is damaged" % name)
        return data

    buffers = [bytes(read(one["hash"])) if one["readOnly"] else read(one["hash"]) for one in part["buffers"]]

    return unpickler_class(names)(io.BytesIO(read(part["pickle"])), buffers=buffers).load()
