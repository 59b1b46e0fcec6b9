// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/container_query.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "engine/container/health_settings.hpp"
#include "engine/image/images.hpp"
#include "engine/image/store.hpp"
#include "engine/image/tree_size.hpp"
#include "engine/network/leases.hpp"
#include "engine/network/network.hpp"
#include "engine/state/directory.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr std::array<std::string_view, 7> kStates = {"created", "restarting", "running", "removing",
                                                     "paused",  "exited",     "dead"};

/// Images, each read once.
class Images {
 public:
  explicit Images(const Context& context) : context_(context) {}

  /// Null if the image was removed.
  const image::Image* find(const std::string& name) {
    auto known = images_.find(name);
    if (known == images_.end()) known = images_.emplace(name, look_up(name)).first;
    return known->second ? &*known->second : nullptr;
  }

 private:
  std::optional<image::Image> look_up(const std::string& name) const {
    if (name.empty()) return std::nullopt;
    auto store = open_store(context_);
    if (!store.ok()) return std::nullopt;
    auto found = store->find_image(name);
    return found.ok() ? *found : std::nullopt;
  }

  const Context& context_;
  std::map<std::string, std::optional<image::Image>> images_;
};

/// Whether `image` is `from` or was built on it: the layers and the history of `image` begin with
/// those of `from`, and at least one of the two is longer. Equal layers alone are not enough,
/// because scripts remove the containers that are listed.
bool descends(const image::Image& image, const image::Image& from) {
  if (image.id == from.id) return true;
  const auto& layers = image.config.rootfs.diff_ids;
  const auto& below = from.config.rootfs.diff_ids;
  const auto& history = image.config.history;
  const auto& before = from.config.history;
  auto same = [](const oci::History& a, const oci::History& b) {
    return a.created == b.created && a.created_by == b.created_by && a.comment == b.comment;
  };
  bool longer = layers.size() > below.size() || history.size() > before.size();
  return longer && below.size() <= layers.size() && before.size() <= history.size() &&
         std::equal(below.begin(), below.end(), layers.begin()) &&
         std::equal(before.begin(), before.end(), history.begin(), same);
}

ContainerDetails details_of(const Context& context, const ContainerSummary& summary, Images& images,
                            const network::Lease* lease) {
  ContainerDetails details;
  oci::ContainerDefaults nothing;
  const image::Image* image = images.find(summary.image_id);
  const oci::ContainerDefaults& defaults = image != nullptr ? image->config.config : nothing;
  auto saved = saved_request(context, summary);
  RunRequest request = saved ? std::move(*saved) : RunRequest{};
  details.labels = defaults.labels;
  for (const auto& [name, value] : request.labels) details.labels[name] = value;
  for (const Volume& volume : request.volumes) {
    bool named = !volume.name.empty();
    details.mounts.push_back(
        {named ? "volume" : "bind", volume.name, volume.source, volume.destination});
  }
  for (const ImageMount& mount : request.image_mounts) {
    details.mounts.push_back({"image", "", mount.source, mount.destination});
  }
  if (saved && request.network != Network::container) {
    if (request.networks.empty()) details.networks.push_back(to_json_text(request.network));
    for (const JoinedNetwork& one : request.networks) details.networks.push_back(one.name);
  }
  details.ports = ports_of(request, defaults, lease);
  return details;
}

ContainerSize size_of(const Context& context, const ContainerSummary& summary, Images& images) {
  const image::Image* image = images.find(summary.image_id);
  return container_size(container_path(context.paths, summary.id),
                        image != nullptr ? image->size : 0);
}

/// Parses "80", "80/udp", "8000-8010/tcp" for --filter publish= and expose=.
Result<network::Exposed> parse_ports(const std::string& key, const std::string& text) {
  auto ports = network::parse_exposed(text);
  if (ports.ok()) return ports;
  return make_error(Kind::usage, "invalid filter " + quote(key + "=" + text) +
                                     ": expected PORT[-PORT][/PROTOCOL]");
}

/// The parsed filters of one query.
class ContainerSieve {
 public:
  static Result<ContainerSieve> make(const Context& context, const Filters& filters,
                                     Images& images) {
    TRY(filters.check_keys({"ancestor", "before", "exited", "expose", "health", "id", "is-task",
                            "label", "name", "network", "publish", "since", "status", "volume"}));
    TRY(filters.check_values("status", {kStates.begin(), kStates.end()}));
    TRY(filters.check_values("health", {"starting", "healthy", "unhealthy", "none"}));
    ContainerSieve sieve(filters);
    sieve.task_ = TRY(filters.flag("is-task"));
    for (const std::string& text : filters.values("name")) {
      sieve.names_.push_back(TRY(Pattern::parse(text)));
    }
    for (const std::string& text : filters.values("id")) {
      sieve.ids_.push_back(TRY(Pattern::parse(text)));
    }
    for (const std::string& text : filters.values("exited")) {
      auto code = parse_i64(text);
      if (!code) {
        return make_error(
            Kind::usage, "invalid filter " + quote("exited=" + text) + ": expected a whole number");
      }
      sieve.exits_.push_back(*code);
    }
    for (const std::string& text : filters.values("publish")) {
      sieve.published_.push_back(TRY(parse_ports("publish", text)));
    }
    for (const std::string& text : filters.values("expose")) {
      sieve.exposed_.push_back(TRY(parse_ports("expose", text)));
    }
    for (const std::string& name : filters.values("ancestor")) {
      if (const image::Image* image = images.find(name)) {
        sieve.ancestors_.push_back(image);
      }
    }
    // As with docker, the last of several values counts.
    for (const std::string& name : filters.values("before")) {
      sieve.before_ = TRY(get_container(context, name));
    }
    for (const std::string& name : filters.values("since")) {
      sieve.since_ = TRY(get_container(context, name));
    }
    return sieve;
  }

  bool needs_details() const {
    for (std::string_view key : {"label", "volume", "network", "publish", "expose"}) {
      if (filters_.has(key)) return true;
    }
    return false;
  }

  /// Applies the filters that need only the summary.
  bool fits(const ContainerSummary& c) const {
    if (task_ == true) return false;  // Berth has no swarm tasks
    if (before_ && !is_older(c, *before_)) return false;
    if (since_ && !is_older(*since_, c)) return false;
    auto any = [](const std::vector<Pattern>& patterns, auto matches) {
      return patterns.empty() || std::ranges::any_of(patterns, matches);
    };
    if (!any(ids_, [&](const Pattern& p) { return p.matches(c.id); })) return false;
    if (!any(names_,
             [&](const Pattern& p) { return p.matches(c.name) || p.matches("/" + c.name); })) {
      return false;
    }
    bool ended = c.finished_at && c.exit_code && container_state_name(c.state) != "running";
    if (!exits_.empty() && (!ended || !holds(exits_, int64_t{*c.exit_code}))) return false;
    return filters_.fits(
        "status", [&](const std::string& state) { return state == container_state_name(c.state); });
  }

  bool fits_image(const ContainerSummary& c, Images& images) const {
    if (!filters_.has("ancestor")) return true;
    const image::Image* image = images.find(c.image_id);
    if (image == nullptr) {  // the image was removed: compare the name
      return filters_.fits("ancestor", [&](const std::string& name) {
        return familiar(name) == familiar(c.image) || c.image_id.starts_with(name) ||
               c.image_id.starts_with("sha256:" + name);
      });
    }
    return std::ranges::any_of(ancestors_,
                               [&](const image::Image* from) { return descends(*image, *from); });
  }

  bool fits(const ContainerSummary& c, const ContainerDetails& details) const {
    if (!filters_.fits_labels(details.labels)) return false;
    bool volume = filters_.fits("volume", [&](const std::string& wanted) {
      return std::ranges::any_of(details.mounts, [&](const MountSummary& m) {
        return m.name == wanted || m.source == wanted || m.destination == wanted;
      });
    });
    bool network = filters_.fits(
        "network", [&](const std::string& wanted) { return holds(details.networks, wanted); });
    // As with docker, only running containers have ports.
    bool runs = c.state == ContainerState::running || c.state == ContainerState::paused;
    return volume && network && fits_ports(runs ? details.ports : std::vector<PortSummary>());
  }

  bool fits_health(const std::string& health) const {
    return filters_.fits("health", [&](const std::string& wanted) {
      return wanted == (health.empty() ? "none" : health);
    });
  }

 private:
  explicit ContainerSieve(const Filters& filters) : filters_(filters) {}

  template <class T>
  static bool holds(const std::vector<T>& list, const T& value) {
    return std::ranges::find(list, value) != list.end();
  }
  static bool is_older(const ContainerSummary& a, const ContainerSummary& b) {
    return std::tie(a.created_ns, a.id) < std::tie(b.created_ns, b.id);
  }
  // As with docker, at least one port of the container must match, published or exposed.
  bool fits_ports(const std::vector<PortSummary>& ports) const {
    if (published_.empty() && exposed_.empty()) return true;
    auto is_named = [](const std::vector<network::Exposed>& ranges, uint16_t port,
                       const std::string& protocol) {
      return std::ranges::any_of(ranges, [&](const network::Exposed& range) {
        return port >= range.first && port <= range.last && protocol == range.protocol;
      });
    };
    return std::ranges::any_of(ports, [&](const PortSummary& port) {
      return (port.host_port != 0 && is_named(published_, port.host_port, port.protocol)) ||
             is_named(exposed_, port.container_port, port.protocol);
    });
  }

  const Filters& filters_;
  std::optional<bool> task_;
  std::vector<Pattern> names_, ids_;
  std::vector<int64_t> exits_;
  std::vector<network::Exposed> published_, exposed_;
  std::vector<const image::Image*> ancestors_;
  std::optional<ContainerSummary> before_, since_;
};

}  // namespace

ContainerSize container_size(const std::string& directory, uint64_t image_bytes) {
  std::string copy = directory + "/" + std::string(kCopyDirectory);
  auto copied = sys::stat_entry(sys::cwd(), copy);
  if (copied.ok() && *copied) {
    uint64_t bytes = tree_size(copy);
    return {bytes, bytes};
  }
  uint64_t written = tree_size(directory + "/" + std::string(kUpperDirectory));
  return {written, written + image_bytes};
}

ContainerDetails container_details(const Context& context, const ContainerSummary& summary) {
  Images images(context);
  return details_of(context, summary, images, nullptr);
}

std::vector<PortSummary> ports_of(const RunRequest& request, const oci::ContainerDefaults& image,
                                  const network::Lease* lease) {
  std::vector<PortSummary> ports;
  // In the network of the host or of another container, ports cannot be attributed to this
  // container.
  if (!is_own(request.network)) return ports;
  std::set<std::pair<uint16_t, std::string>> named;
  if (lease != nullptr) {
    for (const network::Published& port : lease->ports) {
      ports.push_back({port.host_address, port.host_port, port.container_port, port.protocol});
      named.emplace(port.container_port, port.protocol);
    }
  }
  for (const network::Exposed& exposed : exposed_ports(request, image)) {
    for (unsigned port = exposed.first; port <= exposed.last; ++port) {
      auto number = static_cast<uint16_t>(port);
      if (!named.emplace(number, exposed.protocol).second) continue;
      ports.push_back({"", 0, number, exposed.protocol});
    }
  }
  return ports;
}

Result<std::vector<ListedContainer>> query_containers(const Context& context,
                                                      const ContainerQuery& query) {
  Images images(context);
  ContainerSieve sieve = TRY(ContainerSieve::make(context, query.filters, images));
  // As with docker, a filter for a state implies all containers.
  bool all = query.all || query.newest || query.filters.has("status");
  // Reads the network leases of all containers at once, instead of searching the directory for
  // each.
  std::map<std::string, network::Lease> leases;
  if (query.ports || query.details || sieve.needs_details()) leases = list_leases(context);
  std::vector<ListedContainer> found;
  for (ContainerSummary& summary :
       TRY(list_containers(context, all ? Which::all : Which::running))) {
    if (query.newest && found.size() >= *query.newest) break;
    if (!sieve.fits(summary) || !sieve.fits_image(summary, images)) continue;
    ListedContainer listed;
    bool runs = is_alive(summary.state);
    if (runs && summary.watched) listed.health = health_status(context.paths, summary.id);
    if (query.details || (query.ports && runs) || sieve.needs_details()) {
      auto lease = leases.find(summary.id);
      listed.details =
          details_of(context, summary, images, lease == leases.end() ? nullptr : &lease->second);
    }
    if (!sieve.fits(summary, listed.details) || !sieve.fits_health(listed.health)) continue;
    if (query.sizes) listed.size = size_of(context, summary, images);
    // As with docker, show the id if the name was removed or now names another image.
    if (const image::Image* named = images.find(summary.image);
        !summary.image_id.empty() && (named == nullptr || named->id.text() != summary.image_id)) {
      summary.image = summary.image_id;
    }
    listed.summary = std::move(summary);
    found.push_back(std::move(listed));
  }
  return found;
}

}  // namespace berth::engine
