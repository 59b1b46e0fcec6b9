# SPDX-License-Identifier: Apache-2.0
"""Lines that people type after 'docker', typed after 'berth' too: tests/data/docker_lines, in the form
that support/twin_lines.py tells."""

import contextlib
import shlex
import shutil
import subprocess

import pytest

from support import callers, twin_lines, users
from support.bundle import PROGRAMS
from support.twin_lines import Engine, Reading, Things

CLEAN = {"PATH": users.PATH, "LANG": "C.UTF-8", "TERM": "xterm", "FROM_HERE": "shore"}
IMAGES = {  # and what they say beside busybox's files
    "boat:latest": ["LABEL kind=boat crew=2", "ENV SAIL=white", "EXPOSE 80 81/udp", 'CMD ["sh"]'],
    "bare:1": [],
    "keel:1": ["USER sailor", "WORKDIR /srv/work", "VOLUME /hold", 'ENTRYPOINT ["echo", "keel"]',
               'CMD ["down"]', "ENV EMPTY="],
    "ill:1": ["HEALTHCHECK --interval=1s --retries=1 CMD false", 'CMD ["sleep", "60"]'],
}
DOCKER = "/usr/bin/docker"


# ---- what a line is compared by -----------------------------------------------------------------

# The first that is found in what a program says, in small letters: docker's phrases and berth's.
KINDS = (
    ("command", r"exec: \"|execute (directory )?'(?!ps')|non-zero code"),
    ("usage", r"unknown (shorthand )?flag|(requires|takes) (at (least|most)|exactly|no|\d)|"
              r"needs (a|an|one) |invalid argument \"|: invalid value '|accepts no arg|no command|"
              r"is required|template|has no '|no build stage|no instructions|read image name"),
    ("registry", r"dial tcp|at registry|connect to '|no such name"),
    ("conflict", r"conflict|already (in use|allocated|exists|paused)|is (not )?(running|paused)|"
                 r"has this port|in use|uses it|running container|stop the container|file found|"
                 r"active endpoints"),
    ("no such thing", r"no (such|public port)|not found|(does|did) not exist|select device driver|"
                      r"(unable to|could not) find|is not in the image's|no .*driver named|"
                      r"nothing named|no nvidia driver|has neither|build target|"
                      r"does not match the specified platform|is here for"),
    ("unsupported", r"has no verb|(not|doesn't) support|unsupported|only supported|supported only|"
                    r"has no log|the local driver has none"),
    ("denied", r"permission denied|operation not permitted|may not|read-only"),
    ("system", r"failed to (create shim|write)|numerical result|: invalid argument$|cannot set|"
               r"delivery error"),
    ("usage", r"no matching subnet|network '\w+' has |user specified ip|cannot be combined|"
              r"driver is bridge|invalid|must|expected|range|minimum|should|can ?not|can't|not a|no .* specified|"
              r"duplicate|too (short|many|long|large)|unknown|bad|ids end at|empty|missing|format|"
              r"is (no|a dir)|no (image|name|from)|only \[a-z|has no source|an ipv6|sctp; try|"
              r"unrecogni|renaming|couldn't|column|archive|error: exit status|ended with|header"),
)
SAME = (
    *twin_lines.IDS,
    (r"\b([0-9a-f]{2}:){5}[0-9a-f]{2}\b", "MAC"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:[\d.]+( [+-]\d{4} \w+|Z|[+-]\d\d:\d\d)", "WHEN"),
    (r"(Less than a second|About an? \w+|\d+ (second|minute|hour|day|week|month)s?)", "TIME"),
    (r"\b(172\.(1[6-9]|2\d|3[01])|10\.\d+)(\.\d+){2}\b", "ADDRESS"),
    *twin_lines.BLANKS,
)
READING = Reading(KINDS, inside=f"(err|two|one)$|{twin_lines.SAID_BY_BUSYBOX}",
                  advice=r"(time=\".*(context canceled|level=warning)|WARNING|warning: )", same=SAME)
THINGS = (
    Things(r"^(create|run (?!--rm)|start)", ("ps", "-aq", "--no-trunc"), ("rm", "-f", "-v")),
    Things(r"^(?!ps|inspect).*(-v |volume|--mount)|keel:1", ("volume", "ls", "-q"),
           ("volume", "rm", "-f")),
    Things(r"^(image|build|tag|commit|import|load|rmi|pull|system)\b",
           ("images", "--format", "{{.Repository}}:{{.Tag}}@{{.ID}}"), ("rmi", "-f")),
)


# ---- the two programs ---------------------------------------------------------------------------

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
                    {**CLEAN, "HOME": str(here), "DOCKER_BUILDKIT": "0"}, READING, THINGS)
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
    environment = {**CLEAN, "HOME": str(here), "BERTH_NETWORK": "bridge"}
    engine = Engine("berth", argv, here, environment, READING, THINGS)
    yield engine
    engine.kept = {}
    engine.tidy(["create"])


@contextlib.contextmanager
def both_engines(directory, view):
    """docker and berth with the same images, and the same files where lines are typed."""
    with docker_engine(directory / "docker", view) as docker, \
         berth_engine(directory / "berth") as berth:
        layer, archive = callers.busybox_tar(directory), directory / "images.tar"
        for name, changes in IMAGES.items():
            words = " ".join(f"-c {shlex.quote(change)}" for change in changes)
            docker.ok(f"import {words} {layer} {name}")
        docker.ok(f"save -o {archive} {' '.join(IMAGES)}")
        berth.ok(f"load -q -i {archive}")
        for engine in (docker, berth):
            shutil.copytree(twin_lines.DATA / "docker_lines/here", engine.here, dirs_exist_ok=True)
            engine.remember()
        yield docker, berth


# ---- the comparison -----------------------------------------------------------------------------

@pytest.fixture(scope="module")
def engines(session_directory, view):
    version = subprocess.run([DOCKER, "--version"], capture_output=True, text=True, check=True)
    if " 20.10." not in version.stdout:
        pytest.skip(f"{version.stdout.strip()} is not 20.10")
    with both_engines(session_directory / "lines", view) as both:
        yield both


@pytest.mark.parametrize("group", twin_lines.groups_to_run("docker_lines"), ids=str)
def test_lines_do_what_docker_does_but_for_the_differences_on_the_list(engines, group):
    complaints = twin_lines.complaints(engines, group)
    assert not complaints, "\n".join(complaints)
