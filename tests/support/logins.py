# SPDX-License-Identifier: Apache-2.0
"""An ordinary user of a machine with systemd, and the ways to that user's shell: for tests in a guest."""

import contextlib
import os
import pathlib
import pwd
import subprocess

PROGRAMS = os.environ.get("BERTH_TEST_PROGRAMS", "")
NAME = "berthlimits"


def called(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def made_user():
    """The user, with busybox as a root file system in ~/root."""
    called("useradd", "--create-home", "--shell", "/bin/bash", NAME)
    made = pwd.getpwnam(NAME)
    root = pathlib.Path(made.pw_dir, "root")
    for name in ("bin", "proc", "sys", "dev", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    called("cp", "/bin/busybox", root / "bin")
    called("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    called("chown", "--recursive", f"{NAME}:{NAME}", made.pw_dir)
    try:
        yield made
    finally:
        called("loginctl", "disable-linger", NAME)
        subprocess.run(["loginctl", "terminate-user", NAME], check=False, capture_output=True)
        called("userdel", "--remove", "--force", NAME)


class Way:
    """A way to a shell of the user."""

    def __init__(self, words):
        self.words = words

    def run(self, script, check=True):
        text = f"export PATH={PROGRAMS}:/usr/bin:/bin BERTH_NETWORK=none ROOT=$HOME/root\ncd\n{script}"
        done = subprocess.run([*self.words, text], check=False, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        assert not check or done.returncode == 0, done.stderr
        return done


def login(_user):
    """Through PAM, as with ssh and a console."""
    called("loginctl", "disable-linger", NAME)
    return Way(["su", "--login", NAME, "-c"])
