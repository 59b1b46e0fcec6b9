# SPDX-License-Identifier: Apache-2.0
"""Who computes on which GPU, for people and for Prometheus. NVML is a stand-in that answers from a
file, as what the kernel tells of AMD's GPUs is files; the processes that they tell of are real."""

import json
import os
import pathlib
import re
import signal
import socket
import time

import pytest

from support.gpu_machine import (STUB, a_machine, a_stranger, amd_told_anew, pid_of, tell,
                                 tell_amd, told_anew)
from support.waiting import wait_until

GIB = 1 << 30


@pytest.fixture
def machine(berth, driver_tree, busybox):
    yield from told_anew(a_machine(berth, driver_tree("eight", *STUB), busybox))


@pytest.fixture
def sliced(berth, driver_tree, busybox):
    yield from told_anew(a_machine(berth, driver_tree("mig", *STUB), busybox))


@pytest.fixture
def amd(berth, driver_tree, busybox):
    yield from amd_told_anew(a_machine(berth, driver_tree("amd"), busybox))


@pytest.fixture
def stranger():
    for process in a_stranger():
        yield process.pid


def top(machine):
    return json.loads(machine.berth.ok(*machine.flags, "gpu", "top", "--once", "--format", "json"))


def test_each_process_has_its_container(machine, stranger):
    machine.start("train", "--gpus", "device=2", "--gpus-exclusive")
    pid = pid_of(machine, "train")
    tell(machine, 2, f"busy=87 used={3 * GIB} celsius=61 milliwatts=412400 "
                     f"process={pid}:{2 * GIB},{stranger}:{GIB},{2**22 + 7}:5")
    shown = top(machine)
    assert shown["synthetic"] and shown["waiting"] == 0 and len(shown["gpus"]) == 8
    gpu = shown["gpus"][2]
    assert gpu["busy_percent"] == 87 and gpu["used_bytes"] == 3 * GIB and gpu["celsius"] == 61
    assert [(lease["name"], lease["exclusive"]) for lease in gpu["leases"]] == [("train", True)]
    ours, theirs, gone = gpu["processes"]
    assert ours == {"pid": pid, "command": "sleep", "name": "train", "used_bytes": 2 * GIB,
                    "container": gpu["leases"][0]["container"], "user": ours["user"]}
    assert (theirs["pid"], theirs["command"], theirs["container"]) == (stranger, "sleep", None)
    assert theirs["user"] == 0
    assert (gone["command"], gone["container"], gone["user"]) == (None, None, None)
    assert shown["gpus"][3]["processes"] == [] and shown["gpus"][3]["busy_percent"] is None


def test_processes_that_a_container_forks_are_its_own(machine):
    machine.berth.ok(*machine.flags, "run", "-d", "--name", "forks", "--gpus", "1", machine.image,
                     "sh", "-c", "sleep 1000 & sleep 1000 & wait")
    children = pathlib.Path(f"/proc/{pid_of(machine, 'forks')}/task/"
                            f"{pid_of(machine, 'forks')}/children")
    wait_until(lambda: len(children.read_text().split()) == 2)
    pids = children.read_text().split()
    tell(machine, 0, f"process={pids[0]}:1,{pids[1]}:2")
    assert [one["name"] for one in top(machine)["gpus"][0]["processes"]] == ["forks"] * 2


def test_a_slice_has_its_own_processes(sliced, stranger):
    sliced.start("small", "--gpus", "device=0:0")
    listed = json.loads(sliced.berth.ok(*sliced.flags, "gpu", "list", "--format", "json"))
    slices = listed["gpus"][0]["mig"]
    first, second = ((one["gpu_instance"], one["compute_instance"]) for one in slices[:2])
    pid = pid_of(sliced, "small")
    tell(sliced, 0, f"process={pid}:5:{first[0]}:{first[1]},{stranger}:6:{second[0]}:{second[1]}")
    found = {gpu["index"]: gpu["processes"] for gpu in top(sliced)["gpus"]}
    assert found["0"] is None  # its slices have them
    assert [one["name"] for one in found["0:0"]] == ["small"]
    assert [one["name"] for one in found["0:1"]] == [None]


def test_of_amds_gpus_the_kernel_tells(amd, stranger):
    amd.start("train", "--gpus", "device=2")
    pid = pid_of(amd, "train")
    tell_amd(amd, 2, {"gpu_busy_percent": 63, "mem_info_vram_used": 3 * GIB,
                      "hwmon/hwmon5/temp1_input": 58000, "hwmon/hwmon5/power1_average": 304500000},
             {pid: 2 * GIB, stranger: GIB})
    tell_amd(amd, 3, {}, {pid: 0})
    gpu, other = top(amd)["gpus"][2:4]
    assert (gpu["busy_percent"], gpu["used_bytes"]) == (63, 3 * GIB)
    assert (gpu["celsius"], gpu["milliwatts"]) == (58, 304500)
    assert {one["pid"]: (one["name"], one["used_bytes"]) for one in gpu["processes"]} == {
        pid: ("train", 2 * GIB), stranger: (None, GIB)}
    assert other["processes"] == [] and other["leases"] == []
    metrics = parsed(amd.berth.ok(*amd.flags, "metrics"))
    assert ({"gpu": "2"}, 0.63) in metrics["berth_gpu_busy_ratio"]
    (_, used), = metrics["berth_container_gpu_memory_bytes"]
    assert used == 2 * GIB
    stats = amd.berth.ok(*amd.flags, "stats", "--no-stream", "--format",
                         "{{.GPUs}}|{{.GPUPerc}}|{{.GPUMemUsage}}", "train")
    assert stats == "2|63%|3GiB / 63.98GiB\n"


def test_a_partition_has_no_figures_of_its_own(berth, driver_tree):
    tree = driver_tree("amd", "--partitions", "2")
    shown = json.loads(berth.ok("--driver-root", tree, "gpu", "top", "--once", "--format", "json"))
    gpus = {gpu["index"]: gpu for gpu in shown["gpus"]}
    assert gpus["1"]["celsius"] == 41 and gpus["1"]["processes"] == []
    for name in ("busy_percent", "used_bytes", "celsius", "processes"):
        assert gpus["1:0"][name] is None and gpus["1:1"][name] is None


def test_the_table_is_aligned_and_says_that_the_driver_is_made_up(machine, stranger):
    machine.start("train", "--gpus", "device=0")
    tell(machine, 0, f"busy=5 used={GIB} celsius=40 milliwatts=99600 process={stranger}:{GIB}")
    text = machine.berth.ok(*machine.flags, "gpu", "top", "--once")
    gpus, processes, note = text.split("\n\n")
    rows = gpus.splitlines()
    assert len(rows) == 9 and rows[0].startswith("INDEX")
    assert re.search(r" 5% +1GiB / \S+ +40 C +100 W +train$", rows[1]), rows[1]
    column = rows[0].index("HELD BY")
    assert all(row[column - 1] == " " and row[column] != " " for row in rows)
    assert re.fullmatch(rf"0 +{stranger} +root +- +1GiB +sleep", processes.splitlines()[1])
    assert note == "synthetic: of a driver made for tests\n"


def test_it_goes_on_until_nobody_reads(machine):
    reader = machine.berth.spawn(*machine.flags, "gpu", "top", "--format", "json")
    for _ in range(2):
        assert len(json.loads(reader.stdout.readline())["gpus"]) == 8
    reader.stdout.close()
    assert reader.wait(20) != 0
    

# ---- Prometheus ----------------------------------------------------------------------------------

def parsed(text):
    """{metric: [(labels, value)]} as Prometheus' own reader for Python has it."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter")
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def check(machine, text, pid):
    metrics = parsed(text)
    assert metrics["berth_containers"] == [({"state": "running"}, 1)]
    (labels, seconds), = metrics["berth_container_cpu_seconds_total"]
    assert labels["name"] == "train" and labels["image"] == machine.image and 0 <= seconds < 60
    assert ({"gpu": "1"}, 0.42) in metrics["berth_gpu_busy_ratio"]
    (lease, _), = metrics["berth_gpu_lease"]
    assert (lease["gpu"], lease["id"], lease["exclusive"]) == ("1", labels["id"], "false")
    assert metrics["berth_container_gpu_memory_bytes"] == [({"gpu": "1", "id": labels["id"]}, GIB)]
    assert metrics["berth_gpu_waiting"] == [({}, 0)] and len(metrics["berth_gpu_info"]) == 8
    assert pid


@pytest.fixture
def busy(machine):
    machine.start("train", "--gpus", "device=1")
    pid = pid_of(machine, "train")
    tell(machine, 1, f"busy=42 process={pid}:{GIB}")
    return pid


def test_metrics_are_printed_and_written_to_a_file(machine, busy, work):
    check(machine, machine.berth.ok(*machine.flags, "metrics"), busy)
    place = machine.berth.account.own(work / "metrics")
    machine.berth.ok(*machine.flags, "metrics", "--output", place / "berth.prom")
    check(machine, (place / "berth.prom").read_text(), busy)
    assert os.listdir(place) == ["berth.prom"]
    assert "No such file or directory" in machine.berth.fail(
        *machine.flags, "metrics", "--output", work / "nowhere/berth.prom", status=1)
    assert machine.berth.fail(*machine.flags, "metrics", "--output", "a", "--socket", "b",
                              status=1).startswith(
        "berth: --output and --socket cannot be used together")


def get(path, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(path))
        client.sendall(request)
        answer = b""
        while part := client.recv(65536):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    return head.splitlines()[0] if head else "", body


def test_metrics_are_served_on_a_socket(machine, busy, work):
    place = machine.berth.account.own(work / "metrics")
    path = place / "berth.sock"
    serve = (*machine.flags, "metrics", "--socket", path)
    server = machine.berth.spawn(*serve)
    wait_until(path.exists)
    status, body = get(path)
    assert status == "HTTP/1.1 200 OK"
    check(machine, body, busy)
    assert get(path, b"GET / HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 404 Not Found"
    assert get(path, b"POST /metrics HTTP/1.1\r\n\r\n")[0] == "HTTP/1.1 405 Method Not Allowed"
    assert get(path, b"x" * 8192)[0] == "HTTP/1.1 405 Method Not Allowed"
    assert "Address already in use" in machine.berth.fail(*serve, status=1)
    assert get(path, b"GET /metrics?a=b HTTP/1.0\r\n\r\n")[0] == "HTTP/1.1 200 OK"
    # Whoever says nothing, or does not read, keeps nobody waiting for long.
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(path))
        assert get(path)[0] == "HTTP/1.1 200 OK"
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 0 and server.stderr.read() == ""
    assert os.listdir(place) == []


def test_a_file_where_the_socket_was_to_be_stays(machine, work):
    place = machine.berth.account.own(work / "metrics")
    (place / "berth.prom").write_text("precious")
    (place / "link").symlink_to("berth.prom")
    for name in ("berth.prom", "link"):
        assert machine.berth.fail(*machine.flags, "metrics", "--socket", place / name,
                                  status=1) == (
            f"berth: create socket '{place}/{name}': there is a file; try: another path, or "
            "--output")
    assert (place / "link").read_text() == "precious"


def test_a_killed_server_leaves_its_place_to_the_next(machine, work):
    place = machine.berth.account.own(work / "metrics")
    path = place / "berth.sock"
    server = machine.berth.spawn(*machine.flags, "metrics", "--socket", path)
    wait_until(path.exists)
    time.sleep(0.2)
    server.kill()
    server.wait()
    assert path.exists()
    server = machine.berth.spawn(*machine.flags, "metrics", "--socket", path)

    def answers():
        try:
            return get(path)[0] == "HTTP/1.1 200 OK"
        except ConnectionRefusedError:
            return False
    wait_until(answers)
    server.terminate()
    assert server.wait(20) == 0 and not path.exists()
