# SPDX-License-Identifier: Apache-2.0
"""What real shells offer after <Tab>, from the scripts that berth prints."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.profiles("root")
IMAGE = "boat:1"

# What bash does at a <Tab>: the line is in COMP_LINE, the answer in COMPREPLY.
BASH = """source <(berth completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1)
_berth_complete
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The functions that zsh calls, with what they hand to its line editor printed.
ZSH = """autoload -Uz compinit && compinit -D
source <(berth completion zsh)
compadd() { shift; print -l -- "$@" }
_berth_$1
"""
FISH = "berth completion fish | source; complete --do-complete $argv[1]"


@pytest.fixture
def shell(berth, busybox, work):
    """shell(program, script, word) → the lines that it prints; 'tug' runs, 'wreck' has ended."""
    berth.ok("pull", "--quiet", busybox)
    berth.ok("tag", busybox, IMAGE)
    berth.ok("rmi", busybox)
    berth.ok("run", "-d", "--name", "tug", IMAGE, "sleep", "1000")
    berth.ok("run", "--name", "wreck", IMAGE, "true")
    berth.ok("network", "create", "cove")
    *program, _ = berth.argv("--")
    (work / "bin").mkdir()
    (work / "bin/berth").write_text(f"#!/bin/sh\nexec {' '.join(map(str, program))} \"$@\"\n")
    (work / "bin/berth").chmod(0o755)
    environment = {**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}", "HOME": str(work)}

    def ask(name, *argv):
        assert shutil.which(name), f"{name} is not installed"
        done = subprocess.run([name, *argv], capture_output=True, text=True, timeout=60, check=False,
                              env=environment, stdin=subprocess.DEVNULL)
        assert done.stderr == ""
        return [line.split("\t")[0] for line in done.stdout.splitlines() if line]

    yield ask
    berth.ok("rm", "-f", "tug", "wreck")


CASES = [
    ("stop ", "running", ["tug"]),
    ("exec ", "running", ["tug"]),
    ("rm ", "containers", ["tug", "wreck"]),
    ("container rm w", None, ["wreck"]),
    ("rmi ", "images", [IMAGE]),
    ("image rm ", None, [IMAGE]),
    ("inspect ", "objects", [IMAGE, "tug", "wreck"]),
    ("container inspect ", None, ["tug", "wreck"]),
    ("completion ", None, ["bash", "fish", "zsh"]),
    ("network rm ", None, ["bridge", "cove", "host", "none"]),
    ("network inspect c", None, ["cove"]),
    ("network connect ", None, ["bridge", "cove", "host", "none"]),
    ("run --network ", None, ["bridge", "cove", "host", "none"]),
    ("inspect --type ", None, ["container", "image", "network", "volume"]),
]


def test_bash_offers_what_exists(shell):
    wrong = {}
    for line, _, expected in CASES:
        if (got := sorted(shell("bash", "-c", BASH, "bash", f"berth {line}"))) != expected:
            wrong[line] = got
    assert wrong == {}
    offered = shell("bash", "-c", BASH, "bash", "berth container ")
    assert {"ls", "run", "rm", "inspect"} <= set(offered)


def test_zsh_offers_what_exists(shell):
    for _, function, expected in CASES:
        if function:
            assert sorted(shell("zsh", "-fc", ZSH, "zsh", function)) == expected


def test_fish_offers_what_exists(shell):
    wrong = {}
    for line, _, expected in CASES:
        if (got := sorted(shell("fish", "--no-config", "-c", FISH, f"berth {line}"))) != expected:
            wrong[line] = got
    assert wrong == {}
