# SPDX-License-Identifier: Apache-2.0
"""Layers with files that hide, replace and link to one another, below /tree, and a listing as a container
sees them.

    reference = push(images.build(tree_image.layers()))
    berth.ok("run", "--rm", reference, "sh", "-c", tree_image.LOOK)
"""

from support import images

# Everything in a tree except the sizes of directories, which depend on the file system.
LOOK = ("cd /tree && find . | sort | while read f; do "
        "stat -c '%n %F %a %u %g %h %Y %t %T' \"$f\"; [ -d \"$f\" ] || stat -c %s \"$f\"; "
        "[ ! -f \"$f\" ] || md5sum \"$f\"; [ ! -L \"$f\" ] || readlink \"$f\"; done")


def layers(nodes=False):
    """busybox and two layers, with sizes around a block; with `nodes` also a fifo and a device."""
    low = [images.directory("tree", mode=0o755), images.directory("tree/gone", mode=0o700),
           images.file("tree/gone/x", b"x"), images.directory("tree/merged", mode=0o751),
           images.file("tree/merged/low", b"low"), images.file("tree/hidden", b"1"),
           images.file("tree/owned", b"o", mode=0o4755, uid=33, gid=34),
           images.symlink("tree/link", "owned")]
    if nodes:
        low += [images.fifo("tree/pipe"), images.character_device("tree/device", 1, 3)]
    low += [images.file(f"tree/size{size}", bytes(range(256)) * (size // 256) + bytes(size % 256))
            for size in (0, 1, 4031, 4032, 4096, 4097, 65536, 1 << 20)]
    low += [images.directory("tree/many", mode=0o755)]
    low += [images.file(f"tree/many/file-{n:04}", str(n).encode()) for n in range(1000)]
    high = [images.directory("tree", mode=0o755), images.whiteout("tree/hidden"),
            images.opaque("tree/gone"), images.directory("tree/gone", mode=0o711),
            images.file("tree/gone/new", b"new"), images.directory("tree/merged", mode=0o755),
            images.file("tree/merged/high", b"high"),
            images.hardlink("tree/twice", "tree/merged/high")]
    return [images.busybox_layer(), images.layer(low), images.layer(high)]
