# SPDX-License-Identifier: Apache-2.0
"""Verbs and flags of docker, podman, apptainer, enroot, … that Berth has too, or refuses with what to
type instead: tests/data/other_engines."""

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
