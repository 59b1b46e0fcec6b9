# SPDX-License-Identifier: Apache-2.0
"""Runs tests/integration/confine.cpp, which calls the confining parts of Berth one by one."""

import json
import os
import pathlib
import shutil
import subprocess

TESTS = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS",
                                    TESTS.parent / "build/release/bin")).resolve().parent


class Confine:
    """Every user of the tests can reach `directory`."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.program = self.directory / "confine"
        shutil.copy2(BUILD / "tests" / "confine", self.program)
        self.program.chmod(0o755)
        self._configs = 0

    def config(self, **resources):
        """A config.json with these linux.resources."""
        self._configs += 1
        path = self.directory / f"config-{self._configs}.json"
        path.write_text(json.dumps({
            "ociVersion": "1.0.2", "root": {"path": "rootfs"},
            "process": {"args": ["sh"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
            "linux": {"resources": resources}}), encoding="utf-8")
        path.chmod(0o644)
        return path

    def run(self, *args, account=None, inside=(), **options):
        """`inside`: a command in front of it: unshare, setpriv, …"""
        command = [*map(str, inside), str(self.program), *map(str, args)]
        if account is not None:
            command = account.command(command)
        return subprocess.run(command, text=True, capture_output=True, check=False,
                              cwd="/", timeout=60, **options)

    def ok(self, *args, **options):
        done = self.run(*args, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def fail(self, *args, **options):
        """Returns the single line of an error."""
        done = self.run(*args, **options)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
        return done.stderr.removeprefix("confine: ").rstrip("\n")
