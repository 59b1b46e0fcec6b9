# SPDX-License-Identifier: Apache-2.0
"""Command lines that people type for other engines, with Berth in the place of their programs.

tests/data/typed_lines/*.toml has them: `line` as it stands in a manual, a README or a script, the
image replaced by `{image}` (a shell) or `{server}` and `{daemon}` (an entrypoint that reports what
it sees; the daemon stays), a directory of the host by `{dir}`, a container's name by `{name}`, a
registry by `{registry}`. They run in a shell whose PATH leads from `docker`, `apptainer`, … to
berth. `expect` is what the person who types the line should get, not what Berth happens to do:

    same          it does there and here what `shows` finds on standard output
    same-refusal  the program itself refuses it, and so does Berth
    refused       one line which says what to type instead, or why not: `tells`

`tells` is looked for on standard error; where it is missing nobody may be told anything. `may_tell`
is what a poor machine may add. `before` and `after` are typed before the line and after it (what
they print counts), `keys` is typed into a shell once it prompts, `env` is the caller's, `tree` is
another GPU driver than the eight H100 of the others, `devices` gives the machine the nodes of an
AMD GPU, `users` says who types it, and `user` what is otherwise for an ordinary user.
"""

import collections
import os
import pathlib
import pty
import re
import selectors
import shutil
import signal
import stat
import subprocess
import time
import tomllib

import pytest
from support import images, leftovers
from support.berth import Berth
from support.registry import die_with_parent
from support.waiting import wait_until

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/typed_lines"
TUN = pathlib.Path("/dev/net/tun")
MISSES = collections.defaultdict(list)  # a class of answers that nobody wants: the lines
ALLOWED = {"silently different": 0, "misleading error": 0, "hint that does not help": 0,
           "refusal without what to type": 5}

SYNTHETIC = "the driver tree is synthetic|this library has no nvmlInit_v2"  # of the tree alone

UNKNOWN = re.compile(r"^(?!.*; try: ).*"
                     r"(unknown (flag|verb)|takes \d argument| has no '\S+'; expected one of:)")

# What stands for a program of others: most are berth, and some are a verb of it by themselves.
PROGRAMS = {name: "" for name in (
    "docker", "podman", "podman-hpc", "apptainer", "singularity", "enroot", "udocker", "ch-image",
    "shifterimg")}
PROGRAMS |= {"ch-run": "run", "shifter": "run", "srun": "run", "docker-compose": "compose"}

REPORT = r"""#!/bin/sh
echo "args=$*"
echo "id=$(id -u):$(id -g)"
echo "groups=$(id -G)"
echo "cwd=$(pwd)"
echo "host=$(hostname)"
echo "gpus=$(ls /dev | grep -c '^nvidia[0-9]')"
echo "nodes=$(cd /dev; echo $(ls -d nvidia[0-9]* kfd dri/* infiniband 2>/dev/null))"
echo "shm=$(df -m /dev/shm | awk 'END {print $2}')"
echo "net=$(awk -F: 'NR > 2 && $1 !~ / lo$/ {sub(/ */, "", $1); print $1}' /proc/net/dev)"
echo "dns=$(grep -c ^nameserver /etc/resolv.conf)"
echo "limits=$(ulimit -l) $(ulimit -s) $(ulimit -n)"
echo "first=$(tr '\0' ' ' </proc/1/cmdline)"
echo "terminal=$(test -t 0 && echo yes || echo no)"
echo "memory=$(cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes memory.max 2>/dev/null)"
awk '/^(CapEff|Seccomp|NoNewPrivs):/ {print $1 $2}' /proc/self/status
awk '{split($4, o, ","); print "mount " $2 " " $3 " " o[1]}' /proc/mounts
for place in $(awk '{print $2}' /proc/mounts); do
  test -f "$place/data.txt" && echo "file $place: $(cat "$place/data.txt")"
done
sed 's/^/hosts /' /etc/hosts
env | sed 's/^/env /'
echo said
"""
STAY = """#!/bin/sh
trap 'exit 0' TERM
/bin/report "$@"
sleep 60 & wait
"""
# What people's scripts need beside the line: until a daemon has reported.
PRELUDE = """
said() { for n in $(seq 100); do docker logs "$1" >log 2>&1 || break
         grep -q ^said log && break; sleep 0.05; done; docker logs "$1"; }
"""
# A /dev of this shell's own with an AMD GPU's nodes, which all are /dev/null.
AMD_NODES = """
mkdir "$0" && mount -t tmpfs -o mode=755 none "$0" && cd "$0" && mkdir dri pts shm net &&
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/fuse . &&
cp -a /dev/net/tun net && mount --rbind /dev/pts pts && mount --rbind /dev/shm shm &&
for node in kfd mem dri/card0 dri/renderD128; do mknod -m 666 $node c 1 3; done &&
ln -s /proc/self/fd fd && mount --move "$0" /dev && rmdir "$0"; cd "$OLDPWD"; exec "$@"
"""


def read_lines():
    """Every entry, with a name for its test."""
    for path in sorted(DATA.glob("*.toml")):
        for number, typed in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["typed"], 1):
            words = re.sub(r"[^a-z0-9]+", "-", typed["line"].lower())[:40].strip("-")
            yield {**typed, "name": f"{path.stem}-{number:02}-{words}"}


LINES = list(read_lines())


def fill(text, desk):
    return re.sub(r"\{(\w+)\}", lambda found: desk.get(found[1], found[0]), text)


def is_run(typed):
    return typed["program"] in ("ch-run", "shifter", "srun") or bool(
        re.search(r"\b(run|exec|start)\b", typed["line"]))


def may_raise_limits():
    """Whether this root has CAP_SYS_RESOURCE: machines in containers often lack it."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"^CapEff:\s*(\w+)$", status, re.MULTILINE)[1], 16) >> 24 & 1 == 1


def as_poor_root(typed):
    """Where limits cannot be raised root is told so; an ordinary user gets what there is."""
    raises = typed["expect"] == "same" and "--ulimit memlock=-1" in typed["line"]
    if not raises or may_raise_limits():
        return typed
    refused = {"expect": "refused", "tells": "memlock=-1: the hard limit.*CAP_SYS_RESOURCE"}
    return {**typed, **refused, "shows": []}


def cases():
    """What is refused is so before it counts who asks: root alone types that."""
    for typed in LINES:
        both = is_run(typed) and typed["expect"] != "refused"
        for kind in typed.get("users", ["root", "user"] if both else ["root"]):
            yield pytest.param(kind, as_poor_root(typed) if kind == "root"
                               else typed | typed.get("user", {}),
                               id=f"{typed['name']}-{kind}")


# ---- where the lines are typed ------------------------------------------------------------------

class Station:
    """One user's store with the images, a home, and a PATH on which other programs are berth."""

    def __init__(self, berth, registry, pushed, tree):
        self.berth, self.account = berth, berth.account
        self.registry, self.images, self.tree = registry, pushed, tree
        self.count = 0
        self.place = berth.directory
        self.programs = self.place / "path"
        self.programs.mkdir()
        nvidia = self.place / "nvidia-docker"
        nvidia.symlink_to(berth.programs / "berth")
        own = f"--root {berth.root} --state {berth.state}"
        for name, verb in PROGRAMS.items():
            self._program(name, f'exec {berth.programs}/berth {own} {verb} "$@"')
        self._program("berth", f'exec {berth.programs}/berth {own} "$@"')
        self._program("nvidia-docker", f'exec {nvidia} {own} "$@"')
        self._program("sudo", 'test "$1" = -E && shift; exec env "$@"')
        berth.run("gpu", "list", env={"BERTH_DRIVER_ROOT": tree})  # warns, once
        self.pull()

    def _program(self, name, line):
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)

    def pull(self):
        for image in self.images.values():
            self.berth.ok("pull", "--quiet", image)

    def desk(self):
        """What the placeholders of the next line stand for; its directory is new."""
        self.count += 1
        directory = self.account.own(self.place / f"desk{self.count}")
        for name, text in (("data.txt", "from the host\n"), (".env", "FROM_FILE=yes\n")):
            (directory / name).write_text(text, encoding="utf-8")
            os.chown(directory / name, self.account.uid, self.account.gid)
        return {"dir": str(directory), "name": f"typed{self.count}", **self.images,
                "registry": self.registry.address}

    def environment(self, typed, desk, tree):
        own = {name: fill(value, desk) for name, value in typed.get("env", {}).items()}
        env = {"BERTH_DRIVER_ROOT": tree, "HOME": desk["dir"], "DISPLAY": ":0", "HF_TOKEN": "hf_x",
               "PATH": f"{self.programs}:{os.environ['PATH']}", **own}
        made = self.account.environment(**env)
        made.pop("BERTH_NETWORK")  # of the tests, not of a person's shell
        return made

    def type(self, typed, text, desk, tree):
        """The finished script: status, standard output, standard error. Its input is a terminal."""
        command = self.account.command(["bash", "-c", PRELUDE + text])
        if typed.get("devices"):
            command = ["unshare", "--mount", "sh", "-c", AMD_NODES, f"{desk['dir']}/dev", *command]
        master, slave = pty.openpty()
        os.fchown(slave, self.account.uid, self.account.gid)
        try:
            process = subprocess.Popen(
                command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=desk["dir"], env=self.environment(typed, desk, tree),
                preexec_fn=die_with_parent, start_new_session=True)
            out, err = converse(process, master, typed.get("keys", ""))
        finally:
            os.close(master)
            os.close(slave)
        return process.returncode, out, err

    def clear(self, text=""):
        """Nothing of the line `text` is left for the next one."""
        containers = self.berth.ok("ps", "-aq").split()
        if containers:
            self.berth.run("rm", "-f", "-v", *containers)
        volumes = self.berth.ok("volume", "ls", "-q").split()
        if volumes:
            self.berth.ok("volume", "rm", *volumes)
        if re.search("rmi|prune|reset", text):
            self.pull()
        shutil.rmtree(self.place / f"desk{self.count}", ignore_errors=True)

    def close(self):
        self.clear()
        self.berth.close()
        shutil.rmtree(self.place, ignore_errors=True)


def converse(process, terminal, keys, timeout=20):
    """Both outputs, read to their ends; `keys` are typed when a shell has prompted."""
    texts = {process.stdout: b"", process.stderr: b""}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for stream in (*texts, terminal):
            selector.register(stream, selectors.EVENT_READ)
        while any(stream in selector.get_map() for stream in texts):
            ready = selector.select(max(0, deadline - time.monotonic()))
            if not ready:
                os.killpg(process.pid, signal.SIGKILL)
                texts[process.stderr] += b"\n(killed by the test: it did not end)\n"
                break
            for key, _ in ready:
                if key.fileobj == terminal:
                    os.read(terminal, 65536)  # the echo
                    continue
                data = os.read(key.fd, 65536)
                texts[key.fileobj] += data
                if not data:
                    selector.unregister(key.fileobj)
            if keys and re.search(rb"[#$] (\x1b\[6n)?$", texts[process.stdout]):  # a prompt
                os.write(terminal, keys.encode())
                keys = ""
    process.wait()
    return [text.decode(errors="replace").replace("\r\n", "\n") for text in texts.values()]


@pytest.fixture(scope="module")
def pushed(registry):
    """{placeholder: reference}"""
    shell = images.layer([images.file("bin/bash", '#!/bin/sh\nexec /bin/sh "$@"\n', mode=0o755)])
    group = "root:x:0:\nvideo:x:44:\nsailor:x:1000:\ncrew:x:2000:sailor\nnogroup:x:65534:\n"
    tools = images.layer([images.file("etc/group", group),
                          images.file("bin/report", REPORT, mode=0o755),
                          images.file("bin/stay", STAY, mode=0o755),
                          images.directory("data"), images.file("data/of-the-image", "kept\n")])
    layers = [images.busybox_layer(), shell, tools]
    # As NVIDIA's images say it; berth counts it for --runtime nvidia and nvidia-docker alone.
    config = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NVIDIA_VISIBLE_DEVICES=all",
                      "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]}
    made = {"image": images.build(layers, config),
            "server": images.build(layers, {**config, "Entrypoint": ["/bin/report"], "Cmd": [],
                                            "ExposedPorts": {"8080/tcp": {}}}),
            "daemon": images.build(layers, {**config, "Entrypoint": ["/bin/stay"], "Cmd": []})}
    for name, image in made.items():
        image.push(registry, f"typed/{name}")
    return {name: f"{registry.address}/typed/{name}:latest" for name in made}


@pytest.fixture(scope="module")
def stations(programs, accounts, registry, session_directory, pushed, driver_tree):
    """stations(account) → its Station. Nothing is left on the machine in the end."""
    uids = {account.uid for account in accounts.values() if account.kind != "root"}
    before = leftovers.snapshot(session_directory, uids)
    mode, made = stat.S_IMODE(TUN.stat().st_mode), {}
    TUN.chmod(0o666)  # as udev has it

    def get(account):
        if account.kind not in made:
            berth = Berth(programs, account, session_directory / f"typed-{account.kind}")
            made[account.kind] = Station(berth, registry, pushed, driver_tree("eight"))
        return made[account.kind]
    yield get
    for station in made.values():
        station.close()
    TUN.chmod(mode)
    left = leftovers.since(before, session_directory, uids)
    if left:
        leftovers.clear(before, session_directory, uids)
        pytest.fail("the lines left behind:\n" + "\n".join(left), pytrace=False)


# ---- what a line should do ----------------------------------------------------------------------

def ours(err):
    """What Berth says, without what the programs say."""
    return [line for line in err.splitlines()
            if line.startswith(("berth: ", "berth-")) and not re.search(SYNTHETIC, line)]


def faults(typed, status, out, err):
    """[what is not as it should be]"""
    found = []
    refused = typed["expect"] != "same"
    usual = 0 if not refused else 125 if re.search(r"\b(run|create)\b", typed["line"]) else [1, 125]
    wanted = typed.get("status", usual)
    if status not in (wanted if isinstance(wanted, list) else [wanted]):
        found.append(f"status {status} instead of {wanted}")
    for pattern in typed.get("shows", []):
        if not re.search(pattern, out, re.MULTILINE):
            found.append(f"nothing on standard output is like {pattern!r}")
    said = ours(err)
    if typed.get("tells"):
        if not any(re.search(typed["tells"], line) for line in said):
            found.append(f"nobody is told {typed['tells']!r}")
    elif not refused:
        more = [line for line in said if not re.search(typed.get("may_tell", r"^$"), line)]
        found += [f"told without need: {line}" for line in more]
    if typed["expect"] == "refused" and said and UNKNOWN.search(said[-1]):
        found.append("nobody is told what to type instead, or why not")
    if refused and len(set(said)) != 1:
        found.append(f"{len(set(said))} lines of Berth's where one is wanted")
    return found


def class_of(typed, status, err):
    """What the person who typed the line would call this answer."""
    said = ours(err)
    if status == 0:
        return "different, and said" if said else "silently different"
    error = said[-1] if said else err
    if UNKNOWN.search(error):
        return "refusal without what to type"
    if "; try: " not in error and ": expected '" not in error:
        return "misleading error"
    return "refusal with a hint" if typed["expect"] == "same" else "hint that does not help"


def shortened(out):
    return "\n".join(line for line in out.splitlines()
                     if not re.match("mount /(proc|sys|dev)|hosts [:f]", line))


@pytest.mark.profiles()
@pytest.mark.parametrize("profile, typed", cases(), indirect=["profile"])
def test_a_typed_line_does_what_it_says(stations, profile, typed, driver_tree):
    station = stations(profile)
    desk = station.desk()
    tree = driver_tree(typed["tree"]) if "tree" in typed else station.tree

    expected = {**typed, "shows": [fill(pattern, desk) for pattern in typed.get("shows", [])]}
    try:
        if "before" in typed:
            first = fill(typed["before"], desk)
            done, out, err = station.type({**typed, "keys": ""}, first, desk, tree)
            assert done == 0, f"what comes before the line: {done}: {err}{out}"
        script = fill(typed["line"], desk)
        if "after" in typed:
            script += "\nstatus=$?; test $status = 0 || exit $status\n" + fill(typed["after"], desk)
        status, out, err = station.type(typed, script, desk, tree)
        wrong = faults(expected, status, out, err)
    finally:
        station.clear(typed["line"])
    if wrong:
        kind = class_of(typed, status, err)
        MISSES[kind].append(typed["name"])
        said = "\n".join(ours(err)) or err.strip()
        pytest.fail("\n".join([
            f"{kind} ({typed['expect']} wanted), {typed['origin']}:", f"  {typed['line']}", *wrong,
            f"status {status}", said, shortened(out)]), pytrace=False)


def test_nothing_is_different_in_silence_and_no_error_misleads():
    too_many = {kind: lines for kind, lines in MISSES.items()
                if kind in ALLOWED and len(set(lines)) > ALLOWED[kind]}
    assert not too_many, "\n".join(f"{kind}: {len(set(lines))}: {' '.join(sorted(set(lines)))}"
                                   for kind, lines in too_many.items())


def test_each_line_has_what_a_replay_needs():
    known = {"line", "program", "origin", "expect", "status", "shows", "tells", "may_tell",
             "before", "after", "keys", "env", "tree", "devices", "users", "user", "name"}
    for typed in LINES:
        assert set(typed) <= known, typed
        assert typed["expect"] in ("same", "same-refusal", "refused"), typed
        assert re.search(rf"(^|[\s;|(=!]){re.escape(typed['program'])}\b", typed["line"]), typed
        assert typed["origin"] and (typed["expect"] != "same" or typed.get("shows")
                                    or typed.get("tells")), typed
    assert len({typed["line"] for typed in LINES}) == len(LINES) >= 490
