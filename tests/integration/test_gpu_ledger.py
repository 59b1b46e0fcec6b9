# SPDX-License-Identifier: Apache-2.0
"""Who has which GPU: sharing, exclusive leases, groups, waiting, and what crashes leave of them.
With the synthetic tree of eight GPUs."""

import contextlib
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import time

import pytest

from support.berth import Berth
from support.gpu_machine import MINORS, SHOW, SLEEP, STUB, Machine, a_machine, pid_of
from support.processes import command_lines, kill_each, matching
from support.waiting import wait_until

LEDGER = pathlib.Path("/run/berth-ledger")


@pytest.fixture
def machine(berth, driver_tree, busybox):
    yield from a_machine(berth, driver_tree("eight", *STUB), busybox)


@pytest.fixture
def sliced(berth, driver_tree, busybox):
    """One GPU in MIG mode."""
    yield from a_machine(berth, driver_tree("mig", *STUB), busybox)


# ---- what is asked for ---------------------------------------------------------------------------

def test_two_containers_share_a_gpu_as_in_docker(machine):
    assert machine.start("one", "--gpus", "device=3") == [3]
    assert machine.start("two", "--gpus", "device=3") == [3]
    assert machine.start("all", "--gpus", "all") == list(range(8))


def test_a_count_takes_those_that_the_fewest_have(machine):
    taken = [machine.start(f"c{number}", "--gpus", "2")[0:2] for number in range(4)]
    assert sorted(sum(taken, [])) == list(range(8))
    assert machine.start("fifth", "--gpus", "1") == [0]
    assert machine.start("sixth", "--gpus", "1") == [1]


def test_an_exclusive_gpu_is_refused_to_others_with_the_name_of_who_has_it(machine):
    assert machine.start("mine", "--gpus", "1", "--gpus-exclusive") == [0]
    line = machine.refused("--gpus", "device=0")
    assert re.fullmatch(r"berth: (error: )?--gpus device=0: 0 of 1 GPU free: GPU 0 is held by container 'mine' "
                        r"of (root|this user); try: --wait-gpus, or berth gpu list", line), line
    assert "7 of 8 GPUs free" in machine.refused("--gpus", "all")
    assert len(machine.runs("--gpus", "7", "--gpus-exclusive")) == 7
    machine.remove("mine")
    assert len(machine.runs("--gpus", "all", "--gpus-exclusive")) == 8


def test_who_comes_after_others_keeps_nothing_to_himself(machine):
    machine.start("shared", "--gpus", "device=5")
    assert "held by container 'shared'" in machine.refused("--gpus", "device=5", "--gpus-exclusive")
    assert "held by container 'shared'" in machine.refused("--gpus", "all", "--gpus-exclusive")


def test_policy_makes_it_the_rule(berth, driver_tree, busybox, work):
    site = berth.account.own(work / "site")
    (site / "policy.toml").write_text('[gpu]\nexclusive = true\n')
    os.chown(site / "policy.toml", berth.account.uid, berth.account.gid)
    berth.ok("--config-dir", site, "policy", "apply")
    machine = Machine(berth, driver_tree("eight"), busybox, ("--config-dir", site))
    machine.start("mine", "--gpus", "device=1")
    assert "held by container 'mine'" in machine.refused("--gpus", "device=1")
    machine.remove("mine")


def test_traits_say_which_would_do(machine):
    assert len(machine.runs("--gpus", "2,model=h100,memory>=80G,cc>=9.0")) == 2
    assert ("--gpus 1: this machine has 8 GPUs, none of them is model=h200"
            in machine.refused("--gpus", "1,model=h200"))
    assert "did you mean 'model'?" in machine.refused("--gpus", "1,models=h200")
    near = [machine.start(f"n{number}", "--gpus", "1,numa=1")[0] for number in range(4)]
    assert sorted(near) == [4, 5, 6, 7]


@pytest.mark.parametrize("text, words", [
    ("-2", "expected all, none, a number or device=…, got '-2'"),
    ("1.5", "GPUs are given whole"),
    ("9", "this machine has 8 GPUs"),
    ("device=9", "no such GPU"),
    ("device=0,GPU-nobody", "no such GPU"),
    ("from:nobody", "no such container"),
])
@pytest.mark.profiles("root")
def test_what_is_not_there_is_refused_and_leaves_no_lease(machine, text, words):
    assert words in machine.refused("--gpus", text)
    assert machine.holders() == {}


@pytest.mark.profiles("root")
def test_nothing_and_doubles_are_what_docker_has(machine):
    assert machine.runs("--gpus", "0") == []
    assert machine.runs("--gpus", "-1", "--gpus-exclusive") == [f"nvidia{n}" for n in range(8)]
    assert machine.runs("--gpus", "device=0,0", "--gpus-exclusive") == ["nvidia2"]


def test_a_cdi_name_takes_a_lease_too(machine, work):
    specs = machine.berth.account.own(work / "cdi")
    flags = ("--cdi-spec-dir", specs)
    (specs / "nvidia.json").write_text(machine.berth.ok(
        *machine.flags, "cdi", "generate", "--format", "json"))
    machine.berth.ok(*machine.flags, *flags, "run", "-d", "--name", "named", "--gpus-exclusive",
                     "--device", "nvidia.com/gpu=4", machine.image, *SLEEP)
    assert "held by container 'named'" in machine.refused("--gpus", "device=4")
    machine.remove("named")


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("given", ["{nodes}/any", "{nodes}/./any", "{nodes}/link", "{nodes}/directory"])
def test_a_node_by_hand_takes_a_lease_whatever_its_name(machine, work, given):
    nodes = work / "nodes"
    (nodes / "directory").mkdir(parents=True)
    for path in (nodes / "any", nodes / "directory/other"):
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(195, MINORS[4]))
        path.chmod(0o666)
    (nodes / "link").symlink_to(nodes / "any")
    device = f"{given.format(nodes=nodes)}:/dev/mine"
    machine.berth.ok(*machine.flags, "run", "-d", "--name", "byhand", "--gpus-exclusive", "--device", device,
                     machine.image, *SLEEP)
    assert machine.holders() == {"byhand": [4]}
    assert "held by container 'byhand'" in machine.refused("--gpus", "device=4")
    assert "held by container 'byhand'" in machine.refused("--device", device)
    machine.remove("byhand")


def test_explain_and_create_take_nothing(machine):
    machine.berth.ok(*machine.flags, "create", "--name", "later", "--gpus", "all", "--gpus-exclusive",
                     machine.image, *SLEEP)
    machine.berth.ok(*machine.flags, "run", "--explain", "--gpus", "all", "--gpus-exclusive",
                     machine.image, "true")
    assert machine.holders() == {}
    assert len(machine.runs("--gpus", "all", "--gpus-exclusive")) == 8
    machine.berth.ok(*machine.flags, "start", "later")
    assert machine.holders() == {"later": list(range(8))}
    assert "held by container 'later'" in machine.refused("--gpus", "1")


def test_slices_are_leased_one_by_one(sliced):
    listed = json.loads(sliced.berth.ok(*sliced.flags, "gpu", "list", "--format", "json"))
    slices = listed["gpus"][0]["mig"]
    profile = slices[0]["profile"]
    alike = sum(one["profile"] == profile for one in slices)
    for number in range(alike):
        sliced.berth.ok(*sliced.flags, "run", "-d", "--name", f"s{number}", "--gpus-exclusive",
                        "--gpus", f"1,profile={profile}", sliced.image, *SLEEP)
    listed = json.loads(sliced.berth.ok(*sliced.flags, "gpu", "list", "--format", "json"))
    assert len({lease["gpus"][0] for lease in listed["leases"]}) == alike
    assert "is held by container 's0'" in sliced.refused("--gpus", f"1,profile={profile}")
    uuid = next(one["uuid"] for one in slices
                if f"0:{one['index']}" in listed["leases"][0]["gpus"])
    assert "is held by container" in sliced.refused("--gpus", f"device={uuid}")
    sliced.berth.ok(*sliced.flags, "run", "--rm", "--gpus", "from:s0", sliced.image, "true")


PROCESSORS = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status | cut -f2")
two_processors = pytest.mark.skipif(os.cpu_count() < 2, reason="needs two processors")


@pytest.fixture
def two_nodes(berth, driver_tree, busybox):
    """The first four GPUs are beside processor 0, the others beside processor 1."""
    yield from a_machine(berth, driver_tree("eight", "--node", "0=0", "--node", "1=1"), busybox)


def processors(machine, *args):
    return machine.berth.ok(*machine.flags, "run", "--rm", *args, machine.image,
                            *PROCESSORS).strip()


@two_processors
def test_a_container_keeps_to_the_processors_beside_its_gpus(two_nodes):
    everywhere = processors(two_nodes)
    assert processors(two_nodes, "--gpus", "device=0") == "0"
    assert processors(two_nodes, "--gpus", "device=5") == "1"
    assert processors(two_nodes, "--gpus", "device=0,5") == "0-1"
    assert processors(two_nodes, "--gpus", "device=5", "--gpus-bind=false") == everywhere
    explained = two_nodes.berth.ok(*two_nodes.flags, "run", "--explain", "--gpus", "device=5",
                                   two_nodes.image, "true")
    way = "a cpuset" if two_nodes.berth.account.uid == 0 else "affinity"
    assert f"beside its GPUs, by {way}; --gpus-bind=false for all" in explained


@two_processors
def test_who_names_processors_is_placed_by_nobody_else(two_nodes):
    named = ("--gpus", "device=5", "--cpuset-cpus", "0")
    explained = two_nodes.berth.ok(*two_nodes.flags, "run", "--explain", *named, two_nodes.image,
                                   "true")
    assert "beside its GPUs" not in explained
    if two_nodes.berth.account.uid == 0:
        assert processors(two_nodes, *named) == "0"


@two_processors
def test_what_is_started_in_a_container_later_is_beside_its_gpus_too(two_nodes):
    two_nodes.start("train", "--gpus", "device=5", "--restart", "always")

    def of_the_first_process(pid):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return re.search(r"Cpus_allowed_list:\s*(\S+)", status)[1]
    pid = pid_of(two_nodes, "train")
    assert of_the_first_process(pid) == "1"
    assert two_nodes.berth.ok("exec", "train", *PROCESSORS) == "1\n"
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid_of(two_nodes, "train") not in (0, pid))
    assert of_the_first_process(pid_of(two_nodes, "train")) == "1"


@pytest.mark.profiles("user", "single_id")
@two_processors
def test_an_ordinary_users_container_prefers_the_memory_beside_its_gpus(two_nodes):
    if not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("no NUMA in this kernel")

    def policy(*args):
        return two_nodes.berth.ok(*two_nodes.flags, "run", "--rm", *args, two_nodes.image,
                                  "head", "-n1", "/proc/self/numa_maps").split()[1]
    assert policy("--gpus", "device=0") == "prefer:0"
    assert policy("--gpus", "device=0", "--gpus-bind=false") == "default"


# ---- groups --------------------------------------------------------------------------------------

def test_a_group_shares_what_it_keeps_from_others(machine):
    machine.start("leader", "--gpus", "2", "--gpus-exclusive")
    assert machine.start("member", "--gpus", "from:leader") == [0, 1]
    assert machine.runs("--gpus", "from:member") == ["nvidia2", "nvidia5"]
    assert "is held by" in machine.refused("--gpus", "device=0")
    machine.remove("leader")
    assert "held by container 'member'" in machine.refused("--gpus", "device=0")
    assert "no such container" in machine.refused("--gpus", "from:leader")
    machine.remove("member")
    assert machine.runs("--gpus", "device=0", "--gpus-exclusive") == ["nvidia2"]


# ---- waiting -------------------------------------------------------------------------------------

def test_who_waits_gets_what_is_given_back(machine):
    machine.start("first", "--gpus", "all", "--gpus-exclusive")
    waiting = machine.berth.spawn(*machine.words("--rm", "--gpus", "1", "--wait-gpus", SHOW))
    time.sleep(0.5)
    assert waiting.poll() is None
    machine.remove("first")
    out, err = waiting.communicate(timeout=20)
    assert (waiting.returncode, out) == (0, "nvidia2\n"), err
    assert "waiting: --gpus 1: 0 of 8 GPUs free" in err


def test_a_wait_has_an_end(machine):
    machine.start("first", "--gpus", "all", "--gpus-exclusive")
    started = time.monotonic()
    assert "held by container 'first'" in machine.refused("--gpus", "1", "--wait-gpus=300ms")
    assert 0.3 <= time.monotonic() - started < 10
    assert "expected no value, or a time" in machine.refused("--gpus", "1", "--wait-gpus=soon")


def test_who_gives_up_waiting_leaves_no_place_in_the_queue(machine):
    machine.start("first", "--gpus", "all", "--gpus-exclusive")
    waiting = machine.berth.spawn(*machine.words("--rm", "--gpus", "1", "--wait-gpus", SHOW))
    queue = lambda: json.loads(machine.berth.ok(  # noqa: E731
        *machine.flags, "gpu", "list", "--format", "json"))["queue"]
    wait_until(lambda: len(queue()) == 1)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(10) != 0
    assert queue() == []


def test_nobody_overtakes_who_waits(machine):
    machine.start("first", "--gpus", "4", "--gpus-exclusive")
    waiting = machine.berth.spawn(*machine.words("--rm", "--gpus", "all", "--gpus-exclusive",
                                                 "--wait-gpus", SHOW))
    wait_until(lambda: "which waits first" in machine.berth.run(
        *machine.flags, "run", "--rm", "--gpus", "1", "--gpus-exclusive", machine.image, "true").stderr)
    machine.remove("first")
    out, err = waiting.communicate(timeout=20)
    assert len(out.split()) == 8, err

# ---- a GPU that goes -----------------------------------------------------------------------------

@pytest.fixture
def changing(berth, driver_tree, busybox, work):
    """A machine whose GPUs may come and go; change(number, there) does it, as a fallen bus does."""
    tree = work / "tree"
    subprocess.run(["cp", "-a", driver_tree("eight", *STUB), tree], check=True)
    away = work / "away"
    facts = (tree / "nvml.facts").read_text()
    lines = [line for line in facts.splitlines() if line.startswith("gpu ")]
    lines.sort(key=lambda line: re.search(r"pci=(\S+)", line)[1])

    def change(number, there):
        address = re.search(r"pci=(\S+)", lines[number])[1].lower()
        [directory] = [path for path in [*(tree / "proc/driver/nvidia/gpus").iterdir(), *(
            away.iterdir() if away.exists() else [])] if path.name.endswith(address[-12:])]
        node = tree / f"dev/nvidia{MINORS[number]}"
        away.mkdir(exist_ok=True)
        if there:
            directory.rename(tree / "proc/driver/nvidia/gpus" / directory.name)
            (away / node.name).rename(node)
            (tree / "nvml.facts").write_text(facts)
        else:
            directory.rename(away / directory.name)
            node.rename(away / node.name)
            (tree / "nvml.facts").write_text(facts.replace(lines[number] + "\n", ""))

    for made in a_machine(berth, tree, busybox):
        made.change = change
        yield made


def test_a_gpu_that_goes_is_given_to_nobody_and_comes_back_to_who_has_it(changing):
    assert changing.start("train", "--gpus", "device=2", "--gpus-exclusive") == [2]
    changing.change(2, there=False)
    listed = json.loads(changing.berth.ok(*changing.flags, "gpu", "list", "--format", "json"))
    assert len(listed["gpus"]) == 7
    assert "this machine has 7 GPUs" in changing.refused("--gpus", "8")
    assert len(changing.runs("--gpus", "7", "--gpus-exclusive")) == 7
    assert changing.berth.ok(*changing.flags, "exec", "train", "echo", "lives") == "lives\n"
    changing.change(2, there=True)
    assert "held by container 'train'" in changing.refused("--gpus", "device=2")
    changing.remove("train")
    assert len(changing.runs("--gpus", "8", "--gpus-exclusive")) == 8


def test_who_needs_a_gpu_that_has_gone_does_not_start(changing):
    uuid = json.loads(changing.berth.ok(*changing.flags, "gpu", "list", "--format", "json"))[
        "gpus"][4]["uuid"]
    changing.start("train", "--gpus", f"device={uuid}", "--gpus-exclusive")
    changing.berth.ok(*changing.flags, "stop", "train")
    changing.change(4, there=False)
    done = changing.berth.run(*changing.flags, "start", "train")
    assert done.returncode == 1 and f"device={uuid}: no such GPU, this machine has 7" in done.stderr
    assert changing.holders() == {}
    changing.change(4, there=True)
    changing.berth.ok(*changing.flags, "start", "train")
    assert changing.gpus_of("train") == [4]


# ---- crashes -------------------------------------------------------------------------------------

def test_a_killed_engine_frees_what_its_container_had(machine):
    front = machine.berth.spawn(*machine.words("--rm", "--name", "gone", "--gpus", "all",
                                               "--gpus-exclusive", SLEEP))
    wait_until(lambda: "gone" in machine.holders())
    kill_family(front.pid)
    front.wait(10)
    wait_until(lambda: machine.berth.run(*machine.words(
        "--rm", "--gpus", "all", "--gpus-exclusive", SHOW)).returncode == 0)


def kill_family(pid):
    """The program that the test started, which may be setpriv's child, and what it started."""
    children = []
    with contextlib.suppress(OSError):
        for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            children += path.read_text().split()
    os.kill(pid, signal.SIGKILL)
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(int(child), signal.SIGKILL)


def processes_of(machine, program):
    """Those of `program` that belong to this test's containers."""
    ours = bytes(machine.berth.directory)
    return {pid for pid, line in command_lines().items()
            if ours in line and line.split(b"\0")[0].endswith(program.encode())}


@pytest.mark.parametrize("programs_killed", [("berth-monitor",), ("berth-holder", "berth-monitor")])
def test_a_container_keeps_its_gpus_whoever_is_killed_beside_it(machine, programs_killed):
    machine.start("kept", "--gpus", "all", "--gpus-exclusive")
    for program in programs_killed:
        kill_each(processes_of(machine, program))
    for _ in range(5):
        assert "held by container 'kept'" in machine.refused("--gpus", "1")
        time.sleep(0.05)
    machine.remove("kept")
    assert len(machine.runs("--gpus", "all", "--gpus-exclusive")) == 8


@pytest.mark.profiles("root")
def test_what_is_left_of_a_container_keeps_its_gpus(machine, programs, accounts, work):
    """Without a pid namespace others outlive the first process; nobody is there to end them, and
    who asks has another store."""
    other = Machine(Berth(programs, accounts["root"], work / "other"), machine.flags[1], machine.image)
    machine.berth.ok(*machine.flags, "run", "-d", "--name", "left", "--pid", "host", "--gpus", "all",
                     "--gpus-exclusive", machine.image, "sh", "-c", "sleep 77001 & exec sleep 77002")

    def pid_of(mark):
        return next(iter(matching(f"^sleep\0{mark}\0$".encode())), None)
    wait_until(lambda: pid_of(77001) and pid_of(77002))
    for program in ("berth-holder", "berth-monitor"):
        kill_each(processes_of(machine, program))
    os.kill(pid_of(77002), signal.SIGKILL)
    wait_until(lambda: not pid_of(77002))
    for _ in range(3):
        assert "held by container 'left'" in other.refused("--gpus", "1")
    os.kill(pid_of(77001), signal.SIGKILL)
    wait_until(lambda: not pid_of(77001))
    assert len(other.runs("--gpus", "all", "--gpus-exclusive")) == 8
    other.berth.close()


def test_a_container_that_is_started_again_and_again_keeps_its_gpus_between(machine):
    machine.berth.ok(*machine.flags, "run", "-d", "--name", "again", "--restart", "always", "--gpus",
                     "all", "--gpus-exclusive", machine.image, "sh", "-c", "sleep 0.1; exit 1")
    refused = 0
    end = time.monotonic() + 2
    while time.monotonic() < end:
        done = machine.berth.run(*machine.words("--rm", "--gpus", "1", SHOW))
        assert done.returncode == 125, done.stdout
        refused += 1
    assert refused > 3
    machine.remove("again")
    assert len(machine.runs("--gpus", "all", "--gpus-exclusive")) == 8


def leases(machine):
    """The records themselves: `gpu list` would remove dead ones."""
    return [*pathlib.Path(machine.berth.state).rglob("lease-*"), *LEDGER.glob("lease-*")]


ALL_OF_THEM = ("--gpus", "all", "--gpus-exclusive")


@pytest.mark.parametrize("owner", [("--rm",), ("-d",)], ids=["front", "watched"])
@pytest.mark.parametrize("fault", ["command", "socket", "device"])
def test_a_start_that_fails_leaves_no_lease(machine, work, owner, fault):
    """Before, while and after berth-runtime and the monitor hold the lease, too."""
    before = leases(machine)
    flags, command, status = {
        "device": (("--mount", "type=tmpfs,target=/dev/nvidia0"), "true", 125),
        # The copies give berth-runtime the time to open the lease.
        "socket": (("--gpu-driver", "copy", "-v", f"{work}/gone.sock:/sock"), "true", 125),
        "command": ((), "/nowhere", 127)}[fault]
    done = machine.berth.run(*machine.flags, "run", *owner, *ALL_OF_THEM, *flags, machine.image, command)
    assert done.returncode == status, done
    assert leases(machine) == before
    assert machine.holders() == {}


def test_a_start_again_that_fails_leaves_no_lease(machine, work):
    before = leases(machine)
    socket = machine.berth.account.own(work) / "a.sock"
    socket.write_text("")
    machine.berth.ok(*machine.flags, "run", "--name", "held", *ALL_OF_THEM, "--gpu-driver", "copy", "-v",
                     f"{socket}:/sock", machine.image, "true")
    assert leases(machine) == before
    socket.unlink()
    for flags in ((), ("--attach",)):
        done = machine.berth.run(*machine.flags, "start", *flags, "held")
        assert done.returncode == 1 and "no socket at" in done.stderr, done
        assert leases(machine) == before
    machine.remove("held")


# ---- the ledger itself ---------------------------------------------------------------------------

@pytest.fixture
def own_ledger(berth, work):
    """own_ledger(directory) → the flags of a site whose ledger is there."""
    def use(directory):
        site = berth.account.own(work / "ledger-site")
        (site / "policy.toml").write_text(f'[gpu]\nledger = "{directory}"\n')
        os.chown(site / "policy.toml", berth.account.uid, berth.account.gid)
        berth.ok("--config-dir", site, "policy", "apply")
        return ("--config-dir", site)
    return use


@pytest.fixture
def small_file_system(work):
    """mount(options) → a tmpfs of one page that root owns."""
    place = work / "small"
    place.mkdir()
    mounted = []

    def mount(*options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(("size=4k", "mode=755", *options)),
                        "tmpfs", place], check=True)
        mounted.append(place)
        return place
    yield mount
    for path in mounted:
        subprocess.run(["umount", path], check=True)


@pytest.mark.profiles("root")
def test_a_full_ledger_is_said_and_nothing_starts(berth, driver_tree, busybox, own_ledger,
                                                  small_file_system):
    place = small_file_system()
    machine = Machine(berth, driver_tree("eight"), busybox, own_ledger(place / "ledger"))
    assert machine.runs("--gpus", "1") == ["nvidia2"]
    machine.start("first", "--gpus", "1")
    line = machine.refused("--gpus", "1")
    assert f"cannot write to the GPU ledger '{place}/ledger'" in line and "No space left" in line
    machine.remove("first")
    assert sorted(path.name for path in (place / "ledger").iterdir()) == ["lock"]


@pytest.mark.profiles("root")
def test_a_ledger_that_cannot_be_written_is_said(berth, driver_tree, busybox, own_ledger,
                                                 small_file_system):
    place = small_file_system()
    machine = Machine(berth, driver_tree("eight"), busybox, own_ledger(place / "ledger"))
    machine.runs("--gpus", "1")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    assert "Read-only file system" in machine.refused("--gpus", "1")


@pytest.mark.profiles("root")
def test_a_ledger_of_another_user_is_refused(berth, driver_tree, busybox, own_ledger, accounts, work):
    place = accounts["user"].own(work / "theirs")
    machine = Machine(berth, driver_tree("eight"), busybox, own_ledger(place / "ledger"))
    assert "belongs to another user" in machine.refused("--gpus", "1")


@pytest.mark.profiles("root")
def test_a_ledger_where_all_may_write_is_refused(berth, driver_tree, busybox, own_ledger, work):
    place = work / "ours"
    place.mkdir()
    place.chmod(0o1777)
    machine = Machine(berth, driver_tree("eight"), busybox, own_ledger(place / "ledger"))
    line = machine.refused("--gpus", "1")
    assert f"use directory '{place}': it is writable by others; try: chmod go-w {place}" in line


@pytest.mark.profiles("root")
def test_junk_in_the_ledger_is_passed_over(machine):
    machine.runs("--gpus", "1")
    junk = [LEDGER / "lease-junk", LEDGER / "wait-junk", LEDGER / "lease-big"]
    for path in junk:
        path.write_text("{" * (10 if path != junk[2] else 100_000))
        os.chown(path, 1234, 1234)
    os.mkfifo(LEDGER / "lease-fifo")
    try:
        assert len(machine.runs("--gpus", "all", "--gpus-exclusive")) == 8
    finally:
        for path in (*junk, LEDGER / "lease-fifo"):
            path.unlink(missing_ok=True)


# ---- several users -------------------------------------------------------------------------------

@pytest.fixture
def tenants(programs, accounts, driver_tree, busybox, work):
    """Root and two ordinary users on one machine."""
    work.chmod(0o755)
    made = {}
    for kind in ("root", "user", "single_id"):
        made[kind] = Machine(Berth(programs, accounts[kind], work / kind), driver_tree("eight"), busybox)
        if kind == "root":
            made[kind].runs("--gpus", "1")  # makes the ledger of the machine
    yield made
    for machine in made.values():
        names = machine.berth.ok("ps", "-aq").split()
        if names:
            machine.remove(*names)
        machine.berth.close()


@pytest.mark.profiles("root")
def test_users_and_root_take_from_one_ledger(tenants, accounts):
    assert tenants["user"].start("theirs", "--gpus", "2", "--gpus-exclusive") == [0, 1]
    user = accounts["user"].uid
    for kind in ("root", "single_id"):
        line = tenants[kind].refused("--gpus", "device=1")
        who = f"user {user}" if kind == "root" else "another user"
        assert f"held by container 'theirs' of {who}" in line, line
        assert tenants[kind].start("mine", "--gpus", "1", "--gpus-exclusive") == [
            2 if kind == "root" else 3]
    assert tenants["user"].start("more", "--gpus", "1") == [4]


@pytest.mark.profiles("root")
def test_another_users_share_is_denied_and_root_may_have_it(tenants):
    tenants["user"].start("theirs", "--gpus", "1", "--gpus-exclusive")
    assert "--gpus from:theirs: it belongs to another user" in tenants["single_id"].refused(
        "--gpus", "from:theirs")
    assert tenants["root"].runs("--gpus", "from:theirs") == ["nvidia2"]


@pytest.mark.profiles("root")
def test_many_at_once_never_have_one_gpu_twice_and_lose_none(tenants, work):
    """Forty starts for eight GPUs, of three users. Each writes down when it had which."""
    count = int(os.environ.get("BERTH_GPU_TENANTS", "40"))
    kinds = list(tenants)
    times = work / "times"
    times.mkdir(mode=0o777)
    times.chmod(0o777)
    script = ("gpu=$(ls /dev | grep '^nvidia[0-9]'); from=$(cut -d' ' -f1 /proc/uptime); sleep 0.2; "
              "echo $gpu $from $(cut -d' ' -f1 /proc/uptime)")
    started = []
    for number in range(count):
        machine = tenants[kinds[number % 3]]
        started.append(machine.berth.spawn(*machine.words(
            "--rm", "--gpus", "1", "--gpus-exclusive", "--wait-gpus=5m", ("sh", "-c", script))))
    spans = {}
    for process in started:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        gpu, begun, ended = out.split()
        spans.setdefault(gpu, []).append((float(begun), float(ended)))
    every = [f"nvidia{number}" for number in range(8)]
    assert set(spans) <= set(every)
    for gpu, held in spans.items():
        held.sort()
        for (_, ended), (begun, _) in zip(held, held[1:]):
            assert begun >= ended, f"{gpu} was given twice: {held}"
    assert tenants["root"].runs("--gpus", "8", "--gpus-exclusive") == every
    assert [path.name for path in LEDGER.iterdir()] == ["lock"]
