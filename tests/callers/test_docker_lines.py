# SPDX-License-Identifier: Apache-2.0
"""Lines that people type after 'docker', typed after 'berth' too: tests/data/docker_lines.

A group of lines has containers, images and volumes of its own (`given`); what else a line makes is
gone before the next one. Of every line the exit status, the output and what kind of error it was
are compared. Lines whose outcome is another are among the group's `others`: in what it is another
(`in`), and why (`differs`). One that has become the same has to be taken off them.

A line in several steps is a list; a step is what bash is given, with the program's name before it.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from support import callers, users
from support.bundle import PROGRAMS

CLEAN = {"PATH": users.PATH, "LANG": "C.UTF-8", "TERM": "xterm", "FROM_HERE": "shore"}
IMAGES = {  # and what they say beside busybox's files
    "boat:latest": ["LABEL kind=boat crew=2", "ENV SAIL=white", "EXPOSE 80 81/udp", 'CMD ["sh"]'],
    "bare:1": [],
    "keel:1": ["USER sailor", "WORKDIR /srv/work", "VOLUME /hold", 'ENTRYPOINT ["echo", "keel"]',
               'CMD ["down"]', "ENV EMPTY="],
    "ill:1": ["HEALTHCHECK --interval=1s --retries=1 CMD false", 'CMD ["sleep", "60"]'],
}
DATA = Path(__file__).resolve().parents[1] / "data/docker_lines"
DOCKER = "/usr/bin/docker"
PATIENCE = 20  # seconds for one step
ASPECTS = ("status", "stdout", "kind")
MAKES_CONTAINERS = re.compile(r"create|run (?!--rm)|start")
MAKES_VOLUMES = re.compile(r"^(?!ps|inspect).*(-v |volume|--mount)|keel:1")
MAKES_IMAGES = re.compile(r"^(image|build|tag|commit|import|load|rmi|pull|system)\b")


# ---- what a line is compared by -----------------------------------------------------------------

# The first that is found in what a program says, in small letters: docker's phrases and berth's.
KINDS = [(kind, re.compile(pattern)) for kind, pattern in (
    ("command", r"exec: \"|execute (directory )?'(?!ps')|non-zero code"),
    ("usage", r"unknown (shorthand )?flag|(requires|takes) (at (least|most)|exactly|no|\d)|"
              r"needs (a|an|one) |invalid argument \"|: invalid value '|accepts no arg|no command|"
              r"is required|template|has no '|no build stage|no instructions|read image name"),
    ("registry", r"dial tcp|at registry|connect to '|no such name"),
    ("conflict", r"conflict|already (in use|allocated|exists|paused)|is (not )?(running|paused)|"
                 r"has this port|in use|uses it|running container|stop the container|file found"),
    ("no such thing", r"no (such|public port)|not found|(does|did) not exist|select device driver|"
                      r"(unable to|could not) find|is not in the image's|no .*driver named|"
                      r"nothing named|no nvidia driver|has neither|build target|"
                      r"does not match the specified platform|is here for"),
    ("unsupported", r"has no verb|(not|doesn't) support|unsupported|only supported|supported only|"
                    r"has no log|the local driver has none"),
    ("denied", r"permission denied|operation not permitted|may not|read-only"),
    ("system", r"failed to (create shim|write)|numerical result|: invalid argument$|cannot set|"
               r"delivery error"),
    ("usage", r"invalid|must|expected|range|minimum|should|can ?not|can't|not a|no .* specified|"
              r"duplicate|too (short|many|long|large)|unknown|bad|ids end at|empty|missing|format|"
              r"is (no|a dir)|no (image|name|from)|only \[a-z|has no source|an ipv6|sctp; try|"
              r"unrecogni|renaming|couldn't|column|archive|error: exit status|ended with|header"),
)]
SAID_INSIDE = re.compile(r"(err|two|one)$|"
                         r"(bash|cat|cp|cut|ls|rm|rmdir|sh|stat|tail|tar|touch|wc): ")
ADVICE = re.compile(r"(time=\".*(context canceled|level=warning)|WARNING|warning: )")

SAME_FOR_ALL = [(re.compile(pattern), text) for pattern, text in (
    (r"\b[0-9a-f]{64}\b", "ID"),
    (r"\b[0-9a-f]{12}\b", "ID"),
    (r"\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b", "MAC"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:[\d.]+( [+-]\d{4} \w+|Z|[+-]\d\d:\d\d)", "WHEN"),
    (r"(Less than a second|About an? \w+|\d+ (second|minute|hour|day|week|month)s?)", "TIME"),
    (r"\b(172\.(1[6-9]|2\d|3[01])|10\.\d+)(\.\d+){2}\b", "ADDRESS"),
    (r"[ \t]+", " "),
    (r" +$", ""),
)]


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int | str  # "hangs" after PATIENCE
    stdout: str
    kind: str  # of the error; "" where there is none
    stderr: str = dataclasses.field(compare=False)


def normal(text, here):
    text = text.replace(str(here), "HERE").replace("\r", "")
    for pattern, replacement in SAME_FOR_ALL:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def kind_of(status, stderr):
    """The kind of what the program says, after what those in the container have said. What it says
    where all is well is advice."""
    lines = [line.strip() for line in stderr.split("\n") if line and not ADVICE.match(line)]
    inside = [line for line in lines if SAID_INSIDE.match(line)]
    text = "\n".join(line for line in lines if line not in inside)
    if status != 0 and text:
        small = text.lower()
        found = next((kind for kind, pattern in KINDS if pattern.search(small)), f"none: {text}")
        inside.append(f"<{found}>")
    return "\n".join(inside)


# ---- the two programs ---------------------------------------------------------------------------

@dataclasses.dataclass
class Engine:
    name: str
    argv: list
    here: Path  # the working directory of every line
    environment: dict
    kept: dict = dataclasses.field(default_factory=dict)

    def step(self, text):
        """One step by bash, in a session of its own that ends with it."""
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
        out, err = normal(stdout, self.here), normal(stderr, self.here)
        return Outcome(status, out, kind_of(status, err), err)

    def outcomes(self, steps):
        return [self.step(step) for step in steps]

    def words(self, *words):
        done = subprocess.run([*map(str, self.argv), *words], capture_output=True, text=True,
                              env=self.environment, check=False, timeout=PATIENCE)
        return done.stdout.split()

    def things(self, what):
        return set(self.words(*{"container": ("ps", "-aq", "--no-trunc"),
                                "volume": ("volume", "ls", "-q"),
                                "image": ("images", "--format", "{{.Repository}}:{{.Tag}}@{{.ID}}"),
                                }[what]))

    def remember(self):
        """All there is now is kept from tidy()."""
        self.kept = {what: self.things(what) for what in ("container", "volume", "image")}

    def tidy(self, steps):
        """Removes what a line has left."""
        if any(MAKES_CONTAINERS.match(step) for step in steps):
            self._remove("container", "rm", "-f", "-v")
        if any(MAKES_VOLUMES.search(step) for step in steps):
            self._remove("volume", "volume", "rm", "-f")
        if any(MAKES_IMAGES.match(step) for step in steps):
            self._remove("image", "rmi", "-f")

    def _remove(self, what, *verb):
        more = self.things(what) - self.kept[what]
        if what == "image":
            more = {name.partition("@")[2] if "<none>" in name else name.partition("@")[0]
                    for name in more}
        if more:
            self.words(*verb, *more)


@contextlib.contextmanager
def docker_engine(directory, view):
    """dockerd with a bridge of its own, in a network of its own."""
    here, address = directory / "here", f"unix://{directory}/s"
    here.mkdir(parents=True)
    (directory / "daemon.json").write_text("{}")
    argv = [*view, "unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", "dockerd",
            "--data-root", directory / "data", "--exec-root", directory / "exec",
            "--pidfile", directory / "pid", "-H", address,
            "--config-file", directory / "daemon.json", "--cgroup-parent", f"/{callers.CGROUP}"]
    engine = Engine("docker", [DOCKER, "--host", address], here,
                    {**CLEAN, "HOME": str(here), "DOCKER_BUILDKIT": "0"})
    with callers.server(argv, directory) as (process, log):
        callers.until(lambda: process.poll() is not None or engine.step("version").status == 0,
                      "dockerd answers")
        assert process.poll() is None, log.read_text()
        yield engine


@contextlib.contextmanager
def berth_engine(directory):
    here = directory / "here"
    here.mkdir(parents=True)
    argv = [PROGRAMS / "berth", "--root", directory / "root", "--state", directory / "state"]
    engine = Engine("berth", argv, here, {**CLEAN, "HOME": str(here), "BERTH_NETWORK": "bridge"})
    yield engine
    engine.kept = {"container": set()}
    engine.tidy(["create"])


@contextlib.contextmanager
def both_engines(directory, view):
    """docker and berth with the same images, and the same files where lines are typed."""
    with docker_engine(directory / "docker", view) as docker, \
         berth_engine(directory / "berth") as berth:
        layer, archive = callers.busybox_tar(directory), directory / "images.tar"
        for name, changes in IMAGES.items():
            words = " ".join(f"-c {shlex.quote(change)}" for change in changes)
            ok(docker, f"import {words} {layer} {name}")
        ok(docker, f"save -o {archive} {' '.join(IMAGES)}")
        ok(berth, f"load -q -i {archive}")
        for engine in (docker, berth):
            shutil.copytree(DATA / "here", engine.here, dirs_exist_ok=True)
            engine.remember()
        yield docker, berth


def ok(engine, step):
    done = engine.step(step)
    assert done.status == 0, (engine.name, step, done, done.stderr)


# ---- the lines ----------------------------------------------------------------------------------

@dataclasses.dataclass
class Line:
    steps: list
    differs: str = ""
    aspects: tuple = ()


@dataclasses.dataclass
class Group:
    name: str
    given: list
    lines: list


def lines_of(table, differs="", aspects=()):
    return [Line([value] if isinstance(value, str) else value, differs, aspects)
            for value in table["lines"]]


def read_group(name, table):
    assert set(table) <= {"given", "lines", "others"}, name
    lines = lines_of(table)
    for other in table.get("others", []):
        assert set(other) == {"lines", "differs", "in"} and other["differs"], (name, other)
        assert other["in"] == [aspect for aspect in ASPECTS if aspect in other["in"]], other
        lines += lines_of(other, other["differs"], tuple(other["in"]))
    return Group(name, table.get("given", []), lines)


def read_groups():
    return [read_group(f"{path.stem}: {name}", table) for path in sorted(DATA.glob("*.toml"))
            for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()]


def groups_to_run():
    """All where callers were asked for by name; else every tenth: all of them take six minutes."""
    groups = read_groups()
    return groups if os.environ.get("BERTH_TEST_ALL_LINES") else groups[::10]


def differences(theirs, ours):
    return tuple(aspect for aspect in ASPECTS
                 if [getattr(one, aspect) for one in theirs]
                 != [getattr(one, aspect) for one in ours])


def both_outcomes(engines, line):
    """What docker and berth do, at the same time: neither sees the other."""
    def of(engine):
        found = engine.outcomes(line.steps)
        engine.tidy(line.steps)
        return found

    with concurrent.futures.ThreadPoolExecutor(len(engines)) as pool:
        return list(pool.map(of, engines))


@contextlib.contextmanager
def given(engines, steps):
    """What all lines of a group find, and what is gone after them."""
    before = [engine.kept for engine in engines]
    try:
        for engine in engines:
            for step in steps:
                ok(engine, step)
            engine.remember()
        yield
    finally:
        for engine, kept in zip(engines, before):
            engine.kept = kept
            engine.tidy(["create", "volume", "image"])


# ---- the comparison -----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def engines(session_directory, view):
    version = subprocess.run([DOCKER, "--version"], capture_output=True, text=True, check=True)
    if " 20.10." not in version.stdout:
        pytest.skip(f"{version.stdout.strip()} is not 20.10")
    with both_engines(session_directory / "lines", view) as both:
        yield both


def complaint(line, theirs, ours):
    """What the list does not know of; nothing where it is right."""
    found = differences(theirs, ours)
    if found == line.aspects:
        return []
    told = [f"\n  {name}: {one.status} {one.kind!r} {one.stdout!r}\n    {one.stderr!r}"
            for pair in zip(theirs, ours) if pair[0] != pair[1]
            for name, one in zip(("docker", "berth"), pair)]
    listed = ", ".join(line.aspects) or "nothing"
    return [f"{line.steps}: differs in {', '.join(found) or 'nothing'}, listed: {listed}"
            + "".join(told)]


@pytest.mark.parametrize("group", groups_to_run(), ids=lambda group: group.name)
def test_lines_do_what_docker_does_but_for_the_differences_on_the_list(engines, group):
    complaints = []
    with given(engines, group.given):
        for line in group.lines:
            complaints += complaint(line, *both_outcomes(engines, line))
    assert not complaints, "\n".join(complaints)
