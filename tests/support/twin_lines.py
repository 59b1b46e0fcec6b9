# SPDX-License-Identifier: Apache-2.0
"""Runs the same command line with two programs, or with one in two ways, and compares the outcomes.

    [group]
    given = ["run -d --name c1 boat sleep 600"]
    lines = ["exec c1 id", ["first step", "second step"]]

    [[group.others]]
    differs = "why"
    in = ["status", "stdout", "kind"]
    versions = ["1.28"]
    lines = [ … ]

A group of lines has its own containers, images and volumes (`given`); everything else that a line makes is
removed before the next one. The exit status, the output and the kind of error of each line are compared.
Lines with different outcomes are in the group's `others`: with the differing aspects (`in`), the reason
(`differs`), and the versions of the other program (`versions`; without it: all). A line whose outcomes have
become equal must be removed from them.

A line in several steps is a list; a step is a bash command, with the program's name in front of it.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import shlex
import signal
import subprocess
import tomllib
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"
PATIENCE = 20  # seconds for one step
ASPECTS = ("status", "stdout", "kind")


# ---- what a line is compared by -----------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int | str  # "hangs" after PATIENCE
    stdout: str
    kind: str  # of the error; "" where there is none
    stderr: str = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Reading:
    """How to interpret programs' output. `kinds` are (kind, pattern): the first match in the error output, in
    lower case, wins. Lines that match `inside` come from programs in the container, lines that match `advice`
    are ignored, and `same` are (pattern, text) for text that differs each time."""
    kinds: tuple
    inside: str
    advice: str
    same: tuple

    def normal(self, text, here):
        text = text.replace(str(here), "HERE").replace("\r", "")
        for pattern, replacement in self.same:
            text = re.sub(pattern, replacement, text)
        return "\n".join(line.rstrip() for line in text.split("\n"))

    def kind_of(self, status, stderr):
        """The lines of programs in the container, then the kind of the program's own error output. Its output
        after success is only advice."""
        lines = [line.strip() for line in stderr.split("\n")
                 if line and not re.match(self.advice, line)]
        inside = [line for line in lines if re.match(self.inside, line)]
        text = "\n".join(line for line in lines if line not in inside)
        if status != 0 and text:
            small = text.lower()
            found = next((kind for kind, pattern in self.kinds if re.search(pattern, small)),
                         f"none: {text}")
            inside.append(f"<{found}>")
        return "\n".join(inside)


IDS = (
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\b[0-9a-f]{12}\b", "ID"),
)
BLANKS = (
    (r"[ \t]+", " "),
    (r" +$", ""),
)
SAID_BY_BUSYBOX = r"(bash|cat|cp|cut|ls|rm|rmdir|sh|stat|tail|tar|touch|wc): "


# ---- the two programs ---------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Things:
    """Objects that steps matching `made_by` leave, and the verbs that list and remove them."""
    made_by: str
    listed_by: tuple
    removed_by: tuple

    def named(self, words):
        """An object listed as NAME@ID is removed by its name if it has one."""
        pairs = [word.partition("@") for word in words]
        return {rest if rest and "<none>" in name else name for name, _, rest in pairs}


@dataclasses.dataclass
class Engine:
    name: str
    argv: list
    here: Path  # the working directory of every line
    environment: dict
    reading: Reading
    things: tuple
    kept: dict = dataclasses.field(default_factory=dict)
    takes_turns: bool = False  # with the other one: they share something outside of their directories

    def step(self, text):
        """Runs one step with bash, in a session of its own that ends with it."""
        script = f"set -o pipefail; {shlex.join(map(str, self.argv))} {text}"
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=self.here, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, errors="replace")
        try:
            stdout, stderr = process.communicate(timeout=PATIENCE)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            status = "hangs"
        out = self.reading.normal(stdout, self.here)
        err = self.reading.normal(stderr, self.here)
        return Outcome(status, out, self.reading.kind_of(status, err), err)

    def ok(self, text):
        done = self.step(text)
        assert done.status == 0, (self.name, text, done, done.stderr)

    def outcomes(self, steps):
        return [self.step(step) for step in steps]

    def words(self, *words):
        done = subprocess.run([*map(str, self.argv), *words], capture_output=True, text=True,
                              env=self.environment, check=False, timeout=PATIENCE)
        return set(done.stdout.split())

    def remember(self):
        """Protects everything that exists now from tidy()."""
        self.kept = {things: self.words(*things.listed_by) for things in self.things}

    def tidy(self, steps=None):
        """Removes what a line has left; without `steps` everything that is not protected."""
        for things in self.things:
            if steps is None or any(re.search(things.made_by, step) for step in steps):
                more = self.words(*things.listed_by) - self.kept.get(things, set())
                if more:
                    self.words(*things.removed_by, *things.named(more))


# ---- the lines ----------------------------------------------------------------------------------

@dataclasses.dataclass
class Line:
    steps: list
    others: list  # of (in which aspects it differs, with which versions of the other program; empty: all)

    def aspects_with(self, version):
        return next((aspects for aspects, versions in self.others if not versions or version in versions), ())


@dataclasses.dataclass
class Group:
    file: str
    name: str
    given: list
    lines: list

    def __str__(self):
        return f"{self.file}: {self.name}"


def steps_of(table):
    return [[value] if isinstance(value, str) else value for value in table["lines"]]


def read_group(file, name, table):
    assert set(table) <= {"given", "lines", "others"}, name
    lines = [Line(steps, []) for steps in steps_of(table)]
    differing = {}  # several tables, each with versions of its own, may have the same line
    for other in table.get("others", []):
        assert set(other) - {"versions"} == {"lines", "differs", "in"} and other["differs"], (name, other)
        assert other["in"] == [aspect for aspect in ASPECTS if aspect in other["in"]], other
        for steps in steps_of(other):
            line = differing.setdefault(tuple(steps), Line(steps, []))
            line.others.append((tuple(other["in"]), tuple(other.get("versions", ()))))
    return Group(file, name, table.get("given", []), [*lines, *differing.values()])


def read_groups(directory):
    return [read_group(path.stem, name, table) for path in sorted((DATA / directory).glob("*.toml"))
            for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()]


def groups_to_run(directory):
    """All groups if callers were selected by name; else every tenth: all of them take minutes."""
    groups = read_groups(directory)
    return groups if os.environ.get("BERTH_TEST_ALL_LINES") else groups[::10]


# ---- the comparison -----------------------------------------------------------------------------

def both_outcomes(engines, line):
    """The outcomes of both, run at the same time if they do not share anything."""
    def of(engine):
        found = engine.outcomes(line.steps)
        engine.tidy(line.steps)
        return found

    if any(engine.takes_turns for engine in engines):
        return list(map(of, engines))
    with concurrent.futures.ThreadPoolExecutor(len(engines)) as pool:
        return list(pool.map(of, engines))


@contextlib.contextmanager
def given(engines, steps):
    """Makes the objects for all lines of a group, and removes them afterwards."""
    before = [engine.kept for engine in engines]
    try:
        for engine in engines:
            for step in steps:
                engine.ok(step)
            engine.remember()
        yield
    finally:
        for engine, kept in zip(engines, before):
            engine.kept = kept
            engine.tidy()


def differences(one, other):
    return tuple(aspect for aspect in ASPECTS
                 if [getattr(outcome, aspect) for outcome in one]
                 != [getattr(outcome, aspect) for outcome in other])


def complaint(engines, line, version):
    """A difference that the list lacks, or lists wrongly; empty if the list is right."""
    expected = line.aspects_with(version)
    outcomes = both_outcomes(engines, line)
    found = differences(*outcomes)
    if found == expected:
        return []
    told = [f"\n  {engine.name}: {one.status} {one.kind!r} {one.stdout!r}\n    {one.stderr!r}"
            for pair in zip(*outcomes) if pair[0] != pair[1]
            for engine, one in zip(engines, pair)]
    listed = ", ".join(expected) or "nothing"
    return [f"{line.steps}: differs in {', '.join(found) or 'nothing'}, listed: {listed}"
            + "".join(told)]


def complaints(engines, group, version=""):
    """One text for each line of the group with a wrong list entry; `version`: the other program's."""
    with given(engines, group.given):
        return [text for line in group.lines for text in complaint(engines, line, version)]
