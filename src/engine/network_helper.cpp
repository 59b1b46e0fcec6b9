// SPDX-License-Identifier: Apache-2.0
#include "engine/network_helper.hpp"

#include <fcntl.h>

#include <utility>

#include "base/text.hpp"
#include "engine/find_in_path.hpp"
#include "engine/networks.hpp"
#include "engine/privilege.hpp"
#include "sys/file.hpp"
#include "sys/packages.hpp"

namespace berth::engine {
namespace {

constexpr const char* kTun = "/dev/net/tun";

/// A helper opens it in the container's namespace, as the same user.
Result<void> check_tun() {
  auto opened = sys::open_at(sys::cwd(), kTun, O_RDWR);
  if (opened.ok()) return {};
  Error error = std::move(opened).error();
  error.hint = error.kind == Kind::not_found ? "as root: modprobe tun; or --network host or none"
                                             : "as root: chmod 666 /dev/net/tun; or --network host "
                                               "or none";
  return std::move(error).with_context("cannot give the container a network");
}

/// slirp4netns first: Debian 12's pasta, of March 2023, repeats bytes and loses ends of connections
/// of which one side has stopped speaking.
std::vector<std::string> helpers_for(const RunRequest& request) {
  if (request.network == Network::pasta) return {network::kPasta};
  if (request.network == Network::slirp4netns) return {network::kSlirp};
  return {network::kSlirp, network::kPasta};
}

}  // namespace

Result<void> choose_helper(const Context& context, const RunRequest& asked,
                           network::Request& request) {
  std::vector<std::string> helpers = helpers_for(asked);
  for (const std::string& helper : helpers) {
    request.mode = helper;
    request.program = find_in_path(context, helper);
    if (!request.program.empty()) return check_tun();
  }
  bool any = helpers.size() > 1;
  std::string names = any ? "'slirp4netns' or 'pasta'" : quote(request.mode);
  const char* package = request.mode == network::kPasta && !any ? "passt" : "slirp4netns";
  return make_error(Kind::unsupported, "find " + names + " in PATH",
                    sys::how_to_install(package) + ", or --network host or none")
      .with_context("cannot give the container a network");
}

Result<void> choose_outside(const Context& context, const RunRequest& asked,
                            network::Request& request) {
  TRY(choose_helper(context, asked, request));
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
