# SPDX-License-Identifier: Apache-2.0
"""--gpu-cores, and --gpu-memory where the kernel limits nothing: NVIDIA's MPS, started for
containers and ended after the last. The daemon and the programs that compute are stand-ins
(tests/support/mps_stub.c): what is shown is how Berth keeps them, not what a GPU does."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from support.bundle import PROGRAMS
from support.gpu_machine import STUB, a_machine, pid_of, tell, told_anew
from support.processes import command_lines
from support.waiting import wait_until

MPS_STUB = PROGRAMS.parent / "lib/mps_stub"
GIB = 1 << 30
pytestmark = pytest.mark.profiles("root")
everybody = pytest.mark.profiles("root", "user", "single_id")


@pytest.fixture
def client(work):
    """A folder with a program that computes."""
    shutil.copy2(MPS_STUB, work / "mps-client")
    (work / "mps-client").chmod(0o755)
    work.chmod(0o755)
    return work


@pytest.fixture
def machine(berth, driver_tree, busybox):
    tree = driver_tree("eight", *STUB)
    shutil.copy2(MPS_STUB, tree / "usr/bin/nvidia-cuda-mps-control")
    (tree / "usr/bin/nvidia-cuda-mps-control").chmod(0o755)
    for made in a_machine(berth, tree, busybox):
        yield from told_anew([made])
    for left in tree.glob("compute-mode.*"):
        left.unlink()
    wait_until(lambda: not shares(berth))


def shares(berth):
    """Directories of the shares that there are."""
    return [path for path in (berth.state / "mps").glob("*") if path.is_dir()]


def daemons(berth):
    """{pid: its share} of all processes of this user's shares."""
    found = {}
    names = {path.name for path in shares(berth)}
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for word in words:
            share = word.removeprefix(b"BERTH_MPS_SHARE=").decode(errors="replace")
            if share in names:
                found[int(directory.name)] = share
    return found


def line_of(berth):
    """The processes of the only share, each the parent of the next: guard, control daemon, server."""
    parents = {pid: parent_of(pid) for pid in daemons(berth)}
    line = [pid for pid in parents if parents[pid] not in parents]
    while more := [pid for pid in parents if parents[pid] == line[-1]]:
        line += more
    assert len(line) == len(parents)
    return line


def parent_of(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"PPid:\s+(\d+)", status)[1])


def ask(berth, command):
    """What the daemon of the only share answers."""
    [share] = shares(berth)
    done = subprocess.run([MPS_STUB], input=command + "\n", text=True, capture_output=True, timeout=10,
                          env={"CUDA_MPS_PIPE_DIRECTORY": str(share / "daemon")})
    assert done.returncode == 0, done
    return done.stdout.strip()


def keepers(berth):
    return [pid for pid, line in command_lines().items()
            if line.startswith(b"berth-mps\0keep\0%b\0" % bytes(berth.state))]


def with_client(client, *args):
    return ("-v", f"{client}:/c:ro", *args)


def start(machine, client, name, *args):
    return machine.start(name, *with_client(client, *args))


def compute(machine, name, mib, *words):
    """What a program says that takes so much memory in a running container."""
    done = machine.berth.run(*machine.flags, "exec", name, "/c/mps-client", "hold", str(mib), *words)
    return done.returncode, done.stdout.strip()


def runs(machine, client, mib, *args):
    done = machine.berth.run(*machine.flags, "run", "--rm", *with_client(client, *args),
                             machine.image, "/c/mps-client", "hold", str(mib))
    return done.returncode, done.stdout.strip()


def mode_file(machine, number):
    """Where the stub's NVML keeps the compute mode of GPU `number`."""
    listed = json.loads(machine.berth.ok(*machine.flags, "gpu", "list", "--format", "json"))["gpus"]
    return machine.flags[1] / f"compute-mode.{listed[number]['uuid']}"


def mode_of(machine, number):
    path = mode_file(machine, number)
    return int(path.read_text() or 0) if path.exists() else 0


def set_mode(machine, number, mode):
    mode_file(machine, number).write_text(f"{mode}\n")


def without_mps(machine):
    (machine.flags[1] / "usr/bin/nvidia-cuda-mps-control").unlink()
    machine.berth.ok(*machine.flags, "gpu", "list", "--refresh")


@pytest.fixture
def managed(berth, machine, work):
    """A machine whose policy gives it to Berth to manage."""
    site = berth.account.own(work / "site")
    (site / "policy.toml").write_text("[gpu]\nmanage = true\n")
    os.chown(site / "policy.toml", berth.account.uid, berth.account.gid)
    berth.ok("--config-dir", site, "policy", "apply")
    machine.flags = (*machine.flags, "--config-dir", site)
    return machine


# ---- limits -------------------------------------------------------------------------------------

@everybody
def test_a_program_is_kept_to_its_part(machine, client):
    limits = ("--gpus", "device=0", "--gpu-cores", "25", "--gpu-memory", "2g")
    assert runs(machine, client, 2048, *limits) == (0, "held 2048 cores 25.0")
    assert runs(machine, client, 2049, *limits) == (1, "out of memory")


@everybody
def test_a_neighbour_has_his_own_limits(machine, client):
    start(machine, client, "small", "--gpus", "device=0", "--gpu-memory", "1g")
    start(machine, client, "large", "--gpus", "device=0", "--gpu-memory", "4g")
    assert compute(machine, "small", 2000) == (1, "out of memory")
    assert compute(machine, "large", 2000)[0] == 0
    assert len(shares(machine.berth)) == 2


def test_a_program_that_loses_its_environment_is_kept_all_the_same(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    done = machine.berth.run(*machine.flags, "exec", "held", "env", "-u", "CUDA_MPS_PIPE_DIRECTORY",
                             "/c/mps-client", "hold", "1025")
    assert (done.returncode, done.stdout.strip()) == (1, "out of memory")


def test_the_daemon_knows_these_gpus_alone_and_has_a_limit_of_each(machine, client):
    gpus = json.loads(machine.berth.ok(*machine.flags, "gpu", "list", "--format", "json"))["gpus"]
    start(machine, client, "held", "--gpus", "device=5,2", "--gpu-memory", "1g")
    assert ask(machine.berth, "get_visible_devices") == ",".join(sorted(gpus[i]["uuid"] for i in (2, 5)))
    limits = [ask(machine.berth, f"get_default_device_pinned_mem_limit {i}") for i in range(3)]
    assert limits == ["1024M", "1024M", "0M"]
    assert compute(machine, "held", 1025) == (1, "out of memory")


def test_other_containers_see_nothing_of_it(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "50")
    assert runs(machine, client, 9999, "--gpus", "device=0") == (0, "no mps")


def test_a_user_of_the_container_is_served_as_himself(machine, client):
    limits = ("--gpus", "device=0", "--gpu-cores", "10")
    start(machine, client, "of-root", *limits)
    start(machine, client, "of-1000", "--user", "1000", *limits)
    assert compute(machine, "of-root", 1)[0] == compute(machine, "of-1000", 1)[0] == 0
    assert {path.name.split("-")[0] for path in shares(machine.berth)} == {"0", "1000"}


def test_the_driver_is_warned_about_that_lets_programs_go_around(machine, client):
    done = machine.berth.run(*machine.flags, "run", "--rm", "--gpus", "device=0", "--gpu-cores", "10",
                             machine.image, "true")
    assert done.returncode == 0 and "GPU 0 is not in exclusive-process mode" in done.stderr
    set_mode(machine, 0, 3)
    done = machine.berth.run(*machine.flags, "run", "--rm", "--gpus", "device=0", "--gpu-cores", "10",
                             machine.image, "true")
    assert done.returncode == 0 and "exclusive-process" not in done.stderr


# ---- the daemon's life --------------------------------------------------------------------------

@everybody
def test_one_daemon_serves_equal_limits_and_ends_with_the_last(machine, client):
    limits = ("--gpus", "device=1", "--gpu-cores", "30")
    start(machine, client, "first", *limits)
    start(machine, client, "second", *limits)
    assert len(keepers(machine.berth)) == 1 and len(shares(machine.berth)) == 1
    assert compute(machine, "first", 1)[0] == compute(machine, "second", 1)[0] == 0
    machine.remove("first")
    assert compute(machine, "second", 1)[0] == 0
    machine.remove("second")
    wait_until(lambda: not keepers(machine.berth) and not shares(machine.berth))


def test_a_group_computes_through_one_share(machine, client):
    start(machine, client, "first", "--gpus", "device=1", "--gpu-cores", "30", "--gpu-memory", "1g")
    start(machine, client, "second", "--gpus", "from:first")
    assert len(shares(machine.berth)) == 1
    assert compute(machine, "second", 1025) == (1, "out of memory")


@everybody
def test_a_daemon_that_is_killed_is_back(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    assert compute(machine, "held", 1)[0] == 0
    before = set(daemons(machine.berth))
    os.kill(line_of(machine.berth)[1], signal.SIGKILL)
    wait_until(lambda: compute(machine, "held", 1) == (0, "held 1 cores 100.0"))
    assert compute(machine, "held", 1025) == (1, "out of memory")
    assert not before & set(daemons(machine.berth))


@everybody
def test_a_keeper_that_is_killed_is_replaced_by_the_next_command(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    [keeper] = keepers(machine.berth)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not daemons(machine.berth))
    assert compute(machine, "held", 1) == (0, "no mps")  # what a program does that finds none
    machine.runs()
    wait_until(lambda: compute(machine, "held", 1025) == (1, "out of memory"))
    machine.remove("held")


@everybody
def test_a_keeper_and_a_guard_that_are_killed_leave_no_server(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    assert compute(machine, "held", 1)[0] == 0
    [keeper] = keepers(machine.berth)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not daemons(machine.berth))
    machine.runs()
    wait_until(lambda: compute(machine, "held", 1)[1] == "held 1 cores 100.0")
    guard = line_of(machine.berth)[0]
    os.kill(guard, signal.SIGKILL)
    wait_until(lambda: compute(machine, "held", 1)[1] == "held 1 cores 100.0" and guard not in daemons(machine.berth))
    assert len(line_of(machine.berth)) == 3


def test_a_daemon_that_does_not_come_back_is_started_until_it_does(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    [share] = shares(machine.berth)
    (share / "logs/mode").write_text("deaf\n")
    os.kill(line_of(machine.berth)[1], signal.SIGKILL)
    wait_until(lambda: not (share / "ready").exists())
    started = start(machine, client, "beside", "--gpus", "device=1", "--gpu-memory", "2g")
    assert started == [1] and compute(machine, "beside", 1025)[0] == 0
    (share / "logs/mode").unlink()
    wait_until(lambda: compute(machine, "held", 1025) == (1, "out of memory"), timeout=40)
    (share / "logs/mode").write_text("refuse\n")
    os.kill(next(pid for pid, name in daemons(machine.berth).items() if name == share.name), signal.SIGKILL)
    wait_until(lambda: not (share / "ready").exists())
    (share / "logs/mode").unlink()
    wait_until(lambda: compute(machine, "held", 1025) == (1, "out of memory"), timeout=40)


def test_a_ledger_that_is_removed_ends_no_share(berth, machine, client, work):
    site = berth.account.own(work / "site")
    (site / "policy.toml").write_text(f'[gpu]\nledger = "{work}/ledger"\n')
    os.chown(site / "policy.toml", berth.account.uid, berth.account.gid)
    berth.ok("--config-dir", site, "policy", "apply")
    machine.flags = (*machine.flags, "--config-dir", site)
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    shutil.rmtree(work / "ledger")
    machine.runs("--gpus", "device=1")
    assert compute(machine, "held", 1025) == (1, "out of memory")


def test_what_changes_limits_is_not_in_the_container(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    listed = machine.berth.ok(*machine.flags, "exec", "held", "ls", "/tmp/nvidia-mps").split()
    assert listed == ["control"]
    done = machine.berth.run(*machine.flags, "exec", "held", "touch", "/tmp/nvidia-mps/log")
    assert done.returncode != 0 and "Read-only file system" in done.stderr
    [share] = shares(machine.berth)
    assert (share / "daemon/control_privileged").exists()


def test_containers_of_a_share_have_the_machines_room_for_shared_memory(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    [share] = shares(machine.berth)
    memory = pathlib.Path(os.readlink(share / "memory"))
    assert memory.parent.stat().st_mode & 0o077 == 0
    machine.berth.ok(*machine.flags, "exec", "held", "touch", "/dev/shm/here")
    assert (memory / "here").exists() and memory.parent.parent == pathlib.Path("/dev/shm")
    machine.remove("held")
    wait_until(lambda: not memory.parent.exists())


def test_two_states_of_one_user_do_not_end_each_others_daemons(machine, client, work):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    before = set(daemons(machine.berth))
    assert machine.berth.run("--state", work / "other", *machine.flags, "run", "--rm", "--gpus",
                             "device=0", "--gpu-cores", "30", machine.image, "true").returncode == 0
    wait_until(lambda: not [path for path in (work / "other/mps").glob("*") if path.is_dir()])
    assert before and before <= set(daemons(machine.berth))


def test_a_share_without_anybody_is_ended_by_the_next_command(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g")
    [keeper] = keepers(machine.berth)
    os.kill(keeper, signal.SIGSTOP)
    machine.remove("held")
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not keepers(machine.berth))
    assert shares(machine.berth)
    machine.runs()
    wait_until(lambda: not keepers(machine.berth) and not shares(machine.berth))


def test_a_restart_finds_its_share_again(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-memory", "1g", "--restart", "always")
    before = pid_of(machine, "held")
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: pid_of(machine, "held") not in (0, before))
    assert compute(machine, "held", 1025) == (1, "out of memory")


@everybody
def test_a_container_that_was_created_is_kept_to_its_part_each_time_it_starts(machine, client):
    machine.berth.ok(*machine.flags, "create", "--name", "held", "--stop-timeout", "0",
                     *with_client(client, "--gpus", "device=0", "--gpu-memory", "1g"), machine.image,
                     "sleep", "1000")
    assert not shares(machine.berth)
    for _ in range(2):
        machine.berth.ok(*machine.flags, "start", "held")
        assert compute(machine, "held", 1024)[0] == 0
        assert compute(machine, "held", 1025) == (1, "out of memory")
        machine.berth.ok(*machine.flags, "stop", "held")
        wait_until(lambda: not shares(machine.berth))


def test_many_start_at_once_and_share_one_daemon(machine, client):
    words = [(*machine.flags, "run", "--rm", *with_client(client), "--gpus", "device=0", "--gpu-cores",
              "30", machine.image, "/c/mps-client", "hold", "1", "1") for _ in range(6)]
    started = [machine.berth.spawn(*one) for one in words]
    for process in started:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "held 1 cores 30.0\n"), err


@pytest.mark.parametrize("seed", range(3))
def test_whoever_is_killed_leaves_no_daemon(machine, client, seed):
    """kill -9 of the engine, the keeper or the daemon while a container starts."""
    process = machine.berth.spawn(*machine.flags, "run", "-d", "--name", "victim", "--stop-timeout", "0",
                                  *with_client(client), "--gpus", "device=0", "--gpu-cores", "30",
                                  machine.image, "sleep", "300")
    who = [lambda: keepers(machine.berth), lambda: list(daemons(machine.berth)),
           lambda: shares(machine.berth) and [process.pid]]
    found = wait_until(who[seed])
    os.kill(found[0], signal.SIGKILL)
    process.communicate(timeout=60)
    machine.berth.run(*machine.flags, "rm", "--force", "victim")
    machine.runs()
    wait_until(lambda: not keepers(machine.berth) and not shares(machine.berth))
    assert machine.holders() == {}


# ---- GPUs for MPS alone -------------------------------------------------------------------------

def test_on_a_managed_machine_nobody_goes_around(managed, client):
    start(managed, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    assert mode_of(managed, 0) == 3 and mode_of(managed, 1) == 0
    line = managed.refused("--gpus", "device=0")
    assert "GPU 0 is held by container 'held' of root" in line
    assert "GPU 0 is held by" in managed.refused("--gpus", "device=0", "--gpu-cores", "40")
    start(managed, client, "beside", "--gpus", "device=0", "--gpu-cores", "30")
    managed.remove("held", "beside")
    wait_until(lambda: mode_of(managed, 0) == 0)


def test_nobody_gets_a_gpu_before_its_mode_is_back(managed, client):
    start(managed, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    [keeper] = keepers(managed.berth)
    os.kill(keeper, signal.SIGSTOP)
    managed.remove("held")
    assert "GPU 0 is held by container 'MPS' of root" in managed.refused("--gpus", "device=0")
    assert managed.runs("--gpus", "device=0", "--gpu-cores", "30")
    os.kill(keeper, signal.SIGCONT)
    wait_until(lambda: not managed.holders() and mode_of(managed, 0) == 0)


def test_a_share_that_is_only_ended_takes_no_gpu(managed, client):
    """Its keeper was killed, and somebody else has the GPU by the time that it is ended."""
    start(managed, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    [keeper] = keepers(managed.berth)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not keepers(managed.berth))
    managed.remove("held")
    set_mode(managed, 0, 0)  # as the driver does when nobody has it open
    file, seen = mode_file(managed, 0), set()
    starting = managed.berth.spawn(*managed.flags, "run", "-d", "--name", "plain", "--stop-timeout", "0",
                                   "--gpus", "device=0", managed.image, "sleep", "1000")

    def is_over():
        seen.add(file.read_text().strip())
        return starting.poll() is not None and not shares(managed.berth)

    wait_until(is_over, pause=0.002)
    assert starting.returncode == 0 and "3" not in seen


def test_who_waited_for_a_managed_gpu_does_not_take_its_mode_for_the_first_one(managed, client):
    start(managed, client, "first", "--gpus", "device=0", "--gpu-cores", "30")
    waiting = managed.berth.spawn(*managed.flags, "run", "--rm", "--gpus", "device=0", "--gpu-cores",
                                  "40", "--wait-gpus", managed.image, "true")
    wait_until(lambda: json.loads(managed.berth.ok(*managed.flags, "gpu", "list", "--format", "json"))["queue"])
    managed.remove("first")
    assert waiting.wait(timeout=60) == 0
    wait_until(lambda: mode_of(managed, 0) == 0 and not shares(managed.berth))


def test_a_mode_that_a_killed_keeper_has_left_is_set_back(managed, client):
    start(managed, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    [keeper] = keepers(managed.berth)
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not keepers(managed.berth))
    managed.remove("held")
    assert mode_of(managed, 0) == 3
    managed.runs()
    wait_until(lambda: mode_of(managed, 0) == 0)


def test_other_sets_of_gpus_do_not_meet_where_one_process_computes(managed, client):
    start(managed, client, "two", "--gpus", "device=0,1", "--gpu-cores", "30")
    line = managed.refused("--gpus", "device=0", "--gpu-cores", "30")
    assert "GPU 0 is for one process at a time, and container 'two' of root has it through MPS with " \
           "other limits or GPUs" in line


@everybody
def test_an_exclusive_gpu_of_the_administrator_is_respected(machine, client):
    set_mode(machine, 0, 3)
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    assert "GPU 0 is for one process at a time" in machine.refused(
        "--gpus", "device=0", "--gpu-cores", "40")
    assert mode_of(machine, 0) == 3
    machine.remove("held")
    assert mode_of(machine, 0) == 3


@pytest.mark.profiles("user", "single_id")
def test_a_user_changes_no_mode(managed, client):
    start(managed, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    assert mode_of(managed, 0) == 0


def test_a_prohibited_gpu_is_refused(machine):
    set_mode(machine, 0, 2)
    assert "GPU 0 is in the compute mode 'prohibited'" in machine.refused(
        "--gpus", "device=0", "--gpu-cores", "30")


# ---- what others see of it ----------------------------------------------------------------------

@everybody
def test_its_server_is_nobody_from_outside(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    assert compute(machine, "held", 1)[0] == 0
    server = line_of(machine.berth)[2]
    tell(machine, 0, f"process={server}:{GIB}")
    top = json.loads(machine.berth.ok(*machine.flags, "gpu", "top", "--once", "--format", "json"))
    [process] = top["gpus"][0]["processes"]
    assert process["pid"] == server
    assert process["container"] == json.loads(machine.berth.ok("inspect", "held"))[0]["Id"]


def test_who_holds_it_says_how_much(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30", "--gpu-memory", "1g")
    listed = json.loads(machine.berth.ok(*machine.flags, "gpu", "list", "--format", "json"))
    [lease] = listed["leases"]
    assert lease["mps"] == {"cores_percent": 30, "memory_bytes": GIB}
    assert "held (30% 1GiB)" in machine.berth.ok(*machine.flags, "gpu", "list")


def test_explain_says_what_keeps_it(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30", "--gpu-memory", "1g")
    assert "each program is kept to 30% of the cores and 1024 MiB of the memory by NVIDIA's MPS" in \
        machine.berth.ok(*machine.flags, "explain", "held")


# ---- what is refused ----------------------------------------------------------------------------

@everybody
@pytest.mark.parametrize("words, why", [
    (("--gpus", "none"), "no GPU was requested"),
    (("--gpus", "1", "--ipc", "host"), "MPS has /dev/shm, which its containers share"),
    (("--gpus", "1", "--shm-size", "1g"), "MPS has /dev/shm, which its containers share"),
    (("--gpus", "1", "--tmpfs", "/dev/shm"), "MPS has /dev/shm, which its containers share"),
    (("--gpus", "1", "--gpu-memory", "10g,8g"), "MPS keeps nothing for anybody"),
    (("--gpus", "1", "--gpu-memory", "512k"), "MPS counts in MiB"),
    (("--gpus", "1", "--gpu-memory", "1000g"), "GPU 0 has 85520809984 bytes")])
def test_what_mps_cannot_keep_is_refused(machine, words, why):
    line = machine.refused(*words, "--gpu-cores", "30")
    assert why in line and line.count("try: ") == 1
    assert not shares(machine.berth)


@pytest.mark.parametrize("text", ["0", "101", "-1", "1.5", "half", ""])
def test_other_words_are_no_part(machine, text):
    assert "expected a percentage of 1 to 100, such as 25" in machine.refused(
        "--gpus", "1", f"--gpu-cores={text}")


def test_a_slice_is_no_mps_share(berth, driver_tree, busybox):
    tree = driver_tree("mig", *STUB)
    shutil.copy2(MPS_STUB, tree / "usr/bin/nvidia-cuda-mps-control")
    for machine in a_machine(berth, tree, busybox):
        line = machine.refused("--gpus", "device=0:0", "--gpu-cores", "30")
        assert "GPU 0:0 is a part that has its own" in line, line


def test_a_driver_without_mps_limits_nothing(machine):
    without_mps(machine)
    line = machine.refused("--gpus", "1", "--gpu-cores", "30")
    assert "NVIDIA's driver has no nvidia-cuda-mps-control here" in line


@everybody
def test_a_daemon_that_does_not_start_starts_nothing(machine, client):
    program = machine.flags[1] / "usr/bin/nvidia-cuda-mps-control"
    program.write_text("#!/bin/sh\necho 'Failed to start: no device can be used' >&2\nexit 1\n")
    line = machine.refused("--gpus", "1", "--gpu-cores", "30")
    assert "NVIDIA's MPS daemon ended at once" in line
    assert not shares(machine.berth) and machine.holders() == {}


def test_a_group_of_another_user_is_refused(machine, client):
    start(machine, client, "first", "--gpus", "device=1", "--gpu-cores", "30")
    assert "--gpus from:first: it uses MPS, which serves only one user" in machine.refused(
        "--gpus", "from:first", "--user", "1000")


def test_who_joined_a_share_keeps_his_gpus_too(machine, client):
    start(machine, client, "first", "--gpus", "device=1", "--gpu-cores", "30")
    start(machine, client, "second", "--gpus", "from:first")
    done = machine.berth.run(*machine.flags, "update", "--gpus", "device=2", "second")
    assert done.returncode != 0 and "its GPU limits are for the GPUs that it has now" in done.stderr


def test_who_has_none_cannot_join_one_while_he_runs(machine, client):
    start(machine, client, "first", "--gpus", "device=1", "--gpu-cores", "30")
    start(machine, client, "plain", "--gpus", "device=2")
    done = machine.berth.run(*machine.flags, "update", "--gpus", "from:first", "plain")
    assert done.returncode != 0 and "its GPU limits are for the GPUs that it has now" in done.stderr
    assert machine.gpus_of("plain") == [2]


def test_gpus_of_a_limited_container_do_not_change_while_it_runs(machine, client):
    start(machine, client, "held", "--gpus", "device=0", "--gpu-cores", "30")
    done = machine.berth.run(*machine.flags, "update", "--gpus", "device=1", "held")
    assert done.returncode != 0 and "its GPU limits are for the GPUs that it has now" in done.stderr
