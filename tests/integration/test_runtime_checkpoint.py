# SPDX-License-Identifier: Apache-2.0
"""checkpoint and restore up to the point where CRIU works or fails: a program of ours stands in for
it, so that it does either on every machine. What it really does: tests/guest/test_checkpoint.py."""

import json
import subprocess

import pytest
from support.bundle import Runtime
from support.oci_fixtures import assert_nothing_is_left, bundle, ok, place, start, until  # noqa: F401

WORKS = """
[ "$1" != check ] || exit 0
"""
CHECK_FAILS = """
echo 'Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds' >&2
echo 'Error (criu/crtools.c:260): Could not initialize kernel features detection.' >&2
exit 1
"""
REASON = ("check for CRIU: 'criu check' says that it cannot work here: vdso: Unexpected rt vDSO "
          "area bounds; try: criu check\n")
# Fails as criu does, but leaves the container frozen.
FREEZES = WORKS + """
while [ $# -gt 0 ]; do
  case $1 in
    --freeze-cgroup)
      if [ -e $2/cgroup.freeze ]; then echo 1 >$2/cgroup.freeze; else echo FROZEN >$2/freezer.state; fi ;;
    --work-dir)
      echo '(00.01) Error (criu/locks.c:9): Some file locks are hold' >$2/dump.log
      echo '(00.02) Error (criu/cr-dump.c:2): Dumping FAILED.' >>$2/dump.log ;;
  esac
  shift
done
exit 1
"""


def with_criu(script):
    """The prefix of a command that finds this criu."""
    text = "#!/bin/sh\n" + script
    return ("unshare", "--mount", "sh", "-ec",
            'mount -t tmpfs tmpfs /usr/local/sbin; printf %s "$0" >/usr/local/sbin/criu; '
            'chmod 755 /usr/local/sbin/criu; exec "$@"', text)


WITHOUT_CRIU = ("unshare", "--mount", "sh", "-ec",
                'for p in /usr/local/sbin/criu /usr/sbin/criu /usr/bin/criu /sbin/criu; do '
                '[ ! -e $p ] || mount --bind /dev/null $p; done; exec "$@"', "sh")


@pytest.fixture
def kind():
    return "root"


@pytest.fixture
def runtime(place):
    made = Runtime(place / "state")
    yield made
    assert_nothing_is_left(place, made)


@pytest.fixture
def running(bundle, start):
    bundle.shell("while :; do echo x >>/count; sleep 0.05; done")
    start()
    until((bundle.rootfs / "count").exists)


def by(runtime, prefix):
    return Runtime(runtime.root, prefix)


@pytest.mark.parametrize("prefix,reason", [
    (with_criu(CHECK_FAILS), REASON),
    (WITHOUT_CRIU, "check for CRIU: no 'criu' in /usr/sbin; try: install the package criu\n")])
def test_says_why_nothing_can_be_checkpointed_or_restored_here(runtime, bundle, running, place,
                                                               prefix, reason):
    there = by(runtime, prefix)
    done = there.call("checkpoint", "--image-path", str(place / "images"), "c1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"berth-runtime: cannot checkpoint container 'c1': {reason}"
    assert not (place / "images").exists()
    assert runtime.state()["status"] == "running"
    done = there.call("restore", "--image-path", str(place / "images"), "-b",
                      str(bundle.directory), "c2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"berth-runtime: cannot restore container 'c2': {reason}"
    assert runtime.call("state", "c2").returncode == 1


def test_a_container_that_criu_left_frozen_goes_on(runtime, bundle, running, place):
    done = by(runtime, with_criu(FREEZES)).call("checkpoint", "--image-path", str(place / "images"),
                                                "c1")
    assert done.stderr == (
        "berth-runtime: cannot checkpoint container 'c1': run 'criu dump': exit status 1: Some "
        f"file locks are hold; try: {place}/images/dump.log\n")
    assert (done.returncode, runtime.state()["status"]) == (1, "running")
    reached = (bundle.rootfs / "count").stat().st_size
    until(lambda: (bundle.rootfs / "count").stat().st_size > reached)


def test_a_container_that_was_paused_stays_so_when_its_checkpoint_fails(runtime, running, place):
    ok(runtime.call("pause", "c1"))
    done = by(runtime, with_criu(FREEZES)).call("checkpoint", "--image-path", str(place / "images"),
                                                "c1")
    assert (done.returncode, runtime.state()["status"]) == (1, "paused")
    ok(runtime.call("resume", "c1"))


def test_criu_gets_the_flags_and_nothing_of_the_caller(runtime, bundle, running, place):
    seen = place / "seen"
    script = WORKS + f'tr "\\0" "\\n" </proc/$$/environ >{seen}.env; pwd >>{seen}.env; ' \
        f'printf "%s\\n" "$@" >{seen}'
    flags = ["--tcp-established", "--ext-unix-sk", "--shell-job", "--file-locks", "--link-remap",
             "--lazy-pages", "--leave-running", "--auto-dedup"]
    done = by(runtime, with_criu(script)).call(
        "checkpoint", *flags, "--tcp-skip-in-flight", "--page-server", "localhost:77",
        "--manage-cgroups-mode", "ignore", "--image-path", str(place / "images"), "--work-path",
        str(place / "work"), "c1", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": "/x"})
    assert (done.returncode, done.stderr) == (0, "")
    words = seen.read_text(encoding="utf-8").split("\n")
    assert words[0] == "dump"
    for flag in flags + ["--skip-in-flight", "--manage-cgroups=ignore"]:
        assert flag in words
    pairs = list(zip(words, words[1:]))
    for pair in (("--images-dir", f"{place}/images"), ("--work-dir", f"{place}/work"),
                 ("--tree", str(runtime.state()["pid"])), ("--root", str(bundle.rootfs)),
                 ("--address", "localhost"), ("--port", "77"), ("--empty-ns", "net")):
        assert pair in pairs
    assert "mnt[/proc/keys]:/dev/null" in words
    told = (place / "seen.env").read_text(encoding="utf-8").splitlines()
    assert sorted(told)[0] == "/" and all(line.startswith("PATH=") for line in sorted(told)[1:])


def test_a_checkpoint_ends_the_container_and_runs_its_poststop_hooks(runtime, bundle, place):
    bundle.args("/bin/sleep", "60")
    hook = place / "hook"
    hook.write_text(f"#!/bin/sh\ncat >{place}/stopped\n", encoding="utf-8")
    hook.chmod(0o755)
    bundle.config["hooks"] = {"poststop": [{"path": str(hook)}]}
    bundle.write()
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL,
              "stderr": subprocess.DEVNULL}
    subprocess.run(runtime.command("run", "--detach", "-b", str(bundle.directory), "c1"),
                   check=True, **silent)
    done = by(runtime, with_criu(WORKS)).call("checkpoint", "--image-path", str(place / "images"),
                                              "c1")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((place / "stopped").read_text(encoding="utf-8"))["id"] == "c1"
    assert runtime.call("state", "c1").returncode == 1


@pytest.mark.parametrize("flags,reason", [
    (["--parent-path", "/x"], "--parent-path: must be relative to --image-path"),
    (["--page-server", "here"], "--page-server: expected ADDRESS:PORT"),
    (["--status-fd", "77"], "--status-fd: not an open descriptor")])
def test_refuses_flags_that_make_no_sense(runtime, running, place, flags, reason):
    done = by(runtime, with_criu(WORKS)).call("checkpoint", "--image-path", str(place / "images"),
                                              *flags, "c1")
    assert (done.returncode, done.stderr) == \
        (1, f"berth-runtime: cannot checkpoint container 'c1': {reason}\n")
    assert runtime.state()["status"] == "running"


def test_nothing_is_left_where_criu_restores_nothing(runtime, bundle, place):
    bundle.args("/bin/true").write()
    (place / "images").mkdir()
    script = WORKS + "echo 'Error (criu/image.c:1): no inventory' >$5/restore.log; exit 1"
    done = by(runtime, with_criu(script)).call("restore", "--image-path", str(place / "images"),
                                               "-b", str(bundle.directory), "c1")
    assert (done.returncode, done.stderr) == (
        1, "berth-runtime: cannot restore container 'c1': run 'criu restore': exit status 1: no "
        f"inventory; try: {place}/images/restore.log\n")


def test_a_container_with_a_terminal_is_refused(runtime, bundle, place):
    bundle.process["terminal"] = True
    bundle.args("/bin/true").write()
    (place / "images").mkdir()
    done = by(runtime, with_criu(WORKS)).call("restore", "-d", "--image-path",
                                              str(place / "images"), "-b", str(bundle.directory),
                                              "--console-socket", str(place / "socket"), "c1")
    assert (done.returncode, done.stderr) == (
        1, "berth-runtime: cannot restore container 'c1': config.json: process.terminal: a "
        "container with a terminal cannot be checkpointed or restored\n")


@pytest.mark.parametrize("around", ("a volume", "the root"))
@pytest.mark.parametrize("link", ("/proc/self/root{secret}", "{secret}", "../../../../../../..{secret}"))
def test_a_link_in_the_place_of_a_mount_leads_criu_nowhere_else(runtime, bundle, place, around, link):
    """What was mounted at the checkpoint is not there any more, and whoever wrote there meanwhile has put a
    link in its place. The images name it, and no bind of the config does."""
    secret = place / "secret"
    secret.mkdir()
    (secret / "word").write_text("of the host", encoding="utf-8")
    (place / "volume").mkdir()
    bundle.mount("/volume", place / "volume", "rbind")
    directory, key = (place / "volume", "/volume/deep") if around == "a volume" else (bundle.rootfs, "/deep")
    (directory / "deep").symlink_to(link.format(secret=secret))
    bundle.args("/bin/true").write()
    (place / "images").mkdir()
    (place / "images/outside-mounts.json").write_text(json.dumps([key]), encoding="utf-8")
    seen = place / "seen"
    done = by(runtime, with_criu(WORKS + f'printf "%s\\n" "$@" >{seen}; exit 1')).call(
        "restore", "--image-path", str(place / "images"), "-b", str(bundle.directory), "c1")
    assert done.returncode == 1
    assert f"cannot find what was mounted at '{key}'" in done.stderr
    assert not seen.exists()


def test_criu_finds_what_was_mounted_below_a_bind(runtime, bundle, place):
    """Also where somebody exchanges it while criu looks: it is a mount of criu's own by then."""
    volume = place / "volume"
    (volume / "deep").mkdir(parents=True)
    (volume / "deep/word").write_text("of the volume", encoding="utf-8")
    (volume / "file").write_text("a file", encoding="utf-8")
    bundle.mount("/volume", volume, "rbind")
    bundle.args("/bin/true").write()
    (place / "images").mkdir()
    keys = ["/volume/deep", "/volume/file"]
    (place / "images/outside-mounts.json").write_text(json.dumps(keys), encoding="utf-8")
    seen = place / "seen"
    look = f"""
    rm -r {volume}/deep; ln -s / {volume}/deep; rm {volume}/file
    for word do case $word in
      'mnt[/volume/deep]:'*) ls ${{word#*:}}/bin >{seen} 2>&1 || echo nothing >{seen} ;;
      'mnt[/volume/file]:'*) cat ${{word#*:}} >>{seen} ;;
    esac; done
    exit 1
    """
    by(runtime, with_criu(WORKS + look)).call(
        "restore", "--image-path", str(place / "images"), "-b", str(bundle.directory), "c1")
    assert seen.read_text(encoding="utf-8").endswith("nothing\na file")
