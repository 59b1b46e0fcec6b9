# SPDX-License-Identifier: Apache-2.0
"""The site's rules: policy.d/*.toml, what they give a container, who wins, whose files count, and
a houdini.ini that becomes rules."""

import contextlib
import dataclasses
import json
import os
import subprocess

import pytest

from support import foreign, images
from support.berth import Berth

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
    wanted = f"berth: the site does not allow images from '{repository}' (rule 'ours'); try: one of " \
             "registry.example.org/*"
    assert berth.fail(*flags, "run", "--rm", busybox, "true") == wanted
    assert berth.fail(*flags, "pull", busybox, status=1) == wanted
    assert berth.ok("images", "-q") == ""
    flags = site.apply(a=f'[[rule]]\nregistries = ["{repository}"]\n')
    assert berth.ok(*flags, "run", "--rm", busybox, "echo", "x") == "x\n"


OURS = '[[rule]]\nname = "ours"\nregistries = ["registry.example.org/*"]\n'
MADE_HERE = ("berth: the site does not allow images that were built or loaded here (rule 'ours'); try: berth "
             "pull, from "
             "one of registry.example.org/*")


def of_another(image):
    return (f"berth: the site does not allow images from '{image.rsplit(':', 1)[0]}' (rule 'ours'); try: one of "
            "registry.example.org/*")


def test_an_image_of_another_registry_is_refused_whatever_it_is_called(berth, busybox, site):
    berth.ok("pull", "--quiet", busybox)
    whole = berth.ok("images", "-q", "--no-trunc").strip()
    berth.ok("tag", busybox, "registry.example.org/good:1")
    berth.ok("tag", "registry.example.org/good:1", "registry.example.org/better")
    flags = site.apply(a=OURS)
    for name in (busybox, whole, whole.partition(":")[2], whole[7:19], "registry.example.org/good:1",
                 "registry.example.org/better"):
        for words in (("run", "--rm"), ("create", "--name", "c1"), ("run", "--dry-run")):
            assert berth.fail(*flags, *words, name, "true") == of_another(busybox)
    # A rule for some images knows it by all its names.
    flags = site.apply(a=f'{OURS}when = {{ image = "{busybox.split("/")[0]}/*" }}\n')
    for name in (whole[7:19], "registry.example.org/better"):
        assert berth.fail(*flags, "run", "--rm", name, "true") == of_another(busybox)
    flags = site.apply(a=f'[[rule]]\nregistries = ["{busybox.rsplit(":", 1)[0]}"]\n')
    mount = f"type=image,source={whole},target=/mnt"
    assert berth.ok(*flags, "run", "--rm", "--mount", mount, whole, "ls", "/mnt/bin/sh") == "/mnt/bin/sh\n"


def test_what_was_loaded_or_made_here_is_from_no_registry(berth, busybox, site, work):
    berth.ok("pull", "--quiet", busybox)
    whole = berth.ok("images", "-q", "--no-trunc").strip()
    good = "registry.example.org/good:1"
    berth.ok("tag", busybox, good)
    berth.ok("save", "-o", work / "good.tar", good)
    berth.ok("run", "--name", "c1", busybox, "touch", "/made")
    berth.ok("commit", "c1", "registry.example.org/made:1")
    berth.ok("rm", "c1")
    berth.ok("rmi", "-f", whole)
    berth.ok("load", "-i", work / "good.tar")
    flags = site.apply(a=OURS)
    assert berth.fail(*flags, "run", "--rm", good, "true") == MADE_HERE
    assert berth.fail(*flags, "run", "--rm", whole, "true") == MADE_HERE
    assert berth.fail(*flags, "run", "--rm", "registry.example.org/made:1", "true") == MADE_HERE
    flags = site.apply(a=OURS.replace('"]', '", "localhost/*"]'))
    assert berth.ok(*flags, "run", "--rm", "registry.example.org/made:1", "ls", "/made") == "/made\n"
    # A pull says of bytes that are here where they are from, and loading them once more unsays nothing.
    flags = site.apply(a=OURS.replace("registry.example.org/*", busybox.rsplit(":", 1)[0]))
    berth.ok(*flags, "pull", "--quiet", busybox)
    berth.ok("load", "-i", work / "good.tar")
    for name in (busybox, whole, good):
        assert berth.ok(*flags, "run", "--rm", name, "echo", "x") == "x\n"


def test_a_condition_on_an_image_sees_what_it_was_pulled_as(berth, busybox, site):
    berth.ok("pull", "--quiet", busybox)
    whole = berth.ok("images", "-q", "--no-trunc").strip()
    berth.ok("tag", busybox, "mine:1")
    berth.ok("rmi", busybox)
    flags = site.apply(a=f'[[rule]]\nname = "old"\nwhen = {{ image = "{busybox}" }}\nrefuse = "not that one"\n')
    for name in ("mine:1", whole[7:19]):
        line = berth.fail(*flags, "run", "--rm", name, "true")
        assert line.startswith("berth: the site refuses this container: not that one (rule 'old')")


def test_a_condition_on_an_image_sees_all_names_of_what_was_loaded_here(berth, busybox, site, work):
    berth.ok("pull", "--quiet", busybox)
    berth.ok("tag", busybox, "mine:1")
    berth.ok("save", "-o", work / "mine.tar", "mine:1")
    berth.ok("rmi", "-f", busybox, "mine:1")
    berth.ok("load", "-i", work / "mine.tar")
    berth.ok("tag", "mine:1", "other:1")
    flags = site.apply(a='[[rule]]\nname = "old"\nwhen = { image = "mine:1" }\nrefuse = "not that one"\n')
    for _ in range(2):
        line = berth.fail(*flags, "run", "--rm", "other:1", "true")
        assert line.startswith("berth: the site refuses this container: not that one (rule 'old')")


@pytest.mark.profiles("root")
def test_what_is_built_on_comes_from_where_the_site_says(berth, busybox, site, work):
    place = work / "project"
    place.mkdir()
    (place / "Containerfile").write_text(f"FROM {busybox}\nCOPY Containerfile /made\n")
    cell = 'image = "registry.example.org/app:1"\n[[cell]]\nname = "one"\ncpu = "x86-64"\n'
    (place / "bake.toml").write_text(cell)
    (place / "adopt.toml").write_text(f'{cell}adopt = "{busybox}"\n')
    flags = site.apply(a=OURS)
    wanted = of_another(busybox).removeprefix("berth: ")
    build = ("build", "-t", "registry.example.org/app:2", place)
    assert wanted in berth.fail(*flags, *build, status=1)
    for file in ("bake.toml", "adopt.toml"):
        done = berth.run(*flags, "bake", "--format", "json", place / file)
        [cell] = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "cell"]
        assert done.returncode == 20 and cell["state"] == "failed" and wanted in str(cell), cell
    assert berth.ok("images", "-q") == ""
    berth.ok("pull", "--quiet", busybox)
    assert wanted in berth.fail(*flags, *build, status=1)


def test_paths_of_images_are_compared_without_links_and_dots(berth, site, work):
    (work / "kept").mkdir()
    tree = foreign.tree(work / "kept" / "tree", {"/data/one": "1\n"})
    file = foreign.squashfs(work / "kept" / "plain.sqsh", tree)
    (work / "link").symlink_to(work / "kept")
    (work / "other.sqsh").symlink_to(file)
    foreign.give(berth.account, tree, file)
    for path, _, _ in os.walk(tree):
        foreign.give(berth.account, path)
    flags = site.apply(a=f'[[rule]]\nname = "kept"\nwhen = {{ image = "{work}/kept/*" }}\nrefuse = "kept away"\n')
    named = [(name,) for name in (file, work / "other.sqsh", work / "link/plain.sqsh", f"{work}/x/../kept/plain.sqsh")]
    (work / "x").mkdir()
    named += [("--rootfs", name) for name in (tree, work / "link/tree", f"{work}/x/../kept/tree")]
    for words in named:
        line = berth.fail(*flags, "run", "--rm", *words, "true")
        assert line.startswith("berth: the site refuses this container: kept away (rule 'kept')"), words
        told = berth.run(*flags, "policy", "test", "--format", "json", words[-1], "true")
        assert json.loads(told.stdout)["refused"].endswith("kept away (rule 'kept')"), words
        assert told.stderr == ""


@contextlib.contextmanager
def instead_of_getent(work, script):
    fake = work / "getent"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    subprocess.run(["mount", "--bind", fake, "/usr/bin/getent"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "/usr/bin/getent"], check=True)


def test_a_name_service_that_does_not_answer_lets_nobody_past_a_rule(berth, busybox, site, work):
    """Who has a group that /etc/group does not name, and a rule for a group by its name."""
    group = 54321
    caller = Berth(berth.programs, dataclasses.replace(berth.account, groups=(group,)), berth.directory)
    flags = site.apply(a='[[rule]]\nname = "far"\nwhen = { group = "far" }\nrefuse = "not for you"\n')
    berth.ok("pull", "--quiet", busybox)
    run = (*flags, "run", "--rm", busybox, "true")
    with instead_of_getent(work, f"echo far:x:{group}:"):
        assert "not for you (rule 'far')" in caller.fail(*run)
    with instead_of_getent(work, "exit 2"):
        caller.ok(*run)  # it knows no such group
    for script, why in (("exit 1", "status 1"), ("kill -9 $$", "status 137")):
        with instead_of_getent(work, script):
            line = caller.fail(*run)
            numbers = [str(group)] if berth.account.kind == "root" else [str(berth.account.gid), str(group)]
            assert line.startswith("berth: cannot decide which rules of the site apply, because some depend on "
                                   "the caller's groups: ask the name service: getent group "), line
            assert line.endswith(f"{numbers[-1]}: {why}; try: numbers in 'when', which need no name service"), line
    flags = site.apply(a=f'[[rule]]\nname = "far"\nwhen = {{ group = "{group}" }}\nrefuse = "not for you"\n')
    with instead_of_getent(work, "exit 1"):
        assert "not for you (rule 'far')" in caller.fail(*run)  # a number asks nobody


@pytest.mark.profiles("user", "single_id")
def test_a_user_namespace_hides_nobodys_groups_from_a_rule(berth, busybox, site):
    flags = site.apply(a=f'[[rule]]\nwhen = {{ group = "{berth.account.gid}" }}\nrefuse = "not for you"\n')
    berth.ok("pull", "--quiet", busybox)
    assert "the site refuses this container: not for you" in berth.fail(*flags, "run", "--rm", busybox, "true")
    program, *words = berth.argv(*flags, "run", "--rm", busybox, "true")[-len(flags) - 9:]
    assert program.endswith("/berth")
    done = berth.account.run(["unshare", "-r", program, *words])
    assert (done.returncode, done.stderr.splitlines()[-1]) == (125, (
        "berth: cannot decide which rules of the site apply, because some depend on the caller's groups: see them in a "
        "user namespace; try: the same command outside of it"))


def test_a_required_signature_refuses_until_signatures_are_checked(berth, busybox, site):
    """Whichever way the key came into the policy: a key that did nothing would be believed."""
    berth.ok("pull", "--quiet", busybox)
    flags = site.apply(a='[[rule]]\nname = "signed"\nenv.A = "1"\n')
    path = site.directory / "policy.json"
    for value in (True, False):
        site.write("b.toml", f"[[rule]]\nsigned = {str(value).lower()}\n")
        assert site.refused().endswith("b.toml:2: signed: signatures of images are not checked by this Berth; try: "
                                       "'registries', and images by digest")
        policy = json.loads(path.read_text())
        policy["rules"][0]["rule"]["signed"] = value
        path.write_text(json.dumps(policy))
        why = (f"{path}: rule 'signed': signed: signatures of images are not checked by this Berth; try: berth policy "
               "apply")
        assert berth.fail(*flags, "run", "--rm", busybox, "true").endswith(why)
        assert berth.fail(*flags, "create", busybox).endswith(why)
        assert berth.fail(*flags, "pull", busybox, status=1).endswith(why)
    assert berth.ok("ps", "-aq") == ""


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
def test_a_forced_limit_is_the_most_and_no_more(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nulimits = ["nofile=64:64"]\nforce = true\n[[rule]]\nulimits = ["nofile=512"]\n')
    show = ("sh", "-c", "ulimit -n")
    assert berth.ok(*flags, "run", "--rm", "--ulimit", "nofile=512:512", busybox, *show) == "64\n"
    assert berth.ok(*flags, "run", "--rm", "--ulimit", "nofile=32:512", busybox, *show) == "32\n"
    assert berth.ok(*flags, "run", "--rm", busybox, *show) == "64\n"


@pytest.mark.profiles("root")
def test_an_update_stays_below_what_is_forced(berth, busybox, site):
    flags = site.apply(a='[[rule]]\nmemory = "64m"\ncpus = "1.5"\npids-limit = 50\nforce = true\n')
    args = ("--memory", "32m", "--cpu-period", "50000", "--cpu-quota", "10000")
    berth.ok(*flags, "create", "--name", "c1", *args, busybox, "true")
    most = {"--memory=65m": "--memory: the site allows at most 67108864 bytes",
            "--memory-swap=-1": "--memory-swap: the site allows at most 134217728 bytes",
            "--cpu-quota=80000": "--cpus: the site allows at most 1500 thousandths of a processor",
            "--cpu-quota=-1": "--cpus: the site allows at most 1500 thousandths of a processor",
            "--pids-limit=-1": "--pids-limit: the site allows at most 50"}
    for flag, why in most.items():
        assert berth.fail("update", flag, "c1", status=1) == f"berth: cannot update container 'c1': {why}"
    for flag in ("--memory=64m", "--cpu-quota=75000", "--pids-limit=50", "--restart=no"):
        berth.ok("update", flag, "c1")
    [told] = json.loads(berth.ok("inspect", "c1"))
    host = told["HostConfig"]
    assert (host["Memory"], host["CpuQuota"], host["PidsLimit"]) == (64 << 20, 75000, 50)


def test_an_update_gives_no_gpus_but_those_of_the_site(berth, busybox, site):
    flags = site.apply(a='[[rule]]\ngpus = "none"\nforce = true\n')
    berth.ok(*flags, "create", "--name", "c1", busybox, "true")
    assert berth.fail("update", "--gpus", "all", "c1", status=1) == (
        "berth: cannot update container 'c1': --gpus: a rule of the site sets its GPUs; try: berth explain c1")


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
    assert done.returncode == 0 and "the image is not in the store" in done.stderr
    told = json.loads(done.stdout)
    assert [(rule["rule"], rule["applied"]) for rule in told["rules"]] == [("gpus", True), ("alice", True)]
    assert {"key": "gpus", "value": "all", "rule": "gpus", "forced": True} in told["effects"]
    assert {"key": "mounts", "value": "/scratch/alice:/scratch", "rule": "alice", "forced": False} in told["effects"]
    assert told["refused"] is None
    table = berth.ok(*flags, "policy", "test", "--user", "bob", "--feature", "h100", busybox).splitlines()
    assert table[0].split() == ["FROM", "RULE", "APPLIES", "WHY"]
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


# Who has the file open can go on writing, whatever becomes of its owner and mode.
COPY = "; try: a copy in its place, which nobody else has open: cp {} COPY"


def test_a_file_that_others_can_write_is_refused(site):
    path = site.write("a.toml", '[[rule]]\nenv.X = "1"\n')
    path.chmod(0o646)
    assert site.refused() == f"berth: read '{path}': it is writable by others" + COPY.format(path)
    path.chmod(0o644)
    site.rules.chmod(0o777)
    assert "it is writable by others" in site.refused("lint")
    site.rules.chmod(0o755)
    site.apply()


def test_a_file_of_somebody_else_is_refused(site):
    path = site.write("a.toml", '[[rule]]\nenv.X = "1"\n')
    path.chmod(0o664)
    os.chown(path, -1, 12345)
    assert site.refused() == f"berth: read '{path}': it is writable by others" + COPY.format(path)
    path.chmod(0o644)
    os.chown(path, 12345, 12345)
    assert site.refused() == f"berth: read '{path}': it belongs to another user" + COPY.format(path)
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
