"""An observer follows all jobs of its principal, whoever submitted them and by which protocol, until as many have ended.

Usage: python observe.py [HOW_MANY]
"""

import sys

from arcp import ENDS, Arcp

left = int(sys.argv[1]) if len(sys.argv) > 1 else 1
client = Arcp("observe.py")
client.ask("subscribe", {"filter": {"types": ["job.started", "stream.chunk", *ENDS]}})
client.until("subscribe.accepted")
print("observing", flush=True)
while left:
    event = client.until("subscribe.event")["payload"]["event"]
    said = event["payload"].get("data", "").strip() if event["type"] == "stream.chunk" else ""
    print(event["type"], said, flush=True)
    left -= event["type"] in ENDS
client.close()
