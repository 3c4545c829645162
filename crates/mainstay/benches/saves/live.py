"""A session that takes what is saved: what the chores in this folder share.

A home of its own is made in the folder that is named, so that the daemon there is nobody else's. `KERNELS` may name the `kernels` folder of
another home, so that the worker is not compiled again.
"""

import hashlib
import json
import os
import queue
import shutil
import subprocess
import threading
import time


class Home:
    """A folder with a daemon of its own."""

    def __init__(self, program, folder, settings=""):
        self.program = os.path.abspath(program)
        self.path = os.path.abspath(folder)
        os.makedirs(self.path, exist_ok=True)
        kernels = os.environ.get("KERNELS")
        if kernels and not os.path.exists(os.path.join(self.path, "kernels")):
            shutil.copytree(kernels, os.path.join(self.path, "kernels"))
        with open(os.path.join(self.path, "config.toml"), "w") as config:
            config.write(settings)
        self.environment = {**os.environ, "HOME": self.path, "MAINSTAY_HOME": self.path}

    def run(self, *arguments, folder, check=True):
        """What a command printed."""
        command = [self.program, *arguments]
        done = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def stop(self):
        """Ends the daemon and what it has started."""
        subprocess.run([self.program, "stop"], cwd=self.path, env=self.environment, capture_output=True)

    def resident(self):
        """The daemon's resident memory, in MB."""
        with open(os.path.join(self.path, "daemon.json")) as record:
            return resident(json.load(record)["pid"])

    def stored(self):
        """What the daemon has stored, in KB: its log and its database."""
        sizes = [
            os.path.getsize(os.path.join(folder, name))
            for part in ("store", "logs")
            for folder, _, names in os.walk(os.path.join(self.path, part))
            for name in names
            if os.path.exists(os.path.join(folder, name))
        ]
        return sum(sizes) // 1024


class Session:
    """A session of a project, and what is told of it while it runs."""

    def __init__(self, home, project):
        self.home, self.folder = home, os.path.dirname(os.path.abspath(project))
        home.run("session", "new", "--project", project, folder=self.folder)
        home.run("session", "rebuild", folder=self.folder)
        self.told = queue.Queue()
        since = self.shown()["lastSeq"]
        command = [home.program, "events", "--json", "--follow", "--since", str(since)]
        self.follower = subprocess.Popen(
            command, cwd=self.folder, env=home.environment, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.follower.stdout:
            self.told.put((time.monotonic(), json.loads(line)))

    def shown(self):
        return json.loads(self.home.run("session", "show", "--json", folder=self.folder))

    def worker(self):
        return self.shown()["worker"]["pid"]

    def eval(self, code):
        """The answer to code, and what was said on stderr beside it."""
        command = [self.home.program, "eval", "--json", code]
        done = subprocess.run(command, cwd=self.folder, env=self.home.environment, capture_output=True, text=True)
        return json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr

    def save(self, texts):
        """Saves files as editors do, each by renaming; gives their hashes by path."""
        hashes = {}
        for path, text in texts.items():
            data = text.encode()
            with open(path + ".new", "wb") as new:
                new.write(data)
            os.replace(path + ".new", path)
            hashes[os.path.realpath(path)] = hashlib.sha256(data).hexdigest()
        return hashes

    def outcome(self, hashes, seconds=60.0):
        """What was told of a save: a list of swaps that together name all its files as they were saved; and how long it took."""
        began, swaps, missing = time.monotonic(), [], dict(hashes)
        while missing:
            try:
                at, event = self.told.get(timeout=max(0.01, began + seconds - time.monotonic()))
            except queue.Empty:
                break
            if event["kind"] != "sourcesSwapped":
                continue
            files = event["body"]["files"]
            named = [path for path, sha in missing.items() if files.get(path) == sha]
            if named:
                swaps.append(event["body"])
            for path in named:
                del missing[path]
            if not missing:
                return swaps, at - began
        return swaps, None

    def close(self):
        self.follower.terminate()


def resident(pid):
    """The resident memory of a process, in MB."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) // 1024
    return 0


def spread(seconds):
    """The median, the 95th percentile and the longest of durations, in milliseconds."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000
    return f"median {at(0.5):.0f} ms, p95 {at(0.95):.0f} ms, longest {ordered[-1] * 1000:.0f} ms"


def load():
    """The machine's load now, for a figure to be read with it."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
