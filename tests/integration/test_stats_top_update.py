# SPDX-License-Identifier: Apache-2.0
"""`berth top`, `berth stats` and `berth update`."""

import json
import os
import pathlib
import re

import pytest

from support.waiting import wait_until

SHELL = ("sh", "-c")
TESTS = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ("CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT     MEM %     NET I/O   "
           "BLOCK I/O   PIDS")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def state(berth, name):
    return json.loads(berth.ok("inspect", name))[0]["State"]


@pytest.fixture
def tug(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "1000")
    yield "tug"
    berth.ok("rm", "-f", "tug")


def test_top_lists_the_processes_with_the_hosts_ids(berth, tug):
    title, line = berth.ok("top", tug).splitlines()
    assert title.split() == ["UID", "PID", "PPID", "C", "STIME", "TTY", "TIME", "CMD"]
    assert line.endswith("sleep 1000") and int(line.split()[1]) == state(berth, tug)["Pid"]


def test_top_passes_options_to_ps(berth, tug):
    title, line = berth.ok("top", tug, "-o", "pid,comm").splitlines()
    assert title.split() == ["PID", "COMMAND"] and line.split()[1] == "sleep"


@pytest.mark.profiles("root")
def test_top_shows_a_health_check_and_not_what_runs_it(berth, image):
    """berth-runtime is in the container's cgroup meanwhile, because the container pays for it."""
    berth.ok("run", "-d", "--name", "tug", "--health-interval", "100ms", "--health-cmd", "exec sleep 20",
             image, "sleep", "1000")

    def shown():
        return {line.split(None, 1)[1] for line in berth.ok("top", "tug", "-o", "pid,args").splitlines()[1:]}
    wait_until(lambda: "sleep 20" in shown())
    assert shown() == {"sleep 1000", "sleep 20"}
    berth.ok("rm", "-f", "tug")


def test_top_of_one_that_has_ended_is_an_error(berth, image):
    berth.ok("create", "--name", "tug", image, "true")
    done = berth.run("top", "tug")
    assert done.returncode == 1
    assert done.stderr == "berth: Container tug is not running\n"


def test_stats_has_dockers_columns(berth, tug):
    title, line = berth.ok("stats", "--no-stream").splitlines()
    assert re.split(r"  +", title.strip()) == re.split(r"  +", COLUMNS)
    assert re.search(r"tug +\d+\.\d\d% +[\d.]+[KMG]?i?B / [\d.]+[KMG]iB +\d+\.\d\d% ", line)
    assert line.split()[-1] == "1"


def test_stats_sees_a_busy_container(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL, "while :; do :; done")
    percent = berth.ok("stats", "--no-stream", "--format", "{{.CPUPerc}}", "tug")
    berth.ok("rm", "-f", "tug")
    assert 5 < float(percent.rstrip("%\n")) < 150


def test_stats_as_json_has_dockers_members(berth, tug):
    line = json.loads(berth.ok("stats", "--no-stream", "--format", "json", tug))
    ours = {"GPUMemUsage", "GPUPerc", "GPUs"}
    assert set(line) - ours == {"BlockIO", "CPUPerc", "Container", "ID", "MemPerc", "MemUsage",
                                "Name", "NetIO", "PIDs"}
    assert (line["Name"], line["Container"], line["PIDs"]) == (tug, tug, "1")


def test_stats_shows_what_does_not_run_only_with_all(berth, image):
    berth.ok("create", "--name", "tug", image, "true")
    assert len(berth.ok("stats", "--no-stream").splitlines()) == 1
    assert "-- / --" in berth.ok("stats", "--no-stream", "-a")


def test_stats_of_an_unknown_container_is_an_error(berth, image):
    done = berth.run("stats", "--no-stream", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such container: nobody" in done.stderr

@pytest.fixture
def busy(driver_tree):
    """busy(kind) → a driver tree whose NVML tells how busy each GPU and slice is."""
    def make(kind):
        programs = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS",
                                               TESTS.parent / "build/release/bin"))
        tree = driver_tree(kind, "--nvml-stub", programs.resolve().parent / "lib/libnvml_stub.so")
        facts, count = [], 0
        for line in (tree / "nvml.facts").read_text().splitlines():
            words = f"busy={10 * count + 5} used={(count + 1) << 30} name="
            if line.startswith(("gpu ", "slice ")) and " busy=" not in line:
                line = line.replace("name=", words, 1)
                count += 1
            facts.append(line)
        (tree / "nvml.facts").write_text("\n".join(facts) + "\n")
        return ("--driver-root", tree)
    return make


GPU_ROW = "{{.Name}}|{{.GPUs}}|{{.GPUPerc}}|{{.GPUMemUsage}}"


def test_stats_shows_each_container_its_own_gpus(berth, image, busy):
    flags = busy("eight")
    berth.run(*flags, "gpu", "list")  # its warnings come once
    for name, gpus in (("two", "device=0,3"), ("one", "device=5")):
        berth.ok(*flags, "run", "-d", "--name", name, "--gpus", gpus, image, "sleep", "1000")
    berth.ok(*flags, "run", "-d", "--name", "none", image, "sleep", "1000")
    title, *lines = berth.ok(*flags, "stats", "--no-stream").splitlines()
    assert re.split(r"  +", title)[-4:] == ["PIDS", "GPUS", "GPU %", "GPU MEM USAGE / LIMIT"]
    rows = {re.split(r"  +", line)[1]: re.split(r"  +", line.strip()) for line in lines}
    total = "79.65GiB"
    assert rows["two"][-3:] == ["0, 3", "5%, 35%", f"1GiB / {total}, 4GiB / {total}"]
    assert rows["one"][-3:] == ["5", "55%", f"6GiB / {total}"]
    assert len(rows["none"]) == 8
    assert berth.ok(*flags, "stats", "--no-stream", "--format", GPU_ROW, "one", "none") == (
        f"one|5|55%|6GiB / {total}\nnone|||\n")
    assert json.loads(berth.ok(*flags, "stats", "--no-stream", "--format", "json", "one"))[
        "GPUPerc"] == "55%"
    # Of containers without GPUs the table is docker's.
    assert "GPU" not in berth.ok(*flags, "stats", "--no-stream", "none")
    berth.ok("rm", "-f", "one", "two", "none")


@pytest.mark.profiles("root")
def test_stats_shows_slices_by_their_memory(berth, image, busy):
    flags = busy("mig")
    listed = json.loads(berth.ok(*flags, "gpu", "list", "--format", "json"))["gpus"]
    slice_ = next(gpu for gpu in listed if gpu["mig"])["mig"][0]
    berth.ok(*flags, "run", "-d", "--name", "cut", "--gpus", f"device={slice_['uuid']}", image,
             "sleep", "1000")
    name, gpus, busy_words, memory = berth.ok(
        *flags, "stats", "--no-stream", "--format", GPU_ROW).strip().split("|")
    assert (name, busy_words) == ("cut", "--") and gpus.endswith(f":{slice_['index']}")
    assert re.fullmatch(r"[1-9]\d*GiB / [\d.]+GiB", memory)
    berth.ok("rm", "-f", "cut")


@pytest.mark.profiles("root")
def test_stats_without_an_answer_of_nvml_goes_on(berth, image, busy):
    flags = busy("one")
    berth.run(*flags, "gpu", "list")
    berth.ok(*flags, "run", "-d", "--name", "tug", "--gpus", "all", image, "sleep", "1000")
    facts = flags[1] / "nvml.facts"
    text = facts.read_text()
    facts.write_text(text + "mode init-fail\n")
    done = berth.run(*flags, "stats", "--no-stream", "--format", GPU_ROW)
    facts.write_text(text)
    assert (done.returncode, done.stdout) == (0, "tug|0|--|-- / --\n")
    assert ("berth: warning: cannot read how busy the GPUs are: nvmlInit_v2: Driver Not Loaded, "
            "ignoring\n") in done.stderr
    berth.ok("rm", "-f", "tug")


def test_update_changes_the_restart_policy_of_a_running_container(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, *SHELL, "sleep 0.7; exit 3")
    assert berth.ok("update", "--restart", "on-failure:1", "tug") == "tug\n"
    wait_until(lambda: berth.ok("ps", "-q") == "", timeout=20)
    assert "Exited (3)" in berth.ok("ps", "-a")
    record = berth.ok("logs", "tug")
    assert record == ""
    # The second life has had its end as well.
    assert wait_until(lambda: not state(berth, "tug")["Running"])


def test_update_is_what_the_next_start_has(berth, image):
    berth.ok("create", "--name", "tug", "--pids-limit", "100", image, *SHELL,
             "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null")
    assert berth.ok("update", "--pids-limit", "77", "--memory", "64m", "tug") == "tug\n"
    (request,) = berth.root.glob("containers/*/request.json")
    limits = json.loads(request.read_text())["limits"]
    assert (limits["pids"], limits["memory_bytes"]) == (77, 64 << 20)


def test_update_that_makes_no_sense_changes_nothing(berth, image):
    berth.ok("create", "--name", "tug", "--memory", "64m", image, "true")
    done = berth.run("update", "--memory", "1m", "tug")
    assert done.returncode == 1 and "Minimum memory limit allowed is 6MB" in done.stderr
    (request,) = berth.root.glob("containers/*/request.json")
    assert json.loads(request.read_text())["limits"]["memory_bytes"] == 64 << 20
    done = berth.run("update", "tug")
    assert done.returncode == 1
    assert "you must provide one or more flags when using this command" in done.stderr


def test_a_container_that_removes_itself_is_not_restarted(berth, image):
    berth.ok("run", "-d", "--rm", "--name", "tug", image, "sleep", "1000")
    done = berth.run("update", "--restart", "always", "tug")
    assert done.returncode == 1
    assert "Restart policy cannot be updated because AutoRemove is enabled" in done.stderr
    berth.ok("rm", "-f", "tug")
