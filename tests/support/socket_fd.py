# SPDX-License-Identifier: Apache-2.0
"""Descriptors received over a UNIX socket."""

import array
import socket


def receive_fd(connection: socket.socket) -> int:
    fds = array.array("i")
    _, control, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(fds.itemsize))
    for level, kind, data in control:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[:fds.itemsize])
    assert len(fds) == 1, "no descriptor came along"
    return fds[0]
