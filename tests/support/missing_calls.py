# SPDX-License-Identifier: Apache-2.0
"""Simulates a kernel without a system call by a seccomp filter that returns ENOSYS."""

import ctypes
import errno
import struct

NUMBERS = {  # on x86-64; from 424 on equal on all architectures
    "memfd_create": 319, "bpf": 321, "statx": 332, "pidfd_send_signal": 424, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "pidfd_open": 434,
    "clone3": 435, "close_range": 436, "openat2": 437, "mount_setattr": 442}
# All kernels have them, but not all file systems and filters support them.
EVERYWHERE = {"flock": 73, "sched_setaffinity": 203, "set_mempolicy": 238, "get_mempolicy": 239}
DETACHED_MOUNTS = ("fsopen", "fsconfig", "fsmount", "open_tree", "move_mount", "mount_setattr")
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def without(*names):
    """For subprocess's preexec_fn, as root: the child and its children lack `names`. The filter checks only
    the number: berth-runtime makes no 32-bit calls."""
    code = struct.pack("HBBI", LOAD_WORD, 0, 0, 0)
    for name in names:
        code += struct.pack("HBBI", JUMP_EQUAL, 0, 1, (NUMBERS | EVERYWHERE)[name])
        code += struct.pack("HBBI", RETURN, 0, 0, ERRNO | errno.ENOSYS)
    code += struct.pack("HBBI", RETURN, 0, 0, ALLOW)
    instructions = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply():
        if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "load the seccomp filter")

    apply.instructions = instructions  # it must outlive the fork
    return apply
