// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/host_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMostPem = size_t{1} << 20;

/// The host of "host:5000/path", in a URL's form.
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

/// A machine of the same job is reached without a proxy.
bool is_peer(const image::RegistryAccess& access, const Url& url) {
  return access.peers && std::ranges::any_of(access.peers->addresses, [&](const std::string& one) {
           return is_host(one, url);
         });
}

/// containers-certs.d(5): every *.crt is an authority, a *.cert needs a *.key of the same name.
Result<void> read_directory(const std::string& path, HostOptions& options) {
  auto listed = sys::list_directory(sys::cwd(), path);
  // Certificates that only another user may read.
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

}  // namespace

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
  for (const image::RegistryRule& rule : access_.registries) {
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

}  // namespace berth::transfer
