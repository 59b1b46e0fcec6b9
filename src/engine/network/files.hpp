// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/request/request.hpp"

/// The texts of /etc/hosts and /etc/resolv.conf in a container. Pure.
namespace berth::engine {

/// `host_text`: the host's own file, used with the host's network. Other containers get loopback
/// and their own name. --add-host comes last.
/// Errors: unsupported (host-gateway without a route to the host).
Result<std::string> hosts_text(const RunRequest& request, std::string_view hostname,
                               std::string_view host_text);

/// The host's file, with the values of --dns, --dns-search and --dns-option instead of its own; a
/// search domain of "." means none.
std::string resolver_text(const RunRequest& request, std::string_view host_text);

}  // namespace berth::engine
