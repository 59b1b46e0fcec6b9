# SPDX-License-Identifier: Apache-2.0
"""Lines that people type after 'podman' and 'buildah', once with crun as the runtime and once with
berth-runtime: tests/data/podman_lines, in the form that support/twin_lines.py tells."""

import contextlib
import dataclasses
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from support import callers, foreign, systemd_image, twin_lines, users
from support.twin_lines import Engine, Reading, Things

CLEAN = {"PATH": users.PATH, "LANG": "C.UTF-8", "TERM": "xterm", "FROM_HERE": "shore"}
CRUN = Path("/usr/bin/crun")
KNOWN_CRUNS = ("1.8.1", "1.21", "1.28")  # of Debian 12, 13 and unstable
PODMANS_CGROUP = "libpod_parent"
IMAGES = {  # and what they say beside busybox's files
    "boat": ["ENV SAIL=white", "ENV PATH=/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["sh"]'],
    "keel": ["USER sailor", "WORKDIR /srv/work", "VOLUME /hold", 'ENTRYPOINT ["echo", "keel"]',
             'CMD ["down"]', "STOPSIGNAL SIGUSR1"],
    "waits": ['CMD ["sleep", "600"]'],
}
# All that podman would take from the machine, or guess by the runtime's name. A machine without
# CAP_SYS_RESOURCE cannot raise its hard limits, so they are named.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=10000:10000"]
init_path = "/usr/bin/docker-init"
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
infra_command = ""
infra_image = "localhost/waits"
lock_type = "file"
runtime = "{name}"
runtime_supports_json = ["{name}"]
runtime_supports_nocgroup = ["{name}"]
[engine.runtimes]
{name} = ["{program}"]
"""
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{0}/data"
runroot = "{0}/run"
"""

# ---- what a line is compared by -----------------------------------------------------------------

# The first that is found in what a program says, in small letters: crun's phrases and berth's. What
# podman and buildah say by themselves is compared as it is.
SAID_BY_RUNTIME = r"oci (runtime|permission)|` failed: exit status|creating container for "
KINDS = tuple((kind, f"(?s)(?=.*({SAID_BY_RUNTIME})).*({pattern})") for kind, pattern in (
    ("runtime: no command", r"command that was not found$|not found in \$path"),
    ("runtime: not a directory", r"not a directory|(file|directory) and the target"),
    ("runtime: denied", r"permission denied|operation not permitted|read-only"),
    ("runtime: bad value", r"invalid|unknown|unrecognized|range|empty|below memory.limit|expected"),
    ("runtime: no such thing", r"no such|not found|does not exist"),
    ("runtime: busy", r"busy"),
    ("runtime: refused", r""),
))
READING = Reading(KINDS, inside=f"(err|two|one)$|{twin_lines.SAID_BY_BUSYBOX}",
                  advice=r"time=\".*(level=warning|container create message from subprocess)", same=(
                      *twin_lines.IDS, (r"/\S*/lines/(crun|berth)\b", "PLACE"),
                      (r"/proc/\d+", "/proc/PID"), *twin_lines.BLANKS))
IMAGES_LISTED = ("images", "--format", "{{.Repository}}:{{.Tag}}@{{.ID}}")
THINGS = {
    "podman": (
        Things(r"^(pod|kube|play)", ("pod", "ls", "-q", "--no-trunc"), ("pod", "rm", "-f", "-t", "0")),
        Things(r"^(create|run (?!--rm)|start|run .*--pod)", ("ps", "-aq", "--no-trunc"),
               ("rm", "-f", "-v", "-t", "0")),
        Things(r"-v |volume|--mount|keel|kube", ("volume", "ls", "-q"), ("volume", "rm", "-f")),
    ),
    "buildah": (
        Things(r"^from", ("containers", "-q"), ("rm",)),
        Things(r"^(bud|commit)", IMAGES_LISTED, ("rmi", "-f")),
    ),
}


# ---- the two runtimes ---------------------------------------------------------------------------

@contextlib.contextmanager
def engines_of(directory, name, program):
    """{"podman": Engine, "buildah": Engine} with that runtime, in a private view of their own."""
    here, view = directory / "here", directory / "view"
    shutil.copytree(twin_lines.DATA / "podman_lines/here", here)
    for hook in here.glob("hooks/*/*.json"):
        hook.write_text(hook.read_text().replace("HERE", str(here)))
    foreign.tree(here / "root", {})
    shutil.copytree(here / "tree", here / "closed/tree")
    (here / "closed").chmod(0o700)
    view.mkdir()
    (directory / "containers.conf").write_text(CONFIGURATION.format(name=name, program=program))
    (directory / "storage.conf").write_text(STORAGE.format(directory))
    environment = {**CLEAN, "HOME": str(here), "TMPDIR": str(directory),
                   "BUILDAH_RUNTIME": str(program),
                   "BUILDAH_ISOLATION": "oci",
                   "CONTAINERS_CONF": str(directory / "containers.conf"),
                   "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf")}
    with callers.private_view(view) as entered:
        inside = [*entered, "env", f"--chdir={here}"]
        podman = Engine(f"podman with {name}", [*inside, "podman", "--tmpdir", directory / "tmp"],
                        here, environment, READING, THINGS["podman"])
        buildah = dataclasses.replace(podman, name=f"buildah with {name}",
                                      argv=[*inside, "buildah"], things=THINGS["buildah"],
                                      takes_turns=True)  # networks of netavark have one name
        try:
            yield {"podman": podman, "buildah": buildah}
        finally:
            podman.kept = {}
            podman.tidy()
            callers.remove_cgroups(PODMANS_CGROUP)


def give_images(directory, podman):
    layer = callers.busybox_tar(directory)
    for name, changes in IMAGES.items():
        words = " ".join(f"-c {shlex.quote(change)}" for change in changes)
        podman.ok(f"import -q {words} {layer} {name}")
    if systemd_image.is_here():
        archive = directory / "systemd.tar"
        archive.write_bytes(callers.layout_archive(systemd_image.image(), name="localhost/systemd:latest"))
        podman.ok(f"load -q -i {archive}")


@pytest.fixture(scope="module")
def crun_version():
    told = subprocess.run([CRUN, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    if told.split()[-1] not in KNOWN_CRUNS:
        pytest.skip(f"the lists of differences are not from {told}")
    return told.split()[-1]


@pytest.fixture(scope="module")
def engines(session_directory, tested, nothing_left, crun_version):
    """{"podman": (with crun, with ours), "buildah": …}"""
    directories = [session_directory / "lines" / name for name in ("crun", "berth")]
    with contextlib.ExitStack() as stack:
        both = []
        for directory, program in zip(directories, (CRUN, tested)):
            directory.mkdir(parents=True)
            made = stack.enter_context(engines_of(directory, program.name, program))
            give_images(directory, made["podman"])
            for engine in made.values():
                engine.remember()
            both.append(made)
        yield {name: [made[name] for made in both] for name in THINGS}


# ---- the comparison -----------------------------------------------------------------------------

@pytest.mark.parametrize("group", twin_lines.groups_to_run("podman_lines"), ids=str)
def test_lines_do_what_they_do_with_crun_but_for_the_differences_on_the_list(engines, crun_version, group):
    if group.file == "systemd" and not systemd_image.is_here():
        pytest.skip("systemd is not installed here")
    program = "buildah" if group.file.startswith("buildah") else "podman"
    complaints = twin_lines.complaints(engines[program], group, crun_version)
    assert not complaints, "\n".join(complaints)
