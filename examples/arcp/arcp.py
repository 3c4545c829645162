"""A client of ARCP's dialect A (draft-arcp-01), as short as one can be: it opens a session, asks and reads.

Needs Python 3.9 and `pip install websockets`. The daemon must run: `mainstay -d`.
"""

import json
import os
import pathlib
import uuid
from datetime import datetime, timezone

from websockets.sync.client import connect

HOME = pathlib.Path(os.environ.get("MAINSTAY_HOME", pathlib.Path.home() / ".mainstay"))
ENDS = ("job.completed", "job.failed", "job.cancelled")
CAPABILITIES = ("streaming", "durable_jobs", "human_input", "subscriptions", "checkpoints", "artifacts")


class Arcp:
    """A session with the daemon of this machine."""

    def __init__(self, name, capabilities=CAPABILITIES):
        port = json.loads((HOME / "daemon.json").read_text())["port"]
        token = (HOME / "token").read_text().strip()
        self.socket = connect(f"ws://127.0.0.1:{port}/arcp")
        self.session = None
        self.ask(
            "session.open",
            {
                "auth": {"scheme": "bearer", "token": token},
                "client": {"kind": name, "version": "1"},
                "capabilities": {capability: True for capability in capabilities},
            },
        )
        self.accepted = self.until("session.accepted")
        self.session = self.accepted["payload"]["session_id"]

    def ask(self, kind, payload, **fields):
        """Sends a message, and gives its id."""
        message = {
            "arcp": "1.0",
            "id": str(uuid.uuid4()),
            "type": kind,
            "timestamp": datetime.now(timezone.utc).isoformat(),
            "payload": payload,
            **fields,
        }
        if self.session:
            message["session_id"] = self.session
        self.socket.send(json.dumps(message))
        return message["id"]

    def invoke(self, tool, code):
        """Has a session of this folder run code; gives the id of the message."""
        return self.ask("tool.invoke", {"tool": tool, "arguments": {"code": code, "working_directory": os.getcwd()}})

    def read(self):
        """The next message. A refusal is an error."""
        message = json.loads(self.socket.recv())
        if message["type"] in ("nack", "session.rejected", "session.unauthenticated"):
            raise SystemExit(f"{message['payload']['code']}: {message['payload']['message']}")
        return message

    def until(self, *kinds):
        """The next message of one of these types; those before it are skipped."""
        while True:
            message = self.read()
            if message["type"] in kinds:
                return message

    def close(self):
        """Ends the session in order."""
        self.ask("session.close", {})
        self.until("session.close")
        self.socket.close()
