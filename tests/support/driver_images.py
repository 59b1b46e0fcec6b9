# SPDX-License-Identifier: Apache-2.0
"""Roots of images beside a kept driver (real_drivers.py): the same Debian and the same other packages, without the
driver, with another one, or with the driver itself. They are hard links to the kept files: nothing may write to them.

    driver_images.make("plain", real_drivers.get("550"), path)
"""

import os
import pathlib
import re
import shutil
import stat
import subprocess

from support import loader_images

TRIPLET = "x86_64-linux-gnu"
# No program here reads these.
_UNUSED = ("usr/lib/i386-linux-gnu", "usr/lib/firmware", "usr/share/doc", "usr/share/man", "usr/share/locale",
           "usr/share/info", "usr/share/bug", "usr/share/lintian", "var/lib/dpkg", "var/lib/apt", "var/cache")
# What a Debian before the merger of /usr had outside of it.
_SPLIT = {"lib": r"x86_64-linux-gnu/(ld-|lib(c|dl|m|pthread|rt|tinfo|selinux|pcre2?-8|pcre)[.-])", "lib64": r"ld-",
          "bin": r"(sh|dash|bash|cat|ls|sed|grep|sort|mkdir|rm|uname)$", "sbin": r"ldconfig$"}


def _copy(driver, path):
    subprocess.run(["cp", "-al", driver.root, path], check=True)
    for name in _UNUSED:
        shutil.rmtree(path / name, ignore_errors=True)
    for folder, _, names in os.walk(path):
        os.chmod(folder, 0o1777 if folder == str(path / "tmp") else 0o755)
        for name in names:
            info = os.lstat(os.path.join(folder, name))
            # Ordinary users import it: no secret files, no device nodes.
            if not stat.S_ISLNK(info.st_mode) and not (stat.S_ISREG(info.st_mode) and info.st_mode & stat.S_IROTH):
                os.unlink(os.path.join(folder, name))


def _dangling(root):
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            link = pathlib.Path(folder, name)
            if link.is_symlink():
                target = os.readlink(link)
                found = root / target.lstrip("/") if target.startswith("/") else link.parent / target
                if not target.startswith("/proc/") and not os.path.lexists(found):
                    yield link


def _remove_driver(driver, root):
    """Its files, and the links to them. Debian's libOpenCL is of the same source, but it is the loader of all
    vendors' libraries, which images have."""
    for file in driver.files:
        # "lib" may be among them: the link of a merged /usr, which some packages have as a directory.
        if "/" in file and "/libOpenCL.so" not in file and os.path.lexists(root / file):
            os.unlink(root / file)
    while links := list(_dangling(root)):
        for link in links:
            link.unlink()


def _ldconfig(root):
    subprocess.run(["ldconfig", "-r", root], check=True, capture_output=True)


def _plain(driver, path):
    _copy(driver, path)
    _remove_driver(driver, path)


def _split(driver, path):
    """With /bin, /lib, /lib64 and /sbin of their own."""
    _plain(driver, path)
    for name, pattern in _SPLIT.items():
        if not (path / name).is_symlink():
            continue
        (path / name).unlink()
        for folder, _, names in os.walk(path / "usr" / name):
            below = pathlib.Path(folder).relative_to(path / "usr" / name)
            for one in names:
                if re.match(pattern, str(below / one)):
                    (path / name / below).mkdir(parents=True, exist_ok=True)
                    os.rename(pathlib.Path(folder, one), path / name / below / one)
    loader = path / "lib64/ld-linux-x86-64.so.2"
    if loader.is_symlink():
        loader.unlink()
        loader.symlink_to(f"/lib/{TRIPLET}/{next((path / 'lib' / TRIPLET).glob('ld-*')).name}")


def _with_other(driver, path, other):
    """With libraries and programs of another driver at their usual places, as careless builders leave them."""
    _plain(driver, path)
    for file in other.files:
        source, name = other.root / file, os.path.basename(file)
        place = None
        if file in other.libraries and TRIPLET in file:
            place = path / "usr/lib" / TRIPLET / name
        elif re.match(r"usr/(s?bin|lib/nvidia/[^/]*)/nvidia-(smi|debugdump|persistenced|cuda-mps|xconfig)", file):
            place = path / "usr/bin" / name
        if place and not source.is_symlink() and not os.path.lexists(place) and not name.endswith(".gz"):
            os.link(source, place)
    _ldconfig(path)  # makes the links by SONAME
    for name in ("libcuda.so", "libnvidia-ml.so", "libnvcuvid.so", "libnvidia-encode.so"):
        target = path / "usr/lib" / TRIPLET / f"{name}.1"
        if target.exists() and not os.path.lexists(target.with_suffix("")):
            target.with_suffix("").symlink_to(target.name)


def _musl(_, path):
    """busybox and musl's loader, as in Alpine."""
    for name in ("bin", "lib", "etc", "usr/lib", "proc", "dev", "sys", "tmp"):
        (path / name).mkdir(parents=True)
    shutil.copy2("/bin/busybox", path / "bin/busybox")
    for name in ("sh", "cat", "sed", "sort", "timeout", "ls", "env"):
        (path / "bin" / name).symlink_to("busybox")
    shutil.copy2(os.path.realpath(loader_images.MUSL_LOADER), path / loader_images.MUSL_LOADER.lstrip("/"))
    (path / "etc/alpine-release").write_text("3.20.0\n")
    (path / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")


KINDS = {"plain": _plain, "split": _split, "driver": _copy, "musl": _musl}


def make(kind, driver, path, other=None):
    """A root at `path`, which must not exist. "stale" has the files of the driver `other`."""
    if kind == "stale":
        _with_other(driver, path, other)
        return path
    KINDS[kind](driver, path)
    if kind != "musl":
        _ldconfig(path)
    return path
