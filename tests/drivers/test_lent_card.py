# SPDX-License-Identifier: Apache-2.0
"""A rehearsal of what runs on a machine with a card (tests/lent-card): the pack is made, and its run.py finds what is
there of a synthetic driver. No card computes here, which the evidence says; nothing may differ from the machine."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from integration.test_gpu_mps import MPS_STUB
from support import toolkits
from support.bundle import PROGRAMS
from support.gpu_machine import STUB

LENT_CARD = pathlib.Path(__file__).resolve().parent.parent / "lent-card"
sys.path.insert(0, str(LENT_CARD))

import run as lent_card  # noqa: E402
import steps as lent_steps  # noqa: E402

SECONDS = 240


@pytest.fixture(scope="module")
def packed(session_directory):
    if os.geteuid() != 0:
        pytest.skip("needs root, to unpack a toolkit")
    try:
        toolkits.get("11.8"), toolkits.get("12.4")
    except toolkits.Unavailable as error:
        pytest.skip(f"no CUDA toolkit: {error}")
    place = session_directory / "lent-card"
    subprocess.run([sys.executable, LENT_CARD / "pack.py", place, "--few", "--programs", PROGRAMS], check=True)
    return place


def smi_of(tree, path, driver):
    """A program that tells what the stub NVML tells, as nvidia-smi does."""
    text, uuids = "", []
    for line in (tree / "nvml.facts").read_text().splitlines():
        if not line.startswith("gpu "):
            continue
        words, _, name = line.partition(" name=")
        facts = dict(word.split("=", 1) for word in words.split()[1:])
        uuids.append(facts["uuid"])
        text += (f'<gpu id="{facts["pci"]}"><product_name>{name}</product_name><uuid>{facts["uuid"]}</uuid>'
                 f'<minor_number>{facts["minor"]}</minor_number>'
                 '<mig_mode><current_mig>Disabled</current_mig></mig_mode>'
                 f'<fb_memory_usage><total>{int(facts["memory"]) >> 20} MiB</total></fb_memory_usage></gpu>')
    xml = f"<nvidia_smi_log><driver_version>{driver[0]}</driver_version><cuda_version>{driver[1]}</cuda_version>{text}"
    path.write_text(f"#!/bin/sh\n[ $1 = -q ] || exit 9\ncat <<'END'\n{xml}</nvidia_smi_log>\nEND\n")
    path.chmod(0o755)
    return uuids


def rehearsed(packed, account, work, *words, status=0):
    out = account.own(work / "out")
    done = account.run([sys.executable, packed / "run.py", out, "--seconds", SECONDS, *words], timeout=SECONDS + 60)
    assert done.returncode == status, done.stdout + done.stderr
    evidence = json.loads((out / "evidence.json").read_text())
    assert (out / "summary.md").read_text().count("\n| ") >= len(evidence["steps"])
    return {step["step"]: step for step in evidence["steps"]}


@pytest.fixture(scope="module")
def tree(driver_tree):
    made = driver_tree("eight", "--gpus", "1", "--numa", "0", *STUB)
    shutil.copy2(MPS_STUB, made / "usr/bin/nvidia-cuda-mps-control")
    return made


@pytest.mark.profiles("root", "user")
def test_every_step_runs_and_none_differs(berth, packed, tree, work):
    told = json.loads(berth.ok("--driver-root", tree, "gpu", "list", "--format", "json"))["driver"]
    [uuid] = smi_of(tree, work / "nvidia-smi", (told["module_version"], told["cuda_version"]))
    steps = rehearsed(packed, berth.account, work, "--driver-root", tree, "--nvidia-smi", work / "nvidia-smi")
    print({name: (step["result"], step["text"]) for name, step in steps.items()})
    assert steps["inventory"]["result"] == "same" and uuid in steps["inventory"]["facts"]["berth"]
    assert steps["modes"]["result"] == "no card"
    assert {row[0]: row[1] for row in steps["modes"]["facts"]["tables"]["Driver modes"][1:]} == {
        "bind": "same", "volume": "same", "image": "same",
        "copy": "same" if berth.account.kind == "root" else "refused"}
    assert steps["tenants"]["result"] == steps["memory"]["result"] == "no card"
    of_root = {steps[name]["result"] for name in ("live", "verdicts")}
    assert of_root == ({"no card"} if berth.account.kind == "root" else {"cannot"})
    assert all(steps[name]["commands"] for name in ("inventory", "modes", "smi", "tenants", "memory"))


@pytest.mark.profiles("root")
def test_what_differs_is_told(berth, packed, tree, work):
    smi_of(tree, work / "nvidia-smi", ("1.2.3", "99.0"))
    steps = rehearsed(packed, berth.account, work, "--driver-root", tree, "--nvidia-smi", work / "nvidia-smi", "--only",
                      "inventory", status=1)
    assert steps["inventory"]["result"] == "differs"
    assert [row[0] for row in steps["inventory"]["facts"]["tables"]["Inventory"][1:]] == ["driver", "CUDA"]


# ---- what the steps make of a card's answers ----------------------------------------------------

WHOLE = {"right": True, "sum": 65280, "error": 0, "count": 1, "driver": 12040, "name": "A card", "capability": "9.0",
         "multiprocessors": 132, "pci": "0000:1b:00.0", "total_mib": 140000, "allocated_mib": 4096}


class Answers:
    """A machine with a card, whose commands have answers for words in them; the last that fits counts."""

    def __init__(self, *answers, is_root=True):
        self.answers, self.is_root = answers, is_root
        self.shared = {"bare": WHOLE, "gpus": {"gpus": [{}]}}

    def run(self, *words, seconds=60):
        line = " ".join(map(str, words))
        found = [answer for part, answer in self.answers if part in line]
        status, out = found[-1] if found else (0, "")
        return lent_card.Done(status, out if isinstance(out, str) else json.dumps(out), out if status == 125 else "")

    berth = run

    def pack(self):
        return {"judged": {"fits": {}, "other": {}}}


def told_by_match(outcome):
    return [{"entries": [{"clauses": [{"outcome": outcome, "about": "gpu", "reason": "why"}]}]}]


@pytest.mark.profiles()
@pytest.mark.parametrize("other, result", [((1, {"right": False}), "same"), ((0, {"right": True}), "differs")])
def test_a_verdict_is_held_against_the_card(other, result):
    machine = Answers(("run", (0, WHOLE)), ("match", (0, told_by_match("pass"))),
                      ("match --local --format json localhost/other", (12, told_by_match("fail"))),
                      ("run --rm --gpus all localhost/other", other))
    said, _, facts = lent_steps.verdicts(machine)
    assert said == result and sum(facts["counts"].values()) == 2


@pytest.mark.profiles()
@pytest.mark.parametrize("limited, result", [(1856, "same"), (4096, "differs"), (0, "differs")])
def test_a_limit_of_memory_is_held_against_the_card(limited, result):
    machine = Answers(("run", (0, WHOLE)), ("--gpu-memory", (0, {**WHOLE, "allocated_mib": limited})))
    assert lent_steps.memory(machine)[0] == result


@pytest.mark.profiles()
def test_a_refusal_is_no_difference():
    machine = Answers(("run", (0, WHOLE)), ("--gpu-", (125, "berth: no limits here")))
    assert lent_steps.memory(machine)[:2] == ("refused", "berth: no limits here (status 125)")
    assert lent_steps.tenants(machine)[0] == "refused"


@pytest.mark.profiles()
@pytest.mark.parametrize("half, result", [(66, "same"), (132, "differs")])
def test_shares_are_held_against_the_card(half, result):
    machine = Answers(("exec quarter", (0, {**WHOLE, "multiprocessors": 33})),
                      ("exec half", (0, {**WHOLE, "multiprocessors": half})))
    assert lent_steps.tenants(machine)[0] == result


@pytest.mark.profiles()
def test_a_card_that_stays_is_a_difference():
    machine = Answers(("exec live /opt/card", (0, WHOLE)), ("exec live sh", (0, "nvidia0")))
    assert lent_steps.live(machine)[0] == "differs"
