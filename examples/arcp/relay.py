"""A relay brings the questions of all jobs to a person somewhere else, and their answers back.

Here the person is a function. The first valid answer counts, whoever gives it, and the relay is told when a question needs none any more.

Usage: python relay.py [HOW_MANY]
"""

import sys

from arcp import Arcp


def ask_somebody(prompt):
    """Stands for a phone, a chat, a dashboard."""
    return "Ada" if "name" in prompt else "yes"


left = int(sys.argv[1]) if len(sys.argv) > 1 else 1
client = Arcp("relay.py")
kinds = ["human.input.request", "human.choice.request", "human.input.cancelled"]
client.ask("subscribe", {"filter": {"types": kinds}})
client.until("subscribe.accepted")
print("relaying", flush=True)
while left:
    event = client.until("subscribe.event")["payload"]["event"]
    payload, question = event["payload"], event["id"]
    if event["type"] == "human.input.cancelled":
        print("no answer is needed any more:", payload["reason"], flush=True)
        left -= 1
        continue
    answer = ask_somebody(payload["prompt"])
    print(payload["prompt"].strip(), answer, flush=True)
    by = {"responded_by": "relay.py"}
    if event["type"] == "human.choice.request":
        client.ask("human.choice.response", {"choice_id": answer, **by}, correlation_id=question)
    else:
        client.ask("human.input.response", {"value": answer, **by}, correlation_id=question)
client.close()
