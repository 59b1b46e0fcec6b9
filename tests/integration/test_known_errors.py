# SPDX-License-Identifier: Apache-2.0
"""`berth doctor --log`: what a program has printed, and what it means."""

import json
import os
import pathlib
import subprocess

import pytest

MISMATCH = ("E tensorflow/cuda_diagnostics.cc:296] kernel version 396.44.0 does not match DSO version "
            "390.30.0 -- cannot find working devices in this configuration\n")
JIT = "TensorFlow was not built with CUDA kernel binaries compatible with compute capability 9.0.\n"
CORPUS = pathlib.Path(__file__).resolve().parent.parent / "data/known_errors"


@pytest.fixture
def log(work):
    def write(text):
        path = work / "log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o644)
        return path
    return write


def found(berth, *words, **options):
    """The ids that `berth doctor --log` finds; its status says whether one is a problem."""
    done = berth.run("doctor", "--format", "json", "--log", *words, **options)
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert done.returncode == (1 if told["problems"] else 0)
    return [(check["id"], check["status"]) for check in told["checks"]]


def test_a_log_is_explained_with_the_line_that_says_it(berth, log):
    done = berth.run("doctor", "--log", log("starting\n" + JIT + MISMATCH + "[]\n"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == (
        "driver\n"
        "  problem  version-mismatch  libcuda in the container is of driver 390.30.0, the loaded "
        "kernel module is 396.44.0\n"
        f"                             - {MISMATCH}"
        "                             try: berth run --gpu-driver bind, which brings this machine's "
        "driver; an image without a libcuda of its own\n"
        "\ncuda\n"
        "  warning  jit               TensorFlow has no code for compute capability 9.0: the driver "
        "compiles it at the first start, which takes minutes\n"
        f"                             - {JIT}"
        "                             try: a build of the program that has code for this GPU "
        "(berth gpu list: its compute capability)\n"
        "\n1 problem, 1 warning\n")


def test_an_ordinary_log_has_nothing(berth, log):
    done = berth.run("doctor", "--log", log("epoch 35: error 0.804\n"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "no known message\n", "")


def test_a_sign_alone_is_no_problem(berth, log):
    assert found(berth, log(JIT)) == [("cuda.jit", "warning")]


def test_standard_input_is_a_log_too(berth):
    assert found(berth, "-", input=MISMATCH) == [("driver.version-mismatch", "problem")]


def test_a_pipe_that_ends_late_is_read_to_its_end(berth):
    command = " ".join(map(str, berth.argv("doctor", "--log", "-", "--format", "json")))
    done = subprocess.run(["sh", "-c", f"{{ seq 100000; sleep 0.2; echo '{MISMATCH}'; }} | {command}"],
                          capture_output=True, text=True, timeout=30,
                          env=berth.account.environment(), cwd=berth.directory)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["checks"][0]["id"] == "driver.version-mismatch"


def test_only_the_last_64_kib_count(berth, log):
    filler = "step 4711: loss 0.25\n"
    much = filler * (65536 // len(filler) + 1)
    assert found(berth, log(MISMATCH + much)) == []
    assert found(berth, log(much * 100 + MISMATCH)) == [("driver.version-mismatch", "problem")]


def test_a_log_of_docker_is_taken_apart(berth):
    assert ("driver.requirement", "problem") in found(berth, CORPUS / "docker-json-file.txt")


def test_any_bytes_are_a_log(berth, log):
    assert found(berth, log(os.urandom(200_000))) == []
    assert found(berth, log(b"")) == []
    hostile = (b"\x1b]0;evil\x07 error while loading shared libraries: lib\x7f\xff.so: cannot open "
               b"shared object file\n")
    done = berth.run("doctor", "--log", log(hostile), text=False)
    assert done.returncode == 1
    assert not any(byte in done.stdout for byte in (b"\x1b", b"\x07", b"\x7f"))


def test_a_log_that_cannot_be_read_is_an_error(berth, work):
    assert berth.fail("doctor", "--log", work / "none", status=125) == (
        f"berth: open '{work}/none': No such file or directory")
    assert berth.fail("doctor", "--log", work, status=125) == (
        f"berth: read '{work}': Is a directory")
    assert berth.fail("doctor", "--log", "-", "gpu", status=125) == (
        "berth: '--log' cannot be used together with 'gpu'")


@pytest.mark.profiles("user")
def test_the_log_of_somebody_else_stays_closed(berth, log):
    path = log(MISMATCH)
    os.chown(path, 0, 0)
    path.chmod(0o600)
    assert berth.fail("doctor", "--log", path, status=125) == (
        f"berth: open '{path}': Permission denied")
