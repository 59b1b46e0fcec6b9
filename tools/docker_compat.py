#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the table of docs/docker-compat.md with the --help of docker and of berth.

    tools/docker_compat.py BERTH            rewrites the table; keeps its texts
    tools/docker_compat.py --check BERTH    prints one line for each wrong entry

Docker is Debian's /usr/bin/docker, run without a daemon. A verb or flag is 'same', 'differs' or 'absent'. The
document describes a difference, and rewriting keeps that text; the reason for an absence is berth's own
answer to that verb or flag. Rewriting adds rows for new verbs and flags of Docker, and turns 'absent' into
'same' if berth now has it: review the diff.

The lists below the table come from tests/data: lines with another outcome than Docker's (docker_lines),
and lines that people type for Docker and other tools (typed_lines).
"""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import sys

import compat_lines

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/docker-compat.md"
DOCKER = "/usr/bin/docker"
RELEASE = "20.10."
BEGIN, END = "<!-- verbs: tools/docker_compat.py -->", "<!-- end of verbs -->"
LINES, LINES_END = "<!-- lines: tests/data -->", "<!-- end of lines -->"
NOT_YET = "not yet"
GROUPS = ("container", "image", "volume", "network", "system", "builder")
# Short verbs with another name than in their group.
SHORT = {"container ls": "ps", "image ls": "images", "image rm": "rmi"}
STATES = ("same", "differs", "absent")
# Berth's answer to a flag or a verb that it knowingly lacks.
REFUSAL = re.compile(r"^berth: (?:unknown flag '[^']*'|berth has no verb '[^']*')(?:: (?P<why>.*?))?"
                     r"(?:; try: (?P<here>.*))?$")

FLAG = re.compile(r"^ +(?:-(\w), )?--([\w-]+)(?=\s|$)")
ROW = re.compile(r"^\| `(?:-(\w), )?--([\w-]+)` \| (\w+) \| ?(.*?) ?\|$")
VERB = re.compile(r"^  ([a-z]+)\*? +\S")


def output(*argv):
    environment = {**os.environ, "DOCKER_HOST": "unix:///nonexistent", "COLUMNS": "200"}
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment,
                          timeout=30)
    return done.stdout if done.returncode == 0 else None


def flags_of(text):
    """{long name: letter or ''}, without --help."""
    flags = {}
    for line in text.splitlines():
        match = FLAG.match(line)
        if match and match.group(2) != "help":
            flags[match.group(2)] = match.group(1) or ""
    return flags


def verbs_of(text, title):
    """The first words of the lines below a title in a help text, up to the next blank line."""
    part = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
    return [match.group(1) for match in map(VERB.match, part.splitlines()) if match]


@dataclasses.dataclass
class Flag:
    letter: str
    state: str
    words: str = ""

    def row(self, name):
        spelled = f"-{self.letter}, --{name}" if self.letter else f"--{name}"
        return f"| `{spelled}` | {self.state} | {self.words} |"


@dataclasses.dataclass
class Section:
    names: list  # "ps", "container ls", …
    state: str = "absent"
    words: str = NOT_YET
    flags: dict = dataclasses.field(default_factory=dict)

    def text(self):
        lines = [f"### {', '.join(f'`{name}`' for name in self.names)}", "",
                 f"{self.state}{': ' if self.words else ''}{self.words}", ""]
        if self.flags:
            lines += ["| Flag | | |", "| --- | --- | --- |"]
            lines += [flag.row(name) for name, flag in self.flags.items()] + [""]
        return "\n".join(lines)


# ---- docker -------------------------------------------------------------------------------------

def docker_release():
    """"20.10.24+dfsg1", or None without Debian's docker."""
    text = output(DOCKER, "--version") if os.path.exists(DOCKER) else None
    match = re.match(r"Docker version ([^,]+)", text or "")
    return match.group(1) if match else None


def docker_names():
    """All verbs in the table, with their aliases."""
    top = output(DOCKER, "--help")
    names = verbs_of(top, "Commands")
    for group in GROUPS:
        for verb in verbs_of(output(DOCKER, group, "--help"), "Commands"):
            listed = output(DOCKER, group, verb, "--help").partition("\nAliases:\n")[2]
            aliases = [word.strip() for word in listed.partition("\n\n")[0].split(",")]
            names += [f"{group} {name}" for name in dict.fromkeys([verb, *filter(None, aliases)])]
    return names


@functools.cache
def docker_sections():
    """One section for all names of one command."""
    found = {}
    for name in docker_names():
        flags = flags_of(output(DOCKER, *name.split(), "--help"))
        found[name] = flags
    sections = {}
    for name, flags in found.items():
        group, _, verb = name.rpartition(" ")
        short = SHORT.get(name, verb)
        if group in ("container", "image", "system", "builder") and found.get(short) == flags:
            key = short
        elif group == "container" and verb in ("ps", "list"):
            key = "ps"
        elif group == "image" and verb == "list":
            key = "images"
        elif group == "image" and verb == "remove":
            key = "rmi"
        elif verb == "list":
            key = f"{group} ls"
        elif verb == "remove":
            key = f"{group} rm"
        else:
            key = name
        sections.setdefault(key, ([], flags))[0].append(name)
    return sections


# ---- berth --------------------------------------------------------------------------------------

def berth_flags(berth, name):
    """{long name: letter}, or None if berth has no such verb."""
    text = output(berth, *name.split(), "--help")
    if text is None or not any(line.startswith("Usage:") for line in text.splitlines()):
        return None
    return flags_of(text)


def refusal(berth, *words):
    """"WHY; HERE" from berth's answer to these words, '' if it does not know them."""
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run([berth, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, env=environment, timeout=30)
    match = REFUSAL.match(done.stderr.strip())
    if done.returncode == 0 or not match:
        return ""
    return "; try: ".join(filter(None, (match["why"], match["here"]))).replace("|", "\\|")


# ---- the document -------------------------------------------------------------------------------

def read():
    """{first name: Section} of the document."""
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    sections, section = {}, None
    for line in text.partition(BEGIN)[2].partition(END)[0].splitlines():
        if line.startswith("### "):
            section = Section(re.findall(r"`([^`]+)`", line), "", "")
            sections[section.names[0]] = section
        elif section and not section.state and line:
            section.state, _, section.words = line.partition(": ")
        elif section and (match := ROW.match(line)):
            section.flags[match.group(2)] = Flag(match.group(1) or "", *match.group(3, 4))
    return sections


def written_lines():
    """The lists in the document, between their marks."""
    text = DOCUMENT.read_text(encoding="utf-8")
    return text.partition(f"{LINES}\n\n")[2].partition(f"\n{LINES_END}")[0]


def write_lines():
    text = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = text.partition(LINES)
    tail = rest.partition(LINES_END)[2]
    DOCUMENT.write_text(f"{head}{LINES}\n\n{compat_lines.text()}\n{LINES_END}{tail}", encoding="utf-8")


def write(sections):
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else f"{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    body = "\n".join(section.text() for section in sections)
    DOCUMENT.write_text(f"{head}{BEGIN}\n\n{body}\n{END}{tail}", encoding="utf-8")


def renewed_flag(old, letter, mine, name, why):
    """The row of one of docker's flags; keeps its text as long as it can be true. `why`: berth's answer to
    the flag."""
    if mine is None or name not in mine:
        return Flag(letter, "absent", why() or NOT_YET)
    if letter and mine[name] != letter:
        return Flag(letter, "differs", old.words if old and old.state == "differs" else
                    f"without the letter `-{letter}`")
    if old and old.state == "differs" and not old.words.startswith("without the letter"):
        return Flag(letter, "differs", old.words)
    return Flag(letter, "same", old.words if old and old.state == "same" else "")


def renew(berth):
    known, sections = read(), []
    for key, (names, flags) in docker_sections().items():
        old = known.get(names[0]) or known.get(key) or Section(names)
        section = Section(names)
        mine = berth_flags(berth, names[0])
        if mine is None:
            section.state, section.words = "absent", refusal(berth, *names[0].split()) or NOT_YET
        else:
            section.state = old.state if old.state in ("same", "differs") else "same"
            section.words = "" if old.state == "absent" else old.words
        for name, letter in flags.items():
            if mine is not None or section.words == NOT_YET:
                section.flags[name] = renewed_flag(
                    old.flags.get(name), letter, mine, name,
                    functools.partial(refusal, berth, *names[0].split(), f"--{name}"))
        sections.append(section)
    write(sections)


def faults(berth):
    """One line for each wrong entry in the table, and for each missing one."""
    known = read()
    by_name = {name: section for section in known.values() for name in section.names}
    for names, flags in docker_sections().values():
        for name in names:
            if name not in by_name:
                yield f"{name}: docker has it, the table has not"
                continue
            yield from verb_faults(name, by_name[name], flags, berth_flags(berth, name))
    for section in known.values():
        yield from reason_faults(section, functools.partial(refusal, berth))
    if written_lines() != compat_lines.text():
        yield "the lists of lines are not those of tests/data"


def reason_faults(section, refused):
    """One line for each verb and flag with another reason than berth's answer. `refused`: words -> reason."""
    verb = section.names[0].split()
    if section.state == "absent":
        answers = {section.names[0]: (section.words, refused(*verb))}
    else:
        answers = {f"{section.names[0]} --{name}": (flag.words, refused(*verb, f"--{name}"))
                   for name, flag in section.flags.items() if flag.state == "absent"}
    for what, (words, answer) in answers.items():
        if not answer:
            yield f"{what}: absent, but berth does not say why to who types it"
        elif words != answer:
            yield f"{what}: the table says '{words}', berth '{answer}'"


def verb_faults(name, section, flags, mine):
    if section.state not in STATES:
        yield f"{name}: '{section.state}' is none of {', '.join(STATES)}"
    if section.state != "same" and not section.words:
        yield f"{name}: {section.state}, but how or why is not said"
    if section.state == "absent":
        if mine is not None:
            yield f"{name}: absent in the table, but berth has it"
        if section.words != NOT_YET:
            return  # one reason for the whole section
    elif mine is None:
        yield f"{name}: {section.state} in the table, but berth does not have it"
        return
    for flag, letter in flags.items():
        row = section.flags.get(flag)
        if row is None:
            yield f"{name} --{flag}: docker has it, the table has not"
            continue
        yield from flag_faults(f"{name} --{flag}", row, letter, mine or {}, flag)
    for flag in section.flags:
        if flag not in flags:
            yield f"{name} --{flag}: in the table, but docker has it not"


def flag_faults(name, row, letter, mine, flag):
    if row.state not in STATES:
        yield f"{name}: '{row.state}' is none of {', '.join(STATES)}"
    if row.letter != letter:
        yield f"{name}: docker's letter is '{letter}', the table's '{row.letter}'"
    if row.state != "same" and not row.words:
        yield f"{name}: {row.state}, but how or why is not said"
    if row.state == "absent" and flag in mine:
        yield f"{name}: absent in the table, but berth has it"
    if row.state in ("same", "differs") and flag not in mine:
        yield f"{name}: {row.state} in the table, but berth does not have it"
    if row.state == "same" and letter and mine.get(flag, letter) != letter:
        yield f"{name}: same in the table, but berth does not take -{letter}"


def main():
    check = "--check" in sys.argv
    berth = sys.argv[-1]
    release = docker_release()
    if release is None or not release.startswith(RELEASE):
        sys.exit(f"docker_compat: {DOCKER} is {release}, the table is about {RELEASE}x")
    if not check:
        renew(berth)
        write_lines()
    lines = list(faults(berth))
    print("\n".join(lines) if lines else "docker_compat: the table is true")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
