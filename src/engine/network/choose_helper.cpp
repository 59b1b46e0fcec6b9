// SPDX-License-Identifier: Apache-2.0
#include "engine/network/choose_helper.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "engine/network/network_store.hpp"
#include "network/address.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {
namespace {

constexpr const char* kTun = "/dev/net/tun";
constexpr std::chrono::seconds kHelpPatience{5};

/// Checks /dev/net/tun, which a helper opens in the container's namespace as the same user.
Result<void> check_tun() {
  auto opened = sys::open_at(sys::cwd(), kTun, O_RDWR);
  if (opened.ok()) return {};
  Error error = std::move(opened).error();
  error.hint = error.kind == Kind::not_found ? "as root: modprobe tun; or --network host or none"
                                             : "as root: chmod 666 /dev/net/tun; or --network host "
                                               "or none";
  return std::move(error).with_context("cannot give the container a network");
}

/// The helpers for one container, in order of preference: a pasta from autumn 2024 or later comes
/// first. The pasta of Debian 12 (March 2023) repeats bytes, and loses the end of a connection once
/// the peer has stopped sending.
std::vector<std::string> helpers_of_a_container(const Context& context) {
  sys::SpawnOptions options;
  options.program = find_in_path(context, network::kPasta);
  options.args = {network::kPasta, "--help"};
  if (options.program.empty()) return {network::kSlirp, network::kPasta};
  auto told = sys::run_command(std::move(options), "", kHelpPatience);
  if (told.ok() && is_new_pasta(told->out + told->err)) return {network::kPasta, network::kSlirp};
  return {network::kSlirp, network::kPasta};
}

/// Chooses the first of `helpers` that is installed; if `asked` names one, only that one.
Result<void> choose(const Context& context, const RunRequest& asked,
                    std::vector<std::string> helpers, network::Request& request) {
  if (asked.network == Network::pasta) helpers = {network::kPasta};
  if (asked.network == Network::slirp4netns) helpers = {network::kSlirp};
  for (const std::string& helper : helpers) {
    request.mode = helper;
    request.program = find_in_path(context, helper);
    if (!request.program.empty()) return check_tun();
  }
  std::string names = helpers.size() > 1 ? "'slirp4netns' or 'pasta'" : quote(request.mode);
  bool is_pasta = names == quote(network::kPasta);
  std::string remedy = sys::how_to_install(is_pasta ? "passt" : "slirp4netns");
  if (helpers.size() > 1) remedy += ", or passt of 2025 or later";
  return make_error(Kind::unsupported, "find " + names + " in PATH",
                    remedy + ", or --network host or none")
      .with_context("cannot give the container a network");
}

}  // namespace

bool is_new_pasta(std::string_view help) {
  return help.find("--map-guest-addr") != std::string_view::npos;
}

Result<void> choose_helper(const Context& context, const RunRequest& asked,
                           network::Request& request) {
  bool is_named = asked.network == Network::pasta || asked.network == Network::slirp4netns;
  // slirp4netns publishes only at IPv4 addresses.
  bool needs_ipv6 = std::ranges::any_of(asked.publish, [](const network::Publish& port) {
    return network::is_ipv6(port.host_address);
  });
  std::vector<std::string> helpers = {network::kPasta};
  if (!is_named && !needs_ipv6) helpers = helpers_of_a_container(context);
  return choose(context, asked, std::move(helpers), request);
}

Result<void> choose_outside(const Context& context, const RunRequest& asked,
                            network::Request& request) {
  // Only slirp4netns can publish ports while it runs.
  TRY(choose(context, asked, {network::kSlirp, network::kPasta}, request));
  request.outside = std::exchange(request.mode, network::kBridge);
  request.foreign_space = context.foreign_space;
  for (const NetworkRecord& one : TRY(list_networks(context))) request.taken.push_back(one.subnet);
  return {};
}

Result<network::Request> holder_request(const Context& context) {
  RunRequest any;
  any.network = Network::bridge;
  network::Request request;
  TRY(choose_outside(context, any, request));
  return request;
}

}  // namespace berth::engine
