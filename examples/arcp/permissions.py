"""An agent asks before each thing that its tools do, and is allowed what is named here: kinds of operations such as `fs.read`.

Usage: python permissions.py AGENT TASK [KIND]...
"""

import sys

from arcp import CAPABILITIES, ENDS, Arcp

agent, task, *allowed = sys.argv[1:]
client = Arcp("permissions.py", (*CAPABILITIES, "permissions"))
client.ask("agent.delegate", {"target": agent, "task": task})
while True:
    message = client.until("permission.request", *ENDS)
    payload = message["payload"]
    if message["type"] != "permission.request":
        break
    is_allowed = payload["permission"] in allowed
    print(payload["permission"], payload["resource"], "is allowed" if is_allowed else "is not allowed")
    answer = "permission.grant" if is_allowed else "permission.deny"
    client.ask(answer, {}, correlation_id=message["id"])
client.close()
print(message["type"], payload.get("value", {}).get("text", payload.get("message")))
