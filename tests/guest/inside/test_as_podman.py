# SPDX-License-Identifier: Apache-2.0
"""What a user's limits, pauses and figures are with Berth and with podman without root, after a login:
tests/guest/test_podman.py runs this file in a guest with systemd."""

import pytest
from support.logins import login, made_user

# Standard output is to be the same. Left out is --cpu-shares, of which newer cruns and berth-runtime make
# another weight than podman 5.4's. $BOX is 'berth' or 'podman', and $V2 where a container sees its cgroup.
LINES = {
    "limits": "$BOX run --rm --memory 50m --cpus 0.5 --pids-limit 30 $IMAGE"
              " cat $V2/memory.max $V2/cpu.max $V2/pids.max",
    "memory with swap": "$BOX run --rm --memory 50m --memory-swap 80m $IMAGE cat $V2/memory.max $V2/memory.swap.max",
    "memory without swap": "$BOX run --rm --memory 50m --memory-swap 50m $IMAGE cat $V2/memory.swap.max",
    "memory alone": "$BOX run --rm --memory 50m $IMAGE cat $V2/memory.swap.max",
    "reservation": "$BOX run --rm --memory 50m --memory-reservation 20m $IMAGE cat $V2/memory.low",
    "quota": "$BOX run --rm --cpu-period 50000 --cpu-quota 25000 $IMAGE cat $V2/cpu.max",
    "its place": "$BOX run --rm --memory 50m $IMAGE cat /proc/self/cgroup",
    "out of memory": "$BOX run --name ship --memory 20m --memory-swap 20m $IMAGE dd if=/dev/zero of=/dev/null bs=60M"
                     " count=1; echo $?; $BOX inspect --format '{{.State.OOMKilled}} {{.State.ExitCode}}' ship",
    "too many processes": "$BOX run --rm --pids-limit 4 $IMAGE sh -c"
                          " 'for i in 1 2 3 4 5 6; do sleep 1 & done; wait' >/dev/null 2>&1; echo $?",
    "pause": "$BOX run -d --name ship $IMAGE sleep 1000 >/dev/null; $BOX pause ship >/dev/null;"
             " $BOX inspect --format '{{.State.Status}} {{.State.Paused}}' ship;"
             " $BOX unpause ship >/dev/null; $BOX inspect --format '{{.State.Status}} {{.State.Paused}}' ship",
    "update": "$BOX run -d --name ship --memory 50m $IMAGE sleep 1000 >/dev/null;"
              " $BOX update --memory 70m --pids-limit 40 --cpus 0.25 ship >/dev/null;"
              " $BOX exec ship cat $V2/memory.max $V2/pids.max $V2/cpu.max",
    "update of one without limits": "$BOX run -d --name ship $IMAGE sleep 1000 >/dev/null;"
                                    " $BOX update --memory 20m ship >/dev/null;"
                                    " $BOX exec ship dd if=/dev/zero of=/dev/null bs=60M count=1; echo $?",
    "what inspect says of limits": "$BOX create --name ship --memory 50m --cpus 0.5 --pids-limit 30 $IMAGE true >/dev/null;"
                                   " $BOX inspect --format '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}"
                                   " {{.HostConfig.PidsLimit}}' ship",
    "exec is in the same cgroup": "$BOX run -d --name ship --memory 50m $IMAGE sleep 1000 >/dev/null;"
                                  " $BOX exec ship cat /proc/self/cgroup; $BOX exec ship cat $V2/pids.current",
    "kill": "$BOX run -d --name ship --memory 50m $IMAGE sleep 1000 >/dev/null; $BOX kill ship >/dev/null;"
            " $BOX wait ship; $BOX inspect --format '{{.State.ExitCode}} {{.State.OOMKilled}}' ship",
    "limits come back with a start": "$BOX run -d --name ship --memory 50m $IMAGE sleep 1000 >/dev/null;"
                                     " $BOX stop --time 0 ship >/dev/null; $BOX start ship >/dev/null;"
                                     " $BOX exec ship cat $V2/memory.max",
    "stats": "$BOX run -d --name ship --memory 64m $IMAGE sleep 1000 >/dev/null;"
             " $BOX stats --no-stream --format '{{.Name}}' ship; $BOX stats --no-stream --format '{{.PIDs}}' ship",
}

# Lines that a version of podman cannot do, and why: Debian 12's and sid's.
LACKS = {
    "4.3.1": {"out of memory": "this podman does not see on cgroup v2 that memory ran out",
              "update": "this podman has no 'update --pids-limit'"},
    "5.8.6": dict.fromkeys(("update", "update of one without limits"),
                           "this podman updates no container without a health check"),
}


@pytest.fixture(scope="module")
def way():
    with made_user() as user:
        made = login(user)
        made.run("podman run --rm --network none --rootfs $ROOT true")  # makes its store
        yield made


@pytest.fixture(scope="module")
def podman_version(way):
    return way.run("podman --version").stdout.split()[-1]


def said_by(way, program, line):
    network = "--network none" if program == "podman" else ""
    head = f"BOX={program} V2=/sys/fs/cgroup IMAGE=\"{network} --rootfs $ROOT\""
    done = way.run(f"{head}\n{line}\n{program} kill ship >/dev/null 2>&1; {program} rm --force ship >/dev/null 2>&1",
                   check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", LINES)
def test_a_line_gives_the_same_as_with_podman(way, podman_version, name):
    lack = LACKS.get(podman_version, {}).get(name)
    if lack:
        pytest.skip(lack)
    podman, its_errors = said_by(way, "podman", LINES[name])
    berth, our_errors = said_by(way, "berth", LINES[name])
    assert podman and berth == podman, (berth, our_errors, podman, its_errors)
