"""Real edits, taken from a repository's history, saved into a live session of its project.

Usage: real.py PROGRAM FOLDER GIT PROJECT [--edits 30] [--every 10] [--package NAME@VERSION ...] [--without REGEX] [--commits FILE]

PROGRAM is `mainstay`, FOLDER an empty folder, GIT a git directory, PROJECT the path of a .fsproj in it. The newest sources are built. Then the
history is undone, commit by commit (those that FILE lists, or all that touch the project, newest first): a commit of at most 60 changed lines is
one edit where all of it still applies, else each of its hunks is. Each edit is one save; a refused one is saved back. After each save the assembly
in the session is probed (probe.fsx), and every `--every` edits, the same lines are taken of a clean build. A line that differs is wrong, unless it was
said. The project is built for net10.0 with the packages that are named, and without the repository's own build settings.
"""

import argparse
import collections
import os
import re
import subprocess
import time
import xml.etree.ElementTree as xml

from live import Home, Session, load, spread

HERE = os.path.dirname(os.path.abspath(__file__))
NOT_COMPILED = {"not_compiled", "syntax_error"}


class History:
    """A repository's commits, and what they change in a project's files."""

    def __init__(self, git, project):
        self.git, self.project = git, project
        self.folder = os.path.dirname(project)
        tree = xml.fromstring(self.show("HEAD", project).lstrip("\ufeff"))
        self.files = [node.get("Include").replace("\\", "/") for node in tree.iter("Compile")]
        self.files = [file for file in self.files if file.endswith((".fs", ".fsi")) and not file.startswith("..")]

    def run(self, *arguments):
        command = ["git", "-c", "core.quotePath=false", "-C", self.git, *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")

    def show(self, commit, path):
        return self.run("show", f"{commit}:{path}")

    def text(self, file):
        return self.show("HEAD", os.path.normpath(os.path.join(self.folder, file))).lstrip("\ufeff").replace("\r\n", "\n")

    def commits(self):
        paths = [os.path.normpath(os.path.join(self.folder, file)) for file in self.files]
        return self.run("log", "--no-merges", "--format=%H", "--", *paths).split()

    def hunks(self, commit):
        """What a commit changed: the file, the lines after it and those before, each with some around them."""
        for file in self.files:
            path = os.path.normpath(os.path.join(self.folder, file))
            try:
                text = self.run("diff", "-U3", "--ignore-cr-at-eol", f"{commit}^", commit, "--", path)
            except subprocess.CalledProcessError:
                return
            for hunk in re.split(r"^@@.*$\n?", text, flags=re.M)[1:]:
                lines = [line for line in hunk.replace("\r", "").split("\n") if not line.startswith("\\")]
                if lines and lines[-1] == "":
                    lines.pop()
                after = [line[1:] for line in lines if line[:1] in " +"]
                before = [line[1:] for line in lines if line[:1] in " -"]
                changed = [line[1:] for line in lines if line[:1] in "+-"]
                if any(is_code(line) for line in changed):
                    yield file, "\n".join(after) + "\n", "\n".join(before) + "\n", len(changed)


def is_code(line):
    return line.strip() != "" and not line.strip().startswith(("//", "(*"))


def undone(texts, hunks):
    """The texts without these hunks; none where one of them does not apply in exactly one place."""
    made = dict(texts)
    for file, after, before, _ in hunks:
        if made[file].count(after) != 1:
            return None
        made[file] = made[file].replace(after, before)
    return made if made != texts else None


def edits(history, commits, by_hunk):
    """Lists of hunks to be undone together, newest first."""
    for commit in commits:
        hunks = list(history.hunks(commit))
        if hunks and not by_hunk and sum(size for *_, size in hunks) <= 60:
            yield commit[:8], hunks
        else:
            yield from ((f"{commit[:8]} {hunk[0]}", [hunk]) for hunk in hunks if hunk[3] <= 60)


def write_project(path, files, packages, more=""):
    compiled = "".join(f'<Compile Include="{file}" />' for file in files)
    references = "".join('<PackageReference Include="{}" Version="{}" />'.format(*package.split("@")) for package in packages)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(
            f"""<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework><CopyLocalLockFileAssemblies>true</CopyLocalLockFileAssemblies>
    <GenerateProgramFile>false</GenerateProgramFile><TreatWarningsAsErrors>false</TreatWarningsAsErrors><NoWarn>$(NoWarn);FS3370;FS0044;FS0057;FS0025;FS1204;FS3511;FS3513;FS2003;FS3390;NU1608;NU1605;NU1701</NoWarn></PropertyGroup>
  <ItemGroup>{compiled}</ItemGroup><ItemGroup>{references}{more}</ItemGroup>
</Project>
"""
        )


def write_all(folder, texts):
    for file, text in texts.items():
        os.makedirs(os.path.dirname(os.path.join(folder, file)), exist_ok=True)
        with open(os.path.join(folder, file), "w") as out:
            out.write(text)


def table(path):
    with open(path) as lines:
        return dict(line.rstrip("\n").split("\t", 1) for line in lines if "\t" in line)


class Clean:
    """Builds of the same sources in another folder, by nothing but `dotnet`."""

    def __init__(self, folder, history, arguments):
        self.folder, self.name = folder, os.path.splitext(os.path.basename(history.project))[0]
        self.without = arguments.without
        os.makedirs(folder)
        write_project(os.path.join(folder, self.name + ".fsproj"), history.files, arguments.package)

    def built(self, texts):
        write_all(self.folder, texts)
        done = subprocess.run(["dotnet", "build", "-v", "q", "--nologo"], cwd=self.folder, capture_output=True, text=True)
        return done.returncode == 0, done.stdout

    def table(self, texts):
        """What the probe says of a build."""
        is_built, printed = self.built(texts)
        if not is_built:
            raise SystemExit(f"a clean build of what the session runs fails:\n{printed[:3000]}")
        assembly = os.path.join(self.folder, "bin/Debug/net10.0", self.name + ".dll")
        script = os.path.join(self.folder, "clean.fsx")
        with open(script, "w") as file:
            file.write(
                f'#load "{HERE}/probe.fsx"\n'
                f'Probe.Probe.write (System.Reflection.Assembly.LoadFrom "{assembly}") @"{self.without}" "{self.folder}/clean.txt" |> printfn "%d"\nexit 0\n'
            )
        done = subprocess.run(["dotnet", "fsi", "--quiet", script], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"the clean build cannot be probed: {done.stdout}{done.stderr}"[:3000])
        return table(os.path.join(self.folder, "clean.txt"))


class Live:
    """The session that takes the edits."""

    def __init__(self, home, folder, history, arguments, texts):
        self.folder, self.home, self.without, self.seconds = folder, home, arguments.without, arguments.wait
        self.name = os.path.splitext(os.path.basename(history.project))[0]
        os.makedirs(folder)
        project = os.path.join(folder, self.name + ".fsproj")
        write_project(project, history.files, arguments.package)
        write_all(folder, texts)
        self.session = Session(home, project)
        with open(os.path.join(HERE, "probe.fsx")) as probe:
            answered, said = self.session.eval(probe.read())
        if not answered.get("success"):
            raise SystemExit(f"the probe is refused: {answered} {said}")

    def table(self):
        path = os.path.join(self.folder, "live.txt")
        answered, said = self.session.eval(f'Probe.loaded "{self.name}" @"{self.without}" "{path}"')
        if not answered.get("success"):
            raise SystemExit(f"the session cannot be probed: {answered} {said}")
        return table(path), said

    def save(self, before, after):
        """Saves what differs; gives what was told, and how long that took."""
        changed = {os.path.join(self.folder, file): text for file, text in after.items() if before[file] != text}
        began = time.monotonic()
        swaps, _ = self.session.outcome(self.session.save(changed), self.seconds)
        return swaps, time.monotonic() - began


def compare(live, clean, ignored, outdated):
    """The lines that differ, and of these the ones that nobody was told of."""
    different = {key for key in live.keys() & clean.keys() if live[key] != clean[key]} - ignored
    short = {name.split(".")[-1] for name in outdated}
    said = {key for key in different if any(re.search(rf"\.(get_)?{re.escape(name)}\(", key) for name in short)}
    return different, different - said


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "folder", "git", "project"):
        parser.add_argument(name)
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--package", action="append", default=[])
    parser.add_argument("--without", default="")
    parser.add_argument("--commits")
    parser.add_argument("--check-refused", type=int, default=2)
    parser.add_argument("--wait", type=float, default=8, help="seconds after which a save counts as not told")
    parser.add_argument("--by-hunk", action="store_true", help="each hunk is an edit of its own")
    arguments = parser.parse_args()
    history = History(arguments.git, arguments.project)
    texts = {file: history.text(file) for file in history.files}
    commits = open(arguments.commits).read().split() if arguments.commits else history.commits()
    folder = os.path.abspath(arguments.folder)
    clean = Clean(os.path.join(folder, "clean"), history, arguments)
    first = clean.table(texts)
    home = Home(arguments.program, os.path.join(folder, "home"), "[fsharp]\nstandby = false\nwarm-compilers = 0\n")
    live = Live(home, os.path.join(folder, "live"), history, arguments, texts)
    began, _ = live.table()
    again, _ = live.table()
    ignored = {key for key in began if began[key] != first.get(key) or began[key] != again.get(key)}
    print(f"{live.name}: {len(began)} lines are probed, {len(ignored)} of them are left out; {len(commits)} commits; {load()}", flush=True)
    run(arguments, history, texts, commits, clean, live, ignored, again)
    live.session.close()
    home.stop()


class Course:
    """The edits as they go, and what came of them."""

    def __init__(self, arguments, texts, clean, live, ignored, seen):
        self.arguments, self.texts, self.clean, self.live, self.ignored, self.seen = arguments, texts, clean, live, ignored, seen
        self.counts, self.refused = collections.Counter(), collections.Counter()
        self.times, self.outdated, self.undone, self.wrong = [], set(), [], 0

    def edits(self):
        return self.counts["applied"] + self.counts["refused"] + self.counts["not told"]

    def save(self, label, made):
        """One edit: saved, judged by what was told, and saved back where it was refused. Gives whether it runs."""
        swaps, took = self.live.save(self.texts, made)
        files = sorted(file for file in made if made[file] != self.texts[file])
        obstacles = [obstacle for swap in swaps for obstacle in swap.get("obstacles", [])]
        if obstacles:
            self.refuse(label, made, files, obstacles)
            return False
        before, self.texts = self.texts, made
        self.outdated.update(value["name"] for swap in swaps for value in swap.get("outdated", []))
        names = [declaration["name"] for swap in swaps for declaration in swap["swapped"]]
        now, said = self.live.table()
        moved = [key for key in now if now[key] != self.seen.get(key) and key not in self.ignored]
        self.seen = now
        self.counts["applied" if swaps else "not told"] += 1
        self.counts["seen"] += bool(moved)
        if swaps:
            self.times.append(took)
        print(f"{'runs' if swaps else 'NOT TOLD'}: {label} {files}: {names[:4]} and in all {len(names)}, {len(moved)} lines differ, {took * 1000:.0f} ms {said.strip()[:150]}", flush=True)
        if self.edits() % self.arguments.every == 0:
            self.judge_salted(label, files, before)
        return True

    def refuse(self, label, made, files, obstacles):
        codes = {obstacle["code"] for obstacle in obstacles}
        print(f"refused: {label} {files}: " + "; ".join(f"{o['code']} {o.get('name', '')}: {o.get('reason', '')}"[:200] for o in obstacles[:3]), flush=True)
        if codes <= NOT_COMPILED:
            self.counts["not compiled"] += 1
            if self.counts["not compiled"] <= self.arguments.check_refused:
                print(f"  a clean build of it succeeds: {self.clean.built(made)[0]}", flush=True)
        else:
            self.counts["refused"] += 1
            self.refused.update(codes)
        back, _ = self.live.save(made, self.texts)
        if not back or any(swap.get("obstacles") for swap in back):
            print(f"TAKEN BACK, AND REFUSED OR NOT TOLD: {label}: {back}"[:600], flush=True)
            self.counts["not taken back"] += 1

    def judge_salted(self, label, files, before):
        """Compares with a clean build while a text in what was edited last is another one, so that old code would be seen."""
        plain, salted = self.texts, self.salted(files, before)
        if salted:
            swaps, _ = self.live.save(plain, salted)
            obstacles = [obstacle for swap in swaps for obstacle in swap.get("obstacles", [])]
            self.outdated.update(value["name"] for swap in swaps for value in swap.get("outdated", []))
            print(f"salted {files}: {obstacles or [d['name'] for swap in swaps for d in swap['swapped']][:4]}"[:300], flush=True)
            if not obstacles:
                self.judge(salted)
            self.live.save(salted, plain)
        self.judge(plain)

    def salted(self, files, before):
        """The texts with one more letter in all short texts of the lines that an edit has changed; none where there is no such."""
        made = dict(self.texts)
        for file in files:
            was = set(before[file].split("\n"))
            lines = self.texts[file].split("\n")
            for at, line in enumerate(lines):
                if line not in was and is_code(line) and "[<" not in line:
                    lines[at] = re.sub(r'(?<![\\$@"])"([A-Za-z ]+)"', r'"\1s"', line)
            made[file] = "\n".join(lines)
        return made if made != self.texts else None

    def judge(self, texts):
        """Compares what the session runs with a clean build."""
        wanted, (got, _) = self.clean.table(texts), self.live.table()
        different, wrong = compare(got, wanted, self.ignored, self.outdated)
        print(f"after {self.edits()} edits: {len(got.keys() & wanted.keys())} lines compared, {len(different)} differ, {len(wrong)} unsaid", flush=True)
        for key in sorted(wrong)[:12]:
            print(f"  WRONG {key}: {got[key][:160]} | built: {wanted[key][:160]}", flush=True)
        self.wrong += len(wrong)


def run(arguments, history, texts, commits, clean, live, ignored, seen):
    """Undoes edits, and then makes what was undone again, the last first."""
    course = Course(arguments, texts, clean, live, ignored, seen)
    for label, hunks in edits(history, commits, arguments.by_hunk):
        if course.edits() >= (arguments.edits + 1) // 2:
            break
        made, before = undone(course.texts, hunks), course.texts
        if made is None:
            course.counts["does not apply"] += 1
        elif course.save(f"undo {label}", made):
            course.undone.append((label, before))
    while course.undone and course.edits() < arguments.edits:
        label, before = course.undone.pop()
        if not course.save(f"redo {label}", before):
            print(f"what was undone cannot be made again, and is left: {label}", flush=True)
            break
    course.judge(course.texts)
    print(f"{live.name}: {dict(course.counts)}; refused {dict(course.refused)}; wrong lines {course.wrong}; until told {spread(course.times)}; {load()}")


if __name__ == "__main__":
    main()
