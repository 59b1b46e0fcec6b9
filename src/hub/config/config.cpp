// SPDX-License-Identifier: Apache-2.0
#include "hub/config/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "hub/config/address.hpp"
#include "policy/site/fill.hpp"

namespace berth::hub {
namespace {

constexpr uint32_t kMostConnections = 10'000;
constexpr uint32_t kMostTransfers = 512;
constexpr uint32_t kMostCacheMib = 1024;
constexpr size_t kMostEntries = 10'000;

Error refuse(std::string key, const std::string& what) {
  return make_error(Kind::usage, std::move(key) + ": " + what);
}

/// Whether `text` has only the characters of repository names: "team", "team/app".
bool is_name(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::string_view kJoints = "._-";
  auto parts = split(text, '/');
  return std::ranges::all_of(parts, [&](std::string_view part) {
    return !part.empty() && kPlain.find(part.front()) != kPlain.npos &&
           kPlain.find(part.back()) != kPlain.npos && std::ranges::all_of(part, [&](char c) {
             return kPlain.find(c) != kPlain.npos || kJoints.find(c) != kJoints.npos;
           });
  });
}

bool is_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.ends_with("/*")) text.remove_suffix(2);
  return is_name(text);
}

Result<void> check_upstream(const Upstream& upstream, const std::string& key) {
  if (!upstream.prefix.empty() && !is_name(upstream.prefix)) {
    return refuse(key + ".prefix", quote(upstream.prefix) + " is not a prefix of a name");
  }
  if (upstream.registry.empty() || upstream.registry.find('/') != std::string::npos) {
    return refuse(key + ".registry", "expected HOST or HOST:PORT, got " + quote(upstream.registry));
  }
  if (upstream.repositories.empty()) {
    return refuse(key + ".repositories", "nothing is served; for all repositories, give [\"*\"]");
  }
  for (const std::string& pattern : upstream.repositories) {
    if (is_pattern(pattern)) continue;
    return refuse(key + ".repositories",
                  quote(pattern) + ": expected a name, a name followed by '/*', or '*'");
  }
  return {};
}

Result<void> check_upstreams(const Config& config) {
  if (config.upstream.empty()) {
    return make_error(Kind::usage, "upstream: no registry is given",
                      "--upstream REGISTRY --repository '*', or [[upstream]] in a --config file");
  }
  std::set<std::string> prefixes;
  for (size_t i = 0; i < config.upstream.size(); ++i) {
    const std::string key = fmt::format("upstream[{}]", i);
    TRY(check_upstream(config.upstream[i], key));
    if (!prefixes.insert(config.upstream[i].prefix).second) {
      return refuse(key + ".prefix",
                    quote(config.upstream[i].prefix) + " is also that of another upstream");
    }
  }
  return {};
}

Result<void> check_listen(const Config& config) {
  bool tls = !config.tls_certificate.empty();
  if (tls != !config.tls_key.empty()) {
    return refuse(tls ? "tls-key" : "tls-certificate",
                  "missing: a certificate and its key are needed together");
  }
  for (const std::string& text : config.listen) {
    Endpoint endpoint = TRY(parse_endpoint(text));
    bool in_plain = !tls && !config.htpasswd.empty() && !endpoint.loopback;
    if (!in_plain || config.plain_passwords) continue;
    return make_error(Kind::usage,
                      fmt::format("listen at {}: passwords would come in plain HTTP", quote(text)),
                      "tls-certificate and tls-key, or plain-passwords = true behind a proxy");
  }
  return {};
}

Result<void> check_nodes(const Config& config) {
  bool named = !config.login.empty() || !config.address.empty() || !config.usual.empty();
  if (named && config.fleet.empty()) {
    return refuse("fleet", "missing: profiles are used, but no directory of profiles is given");
  }
  for (const AddressNode& one : config.address) TRY_CTX(parse_network(one.network), "address");
  std::set<std::string> names;
  for (const LoginNode& one : config.login) {
    if (!names.insert(one.name).second) return refuse("login", quote(one.name) + " is given twice");
  }
  return {};
}

Result<void> check_number(std::string_view key, uint32_t value, uint32_t least, uint32_t most) {
  if (value >= least && value <= most) return {};
  return refuse(fmt::format("limits.{}", key),
                fmt::format("expected {} to {}, got {}", least, most, value));
}

void replace(std::string& value, const std::optional<std::string>& given) {
  if (given) value = *given;
}

}  // namespace

Result<Config> read_config(std::string_view text, std::string_view document) {
  Config config;
  for (const policy::TomlEntry& entry : TRY(policy::parse_toml(text, document))) {
    auto fault = policy::fill_entry(entry, document, config);
    if (fault) return std::move(*fault);
  }
  return config;
}

Result<void> check(const Config& config) {
  TRY(check_upstreams(config));
  TRY(check_listen(config));
  TRY(check_nodes(config));
  const Limits& limits = config.limits;
  TRY(check_number("connections", limits.connections, 1, kMostConnections));
  TRY(check_number("connections-per-address", limits.connections_per_address.value_or(0), 0,
                   kMostConnections));
  TRY(check_number("transfers", limits.transfers, 1, kMostTransfers));
  TRY(check_number("cache-mib", limits.cache_mib, 1, kMostCacheMib));
  size_t most = std::max({config.upstream.size(), config.login.size(), config.address.size()});
  if (most > kMostEntries) {
    return make_error(Kind::usage, fmt::format("{} entries of a kind; at most {} are allowed", most,
                                               kMostEntries));
  }
  return {};
}

uint32_t connections_per_address(const Limits& limits) {
  uint32_t said = limits.connections_per_address.value_or(std::max(limits.connections / 4, 1u));
  return said == 0 ? limits.connections : said;
}

bool serves(const Upstream& upstream, std::string_view repository) {
  return std::ranges::any_of(upstream.repositories, [&](const std::string& pattern) {
    if (pattern == "*" || pattern == repository) return true;
    if (!pattern.ends_with("/*")) return false;
    std::string_view folder(pattern.data(), pattern.size() - 1);
    return repository.size() > folder.size() && repository.starts_with(folder);
  });
}

Result<void> add_flags(Config& config, const Flags& flags) {
  if (!flags.listen.empty()) config.listen = flags.listen;
  if (flags.upstream) {
    config.upstream.push_back({"", *flags.upstream, flags.repositories});
  } else if (!flags.repositories.empty()) {
    return make_error(Kind::usage, "'--repository' needs '--upstream'", "--upstream REGISTRY");
  }
  replace(config.fleet, flags.fleet);
  replace(config.usual, flags.usual);
  replace(config.htpasswd, flags.htpasswd);
  replace(config.tls_certificate, flags.tls_certificate);
  replace(config.tls_key, flags.tls_key);
  if (flags.blobs) {
    config.blobs = TRY(parse_enum<Blobs>(*flags.blobs));
  }
  if (flags.log) config.log = TRY(parse_enum<LogForm>(*flags.log));
  replace(config.access.tls_ca, flags.tls_ca);
  auto& insecure = config.access.insecure_registries;
  insecure.insert(insecure.end(), flags.insecure_registries.begin(),
                  flags.insecure_registries.end());
  if (config.listen.empty()) config.listen.emplace_back(kUsualListen);
  return {};
}

std::vector<std::string> keep_fixed(const Config& running, Config& next) {
  std::vector<std::string> changed;
  auto keep = [&changed](const char* key, const auto& old, auto& value) {
    if (value == old) return;
    value = old;
    changed.emplace_back(key);
  };
  keep("listen", running.listen, next.listen);
  keep("log", running.log, next.log);
  keep("limits.connections", running.limits.connections, next.limits.connections);
  // Compares the resulting numbers: the default is a quarter of limits.connections, which is kept
  // too.
  uint32_t of_one = connections_per_address(next.limits);
  keep("limits.connections-per-address", connections_per_address(running.limits), of_one);
  next.limits.connections_per_address = running.limits.connections_per_address;
  keep("limits.transfers", running.limits.transfers, next.limits.transfers);
  if (running.tls_certificate.empty() != next.tls_certificate.empty()) {
    changed.emplace_back("tls-certificate");
    next.tls_certificate = running.tls_certificate;
    next.tls_key = running.tls_key;
  }
  return changed;
}

}  // namespace berth::hub
