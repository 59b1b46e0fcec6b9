# SPDX-License-Identifier: Apache-2.0
"""`run --dry-run` prints the very plan that `run` executes: for 200 generated requests the steps are
those that berth-runtime writes down as it carries them out."""

import json
import os
import random
import re
import subprocess

import pytest

COUNT = 200
SEED = 33

STARTER = rb"""
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  char* words[argc + 4];
  words[0] = argv[0];
  words[1] = "--debug";
  words[2] = "--log";
  words[3] = LOG;
  memcpy(words + 4, argv + 1, argc * sizeof *argv);
  execv(PROGRAM, words);
  return 127;
}
"""



@pytest.fixture
def watched(work, programs, profile):
    """Berth whose berth-runtime writes each step that it carries out to a file."""
    place = profile.own(work / "watched")
    log = place / "steps"
    for program in programs.glob("berth*"):
        if program.name not in ("berth-runtime", "berth"):
            (place / program.name).symlink_to(program)
    log.write_text("")
    os.chown(log, profile.uid, profile.gid)
    # No script: berth executes a view of the file, which an interpreter could not open.
    names = [f'-DPROGRAM="{programs}/berth-runtime"', f'-DLOG="{log}"']
    subprocess.run(["cc", "-static", *names, "-o", place / "berth-runtime", "-x", "c", "-"], check=True, input=STARTER)
    return {"BERTH_LIBEXEC_DIR": str(place)}, log


class Generator:
    """Flags of `berth run` as people type them, the same ones in every run of this test."""

    def __init__(self, number, user, directory):
        self.random = random.Random(f"{SEED}.{number}")
        self.user = user
        self.directory = directory

    def some(self, *choices, often=0.25):
        """One of `choices`, or nothing."""
        return list(self.random.choice(choices)) if self.random.random() < often else []

    def network(self):
        flags = self.some(["--network", "host"], ["--network", "none"], often=0.6)
        own = "host" not in flags
        if own:
            flags += self.some(["--hostname", "node"], ["--sysctl", "net.ipv4.ip_unprivileged_port_start=0"])
        return flags + self.some(["--add-host", "db:10.0.0.1"], ["--dns", "10.0.0.2"])

    def flags(self):
        some = self.some
        flags = self.network()
        flags += some(["-e", "A=1"], ["-e", "HOME=/x"], ["--env", "PATH=/bin"])
        flags += some(["-w", "/tmp"], ["-w", "/made/here"])
        flags += some(["-u", "0"], ["-u", "1000:1000"], ["-u", "nobody"])
        flags += some(["--read-only"])
        flags += some(["--tmpfs", "/t"], ["--tmpfs", "/t:size=1m,noexec"])
        flags += some(["-v", f"{self.directory}:/v"], ["-v", f"{self.directory}:/v:ro"], ["-v", "/named"],
                      ["-v", "kept:/kept"], ["--mount", f"type=bind,src={self.directory},dst=/m,readonly"])
        flags += some(["--ipc", "host"], ["--ipc", "private"], ["--ipc", "none"], ["--shm-size", "1m"])
        flags += some(["--pid", "host"])
        flags += some(["--cgroupns", "host"], ["--cgroupns", "private"])
        flags += some(["--cap-add", "NET_ADMIN"], ["--cap-drop", "ALL"], ["--cap-add", "ALL"], ["--privileged"])
        flags += some(["--security-opt", "no-new-privileges"], ["--security-opt", "seccomp=unconfined"])
        flags += some(["--security-opt", "unmask=ALL"], ["--security-opt", "mask=/proc/version"])
        flags += some(["--init"])
        flags += some(["--ulimit", "nofile=512:512"], ["--ulimit", "core=0"])
        flags += some(["--memory", "64m"], ["--cpus", "0.5"], ["--pids-limit", "50"], ["--cpuset-cpus", "0"])
        flags += some(["--oom-score-adj", "100"])
        flags += some(["--device", "/dev/null:/dev/other"], ["--device", "/dev/zero"])
        flags += some(["--entrypoint", "/bin/sh"], ["--entrypoint", ""])
        flags += some(["--stop-signal", "INT"], ["--label", "a=b"], ["--annotation", "a=b"])
        if self.user:
            flags += some(["--userns", "keep-id"])
        else:
            flags += some(["--group-add", "5"])
        return flags

    def way(self):
        """How it is run: in front of the caller, or with a monitor."""
        return self.random.choice([["--rm"], ["--rm"], ["-d"], ["-d", "--rm"]])


def with_ids_hidden(steps):
    """Each container has an id of its own, and names of volumes that nobody has named."""
    text = "\n".join(steps)
    identity = re.search(r"/containers/([0-9a-f]{64})", text)
    if identity:
        text = text.replace(identity[1], "ID").replace(identity[1][:12], "ID12")
    return re.sub(r"[0-9a-f]{64}", "RANDOM", text).split("\n")


def executed(log):
    lines = [line.split("step: ", 1)[1] for line in log.read_text().splitlines() if "step: " in line]
    log.write_text("")
    return lines


@pytest.mark.profiles("root", "user", "single_id")
def test_a_dry_run_prints_the_plan_that_a_run_executes(berth, busybox, work, watched, profile):
    environment, log = watched
    berth.ok("pull", "--quiet", busybox)
    directory = profile.own(work / "shared")
    refused = 0
    for number in range(COUNT):
        generator = Generator(number, profile.uid != 0, directory)
        request, way = generator.flags(), generator.way()
        command = ["run", *way, *request, busybox, "true"]
        planned = berth.run("run", *way, "--dry-run", "--format", "json", *request, busybox, "true",
                            env=environment)
        done = berth.run(*command, env=environment)
        if planned.returncode != 0:
            # What cannot be planned cannot be run, for the same reason.
            assert done.returncode != 0, command
            refused += 1
            log.write_text("")
            continue
        if "-d" in way and done.returncode == 0:
            berth.run("wait", done.stdout.strip())
        assert done.returncode != 125, (command, done.stderr)
        steps = [step["text"] for step in json.loads(planned.stdout)["steps"]]
        assert with_ids_hidden(executed(log)) == with_ids_hidden(steps), command
    assert refused < COUNT / 4
