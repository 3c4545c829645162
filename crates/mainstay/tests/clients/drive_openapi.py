"""Drives a session with the client that openapi-python-client made: ADDRESS TOKEN FOLDER. Says what each step gave as JSON."""

import json
import sys

from mainstay_client import AuthenticatedClient
from mainstay_client.api.default import (
    delete_sessions_session,
    get_commands_command,
    get_kinds,
    get_sessions_session,
    get_sessions_session_entries,
    get_sessions_session_events_recent,
    get_sessions_session_export,
    post_import,
    post_sessions,
    post_sessions_session_exec,
    post_sessions_session_reset,
)
from mainstay_client.models import (
    Accepted,
    CommandView,
    Create,
    EvalView,
    Exec,
    Import,
    ImportView,
    KnownKind,
    ProblemDocument,
    SessionView,
)


def main() -> None:
    address, token, folder = sys.argv[1:]
    client = AuthenticatedClient(base_url=address, token=token)
    kinds = get_kinds.sync(client=client)
    assert isinstance(kinds, list)
    python = next(kind for kind in kinds if isinstance(kind, KnownKind) and kind.kind == "python3")

    create = Create(working_directory=folder, kind=python.kind, name="by-python")
    session = post_sessions.sync(client=client, body=create, prefer="wait=60")
    assert isinstance(session, SessionView), session
    name = str(session.session)
    value = post_sessions_session_exec.sync(name, client=client, body=Exec(code="6 * 7"), prefer="wait=60")
    assert isinstance(value, EvalView), value
    raised = post_sessions_session_exec.sync(name, client=client, body=Exec(code="1 / 0"), prefer="wait=60")
    assert isinstance(raised, EvalView) and raised.error, raised

    accepted = post_sessions_session_exec.sync(name, client=client, body=Exec(code="7"))
    assert isinstance(accepted, Accepted), accepted
    known = get_commands_command.sync(accepted.command_id, client=client)
    assert isinstance(known, CommandView), known
    # It has its turn behind the one that was not waited for.
    last = post_sessions_session_exec.sync(name, client=client, body=Exec(code="8"), prefer="wait=60")
    assert isinstance(last, EvalView), last
    status = get_sessions_session.sync(name, client=client)
    assert isinstance(status, SessionView), status
    # A command that says nothing more needs no body.
    reset = post_sessions_session_reset.sync(name, client=client, prefer="wait=60")
    assert isinstance(reset, CommandView), reset

    entries = get_sessions_session_entries.sync(name, client=client)
    assert isinstance(entries, list), entries
    events = get_sessions_session_events_recent.sync(name, client=client, limit=1000)
    assert isinstance(events, list), events
    file = get_sessions_session_export.sync(name, client=client)
    assert isinstance(file, str), file
    imported = post_import.sync(client=client, body=Import(file=file, name="copy"), prefer="wait=60")
    assert isinstance(imported, ImportView), imported
    unknown = get_sessions_session.sync("nothing", client=client)
    assert isinstance(unknown, ProblemDocument), unknown
    deleted = delete_sessions_session.sync(name, client=client, prefer="wait=60")
    assert isinstance(deleted, CommandView), deleted

    told = {
        "value": value.value,
        "raised": raised.error.kind,
        "command": known.command,
        "reset": reset.state,
        "state": status.state,
        "roles": [placed.entry.role for placed in entries],
        "first": events[0].kind,
        "imported": [imported.format_, imported.entries, imported.session.name],
        "unknown": unknown.code,
        "deleted": deleted.state,
    }
    print(json.dumps(told))


main()
