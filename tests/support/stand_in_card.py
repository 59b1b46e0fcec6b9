# SPDX-License-Identifier: Apache-2.0
"""Commands with a synthetic kernel module of NVIDIA's, of any version and without a card (stand_in_card.c), so that
NVIDIA's real libraries say of a mismatch, or of a node, what they say on a machine with a module.

    program = build(directory / "stand_in_card")
    card = StandIn(program, "550.163.01", directory / "log")
    done = card.berth(berth, tree, "gpu", "list")
    card.bare(tree.root, account)     # what the driver's programs say in the driver's root itself
    card.log()                        # each open of a node and each ioctl of the last command
"""

import pathlib
import subprocess

from support import start_images
from support.registry import die_with_parent

SOURCE = pathlib.Path(__file__).with_suffix(".c")
SECONDS = 60

BARE = """
set -e
root=$1
shift
mount -t tmpfs -o mode=755 none "$root/mnt"
mkdir "$root/mnt/driver" "$root/mnt/dev"
cp -a "$root"/dev/nvidia* /dev/null "$root/mnt/dev"
mount --bind "$root/mnt/dev" "$root/dev"
mount --bind "$root/proc/driver" "$root/mnt/driver"
mount -t proc proc "$root/proc"
mount --bind "$root/mnt/driver" "$root/proc/driver"
exec setpriv --no-new-privs chroot "$@" "$root" /start
"""

# A /dev of its own with the nodes of a tree alone, as a machine has them: NVML of a process with root's rights makes
# those that it misses.
MACHINE = """
set -e
root=$1
shift
mount -t tmpfs -o mode=755 none /mnt
mkdir /mnt/old /mnt/new
mount --rbind /dev /mnt/old
mount -t tmpfs -o mode=755 none /mnt/new
for name in $(ls /mnt/old); do
  case $name in
    nvidia*) ;;
    *) if [ -d "/mnt/old/$name" ] && [ ! -L "/mnt/old/$name" ]; then
         mkdir "/mnt/new/$name"
         mount --rbind "/mnt/old/$name" "/mnt/new/$name"
       else
         cp -a "/mnt/old/$name" /mnt/new
       fi ;;
  esac
done
cp -a "$root"/dev/nvidia* /mnt/new
mount --rbind /mnt/new /dev
umount --lazy /mnt
exec "$@"
"""


def build(path):
    """The static program."""
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-static", "-o", path, SOURCE], check=True)
    return path


class StandIn:
    def __init__(self, program, version, log):
        self.program, self.version, self._log = program, version, log

    def run(self, words, **options):
        return subprocess.run([self.program, self.version, self._log, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=SECONDS, preexec_fn=die_with_parent, **options)

    def berth(self, berth, tree, *words):
        """A command of Berth's on a machine with the driver and the nodes of `tree`."""
        words = berth.argv("--driver-root", tree.root, *words)
        return self.run(["unshare", "--mount", "sh", "-c", MACHINE, "sh", tree.root, *words], env=berth.account.environment(), cwd=berth.directory)

    def bare(self, root, account):
        """The answers of a root itself. No program gets rights by its mode, as in a container: nvidia-modprobe would
        mend the nodes."""
        start_images.add_questions(root)
        (root / "mnt").mkdir(exist_ok=True)
        who = [] if account.kind == "root" else [f"--userspec={account.uid}:{account.gid}"]
        done = self.run(["env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "unshare", "--mount",
                         "--pid", "--fork", "sh", "-c", BARE, "sh", root, *who])
        assert done.returncode == 0, done
        return start_images.answers(done.stdout)

    def log(self):
        return self._log.read_text()
