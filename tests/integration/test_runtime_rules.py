# SPDX-License-Identifier: Apache-2.0
"""The site's rules in a bundle that berth-runtime starts for another engine: policy.json alone is
read."""

import json

import pytest

from support.oci_fixtures import bundle, kind, place, runtime  # noqa: F401


class Site:
    """A policy.json of the test's own, as `berth policy apply` writes it."""

    def __init__(self, runtime, place):
        self.directory, self.state = place / "site", place / "berth"
        self.directory.mkdir()
        self.flags = []
        plain = runtime.command

        def command(*words):
            argv = plain(*words)
            program = argv.index(runtime.program)
            flags = ["--config-dir", str(self.directory), "--state", str(self.state)]
            return [*argv[:program + 1], *flags, *self.flags, *argv[program + 1:]]
        runtime.command = command

    def write(self, *rules):
        placed = [{"place": f"x.toml:{number}", "rule": rule} for number, rule in enumerate(rules, 1)]
        path = self.directory / "policy.json"
        path.write_text(json.dumps({"format": 1, "policy": {}, "rules": placed}))
        path.chmod(0o644)


@pytest.fixture
def site(runtime, place):
    return Site(runtime, place)


def test_mounts_and_variables_come_with_a_rule(runtime, bundle, place, site):
    shared = place / "shared"
    shared.mkdir()
    (shared / "hello").write_text("from the site\n")
    shared.chmod(0o755)
    bundle.process["env"] = ["PATH=/bin", "A=theirs", "B=theirs"]
    site.write({"mounts": [f"{shared}:/site:ro"], "env": {"A": "site", "C": "site"}, "env-force": {"B": "site"}},
               {"when": [{"env": ["NOT_THERE"]}], "env": {"D": "site"}})
    done = runtime.run(bundle.shell("cat /site/hello; echo $A $B $C $D"))
    assert (done.returncode, done.stdout) == (0, "from the site\ntheirs site site\n")


def test_annotations_are_labels_and_a_rule_may_refuse(runtime, bundle, site):
    site.write({"name": "closed", "when": [{"label": ["tier=g*"]}], "refuse": "not today"})
    assert runtime.run(bundle.shell("echo x")).stdout == "x\n"
    bundle.config["annotations"] = {"tier": "gold"}
    done = runtime.run(bundle.shell("echo x"))
    assert done.returncode != 0 and done.stdout == ""
    assert "the site refuses this container: not today (rule 'closed')" in done.stderr


def test_limits_of_processes_are_forced_down(runtime, bundle, site):
    bundle.process["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 256, "hard": 256}]
    site.write({"ulimits": ["nofile=64:64"], "force": True})
    assert runtime.run(bundle.shell("ulimit -n")).stdout == "64\n"


def test_a_forced_ulimit_raises_none(runtime, bundle, site):
    bundle.process["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": 32, "hard": 256}]
    site.write({"ulimits": ["nofile=64:64"], "force": True}, {"ulimits": ["nofile=512"]})
    assert runtime.run(bundle.shell("ulimit -Sn; ulimit -Hn")).stdout == "32\n64\n"


def test_shared_memory_is_forced_down_however_its_size_is_written(runtime, bundle, site):
    site.write({"shm-size": "1m", "force": True})
    [shm] = [mount for mount in bundle.config["mounts"] if mount["destination"] == "/dev/shm"]
    for options in (["size=0"], ["nr_blocks=0"], ["size=64k", "size=100%"], ["size=2g"], []):
        shm["options"] = ["nosuid", "mode=1777", *options]
        shown = runtime.run(bundle.shell("grep ' /dev/shm ' /proc/mounts")).stdout
        assert "size=1024k" in shown and "nr_" not in shown, (options, shown)
    shm.update(destination="/dev//shm/", options=["size=64k"])
    assert "size=64k" in runtime.run(bundle.shell("grep ' /dev/shm ' /proc/mounts")).stdout


def test_nobody_but_berths_own_engine_says_that_all_is_decided(runtime, bundle, site):
    """Images write annotations, under podman, and users do; a runtime's command line is the engine's."""
    site.write({"refuse": "never"})
    bundle.config["annotations"] = {"dev.berth.gpus-decided": "yes", "dev.berth.decided": "yes"}
    done = runtime.run(bundle.shell("echo x"))
    assert done.returncode != 0 and "the site refuses this container: never" in done.stderr
    site.flags = ["--decided"]
    assert runtime.run(bundle.shell("echo x")).stdout == "x\n"


def test_a_user_namespace_hides_nobodys_groups_from_a_rule(runtime, bundle, site):
    site.write({"unless": [{"group": ["0", "65534"]}], "refuse": "not for you"})
    of_initial = runtime.command

    def command(*words):
        argv = of_initial(*words)
        program = argv.index(runtime.program)
        return [*argv[:program], "unshare", "-r", *argv[program:]]
    runtime.command = command
    done = runtime.run(bundle.shell("echo x"))
    assert done.returncode != 0 and done.stdout == ""
    assert "because some depend on the caller's groups: nobody sees them in a user namespace" in done.stderr


def test_a_required_signature_refuses(runtime, bundle, site):
    for value in (True, False):
        site.write({"name": "ours", "signed": value})
        done = runtime.run(bundle.shell("echo x"))
        assert done.returncode != 0 and done.stdout == ""
        assert "rule 'ours': signed: signatures of images are not checked by this Berth" in done.stderr


def test_a_policy_that_others_can_write_stops_the_container(runtime, bundle, site):
    site.write({"env": {"A": "1"}})
    (site.directory / "policy.json").chmod(0o666)
    done = runtime.run(bundle.shell("echo x"))
    assert done.returncode != 0 and "it is writable by others" in done.stderr
