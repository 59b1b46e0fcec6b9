#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries Berth on a machine with an NVIDIA card, from the archive beside this file (./dev lent-card).

usage: python3 run.py OUT [--seconds 480] [--only STEP]… [--driver-root DIRECTORY] [--nvidia-smi PROGRAM]

Needs Python 3.8, tar and gzip; nvidia-smi where it is there; nvcc and cuBLAS for the networks. As root or not. Writes
OUT/evidence.json (each command, what it printed, how long it took) and OUT/summary.md, after each step anew, so that a
run that is ended has them too. The status is 0 if no step says "differs" or "failed".
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import steps

HERE = pathlib.Path(__file__).resolve().parent
KEPT = 16000  # characters of what a command printed


class Commands:
    """Runs commands for one step and remembers them. A command ends with the step's time."""

    def __init__(self, environment, deadline):
        self.environment, self.deadline, self.told = environment, deadline, []

    def run(self, *words, seconds=60):
        words = [str(word) for word in words]
        left = min(seconds, self.deadline - time.monotonic())
        started = time.monotonic()
        if left <= 0:
            raise steps.OutOfTime(words)
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True, errors="replace", env=self.environment, timeout=left)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            status, out, err = 124, _text(error.stdout), _text(error.stderr)
        except OSError as error:
            status, out, err = 127, "", str(error)
        self.told.append({"command": words, "status": status, "stdout": out[:KEPT], "stderr": err[:KEPT],
                          "seconds": round(time.monotonic() - started, 3)})
        if status == 124 and time.monotonic() >= self.deadline:
            raise steps.OutOfTime(words)
        return Done(status, out, err)


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def ok(self):
        return self.status == 0

    def why(self):
        """The last line of what it said."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return "%s (status %d)" % (lines[-1][:300] if lines else "no output", self.status)

    def json(self):
        try:
            return json.loads(self.out.strip().splitlines()[-1]) if self.out.strip() else {}
        except ValueError:
            return {}


def _text(data):
    return data.decode(errors="replace") if isinstance(data, bytes) else data or ""


def unpack(place):
    with tarfile.open(HERE / "lent-card.tar.gz") as tar:
        if hasattr(tarfile, "fully_trusted_filter"):
            tar.extraction_filter = staticmethod(tarfile.fully_trusted_filter)  # we made it
        tar.extractall(place)


class Machine:
    """What the steps use: commands of Berth's with the packed store."""

    def __init__(self, place, options, commands, shared):
        self.place, self.options, self._commands = place, options, commands
        self.shared = shared  # of all steps: what earlier ones found
        self.out = options.out
        self.is_root = os.geteuid() == 0

    def run(self, *words, seconds=60):
        return self._commands.run(*words, seconds=seconds)

    def berth(self, *words, seconds=60):
        root = ["--driver-root", self.options.driver_root] if self.options.driver_root else []
        place = ["--root", self.place / "store", "--state", self.place / "state"]
        return self.run(self.place / "bin/berth", *place, *root, *words, seconds=seconds)

    def nvidia_smi(self, *words):
        return self.run(self.options.nvidia_smi, *words)

    def pack(self):
        return json.loads((self.place / "pack.json").read_text())


def run_step(step, place, options, shared, seconds):
    """One step's evidence: {step, about, result, text, facts, seconds, commands}."""
    environment = dict(os.environ, BERTH_NETWORK="none", LC_ALL="C.UTF-8")
    started = time.monotonic()
    commands = Commands(environment, started + seconds)
    machine = Machine(place, options, commands, shared)
    facts = {}
    try:
        result, text, facts = step.run(machine)
    except steps.Cannot as error:
        result, text = "cannot", str(error)
    except steps.OutOfTime as error:
        result, text = "out of time", str(error)
    except Exception as error:  # the other steps still run
        result, text = "failed", "%s: %s" % (type(error).__name__, error)
    _end_containers(machine, commands)
    return {"step": step.name, "about": step.about, "result": result, "text": text, "facts": facts,
            "seconds": round(time.monotonic() - started, 1), "commands": commands.told}


def _end_containers(machine, commands):
    """A step leaves no container and no daemon, also if it ended early."""
    commands.deadline = time.monotonic() + 30
    try:
        names = machine.berth("ps", "-aq").out.split()
        if names:
            machine.berth("rm", "--force", *names)
        # MPS's daemons end after their last container.
        shares = machine.place / "state/mps"
        while any(one.is_dir() for one in shares.glob("*")) and time.monotonic() < commands.deadline - 10:
            time.sleep(0.2)
    except steps.OutOfTime:
        pass


def summary(evidence):
    lines = ["# Berth on a machine with a card", "",
             "%(berth)s, %(kernel)s, user %(uid)d%(synthetic)s." % evidence["machine"], "",
             "| Step | Result | What was found | Seconds |", "| --- | --- | --- | --- |"]
    for one in evidence["steps"]:
        text = one["text"].replace("|", "\\|").replace("\n", " ")
        lines.append("| %s | %s | %s | %s |" % (one["about"], one["result"], text, one["seconds"]))
    for one in evidence["steps"]:
        for title, rows in one["facts"].get("tables", {}).items():
            lines += ["", "## %s" % title, "", "| %s |" % " | ".join(rows[0]), "|%s" % (" --- |" * len(rows[0]))]
            lines += ["| %s |" % " | ".join(str(cell).replace("|", "\\|") for cell in row) for row in rows[1:]]
    return "\n".join(lines) + "\n"


def write(evidence, out):
    (out / "evidence.json").write_text(json.dumps(evidence, indent=1))
    (out / "summary.md").write_text(summary(evidence))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=480, help="of all steps")
    parser.add_argument("--only", action="append", choices=[step.name for step in steps.STEPS])
    parser.add_argument("--driver-root", help="as Berth's: for a rehearsal with a synthetic one")
    parser.add_argument("--nvidia-smi", default="nvidia-smi")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.out = options.out.resolve()
    ends = time.monotonic() + options.seconds
    place = pathlib.Path(tempfile.mkdtemp(prefix="lent-card-"))
    shared = {}
    try:
        unpack(place)
        version = Commands(None, ends).run(place / "bin/berth", "--version").out.strip()
        synthetic = ", with the driver root '%s'" % options.driver_root if options.driver_root else ""
        evidence = {"machine": {"berth": version, "kernel": platform.platform(), "uid": os.geteuid(),
                                "synthetic": synthetic}, "steps": []}
        for step in steps.STEPS:
            if options.only and step.name not in options.only:
                continue
            left = ends - time.monotonic()
            if left < 5:
                made = {"step": step.name, "about": step.about, "result": "out of time", "text": "not begun",
                        "facts": {}, "seconds": 0, "commands": []}
            else:
                made = run_step(step, place, options, shared, min(step.seconds, left - 3))
            evidence["steps"].append(made)
            print("%-12s %-12s %6.1f s  %s" % (made["step"], made["result"], made["seconds"], made["text"]), flush=True)
            write(evidence, options.out)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if any(one["result"] in ("differs", "failed") for one in evidence["steps"]) else 0


if __name__ == "__main__":
    sys.exit(main())
