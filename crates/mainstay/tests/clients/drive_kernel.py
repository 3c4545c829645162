"""A front end's life with a kernel that `mainstay kernel register` wrote: one step, told on standard output as JSON.

Usage: drive_kernel.py STEP [ARGUMENT...]
"""

import json
import sys

import nbformat
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

KERNEL = "mainstay-python3"
PATIENCE = 60


def notebook(kernel, *cells):
    """Runs a notebook as nbconvert and papermill do; gives the text of what each cell put out."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, kernel_name=kernel, timeout=PATIENCE, allow_errors=True).execute()
    nbformat.validate(book)
    return [[told(output) for output in cell.outputs] for cell in book.cells]


def told(output):
    if output.output_type == "stream":
        return [output.name, output.text]
    if output.output_type == "error":
        return ["error", output.ename, output.evalue]
    return [output.output_type, dict(output.data)]


def executed(client, code, **how):
    """Runs code, answers what it asks, and gives its reply and what was published meanwhile."""
    published = []
    reply = client.execute_interactive(
        code, timeout=PATIENCE, output_hook=lambda message: published.append(message), **how
    )
    kinds = [message["msg_type"] for message in published if message["msg_type"] != "status"]
    text = "".join(message["content"].get("text", "") for message in published if message["msg_type"] == "stream")
    content = reply["content"]
    return {"status": content["status"], "count": content["execution_count"], "kinds": kinds, "text": text,
            "ename": content.get("ename"), "expressions": content.get("user_expressions")}


def live():
    """A front end that asks, is asked, interrupts and restarts."""
    manager, client = start_new_kernel(kernel_name=KERNEL)
    steps = {}
    steps["first"] = executed(client, "x = 41", user_expressions={"next": "x + 1"})

    def answer(message):
        client.input("Ada " + message["content"]["prompt"])

    steps["asked"] = executed(client, "print('hello', input('Name?'))", stdin_hook=answer)
    steps["refused"] = executed(client, "input('Name?')", allow_stdin=False)
    steps["silent"] = executed(client, "print('unheard')", silent=True)
    steps["updated"] = executed(
        client, "from IPython.display import display\nd = display(1, display_id=True)\nd.update(2)"
    )

    def interrupt(message):
        if message["msg_type"] == "stream":
            manager.interrupt_kernel()

    message = client.execute("print('begun', flush=True)\nwhile True: pass")
    after = client.execute("print('never')")
    while True:
        said = client.get_iopub_msg(timeout=PATIENCE)
        interrupt(said)
        if said["parent_header"].get("msg_id") == message and said["content"].get("execution_state") == "idle":
            break
    replies = {}
    while len(replies) < 2:
        reply = client.get_shell_msg(timeout=PATIENCE)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]
    steps["interrupted"] = [replies[message]["status"], replies[message]["ename"], replies[after]["status"]]
    steps["kept"] = executed(client, "print(x)")
    manager.restart_kernel()
    client.wait_for_ready(timeout=PATIENCE)
    steps["restarted"] = executed(client, "print('x' in globals())")
    client.stop_channels()
    manager.shutdown_kernel()
    return steps


def crash():
    """A cell in whose middle whoever reads the first line kills the daemon."""
    manager, client = start_new_kernel(kernel_name=KERNEL)
    steps = {"before": executed(client, "x = 41")}
    message = client.execute("print('begun', flush=True)\nimport time\nwhile True: time.sleep(0.01)")
    while True:
        said = client.get_iopub_msg(timeout=PATIENCE)
        if said["msg_type"] == "stream":
            print("begun", flush=True)
            break
    reply = client.get_shell_msg(timeout=PATIENCE)
    assert reply["parent_header"]["msg_id"] == message
    steps["cut"] = [reply["content"]["status"], reply["content"]["ename"]]
    steps["after"] = executed(client, "print(x)")
    client.stop_channels()
    manager.shutdown_kernel()
    return steps


if __name__ == "__main__":
    step, *arguments = sys.argv[1:]
    steps = {"live": live, "crash": crash, "notebook": lambda: notebook(*arguments)}
    print(json.dumps(steps[step]()))
