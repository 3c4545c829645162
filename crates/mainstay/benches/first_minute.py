"""The first minute of a newcomer: from a command to the first result, beside peers that are tried in the same way.

Usage: first_minute.py DIST [--sdk FOLDER] [--environment FOLDER] [--uv FOLDER] [--runs 3] [--only WORD] [--wait-load 1.5]

DIST has the packages of `cargo xtask dist`; it is the registry. FOLDER of `--sdk` has `dotnet` and `dnx` of SDK 10, that of `--environment` is a
virtual environment of Python with ipykernel, that of `--uv` has `uv` and `uvx`. Each run has an environment of a few variables and a home of its
own, which is empty at first (cold). Then it is tried again with what the package manager has kept, but nothing of Mainstay's (warm), and once
more with all (again); the daemon is stopped in between. What the peers are made of comes over the network from PyPI and npm when they are cold.

Processor time is that of every process that has the home in its environment, and of those that ended as children of one. "Others" is what else
the machine's processors did meanwhile, as a share of one. Linux alone.
"""

import argparse
import base64
import functools
import glob
import hashlib
import http.server
import io
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import tarfile
import tempfile
import threading
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")
# Where a machine has its certificates, and what of .NET's first minute is not ours.
PASSED_ON = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "LANG"]
LONGEST = 180


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry of npm: what it answers for each path."""

    def __init__(self, answers, *arguments):
        self.answers = answers
        super().__init__(*arguments)

    def do_GET(self):
        body = self.answers.get(self.path.lower().replace("%2f", "/"))
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"{}")

    def log_message(self, *_):
        pass


def serve(folder):
    """The address of a registry of npm that has the packages of a folder. All is read before anything is measured."""
    answers = {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Registry, answers))
    address = f"http://127.0.0.1:{server.server_port}"
    for path in glob.glob(os.path.join(folder, "*.tgz")):
        with open(path, "rb") as file:
            packed = file.read()
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        place = f"/{os.path.basename(path)}"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
        manifest["dist"] = {"tarball": address + place, "integrity": integrity}
        name, version = manifest["name"], manifest["version"]
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: manifest}}
        answers |= {place: packed, f"/{name}": json.dumps(document).encode()}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"{address}/"


class Newcomer:
    """An empty home, and an environment of a few variables."""

    def __init__(self, path, variables):
        self.home = tempfile.mkdtemp(prefix="first-minute-")
        self.work = os.path.join(self.home, "work")
        self.started = []
        os.mkdir(self.work)
        kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.environment = {**kept, **variables, "HOME": self.home, "PATH": path}

    def start(self, command, **options):
        options = {"cwd": self.work, "env": self.environment, "stdin": subprocess.DEVNULL, **options}
        self.started.append(subprocess.Popen(command, start_new_session=True, **options))
        return self.started[-1]

    def run(self, command):
        """What a command prints. One that fails ends the whole."""
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = process.communicate(timeout=LONGEST)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}: {process.returncode}\n{out}\n{err}")
        return out

    def processes(self):
        """The processes that have this home, with the processor time of each and of its children that ended, in seconds."""
        mark = f"HOME={self.home}".encode()
        found = {}
        for folder in glob.glob("/proc/[0-9]*"):
            try:
                with open(f"{folder}/environ", "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
                with open(f"{folder}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found[int(os.path.basename(folder))] = sum(map(int, fields[11:15])) / TICKS
        return found

    def end(self):
        """Ends what was left running, and waits for its end, so that its processor time is in nothing that is measured later."""
        for process in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.started:
            process.wait()

    def size(self, *left_out):
        """The megabytes on the disk, without these folders of the home."""
        excluded = [f"--exclude={self.home}/{name}" for name in left_out]
        told = subprocess.run(["du", "-sk", *excluded, self.home], capture_output=True, text=True).stdout
        return int(told.split()[0]) / 1024


def busy():
    """The seconds that the machine's processors have worked."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / TICKS


def received():
    """The megabytes that came over the network."""
    with open("/proc/net/dev") as file:
        lines = [line.split(":") for line in file if ":" in line]
    return sum(int(rest.split()[0]) for name, rest in lines if name.strip() != "lo") / 2**20


class Result:
    """A way to begin with a session: the command in front of `eval`."""

    def __init__(self, name, command, kind):
        self.name, self.command, self.kind = name, command, kind
        self.states = ["cold", "warm", "again"]

    def measure(self, user):
        expected = {"fsharp": "val it: int = 2\n", "python": "2\n"}[self.kind]
        out = user.run([*self.command, "eval", "--kind", self.kind, "1+1"])
        if not out.endswith(expected):
            raise SystemExit(f"{self.name} printed {out!r}")

    def rest(self, user, following):
        user.run([*self.command, "stop"])
        if following == "warm":
            shutil.rmtree(os.path.join(user.home, ".mainstay"))


class Line:
    """A peer that prints a line."""

    def __init__(self, name, command, expected):
        self.name, self.command, self.expected = name, command, expected
        self.states = ["cold", "warm"]

    def measure(self, user):
        out = user.run(self.command)
        if not out.endswith(self.expected):
            raise SystemExit(f"{self.name} printed {out!r}")

    def rest(self, user, _):
        user.end()


class Page:
    """A peer that serves: until an address answers."""

    def __init__(self, name, command, path):
        self.name, self.command, self.path = name, command, path
        self.states = ["cold", "warm"]

    def measure(self, user):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with open(os.path.join(user.home, "log"), "w") as log:
            process = user.start([part.format(port=port) for part in self.command], stdout=log, stderr=log)
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{self.path}", timeout=30) as answer:
                    answer.read()
                    return
            except OSError:
                if process.poll() is not None:
                    break
                time.sleep(0.02)
        with open(os.path.join(user.home, "log")) as log:
            raise SystemExit(f"{self.name} does not answer:\n{log.read()}")

    def rest(self, user, _):
        user.end()


def timed(what, user):
    """Seconds on the clock and of processors, what others worked, the load at the beginning, and megabytes from the network."""
    load, before, network = os.getloadavg()[0], busy(), received()
    children = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    begin = time.monotonic()
    what.measure(user)
    wall, worked = time.monotonic() - begin, busy() - before
    own = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - children + sum(user.processes().values())
    return wall, own, max(0.0, worked - own) / wall, load, received() - network


def wait_for(load, deadline):
    """Waits for a load below this one, until the deadline."""
    while os.getloadavg()[0] >= load and time.monotonic() < deadline:
        time.sleep(5)


def candidates(dist, registry):
    """What is tried, each with the variables it needs."""
    dnx = ["dnx", "mainstay", "--yes", "--source", dist, "--"]
    uvx = ["uvx", "--no-index", "--find-links", dist, "mainstay-sessions"]
    npx = ["npx", "--yes", "mainstay-sessions"]
    of_npm = {"npm_config_registry": registry}
    for kind in ["fsharp", "python"]:
        for name, command, variables in [("dnx", dnx, {}), ("uvx", uvx, {}), ("npx", npx, of_npm)]:
            yield Result(f"{name}, {kind}", command, kind), variables
    marimo = ["uvx", "marimo", "edit", "--headless", "--no-token", "--skip-update-check", "--port", "{port}"]
    yield Page("`uvx marimo edit`, its page", marimo, "/"), {}
    lab = ["uvx", "--from", "jupyterlab", "jupyter-lab", "--no-browser", "--port", "{port}", "--IdentityProvider.token="]
    yield Page("`uvx --from jupyterlab jupyter-lab`, `/api`", [*lab, "--allow-root"], "/api"), {}
    yield Line("`npx tsx --eval`, a line", ["npx", "--yes", "tsx", "--eval", "console.log(1 + 1)"], "2\n"), {}


def table(measured, sizes):
    """The figures, as Markdown."""
    print("| what | state | seconds, median (all) | processor seconds, median | others | load |")
    print("|---|---|---|---|---|---|")
    for (name, state), rows in measured.items():
        walls, owns, others, loads, _ = zip(*rows)
        every = ", ".join(f"{wall:.1f}" for wall in sorted(walls))
        least, most = min(loads), max(loads)
        print(
            f"| {name} | {state} | {statistics.median(walls):.1f} ({every}) | {statistics.median(owns):.1f} "
            f"| {statistics.median(others):.2f} | {least:.1f} to {most:.1f} |"
        )
    print("\n| what | MB installed, with what is cached | MB over the network |\n|---|---|---|")
    for name, (size, network) in sizes.items():
        print(f"| {name} | {size:.0f} | {network:.0f} |")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist")
    parser.add_argument("--sdk", default=os.environ.get("DOTNET_ROOT", "/usr/share/dotnet"))
    parser.add_argument("--environment", default="")
    parser.add_argument("--uv", default="")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--wait-load", type=float, default=1.5)
    options = parser.parse_args()
    dist = os.path.abspath(options.dist)
    folders = [options.sdk, options.environment and os.path.join(options.environment, "bin"), options.uv]
    path = ":".join([os.path.abspath(folder) for folder in folders if folder] + ["/usr/local/bin", "/usr/bin", "/bin"])
    if program := shutil.which("mainstay", path=path):
        raise SystemExit(f"{program} is on the path already")
    tried = [(what, variables) for what, variables in candidates(dist, serve(dist)) if re.search(options.only, what.name)]
    measured, sizes, deadline = {}, {}, time.monotonic() + 20 * 60
    for run in range(options.runs):
        for what, variables in tried:
            active = {"VIRTUAL_ENV": os.path.abspath(options.environment)} if options.environment else {}
            user = Newcomer(path, {**variables, **active})
            try:
                for state, following in zip(what.states, [*what.states[1:], ""]):
                    wait_for(options.wait_load, deadline)
                    row = timed(what, user)
                    print(f"{run + 1} {what.name}, {state}: {row[0]:.2f} s, {row[1]:.2f} s, load {row[3]:.2f}", flush=True)
                    measured.setdefault((what.name, state), []).append(row)
                    if state == "cold":
                        sizes[what.name] = (user.size(".mainstay", "work"), row[4])
                    what.rest(user, following)
            finally:
                user.end()
                shutil.rmtree(user.home, ignore_errors=True)
    return table(measured, sizes)


if __name__ == "__main__":
    raise SystemExit(main())
