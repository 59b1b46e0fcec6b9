#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of src/: which folder may include which. Fails on any other '#include "x/…"', on an include
cycle, on a system call outside src/sys, on a mode, owner, time or attribute that is set by path, on a file of
a container's root that is opened before its type is checked, and on errno read in the same call that builds
the error's text.

X.hpp and X.cpp are a pair; pairs must not include each other, directly or indirectly.

Also prints the number of lines of the privileged program, berth-runtime, so that a review sees it grow.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder: the others that it may include. In build order.
LAYERS = {
    "base": "",
    "json": "base",
    # Converts YAML to JSON's values, with libyaml: never in the privileged program.
    "yaml": "base json",
    # Wrappers of system calls, in rooms: each may include those in its list, without cycles.
    "sys/fd": "base",
    "sys/thread": "base",
    "sys/file": "base sys/fd sys/thread",
    "sys/process": "base sys/fd sys/thread sys/file",
    "sys/machine": "base sys/fd sys/file sys/process",
    "sys/user": "base sys/fd sys/file sys/process sys/machine",
    "sys/net": "base sys/fd sys/file sys/process sys/user",
    "sys/mount": "base sys/fd sys/file sys/process sys/machine sys/user sys/net",
    "oci": "base json",
    "plan": "base oci",
    # The messages between berth-runtime and berth-scope.
    "scope": "base json",
    # Parses contents of images; berth-runtime does so only with the privileges of the image's program.
    "scan": "base json",
    # The messages between Slurm's plugin, the first process of a step's container and the engine, and the
    # users' options for such a container: pure.
    "slurm": "base",
    # Detects MPIs, and decides whether one may replace another: pure.
    "mpi": "base json scan",
    # Slurm's plugin, in slurmstepd: only this and two pure folders of ours are loaded there.
    "spank": "base slurm",
    # berth-runtime's work, in rooms; "runtime" has a file for each command and uses them.
    "runtime/mount": "base sys plan",
    "runtime/cgroup": "base json sys oci plan scope runtime/mount",
    "runtime/seccomp": "base sys oci",
    # A container's state between two calls, and its surroundings: hooks, id maps, interfaces.
    "runtime/state": "base json sys oci plan scan runtime/cgroup",
    # The container's first process, up to the image's program.
    "runtime/child": "base json sys oci plan scan slurm/hold.hpp runtime/mount runtime/cgroup runtime/seccomp "
                     "runtime/state",
    "runtime": "base json sys oci plan runtime/mount runtime/cgroup runtime/state runtime/child",
    "runtime/checkpoint": "base json sys plan runtime/mount runtime/cgroup runtime/state runtime/child runtime",
    # Findings in the files of an image.
    "facts": "base json scan",
    # Instructions in programs, by a disassembler: only for the program that unpacks.
    "facts/code": "base json scan facts",
    # The site's policy: the struct and its JSON, which berth-runtime reads too.
    "policy": "base json sys",
    # The files that administrators write: TOML, which berth-runtime never reads.
    "policy/site": "base json policy",
    # The site's rules for containers that another engine has configured; pure.
    "policy/amend": "base json oci policy",
    # CSCS's environment definition files: TOML, parsed and merged; pure.
    "edf": "base json policy/site",
    # The GPUs of a machine, as plain structs, and whether a cached inventory is still valid.
    "gpu/inventory": "base json sys",
    "gpu/probe": "base json sys scan facts gpu/inventory",
    # Pure: of the inventory it may see only the structs.
    "gpu/grant": "base json oci scan policy gpu/inventory/inventory.hpp",
    # Which container has which GPUs of this machine.
    "gpu/ledger": "base json sys gpu/grant gpu/inventory/inventory.hpp gpu/inventory/kernel.hpp",
    # NVIDIA's MPS daemon: the containers that use one, and the process that stays with it.
    "gpu/mps": "base json sys gpu/ledger gpu/probe/use.hpp",
    # Puts a grant on this machine: mountpoints, links, the loader's cache.
    "gpu/place": "base json sys oci scan gpu/grant gpu/inventory/inventory.hpp",
    # The resolved index of CDI files, which berth-runtime reads.
    "gpu/cdi_index": "base json sys oci",
    # The hook in our CDI files, which other engines run in a container.
    "gpu/cdi_hook": "base json sys oci scan",
    # Parses, resolves and generates CDI files.
    "gpu/cdi": "base json yaml sys oci scan policy gpu/cdi_index gpu/cdi_hook gpu/grant "
               "gpu/inventory/inventory.hpp",
    # berth-runtime's changes to the config of another engine's container.
    "gpu/inject": "base json sys oci scan policy policy/amend gpu/inventory gpu/grant gpu/ledger gpu/place gpu/cdi_index",
    # The gRPC messages of the kubelet, generated from .proto files.
    "kube/api": "",
    # The resources that the kubelet counts, and which GPUs it has given.
    "kube/plugin": "base json sys policy/site gpu/inventory gpu/grant gpu/ledger",
    "kube/agent": "base json sys oci policy gpu/inventory gpu/grant gpu/ledger gpu/cdi kube/api kube/plugin",
    # The profile of a node, this one or a saved one: the struct, and what follows from it.
    "node": "base json scan",
    # Profiles in files: JSON, and TOML, only for programs that need it.
    "node/file": "base json sys policy/site node",
    # Gathers the profile of this machine.
    "node/gather": "base json sys scan gpu/inventory node",
    # Which entry of an index fits a node, and why: pure.
    "match": "base json oci scan facts node gpu/grant/requirement.hpp",
    # The variants of an image and how each is built, as users write it in a file: pure.
    "bake": "base json yaml oci scan facts node match policy/site",
    "image": "base json sys oci facts match/verdict.hpp match/declared.hpp match/run_record.hpp "
             "node/profile.hpp",
    # Reads and writes images of the kernel's read-only file system EROFS.
    "erofs": "base sys",
    # Serves one through FUSE: a separate program.
    "erofs/serve": "base sys erofs",
    # berth-transfer's work, in rooms; "transfer" uses them: pulling, pushing, publishing.
    "transfer/work": "base sys image",
    "transfer/compression": "base sys oci",
    "transfer/tar": "base sys transfer/work",
    "transfer/registry": "base json sys oci match image transfer/work",
    # Unpacks a layer's tar into a directory or an EROFS image, and packs it again.
    "transfer/layer": "base sys oci facts facts/code image erofs transfer/work transfer/compression transfer/tar "
                      "transfer/registry",
    "transfer/sign": "base json oci image transfer/work transfer/compression transfer/registry",
    # Images to and from files: load, save, import, commit.
    "transfer/archive": "base json sys oci image transfer/work transfer/compression transfer/tar transfer/registry "
                        "transfer/layer",
    # Work on layers in the store.
    "transfer/store": "base sys facts image transfer/work transfer/layer",
    "transfer": "base json oci match image transfer/work transfer/registry transfer/layer transfer/sign "
                "transfer/archive transfer/store",
    # The configuration of a registry front.
    "hub/config": "base json oci facts node policy/site match",
    # The registry front: the only HTTP server.
    "hub": "base json sys oci facts node node/file match image transfer hub/config",
    # Messages that programs print if image and machine do not fit, and their meaning: pure.
    "known_error": "base json",
    # Containers' logs: the formats, writer and reader.
    "logs": "base json sys",
    # container.json, which the engine and the monitor write.
    "record": "base json sys",
    # The journal of events, which the engine and the monitors write.
    "events": "base json sys",
    "monitor": "base json sys record logs events",
    # The messages between berth and berth-network, and the decisions of both: pure.
    "network": "base json",
    # Bridges, rules and helpers of containers' networks: a separate program.
    "network/attach": "base json sys network",
    # System calls of a program without libc.
    "holder": "",
    # Problems of this machine: gathers facts once, and checks them in pure code.
    "doctor": "base json yaml sys oci policy policy/site gpu/inventory gpu/probe network",
    # berth's use cases, in rooms: each may include those in its list, without cycles.
    "engine/context": "base json sys policy/site image gpu/grant gpu/inventory",
    # The request for a container, and the parsers for its flags.
    "engine/request": "base json sys oci plan mpi policy gpu/grant gpu/inventory image network engine/context",
    # The files of a container.
    "engine/state": "base json sys known_error record events engine/context engine/request",
    # The store of images, and requests to berth-transfer.
    "engine/image": "base json sys oci scan facts image engine/context engine/request engine/state",
    # Existing containers: their life, streams, volumes and roots.
    "engine/container": "base json sys oci known_error record logs slurm network gpu/mps monitor/protocol.hpp "
                        "engine/context engine/request engine/state engine/image",
    "engine/network": "base json sys oci policy network engine/context engine/request engine/state engine/container",
    "engine/gpu": "base json yaml sys oci scan policy gpu/inventory gpu/probe gpu/grant gpu/ledger gpu/mps gpu/place "
                  "gpu/cdi_index gpu/cdi_hook gpu/cdi image "
                  "engine/context engine/request engine/state engine/image engine/container",
    "engine/node": "base sys policy doctor node node/file node/gather match bake image gpu/grant gpu/inventory "
                   "engine/context engine/image engine/gpu",
    # The site's rules, and environment definition files.
    "engine/site": "base sys oci policy edf slurm image gpu/grant "
                   "engine/context engine/request engine/image engine/gpu engine/node",
    # Finds or pulls an image, if the site's rules and this node permit its use.
    "engine/pull": "base oci image record engine/context engine/request engine/image engine/container engine/node "
                   "engine/site",
    # What a new container will be: resolved, then decided, not created.
    "engine/decide": "base sys oci scan mpi policy edf known_error record node node/gather match image "
                    "gpu/inventory gpu/grant gpu/place engine/context engine/request engine/state engine/image "
                    "engine/container engine/network engine/gpu engine/node engine/site engine/pull",
    # Creates, starts and changes a container.
    "engine/run": "base json sys oci plan record image monitor/protocol.hpp gpu/grant gpu/ledger engine/context "
                  "engine/request engine/state engine/image engine/container engine/network engine/gpu engine/site "
                  "engine/pull engine/decide",
    # Files in containers: copied, compared, saved.
    "engine/files": "base sys scan image engine/context engine/state engine/image engine/container engine/gpu "
                    "engine/decide",
    # The documents and lists of containers, images and events.
    "engine/inspect": "base json sys oci events network engine/context engine/request engine/state engine/image "
                      "engine/container engine/network engine/gpu engine/files",
    "engine/build": "base json sys oci node/file match bake image engine/context engine/request engine/state "
                    "engine/image engine/node engine/site engine/decide",
    "engine/slurm": "base sys oci image slurm engine/context engine/request engine/state engine/image "
                    "engine/container engine/gpu engine/node engine/site engine/pull engine/decide engine/run engine/files",
    # The whole machine: usage, health, metrics, policy.
    "engine/system": "base json sys policy policy/site doctor image hub/config engine/context engine/request engine/state "
                     "engine/image engine/container engine/network engine/gpu engine/node engine/site engine/decide "
                     "engine/inspect engine/build",
    # Kubernetes: labels, the manifest of berth-node, the configuration of its runtimes.
    "engine/kube": "base json yaml sys policy/site node gpu/inventory gpu/ledger kube/plugin/resource.hpp engine/context "
                   "engine/gpu engine/node",
    "cli/core": "base json",
    # docker's --format: templates and the lists printed with them.
    "cli/template": "base json cli/core",
    # The output of verbs: tables and texts. Of the verbs' files it may see only the shared ones.
    "cli/berth/show": "base json facts known_error cli/core cli/template engine cli/berth/verb.hpp cli/berth/common.hpp",
    "cli/berth": "base json known_error cli/core cli/template engine cli/berth/show",
    "cli/oci": "base json cli/core oci plan runtime gpu/inject/inject.hpp",
}

# Folders with rooms: in the list of another folder they stand for all of their rooms, too.
IN_ROOMS = ("sys", "runtime", "transfer", "engine", "cli/berth")

# The folders that each program's link line may bring in.
PROGRAMS = {
    "berth": "base json sys oci plan scan facts mpi policy policy/site edf gpu/inventory gpu/probe gpu/grant "
             "gpu/ledger gpu/mps gpu/place gpu/cdi_index gpu/cdi_hook gpu/cdi node node/file node/gather match bake yaml "
             "image network doctor known_error record logs events hub/config slurm kube/plugin engine cli/core cli/template "
             "cli/berth",
    "berth-transfer": "base json sys oci image erofs scan facts facts/code node match gpu/grant transfer",
    "berth-hub": "base json sys oci image erofs scan facts facts/code policy policy/site node node/file "
                 "match gpu/grant transfer hub hub/config",
    "berth-runtime": "base json sys oci plan scope scan runtime policy policy/amend gpu/inventory gpu/grant "
                     "gpu/ledger gpu/place gpu/cdi_index gpu/inject cli/core cli/oci",
    "berth-scope": "base json scope",
    "berth-network": "base json sys network network/attach",
    "berth-monitor": "base json sys record logs events monitor",
    "berth-holder": "holder",
    "berth-init": "holder",
    "berth-hold": "holder slurm/hold.hpp",
    "berth-cdi-hook": "base json sys oci scan gpu/cdi_hook",
    "nvidia-container-runtime-hook": "",
    "berth-gpu-probe": "base json sys scan facts gpu/inventory gpu/probe",
    "berth-mps": "base json sys oci scan facts policy gpu/inventory gpu/probe gpu/grant gpu/ledger gpu/mps",
    "berth-node": "base json yaml sys oci scan policy policy/site gpu/inventory gpu/grant gpu/ledger gpu/cdi_index gpu/cdi_hook "
                  "gpu/cdi kube/api kube/plugin kube/agent cli/core",
    "berth-erofs": "base sys erofs erofs/serve",
}

# Found as '::name(', which is how all of src/ calls the system, and as 'syscall('.
SYSTEM_CALLS = set("""
    accept accept4 access bind capget capset chdir chmod chown chroot clone close close_range connect
    copy_file_range dup dup2 dup3 execve execveat faccessat fallocate fchdir fchmod fchmodat fchown
    fchownat fcntl fdatasync fdopendir flock fork fstat fstatat fstatfs fsync ftruncate futimens
    getdents64 getegid geteuid getgid getgroups getpgid getpid getppid getrandom getresgid getresuid
    getrlimit getsockopt getuid getxattr fgetxattr flistxattr fsetxattr ioctl kill lgetxattr
    linkat listen llistxattr lseek lsetxattr lstat madvise memfd_create mkdir mkdirat mknod mknodat
    mmap mount mprotect munmap open openat opendir pause personality pidfd_open pidfd_send_signal
    pipe pipe2 pivot_root poll ppoll prctl pread prlimit ptrace pwrite read readdir readlink
    readlinkat readv recv recvmsg rename renameat renameat2 rmdir sched_setaffinity send sendfile
    sendmsg sendto setdomainname setgid setgroups sethostname setns setpgid setpriority setresgid
    setresuid setrlimit setsid setsockopt setuid shutdown sigaction signalfd sigprocmask socket
    socketpair splice stat statfs statvfs symlink symlinkat sync_file_range syncfs syscall sysconf
    tcgetattr tcsetattr truncate umask umount umount2 uname unlink unlinkat unshare utimensat vfork
    wait4 waitid waitpid write writev
""".split())

# Only a handle may be used to change a file that another process may exchange between two calls (CWE-367):
# fchmod, futimens, fsetxattr, … HANDLES has the calls that accept a handle in place of a name.
BY_NAME = set("""
    chmod chown fchmodat fchownat futimesat lchown lremovexattr lsetxattr lutimes removexattr
    setxattr utime utimensat utimes
""".split())
HANDLES = {"sys/file/mode.cpp": re.compile(r'\.get\(\), "",|AT_FDCWD, fd_path\(')}

# File: the system calls that it still makes itself.
MAKES_CALLS = {
    "runtime/cgroup/maker.cpp": "write rmdir mkdir",
    "runtime/cgroup/files.cpp": "write openat fdopendir readdir",
    "runtime/cgroup/processes.cpp": "rmdir",
    "runtime/launch.cpp": "getuid",
    "runtime/seccomp/seccomp.cpp": "syscall",  # seccomp(2)
    "runtime/cgroup/device_filter.cpp": "syscall",  # bpf(2)
    # Without src/sys, which would otherwise be loaded into slurmstepd.
    "spank/board.cpp": "accept4 bind close getrandom listen pipe2 poll recv send setsockopt socket",
    "spank/cgroup.cpp": "close kill mkdir open opendir closedir readdir poll read rmdir write",
    "spank/join.cpp": "close fchdir fcntl fstat getuid pread prctl setns socketpair stat syscall",
    "spank/message.cpp": "close recvmsg sendmsg",
    "spank/job_end.cpp": "close mkdir open rmdir unlink write",
    "spank/start.cpp": "chdir close closedir dup2 execve fchdir fcntl fork fstat ftruncate getegid geteuid "
                       "getgid getrlimit getuid ioctl kill memfd_create mmap open opendir poll prctl pread read "
                       "readdir send setns setsid sigprocmask socketpair stat syscall waitpid write",
    "spank/step_watch.cpp": "close fork getpid getppid kill pause prctl sigprocmask syscall waitpid",
    "spank/spank_berth.cpp": "close fstat getpwuid_r getuid memfd_create poll prctl shutdown socketpair syscall",
}

PRIVILEGED = "berth-runtime"
SOURCES = (".cpp", ".hpp", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
INCLUDE_ANYWHERE = re.compile(INCLUDE.pattern, re.MULTILINE)
CALL = re.compile(r"(?:(?<![\w>:])::|\b(?=syscall\())(\w+)\(")
BY_NAME_CXX = re.compile(r"\bfilesystem::(permissions|last_write_time)\(")
# Up to the end of the statement: a file in a container's root may be a device (sys/file/regular.hpp).
OPEN_IN_ROOT = re.compile(r"\bopen_in_root\([^;]*")
OPENS_ANYTHING = re.compile(r"\bO_(RDONLY|WRONLY|RDWR)\b(?![^;]*\bO_DIRECTORY\b)")
LATE_ERRNO = re.compile(r"\bsys_error\(\s*errno\b")


def folder_of(path):
    """The layer that a path below src/ belongs to, or None."""
    parts = pathlib.PurePosixPath(path).parts
    for depth in (3, 2, 1):
        name = "/".join(parts[:depth])
        if len(parts) > depth and (name in LAYERS or name == "bin"):
            return name
    return None


def may_include(allowed, included):
    return included in allowed or folder_of(included) in allowed


def with_rooms(names, reader=""):
    """`names`, with the rooms of those that stand for all of theirs; inside such a folder each room is
    named."""
    whole = [name for name in names if name in IN_ROOMS and not f"{reader}/".startswith(f"{name}/")]
    return [*names, *(layer for layer in LAYERS if any(layer.startswith(f"{name}/") for name in whole))]


def allowed_in(source, folder):
    """The files that a source may include: its layer's list, or for a main() its program's."""
    if folder == "bin":
        return with_rooms(PROGRAMS.get(pathlib.PurePosixPath(source).stem, "").split())
    return with_rooms([folder, *LAYERS[folder].split()], folder)


def sources():
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in SOURCES:
            yield path.relative_to(ROOT / "src").as_posix(), path


def check_calls(source, text):
    allowed = MAKES_CALLS.get(source, "").split()
    for number, line in enumerate(text.splitlines(), 1):
        for call in BY_NAME_CXX.findall(line):
            yield f"src/{source}:{number}: '{call}' goes by name; use sys/file/mode.hpp"
        for call in CALL.findall(line):
            handle = HANDLES.get(source)
            if call in BY_NAME and not (handle and handle.search(line)):
                yield f"src/{source}:{number}: '::{call}' goes by name; use sys/file/mode.hpp"
            elif call in SYSTEM_CALLS and not source.startswith("sys/") and call not in allowed:
                yield f"src/{source}:{number}: '::{call}' outside src/sys"
    for match in OPEN_IN_ROOT.finditer(text):
        if not source.startswith("sys/") and OPENS_ANYTHING.search(match[0]):
            number = text.count("\n", 0, match.start()) + 1
            yield f"src/{source}:{number}: opens whatever it is in a root; use sys/file/regular.hpp"
    for match in LATE_ERRNO.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        yield f"src/{source}:{number}: errno beside the text of its error; use errno_now()"


def check_main(source, text):
    """With a standard stream closed, the next file that is opened would get its number."""
    links_sys = "sys" in PROGRAMS.get(pathlib.PurePosixPath(source).stem, "").split()
    body = re.search(r"^int main\(.*\{\n(.*)$", text, re.MULTILINE)
    if links_sys and body and "has_standard_streams(" not in body[1]:
        yield f"src/{source}: main() does not begin with sys::has_standard_streams()"


def check():
    """One line for each violation of the tables."""
    faults = []
    for source, path in sources():
        folder = folder_of(source)
        if folder is None:
            faults.append(f"src/{source}: not in a folder of tools/layers.py")
            continue
        allowed = allowed_in(source, folder)
        text = path.read_text(encoding="utf-8")
        faults.extend(check_calls(source, text))
        if folder == "bin":
            faults.extend(check_main(source, text))
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            if match and not may_include(allowed, match.group(1)):
                faults.append(f'src/{source}:{number}: {folder} may not include "{match.group(1)}"')
    faults.extend(check_circles())
    return faults


def pairs():
    """{pair: the pairs that it includes}: "engine/run" is engine/run/run.hpp and engine/run/run.cpp."""
    found = {}
    for source, path in sources():
        pair = source.rpartition(".")[0]
        included = (match.rpartition(".")[0] for match in INCLUDE_ANYWHERE.findall(path.read_text(encoding="utf-8")))
        found.setdefault(pair, set()).update(name for name in included if name != pair)
    return found


def circles(graph):
    """The sets of nodes in a cycle, the largest first (Tarjan 1972)."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == order[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return sorted((one for one in found if len(one) > 1), key=len, reverse=True)


def check_circles():
    graph = pairs()
    for circle in circles(graph):
        members = set(circle)
        ways = "; ".join(f"{pair} includes {' and '.join(sorted(graph[pair] & members))}" for pair in circle)
        yield f"src: a circle of {len(circle)} pairs: {ways}"


def count_lines(program):
    """{folder: lines} of everything that a program links, its main() under 'bin'."""
    counted = {}
    linked = with_rooms(PROGRAMS[program].split())
    for source, path in sources():
        folder = folder_of(source)
        mine = folder in linked or source == f"bin/{program}.cpp"
        if mine:
            name = next((whole for whole in IN_ROOMS if folder.startswith(f"{whole}/")), folder)
            counted[name] = counted.get(name, 0) + len(path.read_text().splitlines())
    return counted


def main():
    faults = check()
    print("\n".join(faults) if faults else "layers: every include and system call is allowed, and no include leads back")
    counted = count_lines(PRIVILEGED)
    parts = " + ".join(f"{folder} {lines}" for folder, lines in counted.items())
    print(f"{PRIVILEGED} links {sum(counted.values())} lines of ours: {parts}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
