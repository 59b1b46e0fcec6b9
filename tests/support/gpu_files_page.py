# SPDX-License-Identifier: Apache-2.0
"""Writes docs/gpu-files.md: which files of NVIDIA's driver a container gets, and why.

    facts = [gpu_files_page.facts_of(driver, inventory, bare, reference), …]     # of each branch
    gpu_files_page.page(facts)
"""

import collections
import dataclasses
import functools
import os
import pathlib
import re

from support import driver_layouts, opened_files, toolkit_lists

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE, TABLE = DOCS / "gpu-files.md", DOCS / "gpus.md"
BEGIN, END = "<!-- table of branches -->\n", "<!-- end of table -->\n"
CAPABILITIES = ("compute", "utility", "graphics", "display", "video", "ngx")
SHORT = dict(zip(CAPABILITIES, "cugdvn"))

# Given, and opened by no program here and needed by no library: pattern, why it is given.
REASONS = (
    (r"gsp.*\.bin$", "the kernel module loads it; programs that report the firmware's version read it"),
    (r"nvidia_drv\.so$", "an X server in the container loads it by its configuration"),
    (r"libglx(server_nvidia)?\.so", "an X server in the container loads it as its module glx"),
    (r"nvidia-drm-outputclass\.conf$", "the configuration of an X server in the container"),
    (r"libnvidia-ifr", "programs that capture the screen open it by its name"),
    (r"libnvidia-pkcs11", "libcuda opens it on a machine with confidential computing"),
    (r"libnvidia-api\.so", "programs that ask for NVAPI open it by its name"),
    (r"nvoptix\.bin$", "data of OptiX's denoiser: libnvoptix has parts of its name in its text"),
    (r"20_nvidia_x(cb|lib)|libnvidia-egl-(wayland|xcb|xlib)",
     "an EGL platform, which Debian distributes on its own; the EGL of 340 does not read it, that of others does"),
    (r"nvidia-(smi|xconfig|debugdump|persistenced|cuda-mps-(control|server))$", "a program of the driver"),
)
# Files of the packages that no container gets: pattern, reason.
NOT_GIVEN = (
    (r"usr/(s?bin|lib/.*)/nvidia-modprobe$",
     "setuid root: loads kernel modules and makes device nodes, which is the machine's task before a container starts"),
    (r"nvidia-application-profiles-.*-key-documentation$", "documentation of the file of profiles"),
    (r"libOpenCL\.so", "the loader of all vendors' OpenCL libraries: the image's own finds NVIDIA's by `nvidia.icd`"),
    (r"nvidia-bug-report\.sh$", "collects logs of the machine"),
    (r"nvidia\.ids$", "names of boards, for installers"),
    (r"nvidia/wine/.*\.dll$", "for games under Wine or Proton: loaded by their launchers, which no image here has"),
    (r"nvidia-powerd|nvidia-dbus", "a daemon of the machine, for laptops"),
    (r"\.service$|init\.d/|udev|modprobe\.d|modules-load|systemd|initramfs", "starts something of the machine"),
    (r"nvidia-(smi|xconfig|debugdump).*\.gz$", "a manual page"),
    (r"libnvidia-wfb", "a module of old X servers"),
    (r"/rim/.*\.swidtag$", "measurements of firmware, for programs that attest a machine"),
    (r"legacy-340xx/(monitoring|20-nvidia-legacy-340xx)\.conf$", "Debian's configuration of monitors and X servers"),
)
NOT_OF_PROGRAMS = re.compile(r"usr/share/(doc|man|bug|lintian|apport|reportbug|metainfo)/|i386-linux-gnu|lib32")
# Differences between Berth's list and those of NVIDIA's toolkit: name, kind → reason.
DIFFERENCES = {
    ("libnvidia-allocator", "more"): "GBM opens it as its backend for NVIDIA, and that is graphics",
    ("libnvidia-gpucomp", "more"): "libnvidia-eglcore and libnvidia-glcore need it (see the table); with "
                                   "`graphics` alone the toolkit's older way leaves EGL, GLX and Vulkan without it",
    ("libnvidia-opencl", "fewer"): "OpenCL is `compute`; encoder and decoder do not open it",
    ("libnvidia-compiler", "fewer"): "it is libnvidia-opencl's compiler",
    ("libnvidia-pkcs11", "fewer"): "encoder and decoder do not open it",
    ("libnvidia-pkcs11-openssl3", "fewer"): "encoder and decoder do not open it",
    ("libnvidia-tileiras", "fewer"): "the compiler of CUDA's tile code",
    ("libnvcuextend", "new"): "newer drivers (aarch64) have it without the driver's version in its name, so that the "
                              "newer list, which goes by the version, does not find it",
    ("libnvidia-api", "new"): "it has no version in its name; the toolkit gives it only with an option "
                              "(`enable-explicit-driver-libraries`)",
    ("nvidia/nvidia-application-profiles-VERSION-rc", "new"): "libcuda, EGL, GLX and Vulkan read it, for settings of "
                                                              "known programs",
    ("nvidia/nvidia-application-profiles-rc", "new"): "the same programs look for it, too",
    ("nv-fabricmanager", "not by CDI"): "the older list has it",
}
KINDS = {"more": "with more capabilities than in the older list", "fewer": "with fewer capabilities than in the older "
         "list", "none": "not given", "new": "in none of the toolkit's lists", "not by CDI": "only in the older list",
         "by CDI": "only in the newer list"}


@dataclasses.dataclass(frozen=True)
class Facts:
    """Of a branch; files by names in which VERSION stands for the driver's version."""
    branch: str
    version: str
    suite: str
    missing: list
    given: dict      # name → capabilities
    opened: dict     # name → {program}
    needed: dict     # name → {library that needs it}
    named: dict      # name → {library with this name in it}
    not_given: list  # paths below the root


def _plain(name, driver):
    """A file's name with VERSION for the driver's, and a star for a version of its own."""
    name = os.path.basename(name).replace(driver.version, "VERSION")
    return re.sub(r"(\.so\.\d+)\.\d[\d.]*$", r"\1.*", name)


def _content(path):
    with open(path, "rb") as file:
        return file.read()


def _reasons(name):
    return [reason for pattern, reason in REASONS if re.search(pattern, name)]


def _named(driver, names):
    """{name: {library}} by text; a name without its version and numbers."""
    wanted = {name: re.sub(r"(\.so)?\.(VERSION|[\d.*]+)$", "", name).encode() for name in names}
    out = collections.defaultdict(set)
    for file in driver.libraries:
        if "x86_64" in file:
            text = _content(driver.root / file)
            for name, word in wanted.items():
                if word in text and not os.path.basename(file).startswith(word.decode()):
                    out[name].add(_plain(file, driver))
    return out


def facts_of(driver, inventory, bare, reference):
    """`inventory`: what `berth gpu list --format json` says of a tree in Debian's layout."""
    root, given, opened, needed = inventory["driver_root"], {}, {}, collections.defaultdict(set)
    rows = [row for row in inventory["files"] if row["capabilities"] and not NOT_OF_PROGRAMS.search(row["path"])]
    for row in rows:
        given[_plain(row["path"], driver)] = row["capabilities"]
    for program in opened_files.NAMES:
        for name in opened_files.nvidias(bare, program, reference):
            opened.setdefault(_plain(name, driver), set()).add(program)
    by_soname = {row["soname"]: _plain(row["path"], driver) for row in rows if row["soname"]}
    for row in rows:
        for one in driver_layouts.dynamic(row["path"])["NEEDED"] if row["soname"] else ():
            if one in by_soname:
                needed[by_soname[one]].add(_plain(row["path"], driver))
    unseen = [name for name in given if name not in opened and name not in needed and not _reasons(name)]
    taken = {os.path.relpath(os.path.realpath(row["path"]), os.path.realpath(root)) for row in rows}
    not_given = [file for file in driver.files if file not in taken and not NOT_OF_PROGRAMS.search(file)
                 and not (driver.root / file).is_symlink()]
    return Facts(driver.branch, driver.version, driver.suite, driver.missing, given, opened, dict(needed),
                 _named(driver, unseen), not_given)


# ---- the page -----------------------------------------------------------------------------------

_HEAD = """\
# Files of NVIDIA's driver in containers

Which files of the driver a container gets with which capability, and why; which files it does not get, and why not;
and where Berth's list differs from those of NVIDIA's container toolkit. `./dev test drivers` writes this page
(`BERTH_ACCEPT=1`) and compares it otherwise; the source is `tests/drivers/test_what_programs_open.py`.

The drivers are NVIDIA's, as Debian distributes them. Programs load each library and call its first functions, or are
the driver's own programs; strace shows what they look up, open, execute and connect to. They run in a "bare" root, in
which the driver is installed, and in containers of an image with the same other packages and without the driver. A
file counts as found by its content, not by its path. There is no GPU: `/proc/driver` and the device nodes are
synthetic, and sysfs is the machine's, so what a driver opens only after it has found its kernel module (for example
libnvidia-ptxjitcompiler by libcuda) is not seen; for such files the table says which library has the name in its text.

In containers of the driver modes `bind`, `volume`, `copy` and, with the driver in the image, `image`; as root, as an
ordinary user with and without subordinate ids, and as another user; with a read-only root file system; with and without
a merged `/usr`; and in an image with libraries and programs of another driver, these programs open the same files of
the driver as in the bare root, except for those below, and say the same. With the capabilities `compute` and `utility`,
or with `graphics`, `display` or `video` alone, the programs of these do; only nvidia-xconfig, which comes with
`graphics`, needs `utility` too, for libnvidia-cfg. The branches 550, 535, 470 and 390 are tried in all these ways, the
others as root in `bind`, `volume` and `copy`; 550 and 390 also under Docker and podman with berth-runtime, and under
podman with crun and the file of `berth cdi generate`.

In an image with musl instead of glibc the libraries are found by their names, and the programs are there, but they need
glibc: of 550 only libnvidia-allocator loads, and the loader names a symbol or library of glibc for each of the others.
"""


def _list(rows):
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _table(head, rows):
    return f"\n{_list([head, ['---'] * len(head)])}{_list(rows)}"


def _letters(capabilities):
    return "".join(SHORT[name] for name in CAPABILITIES if name in capabilities)


def _merged(facts, field):
    out = collections.defaultdict(set)
    for one in facts:
        for name, values in getattr(one, field).items():
            out[name] |= set(values)
    return out


def _some(names):
    names = sorted(names, key=str.lower)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _library(name):
    return name.partition(".so")[0]


def why(name, opened, needed, named):
    """[reason]"""
    out = []
    programs = opened.get(name, set()) - {name, f"{name} -q", f"{name} --version"}
    if programs:
        out.append(f"opened by {_some(programs)}")
    if name in needed:
        out.append(f"needed by {_some({_library(one) for one in needed[name]})}")
    if not out and name in named:
        out.append(f"named in {_some({_library(one) for one in named[name]})}")
    return out if out and name in opened else out + _reasons(name)


def _files(facts):
    opened, needed, named = (_merged(facts, field) for field in ("opened", "needed", "named"))
    rows = []
    for name in sorted({name for one in facts for name in one.given}, key=str.lower):
        cells = [_letters(one.given[name]) if name in one.given else "" for one in facts]
        rows.append([f"`{name}`", *cells, "; ".join(why(name, opened, needed, named)) or "**no reason**"])
    letters = ", ".join(f"{letter} {name}" for name, letter in SHORT.items())
    return (f"\n## Files that containers get\n\nThe capability of each branch ({letters}); empty: the branch has no "
            "such file in Debian's packages, or Berth does not find it (below).\n"
            + _table(["File", *(one.branch for one in facts), "Why"], rows))


def reason_not_given(file):
    return next((reason for pattern, reason in NOT_GIVEN if re.search(pattern, file)), "")


def _without(facts):
    found = collections.defaultdict(lambda: (set(), set()))
    for one in facts:
        for file in one.not_given:
            name = _plain(file, one)
            names, branches = found[reason_not_given(file) or "**no reason**"]
            names.add(f"`{name}`")
            branches.add(one.branch)
    rows = [[", ".join(sorted(names, key=str.lower)), ", ".join(sorted(branches)), reason]
            for reason, (names, branches) in found.items()]
    return ("\n## Files of the driver that containers do not get\n"
            + _table(["Files", "Branches", "Why not"], sorted(rows, key=lambda row: row[0].lower())))


def _branches(facts):
    rows = [[one.branch, one.suite, ", ".join(one.missing)] for one in facts]
    programs = ", ".join(f"{name} (`{library}`)" for name, library in opened_files.PROBES.items() if name != library)
    return (_table(["Branch", "Debian", "Debian's packages have no"], rows)
            + f"\nPrograms that load a library, in the tables below by these names: {programs}.\n")


@functools.cache
def known():
    return sorted(toolkit_lists.differences())


def _toolkit():
    rows = [[f"`{name}`", KINDS[kind], DIFFERENCES.get((name, kind), "**no reason**")] for name, kind in known()]
    return ("\n## NVIDIA's container toolkit\n\nThe toolkit has two lists: an older one by names and capabilities "
            "(libnvidia-container, `nvc_info.c`), and a newer one for CDI, of all libraries whose names end with the "
            "driver's version and of some other files, without capabilities (`pkg/nvcdi`, `internal/discover`). "
            "With `video` the older one gives all that `compute` does.\n"
            + _table(["File", "Berth gives it", "Why"], rows)
            + "\nOf the newer list Berth differs in one more way: a library is given by its name, so a library with "
            "the driver's version and an unknown name is not given. No such library is in the branches above.\n")


def _all(name):
    return "all" if name == "*" else name


def _wrong(not_yet, image_wins):
    missing = [[_all(branch), _all(program), "all that it opens" if pattern == ".*" else f"`{pattern}`", reason]
               for branch, program, pattern, reason in not_yet]
    wins = "".join(f"In the mode `{mode}` a program of the image at `/usr/bin/nvidia-smi`, or at another program's "
                   f"place, is taken instead of the driver's: {reason}.\n" for mode, reason in image_wins)
    table = _table(["Branches", "Program", "Not found", "Why"], missing) if missing else ""
    return f"\nWrong:\n{table}\n{wins}" if table or wins else ""


def _found(left_out, not_yet, image_wins):
    return ("\n## Where a container differs from the bare root\n" + _wrong(not_yet, image_wins) + "\nOn purpose:\n"
            + _table(["Not found", "Why"], [[f"`{pattern}`", reason] for pattern, reason in left_out]))


def with_table(text, facts):
    """`text` of TABLE with the table of the branches: how many files a container gets with each capability."""
    before, _, rest = text.partition(BEGIN)
    rows = [[one.branch, one.version, f"Debian {one.suite}",
             *(str(sum(name in given for given in one.given.values())) for name in CAPABILITIES)] for one in facts]
    table = _table(["Branch", "Driver", "From", *CAPABILITIES], rows)
    return before + BEGIN + table.lstrip("\n") + END + rest.partition(END)[2]


def page(facts, left_out, not_yet, image_wins):
    """`left_out`, `not_yet`, `image_wins`: rows of (…, reason) of the comparison."""
    return (_HEAD + _branches(facts) + _files(facts) + _without(facts) + _found(left_out, not_yet, image_wins)
            + _toolkit())
