// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/prune.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "engine/network/attachment.hpp"
#include "engine/network/connect.hpp"
#include "engine/network/network_store.hpp"

namespace berth::cli {
namespace {

// ---- create -------------------------------------------------------------------------------------

struct NetworkOptions {
  engine::NetworkRecord wish;
  std::map<std::string, std::string> labels;
  std::vector<std::string> subnets, gateways, ranges, options;
};

FlagTable create_network_flags(NetworkOptions& o) {
  return {
      {"driver", 'd', "NAME", "Network driver: only bridge", &o.wish.driver},
      {"gateway", 0, "ADDRESS",
       "The host's address in the network (default: the first of the subnet)", &o.gateways},
      {"internal", 0, "", "Block access to outside the network", &o.wish.internal},
      {"ip-range", 0, "ADDRESS/BITS", "Part of --subnet to take container addresses from",
       &o.ranges},
      {"label", 0, "K[=V]", "Set a label", read_label(o.labels)},
      {"opt", 'o', "K=V", "Driver option (the bridge driver has none)", &o.options},
      {"subnet", 0, "ADDRESS/BITS", "Subnet of the network (a free private one)", &o.subnets},
  };
}

Result<int> create_network(Session& session, const NetworkOptions& o, Arguments arguments) {
  // With an unknown driver the error is about the driver, not about its options.
  if (!o.options.empty() && (o.wish.driver.empty() || o.wish.driver == "bridge")) {
    return make_error(Kind::unsupported,
                      "--opt " + quote(o.options[0]) + ": networks of Berth have no options",
                      "leave it out");
  }
  if (o.subnets.size() > 1 || o.gateways.size() > 1 || o.ranges.size() > 1) {
    return make_error(Kind::unsupported, "a network of Berth has one subnet and one gateway",
                      "a network for each");
  }
  engine::NetworkRecord wish = o.wish;
  wish.name = arguments[0];
  if (!o.subnets.empty()) wish.subnet = o.subnets[0];
  if (!o.gateways.empty()) wish.gateway = o.gateways[0];
  if (!o.ranges.empty()) wish.range = o.ranges[0];
  wish.labels = o.labels;
  print(session, TRY(engine::make_network(session.context, std::move(wish))).id + "\n");
  return 0;
}

// ---- ls -----------------------------------------------------------------------------------------

struct NetworkListOptions {
  std::vector<engine::Filter> filters;
  std::string format;
  bool quiet = false;
  bool whole = false;
};

FlagTable list_network_flags(NetworkListOptions& o) {
  return {
      filter_flag(o.filters),
      template_flag(o.format),
      {"no-trunc", 0, "", "Do not truncate ids", &o.whole},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
  };
}

constexpr ListField kNetworkFields[] = {
    {"CreatedAt", "CREATED AT"}, {"Driver", "DRIVER"}, {"ID", "NETWORK ID"}, {"IPv6", "IPV6"},
    {"Internal", "INTERNAL"},    {"Labels", "LABELS"}, {"Name", "NAME"},     {"Scope", "SCOPE"},
};
constexpr ListKind kNetworks{
    .fields = kNetworkFields,
    .table = "{{.ID}}\t{{.Name}}\t{{.Driver}}\t{{.Scope}}",
    .raw = "network_id: {{.ID}}\nname: {{.Name}}\ndriver: {{.Driver}}\nscope: {{.Scope}}\n",
    .labels = true,
};

Result<int> list_networks(Session& session, const NetworkListOptions& o, Arguments) {
  const std::string format =
      o.quiet ? o.format : format_or_usual(session, o.format, "networksFormat");
  Listing listing = TRY(Listing::make(kNetworks, {.text = format, .quiet = o.quiet}));
  std::vector<ListRow> rows;
  engine::Filters filters(o.filters);
  for (const auto& one : TRY(engine::query_networks(session.context, filters))) {
    Labels labels(one.labels.begin(), one.labels.end());
    rows.push_back({{zoned_time(one.created_ns / 1'000'000'000), one.driver,
                     o.whole ? one.id : one.id.substr(0, 12), "false",
                     one.internal ? "true" : "false", labels_text(labels), one.name, "local"},
                    labels});
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

// ---- rm, prune ----------------------------------------------------------------------------------

struct NetworkRemoveOptions {
  bool force = false;
};

FlagTable remove_network_flags(NetworkRemoveOptions& o) {
  return {{"force", 'f', "", "Ignore missing ones", &o.force}};
}

Result<int> remove_networks(Session& session, const NetworkRemoveOptions& o, Arguments arguments) {
  return for_each_argument(session, arguments, [&](const std::string& name) -> Result<void> {
    auto removed = engine::remove_network(session.context, name);
    bool missing = !removed.ok() && removed.error().kind == Kind::not_found;
    if (!missing || !o.force) TRY(std::move(removed));
    print(session, name + "\n");
    return {};
  });
}

FlagTable prune_network_flags(PruneFlags& flags) {
  return prune_flags(flags);
}

Result<int> prune_unused_networks(Session& session, const PruneFlags& o, Arguments) {
  constexpr std::string_view kWarning =
      "WARNING! This will remove all custom networks not used by at least one container.";
  if (!o.force && !TRY(confirm(session, false, kWarning))) return 0;
  print_pruned(session,
               "Deleted Networks:", TRY(engine::prune_networks(session.context, prune_options(o))));
  return 0;
}

// ---- connect, disconnect ------------------------------------------------------------------------

struct ConnectOptions {
  engine::JoinedNetwork joined;
};

FlagTable connect_flags(ConnectOptions& o) {
  return {{"alias", 0, "NAME", "Add a DNS name for the container",
           [&o](std::string_view text) -> Result<void> {
             TRY(engine::check_network_alias(text));
             o.joined.aliases.emplace_back(text);
             return {};
           }},
          {"ip", 0, "ADDRESS", "Set the container's IP address", &o.joined.address}};
}

Result<int> connect(Session& session, const ConnectOptions& o, Arguments arguments) {
  engine::JoinedNetwork joined = o.joined;
  joined.name = arguments[0];
  TRY(engine::connect_network(session.context, joined, arguments[1]));
  return 0;
}

engine::NetworkUse changes_running(const std::vector<std::string>&) {
  return {.running = true};
}

struct DisconnectOptions {
  bool force = false;
};

FlagTable disconnect_flags(DisconnectOptions& o) {
  return {{"force", 'f', "", "No effect: the container is always disconnected", &o.force}};
}

Result<int> disconnect(Session& session, const DisconnectOptions&, Arguments arguments) {
  TRY(engine::disconnect_network(session.context, arguments[0], arguments[1]));
  return 0;
}

constexpr std::string_view kNoSwarm = "there is no swarm";
constexpr std::string_view kOneAllocator = "a container gets the lowest free address of --subnet";
constexpr std::string_view kIpv4Alone = "networks have only IPv4";
/// Flags of docker.
constexpr Elsewhere kCreateNetworkElsewhere[] = {
    {"attachable", "leave it out", "any network can be joined"},
    {"aux-address", "--ip for each container", kOneAllocator},
    {"config-from", "--subnet and --gateway", kNoSwarm},
    {"config-only", "--subnet and --gateway", kNoSwarm},
    {"ingress", "-p HOST:CONTAINER of berth run", kNoSwarm},
    {"ipam-driver", "leave it out", kOneAllocator},
    {"ipam-opt", "leave it out", kOneAllocator},
    {"ipv6", "leave it out", kIpv4Alone},
    {"scope", "leave it out", kNoSwarm},
};
constexpr Elsewhere kConnectElsewhere[] = {
    {"driver-opt", "leave it out", "a bridge has no options for one container"},
    {"ip6", "--ip", kIpv4Alone},
    {"link", "--alias NAME at the other container", "all containers of a network find each other"},
    {"link-local-ip", "--ip", kIpv4Alone},
};

}  // namespace

const Verb network_create_verb{
    .text = {.name = "network create",
             .arguments = "NAME",
             .summary = "Create a network, in which containers find each other by name",
             .example = "berth network create app"},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kCreateNetworkElsewhere,
    .command = [] { return make_command(create_network_flags, create_network); },
};
const Verb network_ls_verb{
    .text = {.name = "network ls",
             .summary = "List networks",
             .example = "berth network ls --filter driver=bridge"},
    .command = [] { return make_command(list_network_flags, list_networks); },
};
const Verb network_rm_verb{
    .text = {.name = "network rm",
             .arguments = "NETWORK [NETWORK...]",
             .summary = "Remove networks that no running container uses",
             .example = "berth network rm app",
             .complete = Complete::network},
    .arity = {1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(remove_network_flags, remove_networks); },
};
const Verb network_prune_verb{
    .text = {.name = "network prune",
             .summary = "Remove all networks that no running container uses",
             .example = "berth network prune --force"},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(prune_network_flags, prune_unused_networks); },
};
const Verb network_connect_verb{
    .text = {.name = "network connect",
             .arguments = "NETWORK CONTAINER",
             .summary = "Connect a container to a network",
             .example = "berth network connect --alias db app postgres",
             .complete = Complete::network},
    .arity = {2, 2},
    .needs = engine::Needs::user_namespace,
    .networks = changes_running,
    .elsewhere = kConnectElsewhere,
    .command = [] { return make_command(connect_flags, connect); },
};
const Verb network_disconnect_verb{
    .text = {.name = "network disconnect",
             .arguments = "NETWORK CONTAINER",
             .summary = "Disconnect a container from a network",
             .example = "berth network disconnect app postgres",
             .complete = Complete::network},
    .arity = {2, 2},
    .needs = engine::Needs::user_namespace,
    .networks = changes_running,
    .command = [] { return make_command(disconnect_flags, disconnect); },
};

}  // namespace berth::cli
