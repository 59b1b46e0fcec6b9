# SPDX-License-Identifier: Apache-2.0
"""Verbs and flags of docker, podman, apptainer, enroot, … that Berth has too, or refuses with what to
type instead: tests/data/other_engines."""

import functools
import pathlib
import re
import subprocess
import tomllib

import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/other_engines"
VERBS = {program: [typed.replace("+", " ") for typed in verbs.split()]
         for program, verbs in tomllib.loads((DATA / "verbs.toml").read_text("utf-8")).items()}
FLAGS = {(program, verb): flags.split()
         for program, verbs in tomllib.loads((DATA / "flags.toml").read_text("utf-8")).items()
         for verb, flags in verbs.items()}
# "berth: unknown flag '--nv': why; try: what", where one of the two is enough.
ANSWER = re.compile(r"^berth: (unknown flag '-{1,2}[\w-]+'|berth has no verb '[\w -]+')"
                    r"(: (?!try).+?)?(; try: .+)?\n$")
FLAG = re.compile(r"^ +(?:-(\w), )?--([\w-]+)", re.MULTILINE)


def answer(programs, *words):
    return subprocess.run([programs / "berth", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=30)


def is_an_answer(line):
    match = ANSWER.match(line)
    return match is not None and (match[2] or match[3]) is not None


@pytest.mark.parametrize("program", VERBS)
def test_a_verb_of_another_engine_is_known_or_refused_with_what_to_type(programs, program):
    unanswered = []
    for verb in VERBS[program]:
        if answer(programs, *verb.split(), "--help").returncode == 0:
            continue
        line = answer(programs, *verb.split()).stderr
        if not is_an_answer(line):
            unanswered.append(line)
    assert not unanswered, "".join(unanswered)


@pytest.mark.parametrize("program, verb", FLAGS, ids=[f"{p}-{v}" for p, v in FLAGS])
def test_a_flag_of_another_engine_is_known_or_refused_with_what_to_type(programs, program, verb):
    words = [] if verb == "global" else verb.split()
    shown = answer(programs, *words, "--help").stdout
    known = {name for pair in FLAG.findall(shown) for name in pair if name}
    assert known, f"no help of {verb}"
    unanswered = []
    for flag in FLAGS[program, verb]:
        if flag in known:
            continue
        line = answer(programs, *words, f"{'-' if len(flag) == 1 else '--'}{flag}").stderr
        if not is_an_answer(line):
            unanswered.append(line)
    assert not unanswered, "".join(unanswered)


# ---- what is said to be typed instead -----------------------------------------------------------

OTHERS = {"berth-runtime", "buildah", "cosign", "kubectl", "numactl", "skopeo", "srun", "ssh", "systemd-run",
          "tail", "tar"}


class Hints:
    """Looks whether the verbs and flags of Berth that an answer names are there."""

    def __init__(self, programs):
        self.programs = programs

    @functools.cache
    def flags_of(self, verb):
        """The flags in a verb's help; nothing where there is no such verb."""
        shown = answer(self.programs, *verb.split(), "--help")
        if shown.returncode != 0:
            return None
        return {f"--{name}" if len(name) > 1 else f"-{name}"
                for pair in FLAG.findall(shown.stdout) for name in pair if name}

    def verbs_in(self, text):
        """(the verbs that `text` names, the words behind "berth" that are none)"""
        known, unknown = [], []
        for two, one in re.findall(r"\bberth (([a-z]+)(?: [a-z]+)?)", text):
            verb = next((name for name in (two, one) if self.flags_of(name) is not None), None)
            known.append(verb) if verb else unknown.append(f"berth {one}")
        return known, unknown

    def unknown_in(self, line, verb):
        """What `line`, an answer to whoever typed `verb`, names and Berth does not have."""
        said = re.sub(r"^berth: (unknown flag|berth has no verb) '[^']*'", "", line)
        known, unknown = self.verbs_in(said.partition("; try: ")[2])
        flags = set().union(*(self.flags_of(name) for name in ("", "run", verb, *known)))
        for part in re.split(r"; try: |, | && | \|\| | \| |\$\(|: ", said):
            words = part.strip(" ')\n").removeprefix("or ").removeprefix("and ").split()
            if words[:1] and words[0] in OTHERS:
                continue
            for word in words:
                if word in ("IMAGE", "CONTAINER", "COMMAND"):
                    break  # what follows is the container's
                flag = re.match(r"--[a-z][\w-]+|-[a-zA-Z]$", word)
                if flag and flag[0] not in flags:
                    unknown.append(flag[0])
        return unknown


def test_every_hint_names_what_there_is(programs):
    hints, wrong = Hints(programs), []
    for verb in {verb for verbs in VERBS.values() for verb in verbs}:
        if hints.flags_of(verb) is None:
            line = answer(programs, *verb.split()).stderr
            wrong += [f"{line}   {what}\n" for what in hints.unknown_in(line, "")]
    for (_, verb), flags in FLAGS.items():
        verb = "" if verb == "global" else verb
        for flag in flags:
            dashed = f"{'-' if len(flag) == 1 else '--'}{flag}"
            if dashed not in hints.flags_of(verb):
                line = answer(programs, *verb.split(), dashed).stderr
                wrong += [f"{line}   {what}\n" for what in hints.unknown_in(line, verb)]
    assert not wrong, "".join(wrong)
