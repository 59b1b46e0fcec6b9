// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/fd.hpp"

namespace berth::sys {

/// A UNIX stream socket that listens at `path`, at most 107 bytes, mode 0600. bind(2), listen(2)
Result<Fd> listen_unix(const std::string& path);

/// Waits for the next connection. accept4(2)
Result<Fd> accept_unix(const Fd& socket);

/// "/proc/PID/fd/N": fd_path() for other processes of the same user, while this one lives.
std::string shared_fd_path(const Fd& fd);

}  // namespace berth::sys
