"""Small edits of a real library, saved into a live session of its tests, and each compared with a clean build.

Usage: tested.py PROGRAM FOLDER GIT LIBRARY TESTS [--edits 30] [--seed 1] [--package NAME@VERSION ...] [--leave-out FILE ...] [--not-in REGEX]

PROGRAM is `mainstay`, FOLDER an empty folder, GIT a git directory, LIBRARY and TESTS the paths of two .fsproj in it. Both are built for net10.0 with
the packages that are named, and without the repository's own build settings. An edit changes one line of the library as tests of mutations do: a
number, a comparison, a sign, a truth value, a text. It is saved, all tests run in the session, and it is saved back; a second session, which watches
nothing, builds the same sources with msbuild and runs the same tests. A test that has another outcome there is wrong, unless it has another
outcome each time it runs, or the save named values that were made before it and a build, which makes them anew, mends the test: such edits are
counted as said. After every tenth edit what was saved back is compared, too.
"""

import argparse
import collections
import json
import os
import random
import re

from live import Home, Session, load, spread
from real import NOT_COMPILED, History, is_code, write_all, write_project

# What is replaced by what, in code outside of texts.
CHANGES = [
    (r"(?<![\w.\"'])(\d+)(?![\w.\"'])", lambda found: str(int(found[1]) + 1)),
    (r" \+ ", lambda _: " - "),
    (r" - ", lambda _: " + "),
    (r" < ", lambda _: " <= "),
    (r" > ", lambda _: " >= "),
    (r" <= ", lambda _: " < "),
    (r" >= ", lambda _: " > "),
    (r" && ", lambda _: " || "),
    (r" \|\| ", lambda _: " && "),
    (r"\btrue\b", lambda _: "false"),
    (r"\bfalse\b", lambda _: "true"),
    (r"\bnot \b", lambda _: ""),
    (r"(?<=\bif )([\w.]+) = ", lambda found: f"{found[1]} <> "),
    (r'(?<![\\$@"\w])"([A-Za-z<>/ ]+)"', lambda found: f'"{found[1]}s"'),
]


def edited_lines(text):
    """Each line of a source that an edit can change, by its number, as it is afterwards."""
    for_others, in_comment = 0, False
    for number, line in enumerate(text.split("\n")):
        began_in_comment = in_comment
        in_comment = line.rfind("(*") > line.rfind("*)") or (in_comment and "*)" not in line)
        if re.match(r"\s*#if\b", line):
            for_others += 1
        elif re.match(r"\s*#endif\b", line):
            for_others -= 1
        elif for_others == 0 and not began_in_comment and is_code(line) and not re.search(r"\[<|^\s*(open|module|namespace|type|#|\*)", line):
            code = line.split("//")[0]
            for pattern, made in CHANGES:
                for found in re.finditer(pattern, code):
                    changed = code[: found.start()] + made(found) + code[found.end() :]
                    yield number, changed + line[len(code) :]


def edits(texts, seed, not_in):
    """Edits in an order that the seed gives, from all files alike but those whose names match `not_in`: the file, the line's number, the line."""
    chance, by_file = random.Random(seed), {}
    for file, text in texts.items():
        if file.endswith(".fs") and not (not_in and re.search(not_in, file)):
            lines = list(edited_lines(text))
            chance.shuffle(lines)
            if lines:
                by_file[file] = lines
    while by_file:
        for file in chance.sample(sorted(by_file), len(by_file)):
            yield (file, *by_file[file].pop())
            if not by_file[file]:
                del by_file[file]


def name_of(project):
    return os.path.splitext(os.path.basename(project))[0]


class Outcomes(dict):
    """The outcomes of tests by their names, and how many tests are left out."""

    def __init__(self, outcomes, left_out):
        super().__init__(outcomes)
        self.left_out = left_out


class Tested:
    """A library and its tests in a folder of their own, and a session of them."""

    def __init__(self, arguments, name, settings, texts, tests):
        self.root = os.path.join(os.path.abspath(arguments.folder), name)
        self.library = os.path.join(self.root, "library")
        library, of_tests = name_of(arguments.library), name_of(arguments.tests)
        visible = f'<InternalsVisibleTo Include="{of_tests}" />'
        write_project(os.path.join(self.library, f"{library}.fsproj"), texts, arguments.library_package, visible)
        refers = f'<ProjectReference Include="../library/{library}.fsproj" />'
        project = os.path.join(self.root, "tests", f"{of_tests}.fsproj")
        write_project(project, tests, arguments.package, refers)
        write_all(self.library, texts)
        write_all(os.path.join(self.root, "tests"), tests)
        self.home = Home(arguments.program, os.path.join(self.root, "home"), settings)
        self.session = Session(self.home, project)

    def save(self, texts):
        return self.session.save({os.path.join(self.library, file): text for file, text in texts.items()})

    def build(self):
        self.home.run("session", "rebuild", folder=self.session.folder)

    def run(self):
        """The outcome of each test, by its name. Of tests that a long report leaves out only their number is known."""
        printed = self.home.run("test", "--json", "--timeout", "10s", folder=self.session.folder, check=False)
        report = json.loads(printed) if printed.strip() else {}
        if "tests" not in report:
            raise SystemExit(f"no tests ran: {printed[:2000]}")
        outcomes = collections.defaultdict(set)
        for test in report["tests"]:
            outcomes[test["name"]].add(test["outcome"])
        of_all = {name: sorted(of_one) for name, of_one in outcomes.items()}
        return Outcomes(of_all, report.get("leftOut", 0))

    def close(self):
        self.session.close()
        self.home.stop()


def different(live, clean, ignored):
    """The tests with other outcomes. One that only one report has is another outcome, unless a report leaves tests out."""
    is_cut = live.left_out or clean.left_out
    names = live.keys() & clean.keys() if is_cut else live.keys() | clean.keys()
    return sorted(name for name in names - ignored if live.get(name) != clean.get(name))


class Course:
    """The edits as they go, and what came of them."""

    def __init__(self, live, clean, texts, ignored, began):
        self.live, self.clean, self.texts, self.ignored, self.began = live, clean, texts, ignored, began
        self.counts, self.refused, self.times = collections.Counter(), collections.Counter(), []

    def compare(self, label, texts, outcomes, outdated=0):
        """Compares with a clean build of these texts; what is random is asked thrice. Of so many values it was said that they are older; where
        tests differ, a build makes them anew. Gives whether one did."""
        self.clean.save(texts)
        self.clean.build()
        wrong = different(outcomes, self.clean.run(), self.ignored)
        for _ in range(2):
            if wrong:
                again = different(self.live.run(), self.clean.run(), self.ignored)
                wrong = [name for name in wrong if name in again]
        is_built = bool(wrong and outdated)
        if is_built:
            print(f"said: {label}: {len(wrong)} tests differ, {outdated} values were made before", flush=True)
            self.counts["said"] += 1
            self.live.build()
            wrong = different(self.live.run(), self.clean.run(), self.ignored)
        self.counts["wrong"] += bool(wrong)
        if wrong:
            print(f"WRONG: {label}: {wrong[:8]} and in all {len(wrong)}", flush=True)
        return is_built

    def save(self, file, number, line):
        """One edit, compared and saved back."""
        lines = self.texts[file].split("\n")
        label = f"{file}:{number + 1}: {lines[number].strip()[:60]} -> {line.strip()[:60]}"
        lines[number] = line
        made = {file: "\n".join(lines)}
        swaps, took = self.live.session.outcome(self.live.save(made), 30)
        is_built = False
        obstacles = [obstacle for swap in swaps for obstacle in swap.get("obstacles", [])]
        if obstacles:
            codes = {obstacle["code"] for obstacle in obstacles}
            self.counts["not compiled" if codes <= NOT_COMPILED else "refused"] += 1
            self.refused.update(codes - NOT_COMPILED)
            print(f"refused: {label}: {sorted(codes)}", flush=True)
        else:
            self.counts["runs" if took else "not told"] += 1
            outcomes = self.live.run()
            moved = different(outcomes, self.began, self.ignored)
            self.counts["seen"] += bool(moved)
            if took:
                self.times.append(took)
            print(f"{'runs' if took else 'NOT TOLD'}: {label}: {len(moved)} tests have another outcome, {(took or 0) * 1000:.0f} ms", flush=True)
            is_built = self.compare(label, made, outcomes, sum(len(swap.get("outdated", [])) for swap in swaps))
        back = {file: self.texts[file]}
        swaps, _ = self.live.session.outcome(self.live.save(back), 30)
        if any(swap.get("obstacles") for swap in swaps):
            print(f"TAKEN BACK, AND REFUSED: {label}: {swaps}"[:600], flush=True)
            self.counts["not taken back"] += 1
            self.live.build()
        elif is_built or (not obstacles and any("timedOut" in outcome for outcome in outcomes.values())):
            # What the build made with the edit is made anew; and a test that does not end keeps the session's process busy.
            self.live.build()
        self.clean.save(back)

    def edits(self):
        return self.counts["runs"] + self.counts["refused"] + self.counts["not told"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "folder", "git", "library", "tests"):
        parser.add_argument(name)
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--package", action="append", default=[])
    parser.add_argument("--library-package", action="append", default=[])
    parser.add_argument("--not-in", help="no edit is made in files whose names match this regular expression")
    parser.add_argument("--leave-out", action="append", default=[], help="a source of the tests that is not compiled")
    arguments = parser.parse_args()
    library, tests = History(arguments.git, arguments.library), History(arguments.git, arguments.tests)
    texts = {file: library.text(file) for file in library.files}
    of_tests = {file: tests.text(file) for file in tests.files if file not in arguments.leave_out}
    clean = Tested(arguments, "clean", '[fsharp]\nstandby = false\nwarm-compilers = 0\nwatch = "off"\n', texts, of_tests)
    live = Tested(arguments, "live", "[fsharp]\nstandby = false\nwarm-compilers = 0\n", texts, of_tests)
    began, built = live.run(), clean.run()
    ignored = set(different(began, live.run(), set())) | set(different(began, built, set()))
    print(f"{name_of(arguments.library)}: {len(texts)} files, {len(began)} tests, {len(ignored)} of them are left out; {load()}", flush=True)
    course = Course(live, clean, texts, ignored, began)
    for edit in edits(texts, arguments.seed, arguments.not_in):
        if course.edits() >= arguments.edits:
            break
        course.save(*edit)
        if course.edits() and course.edits() % 10 == 0:
            course.compare("as it was", {}, live.run())
    print(f"{name_of(arguments.library)}: {dict(course.counts)}; refused {dict(course.refused)}; until told {spread(course.times)}; {load()}")
    live.close()
    clean.close()


main()
