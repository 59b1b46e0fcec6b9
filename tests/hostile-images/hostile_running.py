# SPDX-License-Identifier: Apache-2.0
"""Images that are unpacked like any other, and attack when a container of them starts."""

from hostile_item import CANARY, UP, entries, item, layout
from support.images import directory, file, symlink, whiteout

PAST = UP + CANARY[1:]
TRUE = ("true",)


def over(*members, config=None):
    """Over busybox, without what the members replace."""
    replaced = [whiteout(m[0].name) for m in members if m[0].issym()]
    return lambda: layout(entries(*replaced, *members), base=True, config=config)


def contained(name, attack, make, run=TRUE, **more):
    item(name, attack, make, expect="contained", run=run, **more)


LOOK = ("sh", "-c", f"ls {CANARY} 2>&1; true")
NOTHING = f"ls: {CANARY}: No such file or directory"

contained("run-proc-is-a-link", "/proc is a link to the host (CVE-2023-27561)",
          over(symlink("proc", CANARY)), run_says="'/proc' is a symbolic link in the image")
contained("run-sys-is-a-link", "/sys is a link to the host", over(symlink("sys", CANARY)),
          run_says="'/sys' is a symbolic link in the image")
contained("run-dev-is-a-link", "/dev is a link to the host (CVE-2026-41579)",
          over(symlink("dev", CANARY)), run_says="'/dev' is a symbolic link in the image")
contained("run-dev-shm-is-a-link", "/dev/shm is a link to the host", over(symlink("dev/shm", CANARY)),
          run=LOOK, prints=NOTHING)
contained("run-etc-is-a-link", "/etc is a link to the host, where resolv.conf would be written",
          over(symlink("etc", PAST)))
contained("run-resolv-conf-is-a-link", "/etc/resolv.conf, hosts and hostname are links to files of the host",
          over(symlink("etc/resolv.conf", f"{PAST}/precious"),
               symlink("etc/hosts", f"{CANARY}/precious"),
               symlink("etc/hostname", f"{PAST}/made")))
contained("run-workdir-through-a-link", "WORKDIR goes through a link to the host (CVE-2026-55686)",
          over(symlink("work", PAST), config={"WorkingDir": "/work/made"}))
contained("run-workdir-is-a-descriptor", "WORKDIR /proc/self/fd/7 (CVE-2024-21626)",
          over(file("x"), config={"WorkingDir": "/proc/self/fd/7"}),
          run=("sh", "-c", "cat ../../../../../../../.." + CANARY + "/precious"),
          run_says="cannot enter working directory '/proc/self/fd/7': open '/proc/self/fd/7': nothing can be "
                   "created there")
contained("run-volume-through-a-link", "VOLUME is a link to the host (CVE-2022-23648)",
          over(symlink("data", PAST), config={"Volumes": {"/data": {}}}),
          run=("sh", "-c", "touch /data/made; true"))
contained("run-volume-on-root", "VOLUME /", over(file("x"), config={"Volumes": {"/": {}}}))
contained("run-passwd-is-a-link", "/etc/passwd is a link to a file of the host in which the user has uid 0",
          over(symlink("etc/passwd", f"{PAST}/passwd"), config={"User": "hostuser"}), run=("id",),
          
          run_says="user 'hostuser' is not in the container's /etc/passwd; try: a numeric id")
contained("run-user-is-a-number-with-a-name",
          "USER 1000, and /etc/passwd has a user with the name 1000 and uid 0 (CVE-2026-46680)",
          over(file("etc/passwd", "1000:x:0:0::/:/bin/sh\n"), config={"User": "1000"}),
          run=("id", "-u"), prints="1000")
contained("run-user-of-33-bits", "USER 4294967296 (CVE-2024-40635)",
          over(file("x"), config={"User": "4294967296"}), run=("id", "-u"),
          run_says="user '4294967296': ids end at 2147483647")
contained("run-user-negative", "USER -1", over(file("x"), config={"User": "-1"}), run=("id", "-u"),
          
          run_says="user '-1' is not in the container's /etc/passwd; try: a numeric id")
contained("run-passwd-of-a-million-lines", "an /etc/passwd of 60 MB (CVE-2026-47262)",
          over(file("etc/passwd", "x:x:5:5:::\n" * 6_000_000), config={"User": "sailor"}),
          run=("id",), run_says="read '/etc/passwd': larger than 4194304 bytes")
contained("run-preloads", "LD_PRELOAD of a library of the image, for programs of the host (CVE-2025-23266)",
          over(file("evil.so", "\x7fELF"), config={"Env": [
              "PATH=/bin", "LD_PRELOAD=/proc/self/cwd/evil.so", "LD_AUDIT=/evil.so"]}),
          run=("sh", "-c", "echo $LD_PRELOAD"), prints="/proc/self/cwd/evil.so")
contained("run-entrypoint-is-the-runtime", "the entry point is /proc/self/exe (CVE-2019-5736)",
          over(file("x"), config={"Entrypoint": ["/proc/self/exe"]}), run=("--help",))
contained("run-console-is-a-link", "/dev/console and /dev/pts are links to the host (CVE-2025-52565)",
          over(symlink("dev/console", f"{CANARY}/precious"), symlink("dev/pts", CANARY)),
          run=LOOK, prints=NOTHING)
contained("run-null-is-a-link", "/dev/null, with which paths are masked, is a link to the host (CVE-2025-31133)",
          over(symlink("dev/null", f"{CANARY}/precious")),
          run=("sh", "-c", "echo x > /dev/null; stat -c %F /dev/null; cat /proc/kcore"
                           " 2>/dev/null; true"), prints="character special file\n")
contained("run-env-with-newline", "environment variables with a newline, without '=', and without a name",
          over(file("x"), config={"Env": ["PATH=/bin", "A=1\nB=2", "alone", "=x"]}))
contained("run-init-directory-of-cgroups", "/sys/fs/cgroup is a link to the host",
          over(directory("sys/fs"), symlink("sys/fs/cgroup", CANARY)), run=LOOK, prints=NOTHING)
