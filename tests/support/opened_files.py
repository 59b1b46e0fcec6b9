# SPDX-License-Identifier: Apache-2.0
"""What programs of NVIDIA's driver look up, open and load, by strace: in a root of the driver, and in a container.

    tools = opened_files.make_tools(driver, directory)          # needs to be done once for a branch
    bare = opened_files.in_bare_root(driver, tree, tools)       # Seen, in a chroot; proc/driver and dev are synthetic
    words = opened_files.command(tools)                         # for a container that has tools.path as /tools
    inside = opened_files.read(tools.out)                       # and tools.out as /out
    opened_files.compare(bare, inside, "libcuda")               # Difference
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from support import loader_images

SOURCE = pathlib.Path(__file__).with_suffix(".c")
TRIPLET = "x86_64-linux-gnu"

# Programs, and what they are run with. Others are rows of the probe (opened_files.c).
PROGRAMS = {
    "nvidia-smi": "nvidia-smi",
    "nvidia-smi -q": "nvidia-smi -q",
    "nvidia-debugdump": "nvidia-debugdump --list",
    "nvidia-persistenced --version": "nvidia-persistenced --version",
    "nvidia-persistenced": "nvidia-persistenced --verbose",
    "nvidia-cuda-mps-control": "echo get_server_list | nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server": "nvidia-cuda-mps-server",
    "nvidia-xconfig": "nvidia-xconfig --query-gpu-info",
}
# What is NVIDIA's beside the files of its packages.
_PLACES = re.compile(r"/(proc/driver/nvidia|dev/nvidia|etc/nvidia|usr/share/nvidia|(var/)?run/nvidia-)")


# Row of the probe → the library that it loads, by its name or path.
PROBES = {name: library or "libvdpau_nvidia.so.1" for name, library in
          re.findall(r'^    \{"([^"]+)", (?:"([^"]+)"|NULL),', SOURCE.read_text(encoding="utf-8"), re.M)}
NAMES = (*PROBES, *PROGRAMS)


@dataclasses.dataclass(frozen=True)
class Look:
    """What is at a path, as a program there sees it."""
    kind: str    # file, directory, node
    digest: str  # of a file
    target: str  # without links


@dataclasses.dataclass(frozen=True)
class Seen:
    """Of one run of all programs."""
    found: dict    # program → {path: whether it was opened, executed or connected to}, those that are there
    lacking: dict  # program → {path: the error}, those that are not
    looks: dict    # path → Look
    said: dict     # program → what it printed, without the directories of libraries


@dataclasses.dataclass(frozen=True)
class Tools:
    path: pathlib.Path  # the probe, strace with its libraries, the script
    out: pathlib.Path   # where the script writes


@dataclasses.dataclass(frozen=True)
class Difference:
    missing: frozenset  # names that the bare root finds and the container does not
    foreign: frozenset  # files that a name of the driver's leads to and that are not the driver's
    said: tuple         # (bare, inside), if they differ


# ---- the programs -------------------------------------------------------------------------------

def _build_probe(root, path):
    """With the libc of `root`, which may be older than this machine's."""
    libraries = [root / "usr/lib" / TRIPLET / name for name in ("libc.so.6", "libdl.so.2")]
    if not libraries[1].exists():
        libraries[1] = root / "lib" / TRIPLET / "libdl.so.2"
    told = subprocess.run(["gcc", "-print-file-name=crt1.o"], check=True, capture_output=True, text=True).stdout
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-fno-stack-protector", "-nostdlib", "-o", path, told.strip(),
                    "-x", "c", SOURCE, "-x", "none", *libraries, "-Wl,--unresolved-symbols=ignore-in-shared-libs"],
                   check=True)


def _script(names):
    """For the shells of Debian and busybox."""
    trace = "/tools/ld.so --library-path /tools/lib /tools/strace -f -yy -s 4096 -e trace=%file,connect"
    lines = ["export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/nowhere", "cd /"]
    for number, name in enumerate(names):
        words = ["sh", "-c", PROGRAMS[name]] if name in PROGRAMS else ["/tools/probe", name]
        lines.append(f"timeout 60 {trace} -o /out/{number}.trace {shlex.join(words)} >/out/{number}.said 2>&1 "
                     "</dev/null")
        lines.append(f"echo \"status $?\" >>/out/{number}.said")
    lines.append(r"""sed -n '/ = -1 /d; s/^[^"]*"\(\/[^"]*\)".*/\1/p' /out/*.trace | cat - /tools/files | sort -u |
/tools/probe --look >/out/looks""")
    return "\n".join(lines) + "\n"


def make_tools(driver, directory, musl=False):
    """`musl`: for an image with that libc."""
    directory.mkdir(parents=True)
    out = directory / "out"
    path = directory / "tools"
    (path / "lib").mkdir(parents=True)
    if musl:
        subprocess.run(["musl-gcc", "-O1", "-o", path / "probe", SOURCE], check=True)
    else:
        _build_probe(driver.root, path / "probe")
    strace = shutil.which("strace")
    shutil.copy2(strace, path / "strace")
    for name, real in loader_images.loaded_files(strace):
        shutil.copy2(real, path / "ld.so" if "ld-linux" in name else path / "lib" / os.path.basename(name))
    (path / "files").write_text("".join(f"/{file}\n" for file in driver.files if "/doc/" not in file))
    (path / "script").write_text(_script(NAMES))
    return Tools(path, out)


def empty(tools, owner=(0, 0)):
    """An empty directory for the script's files."""
    shutil.rmtree(tools.out, ignore_errors=True)
    tools.out.mkdir()
    os.chown(tools.out, *owner)


def command():
    return ["sh", "/tools/script"]


# ---- the bare root ------------------------------------------------------------------------------

_BARE = r"""
set -e
mount -t tmpfs -o mode=755 none "$3"
mkdir "$3/upper" "$3/work" "$3/root"
mount -t overlay -o "lowerdir=$1,upperdir=$3/upper,workdir=$3/work" overlay "$3/root"
cd "$3/root"
mkdir -p tools out
mount --bind "$4" tools
mount --bind "$5" out
mount -t proc proc proc
mount --bind "$2/proc/driver" proc/driver
mount --rbind /sys sys
mount -t tmpfs -o mode=755 none dev
for name in null zero full random urandom tty; do cp -a "/dev/$name" dev/; done
for name in nvidia dri; do cp -a "$2/dev/$name"* dev/; done
shift 5
exec chroot "$@" . sh /tools/script
"""


def in_bare_root(driver, tree, tools, work, user=0):
    """What the programs do in the root of the driver as it is installed, with the devices of `tree`."""
    empty(tools, (user, user))
    work.mkdir(exist_ok=True)
    who = [f"--userspec={user}:{user}"] if user else []
    subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", _BARE, "sh", driver.root, tree.root, work,
                    tools.path, tools.out, *who], check=True, stdin=subprocess.DEVNULL, timeout=600)
    return read(tools.out)


# ---- what they did ------------------------------------------------------------------------------

_CALL = re.compile(r'^\d+ +(\w+)\((.*)\) += (-1 (\w+)|\d+|\?)')
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _joined(text):
    """The lines of a trace, with those of interrupted calls joined."""
    waiting = {}
    for line in text.splitlines():
        pid = line.split(" ", 1)[0]
        if line.endswith("<unfinished ...>"):
            waiting[pid] = line.removesuffix("<unfinished ...>")
        elif match := re.match(r"\d+ +<\.\.\. \w+ resumed>", line):
            yield waiting.pop(pid, "") + line[match.end():]
        else:
            yield line


def calls(text):
    """[(call, path, error or "")] of a trace; only absolute paths."""
    for line in _joined(text):
        match, path = _CALL.match(line), _PATH.search(line)
        if match and path and path[1].startswith("/"):
            yield match[1], path[1], match[4] or ""


def _read_trace(path):
    found, lacking = {}, {}
    for call, name, error in calls(path.read_text(errors="replace")):
        if error:
            lacking[name] = error
        else:
            found[name] = found.get(name, False) or call in ("open", "openat", "execve", "connect")
    return found, lacking


def read(out):
    """Seen, of what the script wrote."""
    found, lacking, said = {}, {}, {}
    for number, name in enumerate(NAMES):
        found[name], lacking[name] = _read_trace(out / f"{number}.trace")
        text = (out / f"{number}.said").read_text(errors="replace")
        said[name] = re.sub(r"/\S*/(?=lib[^/]*\.so)", "", text)
    looks = {}
    for line in (out / "looks").read_text().splitlines():
        path, *rest = line.split("\t")
        if len(rest) == 4:
            looks[path] = Look(rest[0], f"{rest[1]}-{rest[2]}" if rest[0] == "file" else "", rest[3])
    return Seen(found, lacking, looks, said)


# ---- comparison ---------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Reference:
    """The driver's files as the bare root has them."""
    digests: dict  # digest → name of a file
    names: set     # of files and of the links to them

    @classmethod
    def of(cls, bare, driver):
        looks = {file: bare.looks.get(f"/{file}") for file in driver.files}
        looks = {file: look for file, look in looks.items() if look and look.kind == "file"}
        digests = {look.digest: os.path.basename(look.target) for look in looks.values()}
        return cls(digests, set(map(os.path.basename, looks)))


def nvidias(seen, program, reference):
    """{name: path} of what the program found of NVIDIA's: files by their name without links, others by path."""
    out = {}
    for path in seen.found[program]:
        look = seen.looks.get(path)
        if look and look.digest in reference.digests:
            out[reference.digests[look.digest]] = path
        elif _PLACES.match(path) and not (look and look.kind == "directory"):
            out[path] = path
    return out


def foreign(seen, program, reference):
    """Files at the driver's names that are not the driver's."""
    return frozenset(path for path, opened in seen.found[program].items()
                     if opened and os.path.basename(path) in reference.names and (look := seen.looks.get(path))
                     and look.kind == "file" and look.digest not in reference.digests)


def compare(bare, inside, program, reference):
    missing = frozenset(nvidias(bare, program, reference)) - frozenset(nvidias(inside, program, reference))
    said = (bare.said[program], inside.said[program])
    return Difference(missing, foreign(inside, program, reference), said if said[0] != said[1] else ())
