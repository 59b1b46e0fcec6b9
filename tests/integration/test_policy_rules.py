# SPDX-License-Identifier: Apache-2.0
"""The site's rules: policy.d/*.toml, what they give a container, who wins, whose files count, and
a houdini.ini that becomes rules."""

import json
import os

import pytest

from support import images

# The file that was shown when Houdini was: mounts and variables for every container.
SLIDES = """[default]
mounts=/home:/home,/usr/lib/nvidia-384:/usr/lib/nvidia
environment=LD_LIBRARY_PATH=/usr/lib/nvidia,NVIDIA_VISIBLE_DEVICES=all
#devices=/dev/nvidiactl,/dev/nvidia-uvm

[user]
"""


class Site:
    """A configuration directory of the test's own."""

    def __init__(self, berth, directory):
        self.berth, self.directory = berth, directory
        self.flags = ("--config-dir", directory)
        self.rules = directory / "policy.d"
        for made in (directory, self.rules):
            made.mkdir()
            self.own(made)

    def own(self, path):
        os.chown(path, self.berth.account.uid, self.berth.account.gid)

    def write(self, name, text):
        path = self.rules / name
        path.write_text(text)
        path.chmod(0o644)
        self.own(path)
        return path

    def apply(self, **files):
        """apply(a="…") puts the rules of policy.d/a.toml in force; gives the flags for that."""
        for name, text in files.items():
            self.write(f"{name}.toml", text)
        assert self.berth.ok(*self.flags, "policy", "apply") == f"{self.directory}/policy.json\n"
        return self.flags

    def refused(self, verb="apply"):
        return self.berth.fail(*self.flags, "policy", verb, status=1)


@pytest.fixture
def site(berth, work):
    return Site(berth, work / "site")


@pytest.fixture
def shared(berth, work):
    """A directory of the host with a file in it."""
    directory = work / "shared"
    directory.mkdir()
    (directory / "hello").write_text("from the site\n")
    os.chown(directory, berth.account.uid, berth.account.gid)
    return directory


def variables(berth, *args, **options):
    return dict(line.split("=", 1) for line in berth.ok(*args, "env", **options).splitlines())


# ---- what rules give ---------------------------------------------------------------------------

def test_a_rule_gives_mounts_and_variables_where_its_conditions_hold(berth, busybox, site, shared):
    flags = site.apply(a=f"""[[rule]]
name = "shared"
when = {{ user = "{berth.account.uid}", image = "*/library/busybox" }}
mounts = ["{shared}:/site:ro"]
env.SITE = "here"

[[rule]]
when = {{ user = "nobody-at-all" }}
env.OTHER = "1"
""")
    show = ("sh", "-c", "cat /site/hello; echo $SITE,$OTHER; touch /site/x")
    done = berth.run(*flags, "run", "--rm", busybox, *show)
    assert done.stdout == "from the site\nhere,\n" and "Read-only file system" in done.stderr
    assert berth.ok("run", "--rm", busybox, "sh", "-c", "ls -d /site; echo $SITE", ) == "\n"


def test_groups_are_those_of_the_caller_outside(berth, busybox, site):
    flags = site.apply(a=f"""[[rule]]
when = {{ group = "{berth.account.gid}" }}
env.MINE = "yes"
[[rule]]
when = {{ group = "no-such-group" }}
env.OTHERS = "yes"
""")
    found = variables(berth, *flags, "run", "--rm", busybox)
    assert found.get("MINE") == "yes" and "OTHERS" not in found


def test_labels_variables_partition_and_command_are_conditions(berth, push, site):
    image = push(images.build([images.busybox_layer()], {
        "Env": ["PATH=/bin", "FLAVOUR=cuda"], "Labels": {"org.example.tier": "gold"}}))
    conditions = {"LABEL": 'label = "org.example.tier=g*"', "IMAGE": 'image-env = "FLAVOUR"',
                  "USER": 'user-env = "FLAVOUR"', "ENV": 'env = "FLAVOUR=cuda"',
                  "PART": 'partition = "gpu"', "COMMAND": 'command = "en*"'}
    flags = site.apply(a="".join(
        f'[[rule]]\nwhen = {{ {condition} }}\nenv.RULE_{name} = "1"\n'
        for name, condition in conditions.items()))

    def acting(*args, **options):
        found = variables(berth, *flags, "run", "--rm", *args, image, **options)
        return {name.removeprefix("RULE_") for name in found if name.startswith("RULE_")}
    assert acting() == {"LABEL", "IMAGE", "ENV", "COMMAND"}
    assert acting("-e", "FLAVOUR=none") == {"LABEL", "IMAGE", "USER", "COMMAND"}
    assert acting(env={"SLURM_JOB_PARTITION": "gpu"}) == {"LABEL", "IMAGE", "ENV", "COMMAND", "PART"}


def test_flags_win_but_over_what_is_forced(berth, busybox, site, shared, work):
    mine = work / "mine"
    mine.mkdir()
    (mine / "hello").write_text("mine\n")
    flags = site.apply(a=f"""[[rule]]
mounts = ["{shared}:/data"]
env = {{ A = "site", B = "site" }}
env-default = {{ C = "site", PATH = "/nowhere" }}
env-force = {{ D = "site" }}
""")
    args = ("run", "--rm", "-e", "A=user", "-e", "C=user", "-e", "D=user", "-v", f"{mine}:/data", busybox)
    show = ("sh", "-c", "echo $A $B $C $D; cat /data/hello")
    assert berth.ok(*flags, *args, *show) == "user site user site\nmine\n"
    flags = site.apply(a=f'[[rule]]\nmounts = ["{shared}:/data"]\nforce = true\n')
    assert berth.ok(*flags, *args, "cat", "/data/hello") == "from the site\n"


def test_files_count_by_name_and_stop_ends_them(berth, busybox, site):
    flags = site.apply(b='[[rule]]\nenv.X = "b"\n', a='[[rule]]\nenv.X = "a"\n')
    assert variables(berth, *flags, "run", "--rm", busybox)["X"] == "b"
    site.write("z.conf", "not read")
    flags = site.apply(a='[[rule]]\nenv.X = "a"\nstop = true\n')
    assert variables(berth, *flags, "run", "--rm", busybox)["X"] == "a"


def test_a_rule_refuses_and_warns_in_the_sites_words(berth, busybox, site):
    flags = site.apply(a="""[[rule]]
name = "old"
when = { image = "*busybox*" }
warn = "use the image of the site"
[[rule]]
name = "closed"
when = { user-env = "CLOSED" }
refuse = "not today"
""")
    done = berth.run(*flags, "run", "--rm", busybox, "true")
    assert done.returncode == 0
    assert "berth: warning: the site says: use the image of the site (rule 'old')" in done.stderr
    line = berth.fail(*flags, "run", "--rm", "-e", "CLOSED=1", busybox, "true")
    assert line.startswith("berth: the site refuses this container: not today (rule 'closed')")
    assert berth.ok("ps", "-aq") == ""


def test_images_come_from_where_the_site_says(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nname = "ours"\nregistries = ["registry.example.org/*"]\n')
    repository = busybox.rsplit(":", 1)[0]
    wanted = f"berth: the site takes no images from '{repository}' (rule 'ours'); try: one of registry.example.org/*"
    assert berth.fail(*flags, "run", "--rm", busybox, "true") == wanted
    assert berth.fail(*flags, "pull", busybox, status=1) == wanted
    assert berth.ok("images", "-q") == ""
    flags = site.apply(a=f'[[rule]]\nregistries = ["{repository}"]\n')
    assert berth.ok(*flags, "run", "--rm", busybox, "echo", "x") == "x\n"


def test_a_stopped_container_starts_with_what_it_was_made_with(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nenv.SITE = "then"\n')
    berth.ok(*flags, "create", "--name", "kept", busybox, "sh", "-c", "echo $SITE")
    site.apply(a='[[rule]]\nenv.SITE = "now"\n')
    assert berth.ok(*flags, "start", "-a", "kept") == "then\n"


@pytest.mark.profiles("user")
def test_the_callers_id_is_kept_by_a_rule(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nuser = "caller"\n')
    assert berth.ok(*flags, "run", "--rm", busybox, "id", "-u") == f"{berth.account.uid}\n"
    assert berth.ok(*flags, "run", "--rm", "-u", "0", busybox, "id", "-u") == "0\n"


@pytest.mark.profiles("root")
def test_a_forced_limit_is_the_most(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nulimits = ["nofile=64:64"]\nforce = true\n')
    show = ("sh", "-c", "ulimit -n")
    assert berth.ok(*flags, "run", "--rm", "--ulimit", "nofile=512:512", busybox, *show) == "64\n"


# ---- whose word, and how it is told ------------------------------------------------------------

def test_explain_names_the_rules(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nname = "yes"\nenv.A = "1"\n[[rule]]\nname = "no"\nwhen = { gpus = true }\nenv.B = "1"\n')
    shown = json.loads(berth.ok(*flags, "run", "--explain", "--format", "json", busybox, "true"))
    rules = {item["object"]: item for item in shown["items"] if item["kind"] == "rule"}
    assert rules["yes"]["given"] and rules["yes"]["why"] == "gives env"
    assert not rules["no"]["given"] and rules["no"]["why"] == "no GPU was asked for"
    assert rules["no"]["host_path"] == f"{site.rules}/a.toml:4"
    assert shown["granted"] is False


def test_a_trial_tells_rule_by_rule(berth, busybox, site):
    flags = site.apply(a="""[[rule]]
name = "gpus"
when = { partition = "gpu", group = "hpc", feature = "h100" }
gpus = "all"
force = true
[[rule]]
name = "alice"
when = { user = "alice", user-env = "X=1" }
mounts = ["/scratch/{user}:/scratch"]
""")
    args = ("policy", "test", "--user", "alice", "--group", "hpc", "--partition", "gpu", "--feature", "h100",
            "--env", "X=1")
    done = berth.run(*flags, *args, "--format", "json", busybox)
    assert done.returncode == 0 and "the image is not here" in done.stderr
    told = json.loads(done.stdout)
    assert [(rule["rule"], rule["applied"]) for rule in told["rules"]] == [("gpus", True), ("alice", True)]
    assert {"key": "gpus", "value": "all", "rule": "gpus", "forced": True} in told["effects"]
    assert {"key": "mounts", "value": "/scratch/alice:/scratch", "rule": "alice", "forced": False} in told["effects"]
    table = berth.ok(*flags, "policy", "test", "--user", "bob", "--feature", "h100", busybox).splitlines()
    assert table[0].split() == ["RULE", "APPLIES", "WHY"]
    assert "no" in table[1].split() and "there is no group, and the rule is for 'hpc'" in table[1]


def test_every_fault_is_told_with_its_line_and_nothing_is_applied(berth, site):
    site.apply(a='[[rule]]\nenv.X = "1"\n')
    before = (site.directory / "policy.json").read_bytes()
    bad = site.write("b.toml", '[[rule]]\nmountz = ["/a:/a"]\nmemory = "much"\n\n[[rule]]\nsigned = true\n')
    done = berth.run(*site.flags, "policy", "lint")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"berth: {bad}:2: mountz: unknown key; did you mean 'mounts'?"
    assert any(f"{bad}:6: signed: signatures of images are not checked" in line for line in done.stderr.splitlines())
    assert site.refused() == f"berth: {bad}:2: mountz: unknown key; did you mean 'mounts'?"
    assert (site.directory / "policy.json").read_bytes() == before
    bad.write_text('[[rule]]\nmounts = ["/a:b"]\nmemory = "much"\n')
    lines = berth.run(*site.flags, "policy", "lint", bad).stderr.splitlines()
    assert [line.split(": ")[1:3] for line in lines] == [[f"{bad}:2", "mounts"], [f"{bad}:3", "memory"]]


def test_a_file_that_others_can_write_is_refused(site):
    path = site.write("a.toml", '[[rule]]\nenv.X = "1"\n')
    path.chmod(0o646)
    assert site.refused() == f"berth: read '{path}': it can be written by others; try: chmod go-w {path}"
    path.chmod(0o644)
    site.rules.chmod(0o777)
    assert "it can be written by others" in site.refused("lint")
    site.rules.chmod(0o755)
    site.apply()


def test_a_file_of_somebody_else_is_refused(site):
    path = site.write("a.toml", '[[rule]]\nenv.X = "1"\n')
    path.chmod(0o664)
    os.chown(path, -1, 12345)
    assert site.refused() == f"berth: read '{path}': it can be written by others; try: chmod go-w {path}"
    path.chmod(0o644)
    os.chown(path, 12345, 12345)
    assert site.refused() == f"berth: read '{path}': it belongs to somebody else; try: chown root {path}"
    assert not (site.directory / "policy.json").exists()


# ---- Houdini -----------------------------------------------------------------------------------

def translated(berth, work, text):
    path = work / "houdini.ini"
    path.write_text(text)
    path.chmod(0o644)
    return berth.ok("policy", "import", path)


def test_the_file_of_the_slides_does_what_it_did(berth, busybox, site, work):
    assert berth.ok("run", "--rm", busybox, "sh", "-c", "echo $LD_LIBRARY_PATH") == "\n"
    flags = site.apply(houdini=translated(berth, work, SLIDES))
    show = ("sh", "-c", "ls -di /home; echo $LD_LIBRARY_PATH $NVIDIA_VISIBLE_DEVICES")
    done = berth.run(*flags, "run", "--rm", busybox, *show)
    home, rest = done.stdout.splitlines()
    assert int(home.split()[0]) == os.stat("/home").st_ino
    assert rest == "/usr/lib/nvidia all" and "NVIDIA_VISIBLE_DEVICES" not in done.stderr
    args = ("run", "--rm", "-e", "LD_LIBRARY_PATH=/mine", busybox)
    assert variables(berth, *flags, *args)["LD_LIBRARY_PATH"] == "/mine"
    if not os.path.exists("/usr/lib/nvidia-384"):
        told = json.loads(berth.ok(*flags, "run", "--explain", "--format", "json", busybox, "true"))["items"]
        assert any("left out: there is no /usr/lib/nvidia-384" in item["why"] for item in told)


def test_its_second_mount_is_there_where_the_driver_is(berth, busybox, site, shared, work):
    text = SLIDES.replace("/usr/lib/nvidia-384", str(shared))
    flags = site.apply(houdini=translated(berth, work, text))
    assert berth.ok(*flags, "run", "--rm", busybox, "cat", "/usr/lib/nvidia/hello") == "from the site\n"


def test_its_triggers_separators_and_precedence(berth, busybox, site, work):
    flags = site.apply(houdini=translated(berth, work, """[default]
trigger-env=SITE_ENABLED
environment=A=1,2|B=x=y|C=3
force-environment=true
[container]
privileged-trigger-env=SITE_PRIVILEGED
"""))
    assert "A" not in variables(berth, *flags, "run", "--rm", busybox)
    triggers = (("-e", "SITE_ENABLED=true"), ("-l", "houdini=true"), ("-e", "HOUDINI_GPU_ENABLED=true"))
    for trigger in triggers:
        found = variables(berth, *flags, "run", "--rm", *trigger, "-e", "A=mine", busybox)
        assert (found["A"], found["B"], found["C"]) == ("1,2", "x=y", "3"), trigger
    shown = berth.ok(*flags, "run", "--rm", "-e", "SITE_PRIVILEGED=true", busybox, "cat", "/proc/self/status")
    plain = berth.ok("run", "--rm", busybox, "cat", "/proc/self/status")

    def bounding(text):
        return [line for line in text.splitlines() if line.startswith("CapBnd")]
    assert bounding(shown) == bounding(plain)


def test_what_cannot_be_translated_is_said(berth, work):
    toml = translated(berth, work, "[container]\nprivileged-trigger-env=P\n[gpu]\ncuda-files=libcuda\nx=1\n")
    assert "# container.privileged-trigger-env: not translated: a variable (P) makes no container privileged" in toml
    assert "# gpu.cuda-files: " in toml and "# gpu.x: not a key that is known to Berth" in toml
    line = berth.fail("policy", "import", "docker", work / "houdini.ini", status=1)
    assert line == ("berth: no configuration 'docker' can be imported; try: nvidia-container-runtime, houdini")
