# SPDX-License-Identifier: Apache-2.0
"""A container, and what reaches into it: exec."""

import pytest

from support.attacks import (DESCRIPTORS, GAINING, INHERITING, ROUNDS, STATUS, UP, digest, field,
                             holds, identity, make_gaining, may_trace)


@pytest.fixture
def sleeping(target):
    """sleeping(bundle) → the name of a container that runs, and does nothing."""
    def start(bundle):
        name, done, _ = target.create(bundle.args("/bin/sleep", "60"))
        assert done.code == 0 and target.start(name).code == 0, done
        target.entered = False
        return name
    return start


@pytest.mark.attack("the runtime's program through /proc/PID/exe, at exec")
@pytest.mark.parametrize("program", ["/bin/true", "/proc/self/exe"])
def test_cve_2019_5736_the_program_at_exec(target, bundle, watch, program):
    """A container opens the program of the process that joins it while that still is the runtime,
    and writes to it afterwards; the file may not change."""
    before = digest(target.program)
    watcher = watch(may_trace(bundle), "overwrite", identity(target.program))
    assert target.exec(watcher.name, "/bin/true").code == 0
    for _ in range(ROUNDS):
        target.exec(watcher.name, program, "--version")
        target.entered = True
    lines = watcher.stop()
    holds("overwritten" not in lines and digest(target.program) == before,
          "the runtime's program was overwritten")


@pytest.mark.attack("the host's root and files through the process of exec")
def test_cve_2016_9962_the_process_of_exec(target, bundle, watch, outside):
    """A container with CAP_SYS_PTRACE looks through the root, the directory and the descriptors of
    each process that joins it; none may lead to the host."""
    watcher = watch(may_trace(bundle), "read-through", outside.mark)
    for _ in range(ROUNDS):
        done = target.exec(watcher.name, "/bin/true")
        assert done.code == 0, done
        target.entered = True
    lines = watcher.stop()
    assert any(line.startswith("seen ") for line in lines), "the watcher saw nobody"
    holds(not any(line.startswith("stolen") for line in lines), f"a way to the host: {set(lines)}")


@pytest.mark.attack("the host's files, through a descriptor of the runtime as working directory, at exec")
def test_cve_2024_21626_the_directory_at_exec(target, bundle, sleeping, outside):
    """A process joins a container with a descriptor of the runtime's as its working directory;
    nothing of the host may be reached from there."""
    name = sleeping(bundle)
    assert target.exec(name, "/bin/echo", "in").code == 0
    for number in DESCRIPTORS:
        done = target.exec(name, "/bin/cat", f"{UP}{outside.mark}",
                           flags=("--cwd", f"/proc/self/fd/{number}"))
        holds(outside.SECRET not in done.out, f"a file of the host was read by way of {number}")


@pytest.mark.attack("inheritable capabilities at exec --cap")
@pytest.mark.parametrize("flags", [(), ("--cap", "CAP_NET_ADMIN")])
def test_cve_2022_29162_inheritable_capabilities_of_exec(target, bundle, sleeping, flags):
    """A process joins with more capabilities and an ordinary user's program inherits them; there may
    be nothing to inherit."""
    target.prefix = list(INHERITING)
    name = sleeping(make_gaining(bundle))
    done = target.exec(name, "/bin/sh", "-c", f"echo in; {STATUS}; {GAINING}", flags=flags)
    assert "in" in done.out.splitlines(), done
    inherited = field(done.out, "CapInh")
    ambient = field(done.out, "CapAmb")
    # What is ambient has to be inheritable, and was asked for.
    holds(inherited in ("0" * 16, ambient), f"the process inherits capabilities: {inherited}")


@pytest.mark.attack("exec -u with a user that is not a number")
@pytest.mark.parametrize("user", ["1000x", "x", "-1", "4294967295", "4294967296", "0x3e8",
                                  "-4294967296", "18446744073709551616", " 1000", "1000:x",
                                  "1000:4294967296", "1000:-1", ":", ""])
def test_cve_2026_30892_users_of_exec(target, bundle, sleeping, user):
    """A process joins as a user who is not well written; it may not run as root."""
    bundle.process["user"] = {"uid": 1000, "gid": 1000}
    name = sleeping(bundle)
    assert target.exec(name, "/bin/true", flags=("--user", "1000:1000")).code == 0
    done = target.exec(name, "/bin/sh", "-c", f"echo in; {STATUS}", flags=("--user", user))
    if "in" in done.out.splitlines():
        holds("0" not in field(done.out, "Uid").split(), "the process is root")
        holds(":" not in user or "0" not in field(done.out, "Gid").split(), "its group is root's")
