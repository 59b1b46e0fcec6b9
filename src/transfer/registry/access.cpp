// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "transfer/registry/chain.hpp"
#include "transfer/registry/credentials.hpp"

namespace berth::transfer {
namespace {

using image::Reference;
using image::RegistryAccess;
using image::RegistryMirror;
using image::RegistryRule;

std::string whole_name(const Reference& reference) {
  return reference.registry() + "/" + reference.repository();
}

/// A repository of a registry: "host:5000/some/name".
struct Place {
  std::string registry;
  std::string repository;
};

Result<Place> place_of(const std::string& name) {
  size_t slash = name.find('/');
  if (slash != name.npos && slash > 0 && slash + 1 < name.size()) {
    return Place{name.substr(0, slash), name.substr(slash + 1)};
  }
  return make_error(Kind::usage, "registries.toml: " + quote(name) + " is not a repository");
}

Result<Registry> open_place(Http& http, const Cancel& cancel, const RegistryAccess& access,
                            const Place& place, Events& events) {
  std::optional<Credential> credential =
      TRY(find_credential(auth_files(access), place.registry, place.repository, events));
  return Registry::make(http, cancel, place.registry, place.repository, std::move(credential),
                        [&events](const std::string& text) { events.status(text); });
}

Error blocked(const std::string& name) {
  return make_error(Kind::denied, fmt::format("reach '{}': registries.toml blocks it", name));
}

bool is_asked(const RegistryMirror& mirror, const Reference& reference) {
  const std::string& names = mirror.pull_from_mirror;
  if (names == "digest-only") return reference.digest().has_value();
  if (names == "tag-only") return !reference.digest().has_value();
  return true;
}

/// The mirror's client, if the mirror has the wanted object.
Result<Registry> open_mirror(Http& http, const Cancel& cancel, const RegistryAccess& access,
                             const std::string& name, Events& events, const Holds& holds) {
  Place place = TRY(place_of(name));
  Registry registry = TRY(open_place(http, cancel, access, place, events));
  registry.try_once();  // the next source is known
  TRY(registry.connect());
  TRY(holds(registry));
  registry.try_again();
  return registry;
}

std::vector<std::string> insecure_hosts(const RegistryAccess& access) {
  std::vector<std::string> hosts = access.insecure_registries;
  auto add = [&](const std::string& location) {
    hosts.push_back(location.substr(0, location.find('/')));
  };
  for (const RegistryRule& rule : access.registries) {
    if (rule.insecure) add(rule.location.empty() ? rule.prefix : rule.location);
    for (const RegistryMirror& mirror : rule.mirror) {
      if (mirror.insecure) add(mirror.location);
    }
  }
  return hosts;
}

constexpr size_t kMostPem = size_t{1} << 20;

/// The host of "host:5000/path", in the form in which URLs have it.
std::string host_of(std::string_view location) {
  return to_lower(location.substr(0, location.find('/')));
}

bool names(std::string_view host, const Url& url) {
  return is_host(host, url) || (host == "docker.io" && url.host == "registry-1.docker.io");
}

/// Whether the rule applies to this host.
bool is_about(const image::RegistryRule& rule, const Url& url) {
  const std::string& own = rule.location.empty() ? rule.prefix : rule.location;
  return names(host_of(own), url) ||
         std::ranges::any_of(rule.mirror, [&](const image::RegistryMirror& mirror) {
           return names(host_of(mirror.location), url);
         });
}

/// Whether the host is a machine of the same job, which is reached without a proxy.
bool is_peer(const image::RegistryAccess& access, const Url& url) {
  return access.peers && std::ranges::any_of(access.peers->addresses, [&](const std::string& one) {
           return is_host(one, url);
         });
}

/// containers-certs.d(5): every *.crt is an authority, a *.cert needs a *.key of the same name.
Result<void> read_directory(const std::string& path, HostOptions& options) {
  auto listed = sys::list_directory(sys::cwd(), path);
  // This user may not read the directory, so the certificates are for other users.
  if (!listed.ok() && listed.error().kind == Kind::denied) return {};
  std::vector<std::string> files = TRY(std::move(listed));
  std::ranges::sort(files);
  for (const std::string& name : files) {
    std::string file = path + "/" + name;
    if (name.ends_with(".crt")) {
      options.tls_ca += TRY(sys::read_file(sys::cwd(), file, kMostPem)) + "\n";
    } else if (name.ends_with(".cert") && options.tls_certificate.empty()) {
      std::string key = file.substr(0, file.size() - 5) + ".key";
      if (!TRY(sys::stat_entry(sys::cwd(), key))) {
        return make_error(
            Kind::usage,
            fmt::format("use the certificate '{}': its key '{}' does not exist", file, key));
      }
      options.tls_certificate = file;
      options.tls_key = key;
    }
  }
  return {};
}

/// Options of hosts, from the rules and the certificate directories of the site; thread-safe. A
/// rule applies to the hosts of its location and of its mirrors. If the rule names no files, the
/// first certificate directory with a subdirectory HOST:PORT or HOST is used.
/// Source: containers-certs.d(5), docker's "Verify repository client with certificates".
class HostFiles {
 public:
  explicit HostFiles(const RegistryAccess& access) : access_(access) {}

  /// Errors: not_found, denied (an unreadable file), usage (a certificate without its key).
  Result<HostOptions> options_of(const Url& url);

 private:
  Result<HostOptions> find(const Url& url) const;

  const RegistryAccess access_;
  std::mutex mutex_;
  std::map<std::string, HostOptions> known_;  // by host and port
};

Result<HostOptions> HostFiles::options_of(const Url& url) {
  std::string key = fmt::format("{}:{}", url.host, url.port);
  {
    std::lock_guard lock(mutex_);
    auto known = known_.find(key);
    if (known != known_.end()) return known->second;
  }
  HostOptions found = TRY(find(url));
  std::lock_guard lock(mutex_);
  return known_.emplace(std::move(key), std::move(found)).first->second;
}

Result<HostOptions> HostFiles::find(const Url& url) const {
  HostOptions options;
  if (is_peer(access_, url)) {
    options.proxy = "none";
    options.shared_key = access_.peers->key;
    return options;
  }
  for (const RegistryRule& rule : access_.registries) {
    if (!is_about(rule, url)) continue;
    if (options.proxy.empty()) options.proxy = rule.proxy;
    if (options.tls_ca.empty() && !rule.tls_ca.empty()) {
      options.tls_ca = TRY(sys::read_file(sys::cwd(), rule.tls_ca, kMostPem));
    }
    if (options.tls_certificate.empty()) {
      options.tls_certificate = rule.tls_certificate;
      options.tls_key = rule.tls_key;
    }
  }
  if (!options.tls_ca.empty() || !options.tls_certificate.empty()) return options;
  for (const std::string& directory : access_.certificate_directories) {
    for (const std::string& name : {fmt::format("{}:{}", url.host, url.port), url.host}) {
      std::string path = directory + "/" + name;
      auto there = sys::stat_entry(sys::cwd(), path);
      if (!there.ok() || !*there) continue;
      TRY(read_directory(path, options));
      return options;
    }
  }
  return options;
}

}  // namespace

HttpOptions http_options(const RegistryAccess& access) {
  HttpOptions options;
  options.tls_ca = access.tls_ca;
  options.insecure_registries = insecure_hosts(access);
  options.stall_timeout = std::chrono::seconds(access.stall_seconds);
  auto files = std::make_shared<HostFiles>(access);
  options.host = [files](const Url& url) { return files->options_of(url); };
  return options;
}

std::vector<std::string> auth_files(const RegistryAccess& access) {
  return access.auth_files.empty() ? default_auth_files() : access.auth_files;
}

Result<Registry> open_registry(Http& http, const Cancel& cancel, const RegistryAccess& access,
                               const Reference& reference, Events& events) {
  std::string name = whole_name(reference);
  Place place{reference.registry(), reference.repository()};
  if (const RegistryRule* rule = image::rule_of(access.registries, name)) {
    if (rule->blocked) return blocked(name);
    place = TRY(place_of(image::relocated(name, *rule, rule->location)));
  }
  Registry registry = TRY(open_place(http, cancel, access, place, events));
  TRY(registry.connect());
  return registry;
}

Result<WholeRegistry> open_whole(Http& http, const Cancel& cancel, const RegistryAccess& access,
                                 const std::string& name, Events& events) {
  const RegistryRule* rule = image::rule_of(access.registries, name);
  if (rule != nullptr && rule->blocked) return blocked(name);
  std::string place = rule == nullptr ? name : image::relocated(name, *rule, rule->location);
  size_t slash = std::min(place.find('/'), place.size());
  std::string host = place.substr(0, slash);
  std::string below = place.substr(std::min(slash + 1, place.size()));
  // Recognizes Docker Hub in any spelling.
  auto of_hub = Reference::parse(host + "/library/x");
  bool hub = of_hub.ok() && of_hub->registry() == "docker.io";
  auto credential =
      TRY(find_credential(auth_files(access), hub ? "docker.io" : host, below, events));
  if (hub) host = "index.docker.io";
  Registry registry =
      TRY(Registry::make(http, cancel, host, "", std::move(credential),
                         [&events](const std::string& text) { events.status(text); }));
  TRY(registry.connect());
  return WholeRegistry{std::move(registry), std::move(below), hub, rule};
}

Result<Registry> open_source(Http& http, const Cancel& cancel, const RegistryAccess& access,
                             const Reference& reference, Events& events, const Holds& holds) {
  std::string name = whole_name(reference);
  const RegistryRule* rule = image::rule_of(access.registries, name);
  if (rule != nullptr && !rule->blocked) {
    for (const RegistryMirror& mirror : rule->mirror) {
      if (!is_asked(mirror, reference)) continue;
      std::string there = image::relocated(name, *rule, mirror.location);
      auto registry = open_mirror(http, cancel, access, there, events, holds);
      if (registry.ok()) return registry;
      TRY(cancel.check());
      events.status(fmt::format("Mirror {}: {}", mirror.location, to_line(registry.error())));
    }
  }
  return open_registry(http, cancel, access, reference, events);
}

namespace {

Holds holds_image(const Reference& reference) {
  return [&reference](Registry& registry) -> Result<void> {
    TRY(registry.get_manifest(reference.manifest_reference()));
    return {};
  };
}

}  // namespace

Result<Registry> open_site_source(Http& http, const Cancel& cancel, const RegistryAccess& access,
                                  const Reference& reference, Events& events) {
  return open_source(http, cancel, access, reference, events, holds_image(reference));
}

Result<Registry> open_source(Http& http, const Cancel& cancel, const RegistryAccess& access,
                             const Reference& reference, Events& events) {
  Holds holds = holds_image(reference);
  for (Registry& peer : TRY(open_peers(http, cancel, access, reference))) {
    auto held = holds(peer);
    if (held.ok()) return std::move(peer);
    TRY(cancel.check());
    // That node has asked the registry, which does not have the image. So all nodes of a job fail
    // at once, and with the same error.
    if (held.error().kind == Kind::not_found) return std::move(held).error();
    events.status("Node of this job: " + to_line(held.error()));
  }
  return open_site_source(http, cancel, access, reference, events);
}

uint32_t connections_to(const RegistryAccess& access, const Reference& reference) {
  const RegistryRule* rule = image::rule_of(access.registries, whole_name(reference));
  return rule == nullptr ? 0 : rule->connections;
}

}  // namespace berth::transfer
