// SPDX-License-Identifier: Apache-2.0
#include "hub/config/flags.hpp"

namespace berth::hub {
namespace {

void replace(std::string& value, const std::optional<std::string>& given) {
  if (given) value = *given;
}

}  // namespace

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
  // As a number: a quarter of another total is the same key.
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
