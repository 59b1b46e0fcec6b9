// SPDX-License-Identifier: Apache-2.0
#include "engine/network/space.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/context/paths.hpp"
#include "engine/context/privilege.hpp"
#include "engine/network/attachment.hpp"
#include "engine/network/choose_helper.hpp"
#include "engine/network/leases.hpp"
#include "engine/network/network.hpp"
#include "engine/network/network_store.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

bool is_named(const JoinedNetwork& joined) {
  return joined.name != kDefaultNetwork;
}

bool asks_for_networks(const Context& context, const NetworkUse& use) {
  bool asked = std::ranges::any_of(use.networks, [&](const auto& text) {
    // A later parse reports errors.
    auto joined = parse_joined_network(context, text);
    return joined.ok() && is_named(*joined);
  });
  return asked || std::ranges::any_of(use.containers, [&](const auto& name) {
           auto request = request_of(context, name);
           return request && std::ranges::any_of(request->networks, is_named);
         });
}

/// The current state of the networks.
struct NetworkPlace {
  std::optional<network::ProcessName> process;  ///< a process in the user namespace
  bool held = false;                            ///< `process` is the holder
  size_t stranded = 0;                          ///< containers of a holder that was killed
};

Result<NetworkPlace> look_at_place(const Context& context) {
  NetworkPlace place;
  if (auto holder = TRY(find_holder(context))) {
    place.process = holder->process;
    place.held = true;
    return place;
  }
  // If the holder was killed, its containers are still in the namespace to join.
  for (const auto& [id, lease] : list_leases(context)) {
    if (lease.outside.empty()) continue;
    place.process = lease.holder;
    ++place.stranded;
  }
  return place;
}

Result<Identity> enter_space(const network::ProcessName& process) {
  return TRY_CTX(join_user_namespace(process.pid, process.start_time),
                 "cannot join the user namespace of the networks");
}

}  // namespace

Result<std::optional<Identity>> join_network_users(const Context& context, const NetworkUse& use) {
  if (context.identity == Identity::root || in_foreign_namespace())
    return std::optional<Identity>();
  bool starts = asks_for_networks(context, use);
  if (!starts && !use.running) return std::optional<Identity>();
  TRY(make_directories(context.paths));
  const std::string path = network_directory(context);
  TRY(sys::make_directories(sys::cwd(), path, 0700));
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  // Of two first starts at the same time, one makes the namespace, and the other joins it.
  sys::Fd lock =
      TRY(sys::open_at(directory, network::kHolderLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY(sys::wait_lock(lock, sys::LockMode::exclusive, path + "/" + network::kHolderLock));
  NetworkPlace place = TRY(look_at_place(context));
  for (int attempt = 0; place.held || (place.process && !starts); ++attempt) {
    auto joined = enter_space(*place.process);
    bool has_ended = !joined.ok() && joined.error().kind == Kind::not_found;
    if (!has_ended || attempt > 0) return std::optional<Identity>(TRY(std::move(joined)));
    place = TRY(look_at_place(context));  // the holder was killed since the first call
  }
  if (!starts) return std::optional<Identity>();
  network::Request request = TRY(holder_request(context));
  Context inside = context;
  inside.identity = TRY(place.process ? enter_space(*place.process)
                                      : enter_identity(Needs::user_namespace, context.log));
  if (place.stranded > 0) {
    context.log.warn("the holder of the networks was killed: " + std::to_string(place.stranded) +
                     " running containers have lost them; making new ones");
  }
  TRY(call_network(inside, {"provide", json::write(request)}));
  return std::optional<Identity>(inside.identity);
}

}  // namespace berth::engine
