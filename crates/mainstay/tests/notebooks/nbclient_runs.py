"""Runs a notebook with nbclient, answers what it asks, and prints it with its outputs: what Jupyter itself makes of it.

python nbclient_runs.py NOTEBOOK [ANSWER...]
"""

import asyncio
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


class Answering(NotebookClient):
    """nbclient, whose user is there."""

    answers: list[str] = []

    async def async_start_new_kernel_client(self):
        client = await super().async_start_new_kernel_client()
        client.allow_stdin = True
        self.asked = asyncio.ensure_future(self.answer(client))
        return client

    async def answer(self, client):
        for answer in self.answers:
            await client.stdin_channel.get_msg(timeout=None)
            client.input(answer)


def main(file, *answers):
    notebook = nbformat.read(file, as_version=4)
    client = Answering(notebook, resources={"metadata": {"path": str(Path(file).parent)}}, kernel_name="python3")
    client.answers = list(answers)
    client.execute()
    nbformat.write(notebook, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
