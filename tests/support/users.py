# SPDX-License-Identifier: Apache-2.0
"""The three kinds of users who run Berth: root, an ordinary user with subordinate ids, and one without. The
users are made for a test session and removed at its end."""

import contextlib
import dataclasses
import os
import pathlib
import pwd
import shutil
import subprocess

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = "none"  # a helper for each container would take most of the suite's time
KINDS = ("root", "user", "single_id")  # and "erofs": root with EROFS images as layers
NAMES = {"user": "berthtest1", "single_id": "berthtest2"}


@dataclasses.dataclass(frozen=True)
class Account:
    kind: str
    name: str
    uid: int
    gid: int
    home: pathlib.Path
    runtime_dir: pathlib.Path | None
    subordinate_ids: tuple[int, int] | None = None  # first id, count
    groups: tuple[int, ...] = ()  # supplementary
    variables: tuple[tuple[str, str], ...] = ()  # of the environment

    def environment(self, **more):
        """A login's environment; containers have no network unless a test requests one."""
        env = {"PATH": PATH, "HOME": str(self.home), "USER": self.name, "LOGNAME": self.name,
               "LANG": "C.UTF-8", "TERM": "xterm", "BERTH_NETWORK": NETWORK}
        if self.runtime_dir:
            env["XDG_RUNTIME_DIR"] = str(self.runtime_dir)
        env.update(self.variables)
        return {**env, **{key: str(value) for key, value in more.items()}}

    def command(self, argv):
        """`argv` as a command that runs as this user."""
        argv = [str(arg) for arg in argv]
        groups = f"--groups={','.join(map(str, self.groups))}" if self.groups else "--clear-groups"
        if self.kind == "root":
            return ["setpriv", groups, "--", *argv] if self.groups else argv
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", groups, "--inh-caps=-all",
                "--", *argv]

    def run(self, argv, **options):
        return subprocess.run(self.command(argv), env=self.environment(), text=True,
                              capture_output=True, **options)

    def own(self, path):
        """Makes a directory that belongs to this user."""
        path = pathlib.Path(path)
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chown(path, self.uid, self.gid)
        return path


def _subordinate_ranges(name, file="/etc/subuid"):
    with contextlib.suppress(FileNotFoundError), open(file, encoding="utf-8") as lines:
        return [tuple(map(int, line.split(":")[1:])) for line in lines
                if line.startswith(f"{name}:")]
    return []


def _uid_of(kind):
    """Another one than other sessions' (support/room.py): the kernel counts a user's resources by uid."""
    session = os.stat("/proc/self/ns/pid").st_ino
    return 10000 + session % 10000 * len(KINDS) + KINDS.index(kind)


def _create_user(kind, home):
    name, with_subordinate_ids = NAMES[kind], kind == "user"
    subprocess.run(["useradd", "--uid", str(_uid_of(kind)), "--create-home", "--home-dir", home,
                    "--shell", "/bin/bash", name], check=True, capture_output=True)
    for file, add, remove in (("/etc/subuid", "--add-subuids", "--del-subuids"),
                              ("/etc/subgid", "--add-subgids", "--del-subgids")):
        ranges = _subordinate_ranges(name, file)
        for first, count in () if with_subordinate_ids else ranges:
            subprocess.run(["usermod", remove, f"{first}-{first + count - 1}", name], check=True)
        if with_subordinate_ids and not ranges:
            subprocess.run(["usermod", add, "700000-765535", name], check=True)


def _remove_user(name):
    with contextlib.suppress(KeyError):
        pwd.getpwnam(name)
        subprocess.run(["userdel", "--force", name], check=False, capture_output=True)
    for file in ("/etc/subuid", "/etc/subgid"):
        if _subordinate_ranges(name, file):
            raise RuntimeError(f"userdel left a line of '{name}' in {file}")


def _account(kind, base):
    if kind == "root":
        home = base / "root"
        home.mkdir(mode=0o700)
        return Account(kind, "root", 0, 0, home, None)
    if kind == "erofs":
        home = base / "erofs"
        home.mkdir(mode=0o700)
        return Account("root", "root", 0, 0, home, None,
                       variables=(("BERTH_LAYER_FORMAT", "erofs"),))
    name = NAMES[kind]
    home = base / name
    _remove_user(name)  # from a killed session
    _create_user(kind, home)
    entry = pwd.getpwnam(name)
    runtime_dir = base / f"{name}-run"
    runtime_dir.mkdir(mode=0o700)
    os.chown(runtime_dir, entry.pw_uid, entry.pw_gid)
    ranges = _subordinate_ranges(name)
    return Account(kind, name, entry.pw_uid, entry.pw_gid, home, runtime_dir,
                   ranges[0] if ranges else None)


@contextlib.contextmanager
def accounts(base, kinds=(*KINDS, "erofs")):
    """{kind: Account}; homes lie below `base`, which the caller removes."""
    made = {}
    try:
        for kind in kinds:
            made[kind] = _account(kind, pathlib.Path(base))
        yield made
    finally:
        for account in made.values():
            if account.kind != "root":
                _remove_user(account.name)
                shutil.rmtree(account.home, ignore_errors=True)
