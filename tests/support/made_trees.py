# SPDX-License-Identifier: Apache-2.0
"""Generated trees: everything that a program may create in a container, in steps that change the results of
earlier steps. The same seed gives the same trees. tree_maker.c executes the steps.

    steps(7) → [lines for tree_maker, …]
"""

import functools
import pathlib
import random
import subprocess
import tempfile

from support import rich_layer

TOP = "/tree"
# Special for some program: a shell, a terminal, tar, an overlay, a list of lines.
NAMES = [b"plain", b" blank ", b"a\nline", b"-rf", b"\xff\xfe no text", "ä✓".encode(), b"back\\slash", b"%41",
         b"'\"`$x", b"*", b"...", b"..data", b"~", b"#x#", b"=", b"a:b", b"\x1b[31m", b"\x7f\x01", b"wh.x", b".wh",
         b"PaxHeaders.0", b"GNUSparseFile.1", b"@LongLink", b"trailing.", b"tab\there", b"c:\\x", b"COM1",
         b"n" * 255, b"d" * 99, b"d" * 100, b"d" * 101, b"d" * 155, "ü".encode() * 127]
TIMES = [(0, 0), (0, 1), (1, 999999999), (-1, 0), (-2, 500000000), (-86400, 250000000), (1234567890, 123456789),
         (2147483647, 5), (2147483648, 0), (4102444800, 7)]
OWNERS = [(0, 0), (33, 33), (1000, 100), (65534, 65534), (0, 5)]
MODES = [0o644, 0o755, 0o600, 0o000, 0o777, 0o4755, 0o2755, 0o6711, 0o1777, 0o400]
ATTRIBUTES = [("user.note", b"plain"), ("user.zero", b"with \0 and \n"), ("user.empty", b""),
              ("user.large", b"l" * 3000), ("user.of.many.dots", b"\xff\xfe"), ("user.=", b"=")]
NOBODY = rich_layer.NOBODY
DEFAULT = rich_layer.acl((1, 7, NOBODY), (4, 5, NOBODY), (8, 5, 2000), (16, 5, NOBODY), (32, 5, NOBODY))


def word(text):
    data = text if isinstance(text, bytes) else str(text).encode()
    return "".join(chr(c) if 32 < c < 127 and c != 37 else f"%{c:02x}" for c in data)


class Maker:
    """The tree so far, and the lines that change it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kinds = {TOP.encode(): "d"}  # path → the kind of its entry
        self.lines = [f"d {TOP}"]
        self.count = 0

    def say(self, verb, path, *words):
        self.lines.append(" ".join([verb, word(path), *map(word, words)]))

    def of_kind(self, *kinds):
        return sorted(path for path, kind in self.kinds.items() if kind in kinds)

    def some(self, number, *kinds):
        there = self.of_kind(*kinds)
        return self.random.sample(there, min(number, len(there)))

    def small(self):
        """Entries that can be removed without losing the tree."""
        below = {path: 0 for path in self.kinds}
        for path in self.kinds:
            while path := path.rpartition(b"/")[0]:
                below[path] = below.get(path, 0) + 1
        return sorted(path for path in self.kinds if below[path] < 6)

    def new_path(self, below=None):
        while True:
            parent = below or self.random.choice(self.of_kind("d"))
            name = self.random.choice(NAMES)
            if self.random.random() < 0.4:
                self.count += 1
                name = b"%s-%d" % (name[:200], self.count)
            path = parent + b"/" + name
            if path not in self.kinds and len(path) < 3000 and path.count(b"/") < 60:
                return path

    def parts(self):
        """The contents of a file: nothing, a few bytes, blocks, holes before, between and after."""
        size = self.random.choice([0, 1, 511, 512, 4096, 4097, 200000, 3 << 20])
        at, parts = 0, []
        while at < size and len(parts) < 4:
            data = bytes(self.random.randrange(256) for _ in range(self.random.choice([1, 7, 700])))[:size - at]
            parts.append(f"{at}:{word(data)}")
            at += self.random.choice([len(data), 5000, 1 << 20])
        return size, ",".join(parts) or "0:"

    def make(self, kind, path):
        if kind == "f":
            size, parts = self.parts()
            self.lines.append(f"f {word(path)} {size} {parts.replace(' ', '%20')}")
        elif kind == "l":
            self.say("l", path, self.random.choice([b"plain", b"/etc/passwd", b"../..", b"t/" * 300, b"\xff\n", b"."]))
        elif kind == "d":
            self.say("d", path)
        else:
            number = {"p": (0, 0), "c": (1, 3), "b": (7, 200), "s": (0, 0)}[kind]
            self.say("n", path, kind, *number)
        self.kinds[path] = kind

    def describe(self, path):
        """Owner, mode, attributes, time, in an order in which none resets another."""
        kind, pick = self.kinds[path], self.random.choice
        self.say("o", path, *pick(OWNERS))
        if kind != "l":
            self.say("m", path, "%o" % pick(MODES))
        if kind in "fd" and self.random.random() < 0.5:
            for key, value in self.random.sample(ATTRIBUTES, self.random.randrange(1, 4)):
                self.say("x", path, key, value)
            special = [("system.posix_acl_access", rich_layer.LIST)]
            special += [("security.capability", rich_layer.CAPABILITY)] if kind == "f" else [
                ("system.posix_acl_default", DEFAULT)]
            self.say("x", path, *pick(special))
        self.say("t", path, *pick(TIMES))

    def remove(self, path):
        self.say("r", path)
        for gone in [one for one in self.kinds if one == path or one.startswith(path + b"/")]:
            del self.kinds[gone]

    def add(self, number):
        made = []
        for kind in self.random.choices("ddffffllpcbs", k=number):
            path = self.new_path()
            self.make(kind, path)
            if kind != "s":
                made.append(path)
        for target in self.some(number // 5, "f", "l", "p"):
            path = self.new_path()
            self.say("h", path, target)
            self.kinds[path] = self.kinds[target]
        return made

    def deep(self):
        path = TOP.encode()
        for _ in range(14):
            path += b"/" + b"L" * 255
            self.say("d", path)
        self.say("l", path + b"/at the end", "x")

    def step_one(self):
        self.deep()
        for path in reversed(self.add(60)):
            self.describe(path)

    def step_more(self):
        """Removes, replaces by another kind, changes only attributes, or links to an older entry."""
        pick = self.random.choice
        for _ in range(6):
            self.remove(pick(self.small()))
        for _ in range(6):
            path = pick(self.small())
            self.remove(path)
            self.make(pick("dflp"), path)
        for _ in range(3):
            path = pick([path for path in self.small() if self.kinds[path] == "d"] or [self.new_path()])
            self.remove(path)  # and creates it again, with nothing of its old state
            self.make("d", path)
            self.make("f", self.new_path(path))
        for path in self.some(8, "f", "d", "l"):
            self.describe(path)
        for path in self.some(3, "f"):
            self.say("y", path, "user.note")
            to = self.new_path()
            self.say("v", path, to)
            self.kinds[to] = self.kinds.pop(path)
        self.add(15)

    def take(self):
        lines, self.lines = self.lines, []
        return "\n".join(lines) + "\n"


def steps(seed, count=4):
    maker = Maker(seed)
    maker.step_one()
    made = [maker.take()]
    for _ in range(count - 1):
        maker.step_more()
        made.append(maker.take())
    return made


@functools.cache
def program():
    """The bytes of /tree-maker, a static program."""
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory, "tree-maker")
        source = pathlib.Path(__file__).with_name("tree_maker.c")
        subprocess.run(["gcc", "-static", "-O1", "-o", made, source], check=True)
        return made.read_bytes()
