# SPDX-License-Identifier: Apache-2.0
"""berth-transfer without berth: one request, and its events."""

import json
import os
import pathlib
import subprocess

PROGRAMS = pathlib.Path(os.environ.get(
    "BERTH_TEST_PROGRAMS", pathlib.Path(__file__).resolve().parents[2] / "build/release/bin"))


def error_line(error):
    """The line that berth prints for an error event, as base/error.cpp composes it."""
    parts = [*reversed(error.get("context", [])), error["what"]]
    if error.get("errno"):
        parts.append(os.strerror(error["errno"]))
    line = ": ".join(parts)
    return line + (f"; try: {error['hint']}" if error.get("hint") else "")


class Outcome:
    """The result of one request."""

    def __init__(self, status, output):
        self.status = status
        self.output = output
        self.events = [json.loads(line) for line in output.splitlines()]

    def of(self, name):
        return [event for event in self.events if event["event"] == name]

    @property
    def result(self):
        assert self.status == 0, self.output
        (result,) = self.of("result")
        return result

    @property
    def error(self):
        """(kind, line) of the one error; it is the last event."""
        assert self.status == 1, self.output
        assert self.events[-1]["event"] == "error" and not self.of("result"), self.output
        return self.events[-1]["kind"], error_line(self.events[-1])

    def phases(self, digest):
        """The phases of the layer, without duplicates."""
        seen = []
        for event in self.of("layer"):
            if digest.startswith("sha256:" + event["id"]) and event["phase"] not in seen:
                seen.append(event["phase"])
        return seen


class Transfer:
    def __init__(self, root, environment=None, prefix=()):
        self.root = pathlib.Path(root)
        self.command = [*prefix, PROGRAMS / "berth-transfer"]
        self.environment = {**os.environ, **(environment or {})}

    def request(self, verb, **members):
        if verb not in ("login", "logout"):
            members["root"] = str(self.root)
        return json.dumps({"verb": verb, **members})

    def start(self, verb, **members):
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment)
        process.stdin.write(self.request(verb, **members))
        process.stdin.close()
        process.stdin = None  # for communicate()
        return process

    def __call__(self, verb, **members):
        done = subprocess.run(self.command, input=self.request(verb, **members), capture_output=True,
                              text=True, timeout=120, env=self.environment, check=False)
        assert done.stderr == "", done.stderr
        return Outcome(done.returncode, done.stdout)

    def pull(self, reference, **members):
        return self("pull", reference=reference, **members)
