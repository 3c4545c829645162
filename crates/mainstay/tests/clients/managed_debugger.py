"""Attaches to a .NET process as debuggers do, through the debugging library of its own runtime, and does what its input says.

usage: managed_debugger.py PID

Lines of its input: `stop` has the process stand, as at a breakpoint; `go` has it go on; `detach` leaves it. Each is answered with a line.
Callbacks only let the process go on, so no structures of the library have to be known: only the places of methods in its interfaces
(`cordebug.idl` in dotnet/runtime).
"""

import ctypes
import os
import re
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int32, c_uint32, c_void_p, cast

PROCESS = int(sys.argv[1])

# The places of methods, after the three of IUnknown.
INITIALIZE, SET_MANAGED_HANDLER, DEBUG_ACTIVE_PROCESS = 3, 5, 8  # ICorDebug
STOP, CONTINUE, DETACH = 3, 4, 9  # ICorDebugController
# More than the interfaces of callbacks have.
METHODS = 64


def mapped(name):
    """Where a library is mapped in the process, and its file."""
    with open(f"/proc/{PROCESS}/maps") as maps:
        for line in maps:
            found = re.match(r"([0-9a-f]+)-.* (/.*/" + re.escape(name) + r")$", line.rstrip())
            if found:
                return int(found[1], 16), found[2]
    sys.exit(f"{name} is not loaded")


def wide(text):
    return (text + "\0").encode("utf-16-le")


def method(instance, place, *types):
    table = cast(cast(instance, POINTER(c_void_p))[0], POINTER(c_void_p))
    return lambda *given: CFUNCTYPE(c_int32, c_void_p, *types)(table[place])(instance, *given)


def check(what, result):
    if result < 0:
        sys.exit(f"{what} failed: {result & 0xFFFFFFFF:#x}")


def itself(this, _interface, out):
    out[0] = this
    return 0


def go_on(_this, controller, *_others):
    """The first argument of each callback is the process or an application domain, which both can go on."""
    method(controller, CONTINUE, c_int32)(0)
    return 0


base, runtime = mapped("libcoreclr.so")
folder = os.path.dirname(runtime)
library = ctypes.CDLL(os.path.join(folder, "libmscordbi.so"), mode=ctypes.RTLD_GLOBAL)
library.DllMain.argtypes = [c_void_p, c_uint32, c_void_p]
library.DllMain(library._handle, 1, None)
create = library.CoreCLRCreateCordbObject3
create.argtypes = [c_int32, c_uint32, c_char_p, c_char_p, c_void_p, POINTER(c_void_p)]
debugger, process = c_void_p(), c_void_p()
check("create", create(4, PROCESS, None, wide(os.path.join(folder, "libmscordaccore.so")), base, byref(debugger)))

query = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_void_p))(itself)
count = CFUNCTYPE(c_uint32, c_void_p)(lambda _this: 1)
callback = CFUNCTYPE(c_int32, *[c_void_p] * 6)(go_on)
slots = [cast(one, c_void_p).value for one in [query, count, count] + [callback] * METHODS]
table = (c_void_p * len(slots))(*slots)
handler = (c_void_p * 1)(ctypes.addressof(table))

check("initialize", method(debugger, INITIALIZE)())
check("handler", method(debugger, SET_MANAGED_HANDLER, c_void_p)(ctypes.addressof(handler)))
attach = method(debugger, DEBUG_ACTIVE_PROCESS, c_uint32, c_int32, POINTER(c_void_p))
check("attach", attach(PROCESS, 0, byref(process)))
print("attached", flush=True)
stands = False
for line in sys.stdin:
    word = line.strip()
    if word == "stop" or (word == "detach" and not stands):
        check("stop", method(process, STOP, c_uint32)(0))
        stands = True
    if word == "go":
        check("go", method(process, CONTINUE, c_int32)(0))
        stands = False
    if word == "detach":
        check("detach", method(process, DETACH)())
    print(word, flush=True)
    if word == "detach":
        break
# Whatever the library's threads still do.
os._exit(0)
