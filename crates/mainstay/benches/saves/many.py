"""Hundreds of saves of one project, one after the other: what they cost in memory and time, and whether any answer is old.

Usage: many.py PROGRAM FOLDER [--saves 500] [--every 50] [--seed 1] [--kinds body,value,...]

PROGRAM is `mainstay`, FOLDER an empty folder. The project has five files. Each save changes functions, values, members or heads in one to three
of them, adds helpers, or takes them back; then an eval asks for a sum of all, which must be what the sources say. A save that is refused
is said, with its reason, and built in. Fails if an answer was another than the sources' own, or a save was never told.
"""

import argparse
import collections
import os
import random
import re
import time

from live import Home, Session, load, resident, spread

FILES = 5
KINDS = ["body", "value", "member", "hidden", "generic", "added", "removed", "head", "helper"]
PROJECT = (
    """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
  <ItemGroup>"""
    + "".join(f'<Compile Include="Part{at}.fs" />' for at in range(FILES))
    + "</ItemGroup>\n</Project>\n"
)


class Part:
    """One file: its numbers, what else it has, and the sum that it should give."""

    def __init__(self, at):
        self.at, self.own, self.value, self.member, self.hidden, self.generic = at, 1, 1, 1, 1, 1
        self.helpers, self.arguments, self.next = {}, 1, 0

    def change(self, dice, kinds):
        """Makes one edit, and names its kind."""
        kind = dice.choice(kinds)
        number = dice.randrange(1, 100_000)
        if kind == "added" or (kind in ("removed", "helper") and not self.helpers):
            self.helpers[self.next], self.next = number, self.next + 1
            return "added"
        if kind == "removed":
            del self.helpers[dice.choice(sorted(self.helpers))]
        elif kind == "helper":
            self.helpers[dice.choice(sorted(self.helpers))] = number
        elif kind == "head":
            self.arguments = 3 - self.arguments
        else:
            setattr(self, {"body": "own"}.get(kind, kind), number)
        return kind

    def text(self):
        heads = {1: ("(x: int)", "1"), 2: ("(x: int) (y: int)", "1 0")}
        head, given = heads[self.arguments]
        before = f"Part{self.at - 1}.sum ()" if self.at else "0"
        lines = [
            f"module Many.Part{self.at}",
            "type Box =",
            "    { Size: int }",
            f"    member box.Grown = box.Size * 0 + {self.member}",
            f"let own () = {self.own}",
            f"let value = {self.value}",
            f"let private hidden () = {self.hidden}",
            f"let generic (x: 'a) (f: 'a -> int) = f x * 0 + {self.generic}",
            *(f"let helper{self.at}_{name} () = {number}" for name, number in sorted(self.helpers.items())),
            f"let head {head} = x",
            "let sum () =",
            f"    own () + value + hidden () + generic \"a\" String.length + {{ Size = 1 }}.Grown + head {given} + {before}",
            *(f"    + helper{self.at}_{name} ()" for name in sorted(self.helpers)),
        ]
        return "\n".join(lines) + "\n"

    def sum(self):
        return self.own + self.value + self.member + self.hidden + self.generic + 1 + sum(self.helpers.values())


def row(number, session, home, times, evals):
    worker = session.worker()
    print(
        f"{number} saves: worker {resident(worker)} MB (pid {worker}), daemon {home.resident()} MB, stored {home.stored()} KB, "
        f"until told {spread(times[-50:])}; eval {spread(evals[-50:])}; {load()}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--saves", type=int, default=500)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS), help="the kinds of edits that are made")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    work = os.path.join(os.path.abspath(arguments.folder), "work")
    os.makedirs(work)
    parts = [Part(at) for at in range(FILES)]
    path = lambda part: os.path.join(work, f"Part{part.at}.fs")
    for name, text in {"Many.fsproj": PROJECT, **{path(part): part.text() for part in parts}}.items():
        with open(os.path.join(work, name), "w") as file:
            file.write(text)
    home = Home(arguments.program, os.path.join(arguments.folder, "home"), "[fsharp]\nstandby = false\nwarm-compilers = 0\n")
    session = Session(home, os.path.join(work, "Many.fsproj"))
    times, evals, kinds, refused, wrong, untold = [], [], collections.Counter(), collections.Counter(), 0, 0
    row(0, session, home, times, evals)
    for number in range(1, arguments.saves + 1):
        before = {part.at: part.text() for part in parts}
        edits = [parts[at].change(dice, arguments.kinds.split(",")) for at in dice.sample(range(FILES), dice.choice([1, 1, 1, 2, 3]))]
        kinds.update(edits)
        texts = {path(part): part.text() for part in parts if part.text() != before[part.at]}
        if not texts:
            continue
        began = time.monotonic()
        swaps, _ = session.outcome(session.save(texts))
        times.append(time.monotonic() - began)
        obstacles = [obstacle for swap in swaps for obstacle in swap.get("obstacles", [])]
        named = {os.path.realpath(file) for swap in swaps for file in swap["files"]}
        if not {os.path.realpath(file) for file in texts} <= named:
            untold += 1
            print(f"save {number} was never told: {edits}, {sorted(texts)}, {swaps}", flush=True)
        began = time.monotonic()
        answered, said = session.eval("Many.Part4.sum ()")
        evals.append(time.monotonic() - began)
        for obstacle in obstacles:
            refused[obstacle["code"]] += 1
            print(f"save {number} is refused: {edits}, {obstacle}", flush=True)
        wanted = sum(part.sum() for part in parts)
        got = re.sub(r"\D", "", str(answered.get("value")))
        if got != str(wanted) and not obstacles and not said:
            wrong += 1
            print(f"save {number} is wrong: {edits}, {answered}, not {wanted}; told {swaps}", flush=True)
        if obstacles or got != str(wanted):
            print(home.run("session", "rebuild", "--keep", folder=work, check=False), flush=True)
            time.sleep(1)
            while not session.told.empty():
                session.told.get()
        if number % arguments.every == 0:
            row(number, session, home, times, evals)
    print(f"edits {dict(kinds)}; refused {dict(refused)}; wrong {wrong}; never told {untold}")
    session.close()
    home.stop()
    raise SystemExit(bool(wrong or untold))


main()
