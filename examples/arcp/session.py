"""A session is opened, asked whether it lives, and closed."""

from arcp import Arcp

client = Arcp("session.py")
runtime = client.accepted["payload"]["runtime"]
has = client.accepted["payload"]["capabilities"]
print(f"{runtime['kind']} serves this session with", ", ".join(name for name in sorted(has) if has[name] is True))
client.ask("ping", {"nonce": 7})
print("pong", client.until("pong")["payload"]["nonce"])
client.close()
