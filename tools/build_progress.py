#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ninja and shows its progress: one updated line on a terminal, a line each minute in a log.

usage: build_progress.py NAME NINJA_ARGUMENT…

Other output of ninja, above all compiler errors, is passed on at once. The exit status is ninja's.
"""

import os
import re
import select
import subprocess
import sys
import time

STEP = re.compile(r"^\x1e(\d+) (\d+) (.*)$")
EVERY = 60  # seconds between two lines in a log


def duration(seconds):
    """75 → "1 min 15 s"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    def __init__(self, name, out, clock=time.monotonic):
        self.name, self.out, self.clock = name, out, clock
        self.moves = out.isatty()
        self.start = self.shown = clock()
        self.done = self.total = 0
        self.what = ""

    def step(self, done, total, what):
        self.done, self.total = done, total
        self.what = re.sub(r"^.*?([^/ ]+/)?([^/ ]+)$", r"\1\2", what)
        self.tick()

    def line(self):
        spent = self.clock() - self.start
        text = f"{self.name}: {self.done} of {self.total} steps, {duration(spent)}"
        if self.done >= 10 and self.done < self.total:
            # Steps differ in length, so round the estimate.
            left = spent * (self.total - self.done) / self.done
            text += f", about {duration(max(10, round(left / 10) * 10))} left"
        return text

    def tick(self):
        now = self.clock()
        if self.moves and now - self.shown >= 0.1:
            self.shown = now
            width = os.get_terminal_size(self.out.fileno()).columns - 1
            self.out.write("\r" + f"{self.line()}  {self.what}"[:width] + "\x1b[K")
            self.out.flush()
        elif not self.moves and now - self.shown >= EVERY:
            self.shown = now
            self.out.write(self.line() + "\n")
            self.out.flush()

    def other(self, text):
        self.out.write(("\r\x1b[K" if self.moves else "") + text + "\n")
        self.out.flush()

    def end(self):
        if self.moves:
            self.out.write("\r\x1b[K")
            self.out.flush()


def main(name, arguments):
    environment = dict(os.environ, NINJA_STATUS="\x1e%f %t ")
    ninja = subprocess.Popen(["ninja", *arguments], env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    progress = Progress(name, sys.stderr)
    rest = b""
    while True:
        # One step may take longer than the interval between two lines.
        if select.select([ninja.stdout], [], [], 1)[0]:
            piece = os.read(ninja.stdout.fileno(), 65536)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace")
                step = STEP.match(text)
                if step:
                    progress.step(int(step[1]), int(step[2]), step[3])
                elif text != "ninja: no work to do.":
                    progress.other(text)
        else:
            progress.tick()
    if rest:
        progress.other(rest.decode(errors="replace"))
    progress.end()
    return ninja.wait()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
