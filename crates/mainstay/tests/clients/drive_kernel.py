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

    late = client.execute("import threading\nthreading.Timer(0.5, lambda: print('late', flush=True)).start()")
    while True:
        said = client.get_iopub_msg(timeout=PATIENCE)
        if said["msg_type"] == "stream":
            steps["late"] = [said["content"]["text"], said["parent_header"]["msg_id"] == late]
            break
    client.get_shell_msg(timeout=PATIENCE)

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


def closed():
    """A notebook that is closed while a cell runs."""
    manager, client = start_new_kernel(kernel_name=KERNEL)
    client.execute("print('begun', flush=True)\nimport time\ntime.sleep(2)\nx = 7")
    while client.get_iopub_msg(timeout=PATIENCE)["msg_type"] != "stream":
        pass
    client.stop_channels()
    manager.shutdown_kernel()


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


def heard(client, message):
    """What is published because of a message, until the kernel has done what it is for."""
    published = []
    while True:
        said = client.get_iopub_msg(timeout=PATIENCE)
        if said["parent_header"].get("msg_id") == message:
            published.append(said)
            if said["content"].get("execution_state") == "idle":
                return published


def sent(client, kind, **content):
    message = client.session.msg(kind, content)
    client.shell_channel.send(message)
    return message["header"]["msg_id"]


def comms(published, kind):
    return [message for message in published if message["msg_type"] == kind]


def widgets(kernel):
    """A front end that shows widgets and moves one, and another that looks on."""
    manager, client = start_new_kernel(kernel_name=kernel)
    onlooker_manager, onlooker = start_new_kernel(kernel_name=kernel)
    steps = {}
    created = heard(client, client.execute("""
import ipywidgets as w
slider, label = w.IntSlider(value=3), w.Label()
def moved(change):
    label.value = f"at {change['new']}"
    print("moved to", change["new"])
slider.observe(moved, names="value")
picture = w.Image(value=bytes([0, 255, 7]))
"""))
    opened = comms(created, "comm_open")
    model = lambda name: next(said["content"]["comm_id"] for said in opened
                              if said["content"]["data"]["state"]["_model_name"] == name)
    slider, label = model("IntSliderModel"), model("LabelModel")
    steps["version"] = opened[0]["metadata"]["version"].split(".")[0]
    steps["picture"] = [bytes(buffer).hex() for said in opened for buffer in said["buffers"]]

    update = {"method": "update", "state": {"value": 7}, "buffer_paths": []}
    moved = heard(client, sent(client, "comm_msg", comm_id=slider, data=update))
    steps["printed"] = "".join(said["content"]["text"] for said in comms(moved, "stream"))
    labelled = lambda said: (said["msg_type"] == "comm_msg" and said["content"]["comm_id"] == label
                             and said["content"]["data"]["state"].get("value"))
    steps["labelled"] = [text for text in map(labelled, moved) if text]
    while not (text := labelled(onlooker.get_iopub_msg(timeout=PATIENCE))):
        pass
    steps["seen"] = text
    steps["value"] = executed(onlooker, "None", user_expressions={"value": "slider.value"})["expressions"]

    info = client.comm_info(target_name="jupyter.widget", reply=True, timeout=PATIENCE)["content"]
    steps["known"] = [slider in info["comms"], info["comms"][slider]["target_name"]]
    captured = client.execute("out = w.Output()\nwith out:\n    print('captured')")
    states = [said["content"]["data"]["state"] for said in comms(heard(client, captured), "comm_msg")]
    steps["captured"] = [state["msg_id"] == captured for state in states if state.get("msg_id")]
    unknown = heard(client, sent(client, "comm_open", comm_id="unknown", target_name="nobody", data={}))
    steps["closed"] = [said["content"]["comm_id"] for said in comms(unknown, "comm_close")]
    steps["cleared"] = executed(
        client, "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)"
    )["kinds"]
    for front_end, its_manager in [(client, manager), (onlooker, onlooker_manager)]:
        front_end.stop_channels()
        its_manager.shutdown_kernel()
    return steps


def no_widgets(kernel):
    """A front end whose kernel knows of no widgets."""
    manager, client = start_new_kernel(kernel_name=kernel)
    closed = heard(client, sent(client, "comm_open", comm_id="one", target_name="jupyter.widget.control", data={}))
    steps = {"closed": [said["content"]["comm_id"] for said in comms(closed, "comm_close")]}
    steps["told"] = [said["content"]["text"]
                     for said in comms(heard(client, sent(client, "comm_msg", comm_id="one", data={})), "stream")]
    steps["known"] = client.comm_info(reply=True, timeout=PATIENCE)["content"]["comms"]
    client.stop_channels()
    manager.shutdown_kernel()
    return steps


def kept(kernel, *cells):
    """What nbclient keeps of the widgets of a notebook, and what each cell put out."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, kernel_name=kernel, timeout=PATIENCE).execute()
    states = book.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    values = {state["model_name"]: state["state"].get("value") for state in states}
    return {"values": values, "outputs": [[told(output) for output in cell.outputs] for cell in book.cells]}


if __name__ == "__main__":
    step, *arguments = sys.argv[1:]
    steps = {"live": live, "closed": closed, "crash": crash, "widgets": lambda: widgets(*arguments), "kept": lambda: kept(*arguments),
             "no-widgets": lambda: no_widgets(*arguments), "notebook": lambda: notebook(*arguments)}
    print(json.dumps(steps[step]()))
