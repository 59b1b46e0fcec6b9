# SPDX-License-Identifier: Apache-2.0
"""The berth command line for one user, with a separate store and run state."""

import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from support.registry import die_with_parent


class Terminal:
    """A program on a real terminal, and the user at it."""

    def __init__(self, argv, env, cwd, owner, rows=24, columns=80):
        self._master, slave = pty.openpty()
        os.fchown(slave, *owner)
        self.resize(rows, columns)
        self.output = ""

        def take_terminal():
            die_with_parent()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env,
                                        cwd=cwd, preexec_fn=take_terminal)
        os.close(slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self._master, text.encode())

    def _read(self, deadline):
        ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # EIO: no process has the other side open
            data = b""
        self.output += data.decode(errors="replace")
        return bool(data)

    def expect(self, text, timeout=20):
        """Reads until `text` appears; returns the output before it and drops both."""
        deadline = time.monotonic() + timeout
        while text not in self.output:
            if not self._read(deadline):
                raise AssertionError(f"no {text!r} on the terminal, only {self.output!r}")
        before, _, self.output = self.output.partition(text)
        return before

    def wait(self, timeout=20):
        """Reads to the end; returns the exit status."""
        deadline = time.monotonic() + timeout
        while self._read(deadline):
            pass
        return self.process.wait(max(1, deadline - time.monotonic()))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


class Berth:
    """`run`, `ok` and `fail` run one command to its end; `spawn` and `terminal` return while it runs, and the
    test's end stops it."""

    def __init__(self, programs, account, directory):
        self.programs = pathlib.Path(programs)
        self.account = account
        self.directory = account.own(directory)
        self.root = self.directory / "root"
        self.state = self.directory / "state"
        self.program = "berth"  # or the absolute path of a link to it
        self._running = []

    def argv(self, *args):
        return self.account.command([self.programs / self.program, "--root", self.root,
                                     "--state", self.state, *args])

    def _options(self, env):
        return {"env": self.account.environment(**(env or {})), "cwd": self.directory}

    def run(self, *args, input=None, timeout=60, env=None, text=True):
        """The finished command: returncode, stdout, stderr."""
        if input is None:
            feed = {"stdin": subprocess.DEVNULL}
        else:
            feed = {"input": input}
        return subprocess.run(self.argv(*args), capture_output=True, text=text, timeout=timeout,
                              preexec_fn=die_with_parent, **feed, **self._options(env))

    def ok(self, *args, **options):
        """Returns the standard output of a command that must succeed."""
        done = self.run(*args, **options)
        assert done.returncode == 0, f"berth {args}: {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout

    def fail(self, *args, status=125, **options):
        """Returns the error line of a command that must end with `status` and one line of error."""
        done = self.run(*args, **options)
        assert done.returncode == status, f"berth {args}: {done.returncode}: {done.stderr}"
        lines = [line for line in done.stderr.splitlines() if line.startswith("berth: ")]
        assert len(lines) == 1, f"berth {args}: one error line wanted: {done.stderr}"
        return lines[0]

    def spawn(self, *args, env=None, **options):
        process = subprocess.Popen(self.argv(*args), stdin=options.pop("stdin", subprocess.DEVNULL),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=die_with_parent, **options, **self._options(env))
        self._running.append(process)
        return process

    def terminal(self, *args, env=None, **size):
        terminal = Terminal(self.argv(*args), owner=(self.account.uid, self.account.gid),
                            **self._options(env), **size)
        self._running.append(terminal)
        return terminal

    def close(self):
        for running in self._running:
            if isinstance(running, Terminal):
                running.close()
            elif running.poll() is None:
                running.send_signal(signal.SIGKILL)
                running.communicate()
