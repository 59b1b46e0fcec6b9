// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/request/request.hpp"

/// The texts of /etc/hosts and /etc/resolv.conf in a container. Pure.
namespace berth::engine {

/// `host_text`: the host's own file, which those who share its network get. Others get loopback and
/// their own name. --add-host comes after both.
/// Errors: unsupported (host-gateway where there is no way to the host).
Result<std::string> hosts_text(const RunRequest& request, std::string_view hostname,
                               std::string_view host_text);

/// The host's file, with what --dns, --dns-search and --dns-option say in the place of its own; a
/// search domain of "." means none.
std::string resolver_text(const RunRequest& request, std::string_view host_text);

}  // namespace berth::engine
