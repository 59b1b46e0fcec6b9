# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial-slurm.md does what it says: its commands are run, its files written, and what they
print compared with what it shows."""

import pathlib
import re

import pytest

from support import images, mpi
from support.slurm_containers import Submitter, with_plugin
from support.waiting import wait_until

TUTORIAL = pathlib.Path(__file__).parents[2] / "docs/tutorial-slurm.md"
ANYTHING = "…"
BERTH = """#!/bin/sh
exec {programs}/berth --root "$TEST_ROOT" --state "$TEST_STATE" --driver-root "$TEST_TREE" "$@"
"""
MARK = "== what follows was printed by command"
TRAIN = """#!/bin/sh
echo "training on $(ls /dev/nvidia[0-9]*), which is number $CUDA_VISIBLE_DEVICES here"
"""

pytestmark = pytest.mark.profiles("user")


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm-tutorial"
    directory.mkdir()
    gpus = [f"/dev/tty{number}" for number in range(1, 5)]
    with with_plugin(directory, programs, nodes=2, gpus=gpus).running() as running:
        yield running


@pytest.fixture
def slurm(cluster, berth, programs):
    """Whose `berth` is the one with the store of the test."""
    place = berth.account.own(berth.directory / "bin")
    (place / "berth").write_text(BERTH.format(programs=programs))
    (place / "berth").chmod(0o755)
    yield Submitter(cluster, berth)
    wait_until(cluster.is_idle)


def read_tutorial(registry):
    """Its files by name, and [(command, expected lines)]."""
    text = TUTORIAL.read_text().replace("registry.example", f"{registry.address}/test")
    text = re.sub(r"(Open MPI v)[0-9.]+", rf"\g<1>{mpi.version('openmpi')}", text)
    files, commands = {}, []
    for before, language, block in re.findall(r"([^\n]*)\n\n```(\w*)\n(.*?)```", text, re.S):
        if language == "sh":
            files[re.findall(r"`([^`]+)`:$", before)[0]] = block
        for line in block.splitlines() if not language else []:
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
    return files, commands


def fits(printed, expected):
    """… alone in a line stands for any lines, within one for any text."""
    pattern = "".join("(?:[^\n]*\n)*" if line == ANYTHING else
                      "[^\n]*".join(map(re.escape, line.split(ANYTHING))) + "\n" for line in expected)
    return re.fullmatch(pattern, printed) is not None


def script_of(commands):
    """One shell for all, in which `$?` is that of the command before."""
    lines = ["status=0"]
    for number, (command, _) in enumerate(commands):
        lines += [f"echo '{MARK} {number}'", "(exit $status)", f"{command} 2>>complaints", "status=$?"]
    return "\n".join(lines)


def test_the_day_goes_as_the_tutorial_says(slurm, registry, driver_tree):
    images.build([images.busybox_layer(), images.layer([images.file("bin/train", TRAIN, mode=0o755)])],
                 {}).push(registry, "test/train", "1")
    mpi.image("openmpi").push(registry, "test/ranks", "1")
    files, commands = read_tutorial(registry)
    assert len(commands) > 8 and files, commands
    for name, text in files.items():
        (slurm.berth.directory / name).write_text(text)
    path = f"{slurm.berth.directory}/bin:{slurm.environment()['PATH']}"
    done = slurm.call("bash", "-c", script_of(commands), timeout=120,
                      env={"TEST_TREE": driver_tree("eight"), "PATH": path})
    printed = re.split(rf"{MARK} \d+\n", done.stdout)[1:]
    complaints = (slurm.berth.directory / "complaints").read_text()
    assert len(printed) == len(commands), (done, complaints)
    for (command, expected), text in zip(commands, printed):
        assert fits(text, expected), f"$ {command}\nprinted\n{text}\nand not\n" + "\n".join(expected) + f"\n{complaints}"


def test_what_the_tutorial_shows_is_compared():
    assert fits("a\nb 12 c\n", ["a", "b … c"]) and fits("", [ANYTHING]) and fits("x\ny\n", [ANYTHING])
    assert not fits("a\n", []) and not fits("", ["a"]) and not fits("b 12 d\n", ["b … c"])
