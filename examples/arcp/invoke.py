"""Code runs in the live session of this folder; what it prints comes as it is printed, and then its value.

Usage: python invoke.py [KIND] [CODE]
"""

import sys

from arcp import ENDS, Arcp

kind = sys.argv[1] if len(sys.argv) > 1 else "python3"
code = sys.argv[2] if len(sys.argv) > 2 else "for n in range(3): print('step', n)\n6 * 7"
client = Arcp("invoke.py")
client.invoke(kind, code)
while True:
    message = client.read()
    payload = message["payload"]
    if message["type"] == "stream.chunk":
        print(payload["data"], end="")
    elif message["type"] == "log":
        print(payload["message"], end="", file=sys.stderr)
    elif message["type"] in ENDS:
        break
client.close()
if message["type"] != "job.completed":
    raise SystemExit(payload.get("message", message["type"]))
print("=", payload["value"]["value"])
