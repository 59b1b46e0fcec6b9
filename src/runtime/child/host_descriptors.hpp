// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/child/inside.hpp"

namespace berth::runtime {

/// Closes all that leads to the host, but for the standard streams, what the caller passes on, and
/// the sockets and loader's files of `inside`; once the process is in the container's root. From
/// then on the kernel resolves paths that the image chose: its program, that program's "#!" line
/// and ELF interpreter. No descriptor may be left through which /proc/self/fd/N leads to a
/// directory of the host (CVE-2024-21626); close on exec would be too late. Sockets lead nowhere.
/// Errors: usage (a standard stream is a directory).
Result<void> close_host_descriptors(Inside& inside);

}  // namespace berth::runtime
