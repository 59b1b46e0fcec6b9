# SPDX-License-Identifier: Apache-2.0
"""GPUs that come and go while a container runs: berth update --gpus."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

from support.gpu_machine import MINORS, SLEEP, STUB, a_machine, pid_of
from support.waiting import wait_until

DENIED = "Operation not permitted"
ALLOWED = "No such device or address"  # the driver that is not there says so


@pytest.fixture
def machine(berth, driver_tree, busybox):
    yield from a_machine(berth, driver_tree("eight", *STUB), busybox)


def update(machine, gpus, name="train"):
    assert machine.berth.ok(*machine.flags, "update", "--gpus", gpus, name) == f"{name}\n"
    return machine.gpus_of(name)


def refused(machine, gpus, name="train"):
    done = machine.berth.run(*machine.flags, "update", "--gpus", gpus, name)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr.splitlines()[-1]


def opened(machine, number, name="train"):
    """What a node of that GPU says that the container makes for itself."""
    said = machine.berth.run(*machine.flags, "exec", name, "sh", "-c",
                             f"rm -f /n; mknod /n c 195 {MINORS[number]} && cat /n")
    return said.stderr.strip().splitlines()[-1].rpartition(": ")[2]


@pytest.mark.profiles("root")
def test_a_running_container_gets_gpus_and_loses_them(machine):
    assert machine.start("train", "--gpus", "device=2") == [2]
    assert (opened(machine, 2), opened(machine, 5)) == (ALLOWED, DENIED)
    assert update(machine, "device=2,5") == [2, 5]
    assert (opened(machine, 2), opened(machine, 5)) == (ALLOWED, ALLOWED)
    assert machine.holders() == {"train": [2, 5]}
    assert update(machine, "device=5") == [5]
    assert (opened(machine, 2), opened(machine, 5)) == (DENIED, ALLOWED)
    assert machine.holders() == {"train": [5]}
    assert update(machine, "none") == []
    assert opened(machine, 5) == DENIED
    assert machine.holders() in ({}, {"train": []})
    assert len(update(machine, "all")) == 8


@pytest.mark.profiles("root")
def test_of_a_count_it_keeps_what_it_has(machine):
    machine.start("other", "--gpus", "device=6")
    assert machine.start("train", "--gpus", "device=6") == [6]
    more = update(machine, "3")
    assert 6 in more and len(more) == 3
    assert set(update(machine, "2")) < set(more)


@pytest.mark.profiles("root")
def test_what_it_gives_back_is_the_next_ones(machine):
    machine.start("train", "--gpus", "all", "--gpus-exclusive")
    assert "held by container 'train'" in machine.refused("--gpus", "1", "--gpus-exclusive")
    kept = update(machine, "6")
    given = machine.start("next", "--gpus", "2", "--gpus-exclusive")
    assert sorted(kept + given) == list(range(8))
    line = refused(machine, "7")
    assert re.match(r"berth: cannot update container 'train': --gpus 7: 6 of 8 GPUs free: "
                    r"GPU \d,\d is held by container 'next' of root; try: ", line), line
    assert machine.gpus_of("train") == kept and machine.holders() == {"train": kept, "next": given}


@pytest.mark.profiles("root")
def test_what_it_is_given_after_the_ledger_was_lost_is_its_own(machine):
    machine.start("train", "--gpus", "device=1", "--gpus-exclusive")
    for path in pathlib.Path("/run/berth-ledger").iterdir():
        path.unlink()
    pathlib.Path("/run/berth-ledger").rmdir()
    assert update(machine, "device=1,2") == [1, 2]
    for _ in range(2):  # the first look would remove what is dead
        assert "held by container 'train'" in machine.refused("--gpus", "device=1")
    assert machine.holders() == {"train": [1, 2]}
    machine.remove("train")
    assert machine.holders() == {}


@pytest.mark.profiles("root")
def test_a_restart_and_a_new_start_have_what_it_was_given(machine):
    machine.start("train", "--gpus", "device=1", "--restart", "always")
    update(machine, "device=3,4")
    pid = pid_of(machine, "train")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid_of(machine, "train") not in (0, pid))
    assert machine.gpus_of("train") == [3, 4] and machine.holders() == {"train": [3, 4]}
    machine.berth.ok(*machine.flags, "restart", "--time", "0", "train")
    assert machine.gpus_of("train") == [3, 4] and machine.holders() == {"train": [3, 4]}


def test_of_a_container_that_does_not_run_it_is_the_next_start(machine):
    machine.berth.ok(*machine.flags, "create", "--name", "train", "--gpus", "1", machine.image, *SLEEP)
    machine.berth.ok(*machine.flags, "update", "--gpus", "device=4", "train")
    machine.berth.ok(*machine.flags, "start", "train")
    assert machine.gpus_of("train") == [4]


def test_wrong_words_change_nothing(machine):
    machine.berth.ok(*machine.flags, "create", "--name", "train", "--gpus", "device=3",
                     machine.image, *SLEEP)
    for words in ("1.5", "0x2", "device=", "2,speed=9"):
        assert refused(machine, words).startswith("berth: cannot update container 'train': ")
    machine.berth.ok(*machine.flags, "start", "train")
    for words in ("9", "1.5", "device=9", "device=3,3x"):
        assert refused(machine, words).startswith("berth: cannot update container 'train': ")
    assert machine.gpus_of("train") == [3]


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_users_container_is_told_what_to_do(machine):
    machine.start("train", "--gpus", "device=3")
    assert refused(machine, "device=4") == (
        "berth: cannot update container 'train': change its GPUs while it runs: only a "
        "container of root's can get device nodes while it runs; try: berth stop, berth update --gpus, berth start")
    assert machine.gpus_of("train") == [3]


@pytest.mark.profiles("root")
def test_what_has_no_driver_has_to_be_started_anew(machine):
    machine.start("train")
    line = refused(machine, "1")
    assert re.fullmatch(r"berth: cannot update container 'train': change its GPUs while it runs: it "
                        r"was started without '/.*'; try: berth stop, berth update --gpus, berth start",
                        line), line
    assert machine.gpus_of("train") == [] and machine.holders() == {}
    machine.start("whole", "--privileged")
    assert "--privileged gave it every device" in refused(machine, "1", "whole")


@pytest.mark.profiles("root")
def test_limits_wait_for_another_call(machine):
    machine.start("train", "--gpus", "device=3")
    done = machine.berth.run(*machine.flags, "update", "--gpus", "2", "--memory", "64m", "train")
    assert done.returncode == 1 and "cannot be changed together with other values" in done.stderr
    assert machine.gpus_of("train") == [3]


@pytest.mark.profiles("root")
def test_explain_tells_what_it_has_now(machine):
    machine.start("train", "--gpus", "device=3")
    update(machine, "device=5")
    told = json.loads(machine.berth.ok(*machine.flags, "explain", "--format", "json", "train"))
    given = {item["object"]: item["given"] for item in told["items"]}
    assert (given[f"/dev/nvidia{MINORS[5]}"], given[f"/dev/nvidia{MINORS[3]}"]) == (True, False)


@pytest.mark.profiles("root")
def test_nothing_is_made_where_the_container_points_to(machine, work):
    """Its root may mount what it likes in the place of /dev."""
    bait = work / "bait"
    bait.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", bait], check=True)
    try:
        machine.start("train", "--gpus", "device=3", "--cap-add", "SYS_ADMIN", "--security-opt",
                      "seccomp=unconfined", "-v", f"{bait}:/bait")
        machine.berth.ok(*machine.flags, "exec", "train", "mount", "--bind", "/bait", "/dev")
        line = refused(machine, "device=5")
        assert "/dev of the container is not a file system of its own" in line, line
        assert list(bait.iterdir()) == []
        assert machine.holders() == {"train": [3]}
    finally:
        subprocess.run(["umount", "-l", bait], check=True)


def left_behind(machine):
    return list(machine.berth.root.rglob("config.next.json"))


@pytest.mark.profiles("root")
def test_a_start_forgets_what_a_killed_update_wanted(machine):
    machine.start("train", "--gpus", "device=0")
    [config] = machine.berth.root.rglob("config.json")
    (config.parent / "config.next.json").write_text(config.read_text())
    machine.berth.ok(*machine.flags, "stop", "train")
    machine.berth.ok(*machine.flags, "start", "train")
    assert left_behind(machine) == []


@pytest.mark.profiles("root")
def test_whoever_is_killed_in_it_leaves_nothing_that_no_lease_has(machine):
    machine.start("train", "--gpus", "device=0", "--gpus-exclusive")
    seed = int(os.environ.get("BERTH_FAULT_SEED", "0")) or random.randrange(1 << 30)
    generator = random.Random(seed)
    begun = 0
    for round_ in range(int(os.environ.get("BERTH_FAULT_POINTS", "12"))):
        wanted = "device=0,1" if round_ % 2 else "device=2,3"
        # Alone, as its runtime goes on without it, or with that.
        alone = bool(round_ % 4 < 2)
        changing = machine.berth.spawn(*machine.flags, "update", "--gpus", wanted, "train",
                                       start_new_session=True)
        if round_ % 3:  # in the middle of it, not in its beginning
            seen = wait_until(lambda: left_behind(machine) or changing.poll() is not None,
                              pause=0.0005)
            begun += isinstance(seen, list)
        time.sleep(generator.uniform(0, 0.01 if round_ % 3 else 0.06))
        with contextlib.suppress(ProcessLookupError):
            (os.kill if alone else os.killpg)(changing.pid, signal.SIGKILL)
        changing.communicate()
        time.sleep(0.2 if alone else 0)
        has, [leased] = set(machine.gpus_of("train")), [set(machine.holders()["train"])]
        assert has <= leased, (seed, round_)
        allowed = {gpu for gpu in range(8) if opened(machine, gpu) == ALLOWED}
        assert allowed <= leased, (seed, round_)
    assert begun, "no round came as far as to change anything"
    assert update(machine, "device=5") == [5]
    assert {gpu for gpu in range(8) if opened(machine, gpu) == ALLOWED} == {5}
    assert machine.holders() == {"train": [5]}
    assert left_behind(machine) == []


@pytest.mark.profiles("root")
def test_two_at_once_take_turns(machine):
    machine.start("train", "--gpus", "device=0")
    both = [machine.berth.spawn(*machine.flags, "update", "--gpus", gpus, "train")
            for gpus in ("device=1,2", "device=3,4")]
    for one in both:
        _, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
    assert machine.gpus_of("train") in ([1, 2], [3, 4])
    assert machine.holders() == {"train": machine.gpus_of("train")}

