// SPDX-License-Identifier: Apache-2.0
#include "engine/network/connect.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/network/attachment.hpp"
#include "engine/network/leases.hpp"
#include "engine/network/network.hpp"
#include "engine/network/network_store.hpp"
#include "engine/state/directory.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"
#include "oci/config.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxConnectedConfig = size_t{16} << 20;

/// A container to connect or disconnect, with its lock held (take_turn()).
struct Changing {
  ContainerSummary summary;
  NetworkRecord network;
  sys::Fd files;
  sys::Fd turn;
  RunRequest request;
  bool runs() const {
    return summary.state == ContainerState::running || summary.state == ContainerState::paused;
  }
};

Result<Changing> open_container(const Context& context, std::string_view network,
                                std::string_view reference) {
  Changing changing;
  auto record = TRY(find_network(context, network));
  if (!record) {
    return make_error(Kind::not_found,
                      "network " + escape_controls(network.substr(0, 255)) + " not found",
                      "berth network ls");
  }
  changing.network = std::move(*record);
  changing.summary = TRY(get_container(context, reference));
  const ContainerSummary& summary = changing.summary;
  const std::string path = files_of(context, summary);
  changing.files = TRY(sys::open_at(sys::cwd(), path, O_DIRECTORY | O_RDONLY));
  changing.turn = TRY(take_turn(changing.files, summary.name));
  auto text = TRY(sys::read_file_if_exists(changing.files, kRequestFile, kMaxRequest));
  if (!text) {
    return make_error(Kind::unsupported,
                      "container " + quote(summary.name) + " has no list of its networks",
                      "-d when it is started, or --network NAME");
  }
  changing.request = TRY(parse_run_request(*text));
  RunRequest& request = changing.request;
  // The default network, if the request names none.
  if (request.network == Network::bridge && request.networks.empty()) {
    request.networks.push_back({std::string(kDefaultNetwork), {}, "", request.mac_address});
  }
  return changing;
}

bool is_in(const RunRequest& request, const std::string& network) {
  return std::ranges::any_of(request.networks,
                             [&](const JoinedNetwork& one) { return one.name == network; });
}

/// Fails for an ordinary user's container that was started without a named network: it is in
/// another user namespace than the containers in named networks.
Result<void> check_can_change(const Context& context, const Changing& changing) {
  if (context.identity == Identity::root) return {};
  auto lease = TRY(find_lease(context, changing.summary.id));
  if (lease && !lease->outside.empty()) return {};
  const std::string& name = changing.summary.name;
  const std::string& network = changing.network.name;
  return make_error(
      Kind::unsupported,
      "connect container " + quote(name) +
          ": it was started without a named network, and cannot get one while it runs",
      "berth stop " + name + ", berth network connect " + network + " " + name + ", berth start " +
          name);
}

/// Saves the change for the next start: in the request, which berth uses, and in the config, which
/// the monitor uses.
Result<void> keep(const Context& context, Changing& changing) {
  RunRequest& request = changing.request;
  request.name = changing.summary.name;
  request.network_asked = true;
  const std::string config = std::string(kBundleDirectory) + "/config.json";
  auto text = TRY(sys::read_file_if_exists(changing.files, config, kMaxConnectedConfig));
  if (text) {
    oci::Spec spec = TRY(oci::parse_spec(*text, config));
    std::vector<network::Attachment> attachments =
        TRY(attachments_of(context, request, changing.summary.id));
    change_networks(spec, attachments);
    TRY(sys::replace_file(changing.files, config, oci::write_spec(spec), 0600));
  }
  request.network = request.networks.empty() ? Network::none : Network::bridge;
  bool only_default =
      request.networks.size() == 1 && request.networks.front().name == kDefaultNetwork;
  if (only_default) request.networks.clear();
  return sys::replace_file(changing.files, kRequestFile, json::write(request), 0600);
}

void emit_network_event(const Context& context, const Changing& changing, const char* action) {
  emit_event(context.paths, {"network",
                             action,
                             changing.network.id,
                             {{"container", changing.summary.id},
                              {"name", changing.network.name},
                              {"type", changing.network.driver}}});
}

}  // namespace

Result<void> connect_network(const Context& context, const JoinedNetwork& joined,
                             std::string_view reference) {
  Changing changing = TRY(open_container(context, joined.name, reference));
  RunRequest& request = changing.request;
  const std::string& network = changing.network.name;
  if (network == "host" || network == "none") {
    return make_error(Kind::usage, "container cannot be connected to " + network + " network");
  }
  bool can_join = request.network == Network::bridge || request.network == Network::none;
  if (!can_join) {
    return make_error(Kind::usage, "container " + quote(changing.summary.name) + " has network " +
                                       quote(to_json_text(request.network)) +
                                       ", which cannot be combined with another one");
  }
  if (is_in(request, network)) {
    return make_error(Kind::exists, "endpoint with name " + changing.summary.name +
                                        " already exists in network " + network);
  }
  JoinedNetwork wanted = joined;
  wanted.name = network;
  auto attachment = TRY(attachment_of(context, wanted, changing.summary.name, changing.summary.id));
  if (changing.runs()) {
    TRY(check_can_change(context, changing));
    TRY(call_network(context, {"connect", changing.summary.id, json::write(attachment)}));
  }
  request.networks.push_back(std::move(wanted));
  TRY(keep(context, changing));
  emit_network_event(context, changing, "connect");
  return {};
}

Result<void> disconnect_network(const Context& context, std::string_view network,
                                std::string_view reference) {
  Changing changing = TRY(open_container(context, network, reference));
  RunRequest& request = changing.request;
  const std::string& name = changing.network.name;
  if (!is_in(request, name)) {
    return make_error(Kind::not_found,
                      "container " + changing.summary.id + " is not connected to network " + name,
                      "berth network inspect " + name);
  }
  if (changing.runs()) {
    std::string id = name == kDefaultNetwork ? "" : changing.network.id;
    TRY(call_network(context, {"disconnect", changing.summary.id, id}));
  }
  std::erase_if(request.networks, [&](const JoinedNetwork& one) { return one.name == name; });
  TRY(keep(context, changing));
  emit_network_event(context, changing, "disconnect");
  return {};
}

}  // namespace berth::engine
