#!/usr/bin/env python3
"""A debugger with the command line of netcoredbg, for tests without one: it attaches to nothing.

As a debug adapter (`--interpreter=vscode`) it writes what it gets to the file that NETCOREDBG_LOG names, a line each, and answers it. Like
netcoredbg 3.1.2 it goes on reading after a `disconnect`, until its input ends, and refuses `configurationDone`, not `attach`, where the
process admits no debugger (here: where NETCOREDBG_REFUSAL has what it says). As a command line (`--interpreter=cli --attach PID`) it says what it was told to attach to, and repeats its input.
"""

import json
import os
import sys


def adapter():
    source, out = sys.stdin.buffer, sys.stdout.buffer
    with open(os.environ["NETCOREDBG_LOG"], "a") as log:
        while True:
            length = None
            while (line := source.readline()) not in (b"\r\n", b""):
                name, value = line.split(b":")
                assert name == b"Content-Length", line
                length = int(value)
            if length is None:
                return
            message = json.loads(source.read(length))
            log.write(json.dumps(message) + "\n")
            log.flush()
            answer = {"seq": 1, "type": "response", "request_seq": message["seq"], "success": True, "command": message["command"]}
            if message["command"] == "initialize":
                answer["body"] = {"supportsTerminateRequest": True, "supportsConfigurationDoneRequest": True}
            if message["command"] == "configurationDone" and (refusal := os.environ.get("NETCOREDBG_REFUSAL")):
                answer |= {"success": False, "message": refusal}
            text = json.dumps(answer).encode()
            out.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            out.flush()


match sys.argv[1:]:
    case ["--interpreter=vscode"]:
        adapter()
    case ["--interpreter=cli", "--attach", process]:
        print(f"attached to {process}", flush=True)
        sys.stdout.write(sys.stdin.read())
    case others:
        sys.exit(f"unknown arguments: {others}")
