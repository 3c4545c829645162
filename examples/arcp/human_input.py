"""Code asks for a line of input, and the client that submitted it answers.

Usage: python human_input.py ANSWER
"""

import sys

from arcp import ENDS, Arcp

client = Arcp("human_input.py")
client.invoke("python3", "name = input('your name? ')\nf'hello {name}'")
question = client.until("human.input.request")
print(question["payload"]["prompt"], end="")
answer = sys.argv[1] if len(sys.argv) > 1 else input()
print(answer)
client.ask("human.input.response", {"value": answer, "responded_by": "human_input.py"}, correlation_id=question["id"])
end = client.until(*ENDS)
client.close()
print(end["type"], end["payload"]["value"]["value"])
