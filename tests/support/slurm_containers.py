# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster with Berth's plugin, and one of its users."""

import os
import shutil
import subprocess

from support.registry import die_with_parent
from support.slurm import PATIENCE, Cluster

# After a job's end its variables are gone: then use those of its user's last Submitter.
PLACE = '[ -n "$TEST_ROOT" ] || . "${0%/*}/place-$(id -u)"'
# The submitter's store: each test has its own, and TEST_ROOT_n2 if a node has another.
STARTER = """\
#!/bin/sh
{place}
if [ "$SLURMD_NODENAME" = "$TEST_FAILS_ON" ]; then echo "berth: told to fail" >&2; exit 125; fi
eval "own=\\$TEST_ROOT_$SLURMD_NODENAME"
exec {programs}/berth --root "${{own:-$TEST_ROOT}}" --state "$TEST_STATE" ${{TEST_TREE:+--driver-root "$TEST_TREE"}} \
    ${{TEST_CONFIG:+--config-dir "$TEST_CONFIG"}} "$@"
"""


def with_plugin(directory, programs, arguments=(), starter=STARTER, **options):
    """A Cluster with containers for steps."""
    text, starter = starter, directory / "berth-of-the-test"
    starter.write_text(text.format(programs=programs, place=PLACE))
    starter.chmod(0o755)
    plugin = directory / "spank_berth.so"
    shutil.copy2(programs / plugin.name, plugin)
    lines = [f"PlugStackConfig={directory}/plugstack.conf", *options.pop("lines", ())]
    cluster = Cluster(directory, lines=lines, **options)
    cluster.write("plugstack.conf", " ".join(["required", str(plugin), f"berth={starter}", *arguments]))
    return cluster


class Submitter:
    """srun, sbatch etc. as the user of `berth`, with that user's store."""

    def __init__(self, cluster, berth):
        self.cluster, self.berth = cluster, berth
        cluster.write(f"place-{berth.account.uid}", f'TEST_ROOT="{berth.root}"', f'TEST_STATE="{berth.state}"')

    def environment(self, **more):
        return self.berth.account.environment(
            SLURM_CONF=self.cluster.environment["SLURM_CONF"], TEST_ROOT=self.berth.root,
            TEST_STATE=self.berth.state, **more)

    def command(self, *words):
        return [*self.cluster.inside, *self.berth.account.command(words)]

    def call(self, *words, env=None, input=None, timeout=PATIENCE):
        feed = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        return subprocess.run(self.command(*words), env=self.environment(**(env or {})), text=True,
                              capture_output=True, cwd=self.berth.directory, timeout=timeout,
                              preexec_fn=die_with_parent, check=False, **feed)

    def srun(self, *words, **options):
        """Returns the standard output of a step that must succeed."""
        done = self.call("srun", *words, **options)
        assert done.returncode == 0, (done.args, done.stdout, done.stderr)
        return done.stdout

    def refused(self, *words, **options):
        """Returns the error output of a step that must fail."""
        done = self.call("srun", *words, **options)
        assert done.returncode != 0, (done.args, done.stdout, done.stderr)
        return done.stderr

    def spawn(self, *words, env=None):
        return subprocess.Popen(self.command(*words), env=self.environment(**(env or {})), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.berth.directory,
                                preexec_fn=die_with_parent)

    def containers(self):
        return os.listdir(self.berth.root / "containers") if self.berth.root.exists() else []
