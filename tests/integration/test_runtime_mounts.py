# SPDX-License-Identifier: Apache-2.0
"""Every mount option of runtime-spec config.md "Linux mount options", read back from the mount
table that the container sees, as root and as root of a user namespace."""

import copy
import itertools
import json
import os
import shutil
import stat
import subprocess

import pytest

from support.oci_fixtures import (bundle, kind, own_user_namespace, place,  # noqa: F401
                                  runtime)

RUN = "cannot run container 'c1': "
MAPS = [{"containerID": 0, "hostID": 100000, "size": 65536}]


def parse(text):
    """{mount point: (flags, optional fields, type, flags of the super block)} of the last one."""
    table = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        words = left.split()
        table[words[4]] = (set(words[5].split(",")), words[6:], right.split()[0],
                           set(right.split()[2].split(",")))
    return table


def mounts_in(runtime, bundle, **options):
    return parse(runtime.out(bundle.args("/bin/cat", "/proc/self/mountinfo"), **options))


def flags(runtime, bundle, point="/data"):
    return mounts_in(runtime, bundle)[point][0]


@pytest.fixture
def data(place):
    """A directory with one file."""
    (place / "data").mkdir()
    (place / "data/file").write_text("content\n")
    return place / "data"


@pytest.fixture
def host_mount(place, kind):
    """host_mount(options…) → a tmpfs on the host, with a second one at 'below'; for root."""
    made = []

    def mount(*options):
        path = place / f"host{len(made)}"
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", *options, "none", path], check=True)
        made.append(path)
        (path / "below").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", *options, "none", path / "below"], check=True)
        (path / "file").write_text("content\n")
        (path / "below/file").write_text("content\n")
        return path
    yield mount
    for path in made:
        subprocess.run(["umount", "-R", path], check=True)


# ---- flags ---------------------------------------------------------------------------------------

# option, mount flags that are there, mount flags that are not; of a plain mount "rw,relatime"
FLAGS = [
    ("ro", {"ro"}, {"rw"}), ("rw", {"rw"}, {"ro"}),
    ("nosuid", {"nosuid"}, set()), ("suid", set(), {"nosuid"}),
    ("nodev", {"nodev"}, set()), ("dev", set(), {"nodev"}),
    ("noexec", {"noexec"}, set()), ("exec", set(), {"noexec"}),
    ("nodiratime", {"nodiratime"}, set()), ("diratime", set(), {"nodiratime"}),
    ("noatime", {"noatime"}, {"relatime"}), ("atime", set(), {"noatime"}),
    ("relatime", {"relatime"}, {"noatime"}), ("norelatime", set(), {"noatime"}),
    ("strictatime", set(), {"relatime", "noatime"}), ("nostrictatime", set(), {"noatime"}),
    ("nosymfollow", {"nosymfollow"}, set()), ("symfollow", set(), {"nosymfollow"}),
]
NO_EFFECT = ["", "defaults", "async", "loud", "silent", "iversion", "noiversion", "nolazytime", "nomand"]
OF_FILE_SYSTEM = [("sync", "sync"), ("dirsync", "dirsync"), ("lazytime", "lazytime"),
                  ("mand", "mand")]
# A user namespace may not change the access times of what it got from outside.
TIMES = {"noatime", "nodiratime", "strictatime"}


@pytest.mark.parametrize("option, there, absent", FLAGS, ids=lambda value: str(value))
def test_a_flag_holds_for_a_new_file_system(runtime, bundle, option, there, absent):
    bundle.mount("/data", "tmpfs", option, kind="tmpfs")
    got = flags(runtime, bundle)
    assert there <= got and not absent & got, got


@pytest.mark.parametrize("option, there, absent", FLAGS, ids=lambda value: str(value))
def test_a_flag_holds_for_a_bind(runtime, bundle, data, kind, option, there, absent):
    if kind != "root" and option in TIMES:
        bundle.mount("/data", data, "bind", option)
        assert runtime.error(bundle).endswith("Operation not permitted")
        return
    bundle.mount("/data", data, "bind", option)
    got = flags(runtime, bundle)
    assert there <= got and not absent & got, got


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("option, there, absent", FLAGS, ids=lambda value: str(value))
def test_a_recursive_flag_holds_for_all_that_lies_below(runtime, bundle, host_mount, option, there,
                                                        absent):
    source = host_mount()
    if absent - {"rw", "relatime"}:
        for path in (source, source / "below"):
            subprocess.run(["mount", "-o", "remount,bind," + ",".join(absent - {"relatime"}), path],
                           check=True)
    bundle.mount("/data", source, "rbind", "r" + option)
    table = mounts_in(runtime, bundle)
    for point in ("/data", "/data/below"):
        got = table[point][0]
        assert there <= got and not absent & got, (point, got)


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("option, there, absent", FLAGS, ids=lambda value: str(value))
def test_a_flag_that_is_not_recursive_leaves_what_lies_below(runtime, bundle, host_mount, option,
                                                             there, absent):
    source = host_mount()
    bundle.mount("/data", source, "rbind", option)
    table = mounts_in(runtime, bundle)
    assert there <= table["/data"][0]
    assert table["/data/below"][0] == {"rw", "relatime"}


@pytest.mark.parametrize("option", NO_EFFECT)
def test_a_word_without_effect_is_taken(runtime, bundle, option):
    bundle.mount("/data", "tmpfs", option, kind="tmpfs")
    assert flags(runtime, bundle) == {"rw", "relatime"}


@pytest.mark.parametrize("option, word", OF_FILE_SYSTEM)
def test_a_flag_of_the_file_system_reaches_it(runtime, bundle, option, word):
    bundle.mount("/data", "tmpfs", option, kind="tmpfs")
    assert word in mounts_in(runtime, bundle)["/data"][3]


@pytest.mark.parametrize("option", [option for option, _ in OF_FILE_SYSTEM])
def test_a_flag_of_the_file_system_is_left_out_for_a_bind(runtime, bundle, data, option):
    bundle.mount("/data", data, "bind", option)
    assert "rw" in flags(runtime, bundle)


def test_the_file_systems_own_options_reach_it_verbatim(runtime, bundle):
    bundle.mount("/data", "none", "size=64k", "nr_inodes=17", "mode=0711", kind="tmpfs")
    words = mounts_in(runtime, bundle)["/data"][3]
    assert {"size=64k", "nr_inodes=17", "mode=711"} <= words


def test_of_two_opposites_the_later_holds(runtime, bundle):
    bundle.mount("/data", "tmpfs", "ro", "noexec", "rw", "exec", kind="tmpfs")
    assert flags(runtime, bundle) == {"rw", "relatime"}


# ---- binds ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind_of_mount", ["bind", "none", ""])
def test_a_bind_is_named_by_its_option(runtime, bundle, data, kind_of_mount):
    bundle.mount("/data", data, "rbind", "ro", kind=kind_of_mount)
    assert runtime.out(bundle.args("/bin/cat", "/data/file")) == "content\n"


def test_a_bind_is_of_one_mount_and_an_rbind_of_all(runtime, bundle, host_mount, kind):
    source = host_mount()
    bundle.mount("/one", source, "bind").mount("/all", source, "rbind")
    table = mounts_in(runtime, bundle)
    assert "/all/below" in table
    assert ("/one/below" in table) == (kind != "root")  # which may not show what lies below


def test_source_and_destination_may_be_relative(runtime, bundle):
    (bundle.directory / "own").write_text("of the bundle\n")
    bundle.mount("srv/own", "own", "bind")
    assert runtime.out(bundle.args("/bin/cat", "/srv/own")) == "of the bundle\n"


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
@pytest.mark.parametrize("option", ["suid", "dev", "exec", "rsuid"])
def test_a_locked_restriction_stays(runtime, bundle, host_mount, option):
    source = host_mount("-o", "nosuid,nodev,noexec")
    bundle.mount("/data", source, "rbind", option, "ro")
    assert {"nosuid", "nodev", "noexec", "ro"} <= flags(runtime, bundle)


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_a_locked_read_only_is_not_taken_for_writable(runtime, bundle, host_mount):
    source = host_mount()
    subprocess.run(["mount", "-o", "remount,bind,ro", source], check=True)
    bundle.mount("/data", source, "rbind", "rw")
    assert runtime.error(bundle) == (f"{RUN}cannot mount '{source}' at '/data': set mount "
                                     "attributes of '/data': Operation not permitted")


# ---- remount -------------------------------------------------------------------------------------

def test_remount_with_bind_changes_what_is_mounted(runtime, bundle, data):
    bundle.mount("/data", data, "bind", "nosuid")
    bundle.mount("/data", "", "remount", "bind", "ro", "noexec", kind="")
    assert flags(runtime, bundle) == {"ro", "nosuid", "noexec", "relatime"}


def test_remount_changes_the_file_system(runtime, bundle):
    bundle.mount("/data", "tmpfs", "size=64k", "nodev", kind="tmpfs")
    bundle.mount("/data", "tmpfs", "remount", "size=128k", "ro", kind="tmpfs")
    got = mounts_in(runtime, bundle)["/data"]
    assert got[0] >= {"ro", "nodev"} and got[3] >= {"ro", "size=128k"}


def test_remount_of_what_is_no_mount_is_one_line(runtime, bundle):
    bundle.mount("/etc", "", "remount", "bind", "ro", kind="")
    assert runtime.error(bundle) == (f"{RUN}cannot change the mount at '/etc': nothing is mounted "
                                     "there, or the options do not fit")
    bundle.config["mounts"][-1]["destination"] = "/none"
    assert runtime.error(bundle) == (f"{RUN}cannot change the mount at '/none': open '/none': No "
                                     "such file or directory")


# ---- propagation ---------------------------------------------------------------------------------

@pytest.mark.parametrize("option, there, absent", [
    ("shared", "shared:", "unbindable"), ("rshared", "shared:", "unbindable"),
    ("slave", "master:", "shared:"), ("rslave", "master:", "shared:"),
    ("private", "", "shared:"), ("rprivate", "", "master:"),
    ("unbindable", "unbindable", "shared:"), ("runbindable", "unbindable", "master:"),
])
@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_bind_has_the_propagation_that_was_asked_for(runtime, bundle, host_mount, option, there,
                                                       absent):
    source = host_mount()
    subprocess.run(["mount", "--make-rshared", source], check=True)
    bundle.mount("/data", source, "rbind", option)
    table = mounts_in(runtime, bundle)
    for point in ("/data", *(("/data/below",) if option.startswith("r") else ())):
        fields = " ".join(table[point][1])
        assert there in fields and absent not in fields, (point, fields)


@pytest.mark.parametrize("value, there, absent", [
    ("shared", "shared:", "unbindable"), ("slave", "master:", "shared:"),
    ("private", "", "master:"), ("unbindable", "unbindable", "master:"),
    ("rshared", "shared:", "unbindable"), ("rprivate", "", "master:"), ("", "", "shared:"),
])
@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_the_root_has_the_propagation_that_was_asked_for(runtime, bundle, host_mount, value, there,
                                                         absent):
    source = host_mount()
    subprocess.run(["mount", "--make-rshared", source], check=True)
    shutil.copytree(bundle.rootfs, source / "rootfs", symlinks=True)
    bundle.config["root"]["path"] = str(source / "rootfs")
    bundle.linux["rootfsPropagation"] = value
    fields = " ".join(mounts_in(runtime, bundle)["/"][1])
    assert there in fields and absent not in fields, fields


@pytest.mark.parametrize("value, seen", [("rshared", True), ("rslave", False)])
@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_mount_in_a_shared_bind_appears_on_the_host(runtime, bundle, host_mount, value, seen):
    source = host_mount()
    subprocess.run(["mount", "--make-rshared", source], check=True)
    bundle.linux["rootfsPropagation"] = value
    for names in bundle.process["capabilities"].values():
        names.append("CAP_SYS_ADMIN")
    bundle.mount("/data", source, "rbind", "rshared")
    runtime.out(bundle.shell("mkdir -p /data/inner; mount -t tmpfs none /data/inner; "
                             "echo > /data/inner/made"))
    assert (source / "inner/made").exists() == seen


# ---- id maps -------------------------------------------------------------------------------------

def mapped(bundle, option, maps, **mount):
    bundle.config["mounts"].append({"destination": "/data", "options": option, **mount})
    if maps:
        bundle.config["mounts"][-1] |= {"uidMappings": maps, "gidMappings": maps}
    return bundle


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("option", [["bind", "idmap"], ["rbind", "ridmap"], ["bind"]], ids=str)
def test_ids_of_a_bind_are_mapped_by_its_own_maps(runtime, bundle, data, option):
    os.chown(data / "file", 5, 6)
    mapped(bundle, option, [{"containerID": 0, "hostID": 1000, "size": 100}], type="bind",
           source=str(data))
    out = runtime.out(bundle.shell("stat -c %u:%g /data/file"))
    assert out == "1005:1006\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_ids_of_a_bind_are_mapped_as_those_of_the_container(runtime, bundle, data):
    own_user_namespace(bundle)
    os.chown(data / "file", 5, 6)
    mapped(bundle, ["bind", "idmap"], None, type="bind", source=str(data))
    out = runtime.out(bundle.shell("stat -c %u:%g /data/file; touch /data/new"))
    assert out == "5:6\n"
    assert (data / "new").stat().st_uid == 0


def skip_without_maps_of_tmpfs():
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 3):
        pytest.skip("no id maps of tmpfs before Linux 6.3")


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("option, below", [("idmap", "0"), ("ridmap", "1000")])
def test_only_ridmap_maps_what_lies_below(runtime, bundle, host_mount, option, below):
    skip_without_maps_of_tmpfs()
    mapped(bundle, ["rbind", option], [{"containerID": 0, "hostID": 1000, "size": 1}], type="bind",
           source=str(host_mount()))
    out = runtime.out(bundle.shell("stat -c %u /data/file /data/below/file"))
    assert out.split() == ["1000", below]


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_ids_of_a_new_file_system_are_mapped(runtime, bundle):
    skip_without_maps_of_tmpfs()
    mapped(bundle, ["idmap", "mode=755"], [{"containerID": 0, "hostID": 1000, "size": 1}],
           type="tmpfs", source="tmpfs")
    assert runtime.out(bundle.shell("stat -c %u:%g /data")) == "1000:1000\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_an_id_map_that_the_kernel_refuses_names_the_option(runtime, bundle):
    mapped(bundle, ["idmap"], MAPS, type="ramfs", source="none")
    assert runtime.error(bundle) == (
        f"{RUN}cannot mount 'ramfs' at '/data': config.json: mounts[7].options: idmap: the file "
        "system of 'ramfs' has no id mapping")
    bundle.config["mounts"].pop()
    mapped(bundle, ["rbind", "idmap"], MAPS, type="bind", source="/proc")
    assert runtime.error(bundle) == (
        f"{RUN}cannot mount '/proc' at '/data': config.json: mounts[7].options: idmap: the file "
        "system of '/proc' has no id mapping")


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_an_id_map_without_the_right_names_the_option(runtime, bundle, data):
    mapped(bundle, ["bind", "idmap"], [{"containerID": 0, "hostID": 0, "size": 1}], type="bind",
           source=str(data))
    assert runtime.error(bundle) == (
        f"{RUN}cannot mount '{data}' at '/data': config.json: mounts[7].options: idmap: no right "
        f"to map the ids of '{data}', or they are mapped already")


def test_an_id_map_without_maps_names_the_option(runtime, bundle, data):
    mapped(bundle, ["bind", "idmap"], None, type="bind", source=str(data))
    assert runtime.error(bundle) == (
        f"{RUN}config.json: mounts[7].options: idmap needs uidMappings and gidMappings, of the "
        "mount or of linux")


# ---- tmpcopyup -----------------------------------------------------------------------------------

@pytest.fixture
def filled(bundle):
    """The image has a directory with one of each."""
    top = bundle.rootfs / "opt"
    (top / "deep").mkdir(parents=True)
    (top / "deep/file").write_text("content\n")
    (top / "deep/file").chmod(0o4640)
    (top / "link").symlink_to("/etc/passwd")
    (top / "loop").symlink_to(".")
    os.mkfifo(top / "pipe")
    (top / "deep").chmod(0o2711)
    top.chmod(0o751)
    return bundle


def test_tmpcopyup_begins_with_what_the_image_has(runtime, filled):
    filled.mount("/opt", "tmpfs", "tmpcopyup", "nosuid", kind="tmpfs")
    out = runtime.out(filled.shell("stat -c '%a %F %n' /opt /opt/deep /opt/deep/file /opt/pipe; "
                                   "readlink /opt/link; readlink /opt/loop; cat /opt/deep/file; "
                                   "echo new > /opt/deep/file; echo > /opt/more"))
    assert out.splitlines() == [
        "751 directory /opt", "2711 directory /opt/deep", "4640 regular file /opt/deep/file",
        "644 fifo /opt/pipe", "/etc/passwd", ".", "content"]
    assert (filled.rootfs / "opt/deep/file").read_text() == "content\n"
    assert not (filled.rootfs / "opt/more").exists()


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_tmpcopyup_keeps_owners_and_attributes(runtime, filled):
    os.chown(filled.rootfs / "opt", 3, 4)
    os.chown(filled.rootfs / "opt/deep/file", 5, 6)
    os.chmod(filled.rootfs / "opt/deep/file", 0o4640)
    os.lchown(filled.rootfs / "opt/link", 7, 8)
    os.setxattr(filled.rootfs / "opt/deep", "trusted.test", b"value")
    filled.mount("/opt", "tmpfs", "tmpcopyup", kind="tmpfs")
    filled.mount("/busybox", "/bin/busybox", "bind", "ro")
    filled.args("/bin/sleep", "60").write()
    with open(filled.directory / "out", "wb") as out:
        assert runtime.call("create", "-b", str(filled.directory), "c1", capture_output=False,
                            stdout=out, stderr=out).returncode == 0
    try:
        top = f"/proc/{runtime.state()['pid']}/root/opt"
        owners = [(os.lstat(top + name).st_uid, os.lstat(top + name).st_gid)
                  for name in ("", "/deep/file", "/link")]
        assert owners == [(3, 4), (5, 6), (7, 8)]
        assert os.stat(top + "/deep/file").st_mode & 0o7777 == 0o4640
        assert os.getxattr(top + "/deep", "trusted.test") == b"value"
    finally:
        runtime.call("delete", "--force", "c1")


def test_tmpcopyup_can_be_read_only(runtime, filled):
    filled.mount("/opt", "tmpfs", "tmpcopyup", "ro", kind="tmpfs")
    done = runtime.run(filled.shell("cat /opt/deep/file; echo > /opt/deep/file"))
    assert (done.stdout, done.returncode) == ("content\n", 1)
    assert done.stderr.endswith("Read-only file system\n")


def test_tmpcopyup_stays_inside_the_root(runtime, bundle, place):
    (place / "outside").mkdir()
    (place / "outside/secret").write_text("secret\n")
    (bundle.rootfs / "opt").symlink_to(place / "outside")
    bundle.mount("/opt", "tmpfs", "tmpcopyup", kind="tmpfs")
    assert runtime.out(bundle.shell("ls /opt/")) == ""


def test_tmpcopyup_leaves_what_is_mounted_below(runtime, filled, data):
    filled.mount("/opt/deep", data, "bind")
    filled.mount("/opt", "tmpfs", "tmpcopyup", kind="tmpfs")
    assert "deep" not in runtime.out(filled.shell("ls /opt")).split()


def test_tmpcopyup_that_does_not_fit_is_one_line(runtime, bundle):
    (bundle.rootfs / "opt").mkdir()
    (bundle.rootfs / "opt/large").write_bytes(bytes(100000))
    bundle.mount("/opt", "tmpfs", "tmpcopyup", "size=16k", kind="tmpfs")
    assert runtime.error(bundle) == (f"{RUN}cannot mount 'tmpfs' at '/opt': copy '/opt/large': No "
                                     "space left on device")


def test_tmpcopyup_is_for_a_tmpfs_alone(runtime, bundle, data):
    bundle.mount("/data", data, "bind", "tmpcopyup")
    assert runtime.error(bundle) == \
        f"{RUN}config.json: mounts[7].options: tmpcopyup is for a tmpfs"


# ---- other file systems --------------------------------------------------------------------------

def test_an_overlay_can_be_mounted_anywhere(runtime, bundle, place, kind):
    # A list of layers that is longer than fsconfig(2) takes.
    layers = [place / ("layer-with-a-long-name-" + str(number) * 40) for number in range(6)]
    for number, layer in enumerate(layers):
        layer.mkdir()
        (layer / "which").write_text(f"{number}\n")
    for name in ("upper", "work"):
        (place / name).mkdir()
    own = ["userxattr"] if kind != "root" else []
    bundle.mount("/srv/data", "overlay", "lowerdir=" + ":".join(map(str, layers)),
                 f"upperdir={place}/upper", f"workdir={place}/work", *own, kind="overlay")
    assert runtime.out(bundle.shell("cat /srv/data/which; echo x > /srv/data/which")) == "0\n"
    assert (place / "upper/which").read_text() == "x\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_device_that_cannot_be_written_is_mounted_read_only(runtime, bundle, place, data):
    # By berth-runtime's rights: the container's own device rules allow nobody to open it.
    image = place / "image"
    subprocess.run(["mkfs.ext4", "-q", "-d", data, image, "4M"], check=True, capture_output=True)
    loop = subprocess.run(["losetup", "--find", "--show", "--read-only", image], check=True,
                          capture_output=True, text=True)
    try:
        bundle.mount("/data", loop.stdout.strip(), "ro", kind="ext4")
        done = runtime.run(bundle.shell("cat /data/file; echo > /data/file"))
    finally:
        subprocess.run(["losetup", "--detach", loop.stdout.strip()], check=True)
    assert done.stdout == "content\n" and done.stderr.endswith("Read-only file system\n"), done


@pytest.fixture(params=["/name", "/dev/null", "disk"])
def source(request, place):
    """What a config may have as the source of a file system that has none."""
    if request.param != "disk":
        return request.param
    os.mknod(place / "disk", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    return str(place / "disk")


def test_proc_and_sys_are_those_of_the_container_whatever_their_source(runtime, bundle, source):
    for mount in bundle.config["mounts"]:
        if mount["type"] in ("proc", "sysfs"):
            mount["source"] = source
    out = runtime.out(bundle.shell("echo /proc/[0-9]*; ls /sys/class/net"))
    assert out == "/proc/1\nlo\n"


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_tmpfs_belongs_to_the_containers_user_whatever_its_source(runtime, bundle):
    own_user_namespace(bundle)
    bundle.mount("/data", "/name", kind="tmpfs")
    assert runtime.out(bundle.shell("stat -c %u:%g /data")) == "0:0\n"


def test_a_cgroup2_mount_shows_the_unified_hierarchy_alone(runtime, bundle):
    bundle.config["mounts"][-1] |= {"type": "cgroup2", "source": "cgroup2"}
    table = mounts_in(runtime, bundle)
    assert table["/sys/fs/cgroup"][2] == "cgroup2" and "ro" in table["/sys/fs/cgroup"][0]
    assert not any(point.startswith("/sys/fs/cgroup/") for point in table)
    assert "cgroup.procs" in runtime.out(bundle.shell("ls /sys/fs/cgroup"))


def test_a_mount_without_a_type_is_one_line(runtime, bundle):
    bundle.mount("/data", "none", "ro", kind="")
    assert runtime.error(bundle) == \
        f"{RUN}config.json: mounts[7].type: empty, and no option 'bind'"


def test_a_tmpfs_looks_like_the_directory_that_it_hides(runtime, bundle):
    (bundle.rootfs / "run").mkdir()
    (bundle.rootfs / "run").chmod(0o750)
    bundle.mount("/run", "tmpfs", kind="tmpfs").mount("/new", "tmpfs", kind="tmpfs")
    bundle.mount("/tmp", "tmpfs", "mode=1700", kind="tmpfs")
    assert runtime.out(bundle.shell("stat -c '%a %n' /run /new /tmp")).splitlines() == \
        ["750 /run", "1777 /new", "1700 /tmp"]


# ---- what crun broke on its way to the same system calls -----------------------------------------

def test_the_modes_of_file_systems_are_not_those_of_their_mount_points(runtime, bundle):
    for name in ("proc", "sys", "dev/shm", "dev/mqueue"):
        (bundle.rootfs / name).mkdir(parents=True)
        (bundle.rootfs / name).chmod(0o700)
    out = runtime.out(bundle.shell("stat -c '%a %n' /proc /sys /dev/shm /dev/mqueue"))
    assert out.splitlines() == ["555 /proc", "555 /sys", "1777 /dev/shm", "1777 /dev/mqueue"]


@pytest.mark.parametrize("own_network", [True, False])
def test_a_read_only_sysfs_cannot_be_written(runtime, bundle, own_network):
    if not own_network:
        bundle.linux["namespaces"] = [space for space in bundle.linux["namespaces"]
                                      if space["type"] != "network"]
    assert "ro" in flags(runtime, bundle, "/sys")
    done = runtime.run(bundle.shell("echo 1 > /sys/kernel/profiling"))
    assert done.stderr.endswith("Read-only file system\n"), done


@pytest.mark.parametrize("kind", ["userns"], indirect=True)
def test_bound_devices_are_nosuid_and_noexec(runtime, bundle):
    table = mounts_in(runtime, bundle)
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        assert {"nosuid", "noexec"} <= table[f"/dev/{name}"][0]
        assert "nodev" not in table[f"/dev/{name}"][0]


@pytest.mark.parametrize("kind", ["root"], indirect=True)
def test_a_mount_that_the_host_makes_later_appears_in_a_slave(runtime, bundle, host_mount):
    source = host_mount()
    subprocess.run(["mount", "--make-rshared", source], check=True)
    (source / "late").mkdir()
    bundle.mount("/slave", source, "rbind", "rslave").mount("/own", source, "rbind", "rprivate")
    bundle.args("/bin/sleep", "60").write()
    with open(bundle.directory / "out", "wb") as out:
        assert runtime.call("create", "-b", str(bundle.directory), "c1", capture_output=False,
                            stdout=out, stderr=out).returncode == 0
    try:
        subprocess.run(["mount", "-t", "tmpfs", "none", source / "late"], check=True)
        with open(f"/proc/{runtime.state()['pid']}/mountinfo", encoding="utf-8") as lines:
            table = parse(lines.read())
        assert "/slave/late" in table and "/own/late" not in table
    finally:
        runtime.call("delete", "--force", "c1")


def test_a_read_only_root_with_a_terminal(runtime, bundle):
    for name in ("dev", "proc", "sys"):
        (bundle.rootfs / name).mkdir()
    bundle.config["root"]["readonly"] = True
    bundle.process["terminal"] = True
    done = runtime.run(bundle.shell("tty; test -c /dev/console && echo console; echo > /x"))
    lines = done.stdout.replace("\r", "").splitlines()
    assert lines[0].startswith("/dev/") and lines[1] == "console", done
    assert lines[2].endswith("Read-only file system"), done


def test_a_read_only_dev_has_its_devices_and_mounts(runtime, bundle):
    bundle.config["mounts"][1]["options"].append("ro")
    table = mounts_in(runtime, bundle)
    assert "ro" in table["/dev"][0] and "rw" in table["/dev/shm"][0]
    assert runtime.out(bundle.shell("test -c /dev/null && readlink /dev/fd")) == "/proc/self/fd\n"


# ---- the same bundle under runc ------------------------------------------------------------------

def of_runc(bundle, place):
    bundle.write()
    config = copy.deepcopy(bundle.config)
    config["ociVersion"] = "1.0.2"
    (bundle.directory / "config.json").write_text(json.dumps(config))
    done = subprocess.run(["runc", "--root", str(place / "runc"), "run", "-b",
                           str(bundle.directory), bundle.linux["cgroupsPath"].lstrip("/")],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    return parse(done.stdout)


# Of runc 1.1.5, which has the kernel look for them among the options of tmpfs.
UNKNOWN_TO_RUNC = {"nosymfollow", "symfollow", "defaults", "loud", "silent", "async"}
# With runc both flags are set, and the kernel prefers noatime; here the later word holds.
DIFFERENT = {("noatime", "relatime")}


@pytest.mark.parametrize("kind", ["root"], indirect=True)
@pytest.mark.parametrize("of_bind", [False, True], ids=["tmpfs", "bind"])
def test_mounts_have_the_flags_that_runc_gives_them(runtime, bundle, place, data, of_bind):
    if not shutil.which("runc"):
        pytest.skip("needs runc")
    words = [option for option, _, _ in FLAGS if option not in UNKNOWN_TO_RUNC]
    words += [word for word in NO_EFFECT if word not in UNKNOWN_TO_RUNC] + ["sync", "dirsync",
        "lazytime", "private", "slave", "shared", "unbindable", "rprivate", "rslave"]
    pairs = [(word,) for word in words] + list(itertools.combinations(
        ("ro", "nosuid", "noatime", "noexec", "relatime", "strictatime"), 2))
    for number, options in enumerate(pairs):
        if of_bind:
            bundle.mount(f"/m{number}", data, "bind", *options)
        else:
            bundle.mount(f"/m{number}", "tmpfs", *options, kind="tmpfs")
    ours = mounts_in(runtime, bundle)
    theirs = of_runc(bundle, place)
    different = {}
    for number, options in enumerate(pairs):
        mine, other = ours[f"/m{number}"], theirs[f"/m{number}"]
        fields = [[field.partition(":")[0] for field in entry[1]] for entry in (mine, other)]
        if (mine[0], fields[0]) != (other[0], fields[1]):
            different[options] = (sorted(mine[0]), fields[0], sorted(other[0]), fields[1])
    assert different.keys() <= DIFFERENT, different
