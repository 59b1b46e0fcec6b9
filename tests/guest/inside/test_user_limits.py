# SPDX-License-Identifier: Apache-2.0
"""The limits of an ordinary user on a machine that runs systemd, however he has come to it: tests/guest/
test_systemd.py runs this file in a guest."""

import pathlib
import subprocess

import pytest
from support.logins import NAME, Way, called, login, made_user

MIB = 1 << 20
CGROUPS = pathlib.Path("/sys/fs/cgroup")


@pytest.fixture(scope="module")
def user():
    with made_user() as made:
        yield made


def scopes(user):
    """The scopes of containers in the user's manager."""
    found = CGROUPS.glob(f"user.slice/user-{user.pw_uid}.slice/user@*.service/**/berth-*.scope")
    return sorted(path.name for path in found)


def lingering(*words):
    def way(user):
        called("loginctl", "enable-linger", NAME)
        called("systemctl", "start", f"user@{user.pw_uid}.service")
        return Way(list(words))
    return way


def service(*properties, lingers):
    """One of the machine's manager: what cron, at and batch systems start has no session either."""
    def way(user):
        called("loginctl", "enable-linger" if lingers else "disable-linger", NAME)
        if not lingers:
            called("systemctl", "stop", f"user@{user.pw_uid}.service")
        return Way(["systemd-run", "--quiet", "--pipe", "--wait", "--collect", f"--uid={NAME}",
                          *(f"--property={one}" for one in properties), "bash", "-c"])
    return way


USERS_MANAGER = ["systemd-run", "--quiet", "--user", f"--machine={NAME}@.host", "--pipe", "--wait", "--collect"]
WAYS = {
    "a login": login,
    "a service of the user's systemd": lingering(*USERS_MANAGER, "bash", "-c"),
    "a scope with Delegate=": lingering(
        *USERS_MANAGER, "systemd-run", "--quiet", "--user", "--scope", "--property=Delegate=yes", "bash", "-c"),
    "cron of a user who lingers": service(lingers=True),
    "a service with Delegate=": service("Delegate=yes", lingers=False),
}


@pytest.fixture(params=[one if one == "a login" else pytest.param(one, marks=pytest.mark.long) for one in WAYS])
def way(request, user):
    made = WAYS[request.param](user)
    yield made
    assert not scopes(user)
    made.run("berth ps --all --quiet | xargs --no-run-if-empty berth rm --force")


def values(text):
    return text.split("\n")[:-1]


def test_limits_hold_and_change_and_the_container_can_be_paused(way, user):
    done = way.run("""
        berth run --rm --memory 50m --cpus 0.5 --pids-limit 30 --rootfs $ROOT \\
            cat /sys/fs/cgroup/{memory.max,cpu.max,pids.max}
        berth run --rm --memory 20m --rootfs $ROOT dd if=/dev/zero of=/dev/null bs=60M count=1; echo $?
        berth run --detach --name ship --memory 60m --rootfs $ROOT sleep 1000 >/dev/null
        berth pause ship; berth inspect --format '{{.State.Status}}' ship; berth unpause ship
        berth update --memory 70m --pids-limit 40 --cpus 0.25 ship
        berth exec ship cat /sys/fs/cgroup/{memory.max,pids.max,cpu.max}
        berth stats --no-stream --format '{{.MemUsage}}' ship
        berth exec ship cat /proc/self/cgroup
        berth rm --force ship
    """)
    out = values(done.stdout)
    assert out[:3] == [str(50 * MIB), "50000 100000", "30"]
    assert out[3] == "137"
    assert out[4:7] == ["ship", "paused", "ship"]
    assert out[7:11] == ["ship", str(70 * MIB), "40", "25000 100000"]
    assert out[11].endswith(" / 70MiB")
    assert out[12:] == ["0::/", "ship"]
    assert done.stderr == ""


def test_a_container_without_limits_gets_a_cgroup_when_one_is_wanted(way, user):
    before = scopes(user)
    done = way.run("""
        berth run --detach --name ship --rootfs $ROOT sh -c 'sleep 1000 & sleep 1001' >/dev/null
        berth pause ship; berth inspect --format '{{.State.Status}}' ship; berth unpause ship
        berth update --memory 70m ship
        berth top ship | grep -c sleep
        berth rm --force ship
    """)
    assert values(done.stdout) == ["ship", "paused", "ship", "ship", "2", "ship"]
    assert (done.stderr, scopes(user)) == ("", before)


def test_containers_that_share_their_process_numbers_keep_their_own_cgroups(user):
    way = login(user)
    done = way.run("""
        berth run --detach --name ship --rootfs $ROOT sleep 1000 >/dev/null
        berth run --detach --name boat --pid container:ship --rootfs $ROOT sleep 1000 >/dev/null
        for one in ship boat; do berth pause $one; berth update --memory 70m $one; done
        berth inspect --format '{{.State.Status}} {{.HostConfig.Memory}}' ship boat
        berth run --detach --name raft --memory 50m --pid container:ship --rootfs $ROOT sleep 1000 >/dev/null
        berth pause raft; berth inspect --format '{{.State.Status}}' ship boat raft; berth unpause raft
        berth rm --force boat raft
        berth exec --detach ship sleep 1001
        berth pause ship; berth unpause ship; berth update --memory 70m ship
        berth top ship | grep -c sleep; berth rm --force ship""")
    told = done.stderr.splitlines()
    assert len(told) == 4 and all("it shares its pid namespace with others" in line for line in told), told
    assert values(done.stdout) == ["running 0", "running 0", "raft", "running", "running", "paused", "raft",
                                   "boat", "raft", "ship", "ship", "ship", "2", "ship"]
    assert not scopes(user)


def test_what_was_short_of_memory_is_told_when_its_scope_has_gone(way, user):
    done = way.run("""berth run --name ship --memory 20m --rootfs $ROOT dd if=/dev/zero of=/dev/null bs=60M count=1
        berth inspect --format '{{.State.OOMKilled}}' ship; berth rm ship""", check=False)
    assert done.stdout == "true\nship\n", done


def test_what_ends_by_itself_leaves_no_scope(way, user):
    done = way.run("berth run --rm --memory 50m --rootfs $ROOT sh -c 'sleep 0.1; exit 7'", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    way.run("berth run -d --name ship --memory 50m --rootfs $ROOT sleep 1000; berth kill ship; berth wait ship;"
            "berth start ship; berth stop --time 0 ship; berth rm ship")


def test_without_limits_nobody_is_asked(user):
    way = login(user)
    assert way.run("berth run --rm --rootfs $ROOT cat /proc/self/cgroup").stdout == "0::/\n"
    done = way.run("strace -f -e trace=execve berth run --rm --rootfs $ROOT true 2>&1 | grep -c berth-scope",
                   check=False)
    assert done.stdout == "0\n"


def test_a_slice_of_the_user(user):
    way = login(user)
    done = way.run("""
        berth run --detach --name ship --memory 50m --cgroup-parent jobs-night.slice --rootfs $ROOT sleep 100 >/dev/null
        cat /proc/$(berth inspect --format '{{.State.Pid}}' ship)/cgroup
        berth rm --force ship""")
    place = f"user@{user.pw_uid}.service/jobs.slice/jobs-night.slice/berth-"
    assert place in done.stdout and done.stderr == ""


def test_a_controller_that_is_not_delegated_is_named_with_the_drop_in_that_delegates_it(user):
    way = login(user)
    reason = (f"--cpuset-cpus: user@{user.pw_uid}.service has no controller 'cpuset'; try: systemctl edit "
              "user@.service, as root, with [Service] Delegate=cpu cpuset io memory pids")
    done = way.run("berth run --rm --cpuset-cpus 0 --memory 50m --rootfs $ROOT cat /sys/fs/cgroup/memory.max")
    assert (done.stdout, done.stderr) == (f"{50 * MIB}\n", f"berth: warning: {reason}; ignoring\n")
    done = way.run("berth run --rm --strict --cpuset-cpus 0 --rootfs $ROOT true", check=False)
    assert done.returncode == 125 and reason in done.stderr
    done = way.run("""berth run -d --name ship --memory 50m --rootfs $ROOT sleep 100 >/dev/null
        berth update --memory 60m --cpuset-cpus 0 ship; echo $?
        berth exec ship cat /sys/fs/cgroup/memory.max; berth rm -f ship""")
    assert values(done.stdout) == ["1", str(50 * MIB), "ship"] and reason in done.stderr
    drop_in = pathlib.Path("/etc/systemd/system/user@.service.d/delegate.conf")
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nDelegate=cpu cpuset io memory pids\n")
    try:
        subprocess.run(["loginctl", "terminate-user", NAME], check=False, capture_output=True)
        called("systemctl", "daemon-reload")
        called("systemctl", "stop", f"user@{user.pw_uid}.service")
        done = way.run("berth run --rm --cpuset-cpus 0 --rootfs $ROOT cat /sys/fs/cgroup/cpuset.cpus.effective")
        assert (done.stdout, done.stderr) == ("0\n", "")
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()
        called("systemctl", "daemon-reload")


def test_where_no_scope_can_be_had_one_warning_says_why(user):
    way = service(lingers=False)(user)
    done = way.run("berth run --rm --memory 50m --rootfs $ROOT true")
    assert done.stderr == (
        "berth: warning: --memory: no permission for '/sys/fs/cgroup', and no systemd of this user runs that "
        "makes cgroups; try: loginctl enable-linger; ignoring\n")
    done = way.run("berth run --rm --strict --memory 50m --rootfs $ROOT true", check=False)
    assert done.returncode == 125 and "--memory: no permission" in done.stderr
    done = way.run("""berth run -d --name ship --rootfs $ROOT sleep 100 >/dev/null
        berth update --memory 50m ship; echo $?
        berth inspect --format '{{.HostConfig.Memory}}' ship; berth rm -f ship""")
    assert values(done.stdout) == ["1", "0", "ship"]
    assert "--memory: " in done.stderr


def test_a_batch_job_does_not_leave_its_own_cgroup(user):
    way = login(user)
    done = way.run("SLURM_JOB_ID=7 berth run --rm --memory 50m --rootfs $ROOT true")
    assert "where the limits of a batch job are its system's" in done.stderr
    assert not scopes(user)


# What listens where the user's systemd should, and speaks to nobody.
DEAF = """
import os, socket
os.makedirs("/tmp/deaf/systemd")
listening = socket.socket(socket.AF_UNIX)
listening.bind("/tmp/deaf/systemd/private")
listening.listen()
while True: listening.accept()[0].close()
"""


def test_a_systemd_that_refuses_is_a_warning_with_what_it_says(user):
    way = login(user)
    pathlib.Path(user.pw_dir, "deaf.py").write_text(DEAF)
    done = way.run("""python3 deaf.py & until [ -e /tmp/deaf/systemd/private ]; do sleep 0.1; done
        export XDG_RUNTIME_DIR=/tmp/deaf; unset DBUS_SESSION_BUS_ADDRESS
        berth --state /tmp/deaf/state run --rm --memory 50m --rootfs $ROOT true; kill %1""")
    line, = (line for line in done.stderr.splitlines() if line.startswith("berth: "))
    # The bus answers while the request is under way: either step may be the one that fails.
    assert line.startswith("berth: warning: --memory: the user's systemd makes no cgroup: ")
    assert line.endswith("; ignoring")
