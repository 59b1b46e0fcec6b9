// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// Closes all descriptors that lead to the host, once the process is in the container's root. The
/// exceptions are the standard streams, the descriptors that the caller passes on, and the sockets
/// and loader files of `inside`. From now on the kernel resolves paths that the image chose: the
/// program, its "#!" line and its ELF interpreter. No descriptor may be left through which
/// /proc/self/fd/N leads to a directory of the host (CVE-2024-21626); close on exec would be too
/// late. A path cannot lead through a socket.
/// Errors: usage (a standard stream is a directory).
Result<void> close_host_descriptors(Inside& inside);

}  // namespace berth::runtime
