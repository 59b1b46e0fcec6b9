# SPDX-License-Identifier: Apache-2.0
"""Why a container has failed: told on one line where it is known, and never where it is not."""

import json
import re
import subprocess

import pytest

from support import failing_programs, images

SIGILL = re.compile(r"berth: why: a program used an instruction that this processor \(.+\) does not "
                    r"have, or stopped itself with ud2 \(SIGILL\); try: a build for .+, or another machine")
GLIBC = ("berth: why: /opt/newer-glibc needs glibc 2.94, and the image's is older; try: an image with "
         "glibc 2.94 or newer, or a build of the program for an older one")
LIBRARY = ("berth: why: the image has no libnobody.so.7 where its loader looks; try: install it in the "
           "image, or name its directory in LD_LIBRARY_PATH")
SHM = ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that "
       "dataloader's workers are out of shared memory.")
SHM_LINE = ("berth: why: /dev/shm of the container is too small for PyTorch's workers; try: berth run "
            "--shm-size 8g, or --ipc host")


@pytest.fixture(scope="session")
def failing(registry):
    failing_programs.image().push(registry, "test/failing")
    return f"{registry.address}/test/failing:latest"


@pytest.fixture
def image(berth, failing):
    berth.ok("pull", "--quiet", failing)
    return failing


def reasons(text):
    return [line for line in text.replace("\r", "").splitlines() if line.startswith("berth: why: ")]


@pytest.fixture
def on_terminal(berth):
    """on_terminal(word…) → (status, lines that say why, all output) of a command on a terminal."""
    def run(*words):
        terminal = berth.terminal(*words)
        status = terminal.wait()
        return status, reasons(terminal.output), terminal.output
    return run


def test_a_sigill_is_told_even_where_nothing_was_read(berth, image):
    done = berth.run("run", "--rm", image, "/opt/ud2")
    assert done.returncode == 132
    assert SIGILL.fullmatch(done.stderr.rstrip("\n")), done.stderr


def test_an_instruction_that_the_processor_lacks(berth, image):
    if failing_programs.missing_instruction() is None:
        pytest.skip("this processor has AVX-512 and AMX")
    done = berth.run("run", "--rm", image, "/opt/instruction")
    assert done.returncode == 132
    assert SIGILL.fullmatch(done.stderr.rstrip("\n")), done.stderr


# What the machine has is read in /proc/cpuinfo: here it says less than it has.
OLD_PROCESSOR = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model name\t: An Old Processor
flags\t\t: fpu mmx fxsr sse sse2 syscall nx lm pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm
"""


@pytest.mark.profiles("root")
def test_a_sigill_of_a_program_that_says_what_it_needs(berth, push, work):
    cpuinfo = work / "cpuinfo"
    cpuinfo.write_text(OLD_PROCESSOR)
    app = images.file("app", failing_programs.marked(3), mode=0o755)
    image = push(images.build([images.layer([app])], {"Cmd": ["/app"]}))
    berth.ok("pull", "--quiet", image)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f'mount --bind {cpuinfo} /proc/cpuinfo && exec "$@"', "sh",
         *map(str, berth.argv("run", "--rm", image))],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        env=berth.account.environment(), cwd=berth.directory)
    assert done.returncode == 132
    assert done.stderr == (
        "berth: why: the program needs x86-64-v3 (/app), which this processor (An Old Processor, "
        "x86-64-v2) does not have (SIGILL); try: a build for x86-64-v2 or lower, or another machine\n")


def test_a_loader_that_misses_a_version(on_terminal, image):
    status, lines, _ = on_terminal("run", "--rm", image, "/opt/newer-glibc")
    assert (status, lines) == (1, [GLIBC])


def test_a_loader_that_misses_a_library(on_terminal, image):
    status, lines, _ = on_terminal("run", "--rm", image, "/opt/missing-library")
    assert (status, lines) == (127, [LIBRARY])
    status, lines, _ = on_terminal("run", "--rm", "-t", image, "/opt/missing-library")
    assert (status, lines) == (127, [LIBRARY])
    status, lines, _ = on_terminal("run", "-t", image, "/opt/missing-library")
    assert (status, lines) == (127, [LIBRARY])


def test_output_that_goes_to_files_is_read_on_its_way(berth, image, work):
    out, err = work / "out", work / "err"
    for path in (out, err):
        path.touch()
        path.chmod(0o666)
    with open(out, "w") as to_out, open(err, "w") as to_err:
        done = subprocess.run(berth.argv("run", "--rm", image, "/opt/missing-library"),
                              stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err, timeout=60,
                              env=berth.account.environment(), cwd=berth.directory)
    assert done.returncode == 127
    assert out.read_text() == ""
    assert reasons(err.read_text()) == [LIBRARY]


def test_output_that_goes_to_pipes_is_not_touched(berth, image):
    done = berth.run("run", "--rm", image, "/opt/missing-library")
    assert done.returncode == 127
    assert reasons(done.stderr) == []
    assert "libnobody.so.7" in done.stderr


def test_a_container_with_a_log_is_told_of_by_start_and_explain(berth, on_terminal, image):
    name = berth.ok("run", "-d", "--name", "broken", image, "/opt/missing-library").strip()
    assert berth.ok("wait", "broken") == "127\n"
    told = json.loads(berth.ok("explain", "--format", "json", name))["ended"]
    assert (told["status"], told["id"]) == (127, "loader.library")
    assert told["why"] == "the image has no libnobody.so.7 where its loader looks"
    text = berth.ok("explain", "broken")
    assert text.endswith("\nended with status 127\n  why    the image has no libnobody.so.7 where its "
                         "loader looks\n  try    install it in the image, or name its directory in "
                         "LD_LIBRARY_PATH\n")
    done = berth.run("start", "-a", "broken")
    assert (done.returncode, reasons(done.stderr)) == (127, [LIBRARY])
    berth.ok("rm", "broken")


def test_a_sigill_of_a_container_with_a_log(berth, image):
    berth.ok("run", "-d", "--name", "ill", image, "/opt/ud2")
    assert berth.ok("wait", "ill") == "132\n"
    told = json.loads(berth.ok("explain", "--format", "json", "ill"))["ended"]
    assert (told["id"], told["text"]) == ("cpu.illegal-instruction", None)
    berth.ok("rm", "ill")


@pytest.mark.parametrize("script, status", [
    (f"echo \"{SHM}\"; exit 0", 0),                           # it went on
    ("echo no luck; exit 1", 1),                              # nothing known
    ("nonesuch", 127),                                        # a shell's 127 is not a loader's
    (f"echo \"{SHM}\"; sh -c 'kill -TERM $$'; exit $?", 143),  # ended from outside
    (f"echo \"{SHM}\"; sh -c 'kill -KILL $$'; exit $?", 137),
    ("echo 'UserWarning: Error 803: system has unsupported display driver / cuda driver "
     "combination'; exit 1", 1),                              # a sign is no reason
])
def test_no_false_alarm(on_terminal, image, script, status):
    got, lines, _ = on_terminal("run", "--rm", image, "sh", "-c", script)
    assert (got, lines) == (status, [])


def test_a_failure_with_a_complaint_is_told(on_terminal, image):
    status, lines, output = on_terminal("run", "--rm", image, "sh", "-c", f"echo \"{SHM}\"; exit 1")
    assert (status, lines) == (1, [SHM_LINE])
    assert output.replace("\r", "").index(SHM) < output.replace("\r", "").index(SHM_LINE)


def test_one_that_somebody_stopped_has_no_reason(berth, image):
    script = f"trap 'exit 1' TERM; echo \"{SHM}\"; while :; do sleep 0.1; done"
    berth.ok("run", "-d", "--name", "stopped", image, "sh", "-c", script)
    for _ in range(100):
        if SHM in berth.ok("logs", "stopped"):
            break
    berth.ok("stop", "stopped")
    assert berth.ok("wait", "stopped") == "1\n"
    assert json.loads(berth.ok("explain", "--format", "json", "stopped"))["ended"] is None
    berth.ok("rm", "stopped")


def test_a_program_for_another_architecture(berth, failing, push):
    line = berth.run("run", "--rm", "--quiet", failing, "/opt/foreign")
    assert line.returncode == 126
    assert reasons(line.stderr) == [
        "berth: why: the command is for another architecture than this machine's, or is a script without "
        "'#!'; try: an image for this machine, or the shell before the script"]
    image = push(images.build([images.layer([images.file("app", failing_programs.FOREIGN, mode=0o755)])],
                              architecture="arm64"))
    done = berth.run("run", "--rm", "--quiet", "--platform", "linux/arm64", image, "/app")
    assert done.returncode == 126
    assert reasons(done.stderr) == [
        "berth: why: the image is for arm64, and this machine is amd64; try: an image that has amd64, "
        "or --platform linux/amd64"]


def test_the_line_is_json_where_errors_are(berth, image):
    done = berth.run("--log-format", "json", "run", "--rm", image, "/opt/ud2")
    assert done.returncode == 132
    told = json.loads(done.stderr)
    assert told["level"] == "info"
    assert "SIGILL" in told["why"]
