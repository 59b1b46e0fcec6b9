# SPDX-License-Identifier: Apache-2.0
"""--environment: CSCS's environment definition files (EDF) say what a container is."""

import json
import os

import pytest

from support import foreign, images

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # of the images


@pytest.fixture
def edf(berth, work, profile):
    """edf(name, text) → the path of NAME.toml; run(), fail() and create() find it by its name."""
    return Files(berth, profile.own(work / "edf"))


class Files:
    def __init__(self, berth, directory):
        self.berth, self.directory = berth, directory

    def __call__(self, name, *lines):
        path = self.directory / f"{name}.toml"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    def _env(self, env):
        return {"EDF_PATH": self.directory, **(env or {})}

    def run(self, name, *words, flags=(), env=None):
        return self.berth.ok("run", "--rm", *flags, f"--environment={name}", *words, env=self._env(env))

    def fail(self, name, *words, flags=(), env=None, status=125):
        return self.berth.fail("run", "--rm", *flags, f"--environment={name}", *words,
                               env=self._env(env), status=status)


def hashed(reference):
    """As enroot and CSCS write it: nvcr.io#nvidia/pytorch."""
    return reference.replace("/", "#", 1)


def shown(*names):
    return ("sh", "-c", "; ".join(f"echo \"${{{name}-unset}}\"" for name in names))


# ---- what a file says ---------------------------------------------------------------------------

def test_the_first_example_of_the_documentation(berth, edf, busybox, work, profile):
    """image, mounts and workdir with a variable of the caller; then env."""
    scratch = profile.own(work / "scratch")
    edf("ubuntu", f'image = "{hashed(busybox)}"', 'mounts = ["${SCRATCH}:${SCRATCH}"]',
        'workdir = "${SCRATCH}"', "[env]", 'MY_RUN = "production"', 'DEBUG = "false"')
    said = edf.run("ubuntu", "sh", "-c", "pwd; echo $MY_RUN $DEBUG; echo tea > cargo",
                   env={"SCRATCH": scratch})
    assert said == f"{scratch}\nproduction false\n"
    assert (scratch / "cargo").read_text(encoding="utf-8") == "tea\n"


@pytest.mark.profiles("root", "user")
def test_the_root_can_be_written_unless_the_file_says_no(edf, busybox):
    edf("writable", f'image = "{busybox}"')
    edf("frozen", f'image = "{busybox}"', "writable = false")
    script = ("sh", "-c", "touch /x 2>/dev/null && echo written || echo refused")
    assert edf.run("writable", *script) == "written\n"
    assert edf.run("frozen", *script) == "refused\n"


@pytest.mark.profiles("root", "user")
def test_the_entrypoint_runs_where_the_file_says_so(edf, push):
    image = push(images.build([images.busybox_layer()], {"Entrypoint": ["echo", "a"], "Cmd": ["b"]}))
    edf("plain", f'image = "{image}"')
    edf("entered", f'image = "{image}"', "entrypoint = true")
    assert edf.run("plain", "echo", "c") == "c\n"
    assert edf.run("entered", "c") == "a c\n"
    assert edf.run("entered") == "a b\n"
    assert edf.run("plain", flags=("--entrypoint", "id")).startswith("uid=0")
    assert edf.fail("plain") == (
        "berth: no command was given, and 'entrypoint' is not true in the environment; "
        "try: a command, or 'entrypoint = true' for that of the image")


@pytest.mark.profiles("root", "user")
def test_variables_are_set_unset_and_made_of_others(edf, push):
    image = push(images.build([images.busybox_layer()],
                              {"Env": [f"PATH={PATH}", "FROM_IMAGE=yes", "GONE=no"]}))
    edf("env", f'image = "{image}"', "[env]", 'PATH = "${PATH}:/custom/bin"', 'GONE = ""',
        'MY_NODE = "${NODE}"', 'MAYBE = "${NONE:-}"', 'OTHER = "${NONE:-else}"',
        'WORDS = "$${NODE} costs 5$"', 'COLOUR = "file"')
    names = ("PATH", "FROM_IMAGE", "GONE", "MY_NODE", "MAYBE", "OTHER", "WORDS", "COLOUR", "NODE")
    said = edf.run("env", *shown(*names), env={"NODE": "n1", "GONE": "host"})
    assert said.splitlines() == [f"{PATH}:/custom/bin", "yes", "unset", "n1", "unset", "else",
                                 "${NODE} costs 5$", "file", "unset"]
    said = edf.run("env", *shown("COLOUR", "GONE"), flags=("-e", "COLOUR=flag", "-e", "GONE"),
                   env={"NODE": "n1", "GONE": "host"})
    assert said == "flag\nhost\n"


@pytest.mark.profiles("root", "user")
def test_mounts_have_flags_and_the_later_one_counts(edf, busybox, work, profile):
    for name in ("one", "two", "three"):
        (profile.own(work / name) / "name").write_text(name, encoding="utf-8")
    mounts = ", ".join(f'"{work}/{source}:{target}"' for source, target in
                       [("one", "/a:ro"), ("one", "/b"), ("two", "/b:ro+private"), ("one", "/c")])
    edf("mounts", f'image = "{busybox}"', f"mounts = [{mounts}]")
    script = ("cat /a/name; touch /a/x 2>/dev/null || echo -ro; cat /b/name; "
              "touch /b/x 2>/dev/null || echo -ro; cat /c/name")
    said = edf.run("mounts", "sh", "-c", script, flags=("-v", f"{work}/three:/c"))
    assert said == "one-ro\ntwo-ro\nthree"


@pytest.mark.profiles("root", "user")
def test_paths_with_a_dot_are_below_the_callers_directory(berth, edf, busybox, profile):
    here = profile.own(berth.directory / "here")
    (here / "name").write_text("here\n", encoding="utf-8")
    edf("dots", f'image = "{busybox}"', 'mounts = ["./here:/data"]', 'workdir = "/data"')
    assert edf.run("dots", "cat", "name") == "here\n"


def test_a_squashfs_is_mounted_as_a_directory(edf, busybox, work, profile):
    tree = foreign.tree(work / "tree", {"/set/one": "1\n"})
    data = foreign.squashfs(work / "data.sqsh", tree)
    foreign.give(profile, data)
    edf("data", f'image = "{busybox}"', 'mounts = ["${DATA}:/data:sqsh"]')
    script = "cat /data/set/one; touch /data/x 2>/dev/null || echo read-only"
    assert edf.run("data", "sh", "-c", script, env={"DATA": data}) == "1\nread-only\n"
    line = edf.fail("data", "true", env={"DATA": "/etc/passwd"})
    assert line.startswith(f"berth: {edf.directory}/data.toml:2: '/etc/passwd' is neither a squashfs")


def test_an_image_can_be_a_squashfs(edf, work, profile):
    image = foreign.squashfs(work / "image.sqsh", foreign.tree(work / "tree", {"/etc/hello": "hi\n"}))
    foreign.give(profile, image)
    edf("file", 'image = "${IMAGES}/image.sqsh"')
    assert edf.run("file", "cat", "/etc/hello", env={"IMAGES": work}) == "hi\n"


@pytest.mark.profiles("root", "user")
def test_devices_are_given_by_name_and_by_path(edf, busybox, work):
    cdi = work / "cdi"
    cdi.mkdir()
    (cdi / "vendor.json").write_text(json.dumps({
        "cdiVersion": "0.5.0", "kind": "vendor.com/crane",
        "devices": [{"name": "0", "containerEdits": {"env": ["CRANE=0"]}}]}), encoding="utf-8")
    edf("devices", f'image = "{busybox}"', 'devices = ["vendor.com/crane=0", "/dev/full:/dev/full2"]')
    said = edf.berth.ok("--cdi-spec-dir", cdi, "run", "--rm", "--environment=devices", "sh", "-c",
                        "echo $CRANE; ls /dev/full2", env={"EDF_PATH": edf.directory})
    assert said == "0\n/dev/full2\n"
    path = edf("bad", f'image = "{busybox}"', 'devices = ["gpu"]')
    assert edf.fail("bad", "true").startswith(f"berth: {path}:2: ")


@pytest.mark.profiles("root")
def test_annotations_of_berths_own_are_refused_as_on_the_command_line(berth, edf, busybox):
    path = edf("own", f'image = "{busybox}"', "[annotations.dev.berth]", 'keep-ids = "yes"')
    assert edf.fail("own", "true") == f"berth: {path}:3: annotations of dev.berth. are Berth's own"


def test_annotations_reach_the_configuration_and_hooks_are_missed(berth, edf, busybox):
    edf("noted", f'image = "{busybox}"', "[annotations]", 'com.hooks.cxi.enabled = "true"',
        "[annotations.com.hooks.ssh]", 'enabled = "false"', "[annotations.org]", 'who = "${WHO}"')
    done = berth.run("create", "--annotation", "org.where=quay", "--environment=noted", "true",
                     env={"EDF_PATH": edf.directory, "WHO": "me"})
    assert done.returncode == 0
    assert ("no hook is run for com.hooks.cxi.enabled: they are for CSCS's engine, ignoring"
            in done.stderr)
    [config] = [path for path in berth.root.rglob("config.json") if done.stdout.strip() in str(path)]
    annotations = json.loads(config.read_text(encoding="utf-8"))["annotations"]
    wanted = {"com.hooks.cxi.enabled": "true", "com.hooks.ssh.enabled": "false", "org.who": "me",
              "org.where": "quay"}
    assert wanted.items() <= annotations.items()
    berth.ok("rm", done.stdout.strip())


# ---- where files are found ----------------------------------------------------------------------

@pytest.mark.profiles("root", "user")
def test_a_file_is_found_by_path_and_by_name(berth, edf, busybox, work, profile):
    def write(directory, name):
        profile.own(directory)
        path = directory / f"{name}.toml"
        path.write_text(f'image = "{busybox}"\n[env]\nFROM = "{directory.name}"\n', encoding="utf-8")
        return path

    def origin(name, **env):
        return berth.ok("run", "--rm", "--environment", name, *shown("FROM"), env=env).strip()
    home = work / "home"
    profile.own(home)
    path = write(home / ".edf", "ubuntu")
    write(work / "first", "fedora")
    write(work / "second", "fedora")
    write(work / "second", "ubuntu")
    write(berth.directory, "here")
    assert origin(path, HOME=home) == ".edf"
    assert origin("ubuntu", HOME=home) == ".edf"
    assert origin("./here.toml", HOME=home) == origin("here.toml", HOME=home) == "berth"
    search = f"{work}/nowhere:{work}/first:{work}/second"
    assert origin("fedora", HOME=home, EDF_PATH=search) == "first"
    assert origin("ubuntu", HOME=home, EDF_PATH=search) == "second"
    # EDF_PATH takes the place of ~/.edf.
    assert berth.fail("run", "--environment=ubuntu", "true",
                      env={"HOME": home, "EDF_PATH": f"{work}/first"}) == (
        f"berth: cannot read environment 'ubuntu': no 'ubuntu.toml' in {work}/first; "
        "try: ./ubuntu.toml for a file of this directory")


@pytest.mark.profiles("root", "user")
def test_bases_are_laid_over_each_other(edf, busybox, work, profile):
    (profile.own(work / "data") / "name").write_text("data\n", encoding="utf-8")
    edf("common_env", f'image = "{busybox}"', 'workdir = "/tmp"', f'mounts = ["{work}/data:/data"]',
        "[env]", 'A = "common"', 'B = "common"', 'C = "common"')
    edf("ml_env", 'base_environment = "common_env"', 'workdir = "/etc"', "[env]", 'B = "ml"')
    edf("other", "[env]", 'C = "other"')
    edf("mine", 'base_environment = ["ml_env", "other"]', f'mounts = ["{work}/data:/more"]',
        "[env]", 'A = ""')
    said = edf.run("mine", "sh", "-c", "pwd; cat /data/name /more/name; echo ${A-unset} $B $C")
    assert said == "/etc\ndata\ndata\nunset ml other\n"
    edf("chosen", 'base_environment = "${KIND:-mine}"', "writable = false")
    assert edf.run("chosen", "pwd") == "/etc\n"


# ---- beside the command line --------------------------------------------------------------------

@pytest.mark.profiles("root", "user")
def test_without_an_image_the_first_word_is_it(edf, busybox):
    edf("settings", "[env]", 'COLOUR = "blue"')
    assert edf.run("settings", busybox, *shown("COLOUR")) == "blue\n"
    assert edf.fail("settings") == (
        "berth: environment 'settings' names no image; try: an image after it, or 'image = ...' in "
        "its file")
    edf("image", f'image = "{busybox}"')
    line = edf.fail("image", "/", "true", flags=("--rootfs",))
    assert line == "berth: '--rootfs' and an environment with an image cannot be used together"


@pytest.mark.profiles("root", "user")
def test_flags_win(edf, busybox):
    edf("all", f'image = "{busybox}"', 'workdir = "/etc"', "entrypoint = true")
    assert edf.run("all", flags=("-w", "/bin", "--entrypoint", "pwd")) == "/bin\n"


@pytest.mark.profiles("root", "user")
def test_what_is_created_is_what_the_file_said_then(berth, edf, busybox):
    path = edf("made", f'image = "{busybox}"', "[env]", 'MY_NODE = "${NODE}"')
    name = berth.ok("create", "--environment=made", *shown("MY_NODE"),
                    env={"EDF_PATH": edf.directory, "NODE": "n1"}).strip()
    path.unlink()
    for _ in range(2):
        assert berth.ok("start", "-a", name, env={"NODE": "n2"}) == "n1\n"
    berth.ok("rm", name)


@pytest.mark.profiles("root")
def test_what_would_be_done_is_told(edf, busybox):
    edf("dry", f'image = "{busybox}"', 'workdir = "/etc"')
    assert "overlay" in edf.run("dry", "true", flags=("--dry-run",))
    assert busybox in edf.run("dry", "true", flags=("--explain",))


# ---- what is refused ----------------------------------------------------------------------------

@pytest.mark.profiles("root", "user")
def test_a_loop_of_bases_is_named(berth, edf):
    one, two = (edf("one", "", 'base_environment = "two"'),
                edf("two", 'image = "x"', 'base_environment = ["one"]'))
    wanted = f"berth: {two}:2: base_environment is a loop: {one} -> {two} -> {one}"
    assert edf.fail("one", "true") == wanted
    assert berth.fail("create", "--environment=one", "true", env={"EDF_PATH": edf.directory}) == wanted
    alone = edf("alone", 'base_environment = "alone"')
    assert edf.fail("alone", "true") == (
        f"berth: {alone}:1: base_environment is a loop: {alone} -> {alone}")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("lines, wanted", [
    (['image = "x"', 'mount = ["/a:/a"]'], "2: mount: unknown key; did you mean 'mounts'?"),
    (['imagee = "x"'], "1: imagee: unknown key; did you mean 'image'?"),
    (["image = 3"], "1: image: expected a string, got a number"),
    (['image = "x"', "[env]", "DEBUG = true"], "3: env.DEBUG: expected a string, got a boolean"),
    (['image = "${NOWHERE}/x.sqsh"'],
     "1: the variable 'NOWHERE' is not set; try: ${NOWHERE:-} where it may be missing"),
    (['image = "$HOME/x.sqsh"'], "1: cannot read the variable in '$HOME/x.sqsh'; "
                                 "try: ${NAME}, ${NAME:-DEFAULT}, or $$ for a dollar sign"),
    (['base_environment = "nowhere"'], "1: no 'nowhere.toml' in DIRECTORY; "
                                       "try: ./nowhere.toml for a file of this directory"),
    (['image = "quay#me/x"'], "1: image 'quay#me/x': 'quay' is not a registry"),
    (['image = "me@nvcr.io#nvidia/x"'], "1: image 'me@nvcr.io#nvidia/x' contains a user name for the registry; "
                                        "try: berth login, and the image without the user name"),
    (['image = "/no/such.sqsh"'], "1: cannot use '/no/such.sqsh' as an image: open '/no/such.sqsh': "
                                  "No such file or directory"),
    (['image = "x"', 'mounts = ["data:/data"]'],
     "2: mount 'data:/data': the source is not an absolute path; "
     "try: './' before a path below this directory"),
    (['image = "x"', 'mounts = [', '"/a:/a",', '"/b:/b:rx"]'],
     "4: volume '/b:/b:rx': unknown option 'rx'; try: ro, rw or a propagation such as rslave"),
    (['image = "x"', 'workdir = "src"'], "2: workdir 'src' is not an absolute path"),
])
def test_a_fault_has_its_line(edf, lines, wanted):
    path = edf("bad", *lines)
    wanted = wanted.replace("DIRECTORY", str(edf.directory))
    assert edf.fail("bad", "true") == f"berth: {path}:{wanted}"


@pytest.mark.profiles("root", "user")
def test_what_is_no_file_of_this_kind_is_one_line(berth, edf, busybox):
    assert edf.fail("./no.toml", "true") == (
        "berth: cannot read environment './no.toml': open './no.toml': No such file or directory")
    path = edf("torn", 'image = "x')
    assert edf.fail("torn", "true").startswith(f"berth: {path}:1: ")
    path = edf("huge", "#" * (1 << 20))
    assert str(path) in edf.fail("huge", "true")
    os.mkfifo(edf.directory / "pipe.toml")
    os.chmod(edf.directory / "pipe.toml", 0o666)
    assert edf.fail("pipe", "true").endswith(f"'{edf.directory}/pipe.toml' is not a regular file")
    assert edf.fail(str(edf.directory), "true").endswith("is not a regular file")
    assert berth.fail("run", "--environment=x", "true", env={"EDF_PATH": "edf"}) == (
        "berth: cannot read environment 'x': EDF_PATH: 'edf' is not absolute")


@pytest.mark.profiles("root", "user")
def test_a_source_of_a_mount_is_not_made(edf, busybox, work):
    edf("missing", f'image = "{busybox}"', f'mounts = ["{work}/missing:/data"]')
    assert f"{work}/missing" in edf.fail("missing", "true")
    assert not (work / "missing").exists()


@pytest.mark.profiles("root")
def test_a_variable_that_nobody_has_is_told_before_anything_runs(edf, busybox):
    path = edf("unset", f'image = "{busybox}"', "[env]", 'A = "${NONE}"')
    assert edf.fail("unset", "true").endswith(
        f"{path}:3: the variable 'NONE' is not set; try: ${{NONE:-}} where it may be missing")
