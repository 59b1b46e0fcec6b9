// SPDX-License-Identifier: Apache-2.0
#include "engine/context/registries.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "policy/site/fill.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

using image::RegistryMirror;
using image::RegistryRule;

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr uint32_t kMostConnections = 64;

/// The document that holds [[registry]].
struct Registries {
  std::vector<RegistryRule> registry;
};
template <class V>
void fields(V& v, Registries& r) {
  v.optional("registry", r.registry);
  v.strict();
}

Error wrong_registry(const std::string& key, const std::string& value,
                     const std::string& expected) {
  return make_error(Kind::usage,
                    "registry." + key + ": " + quote(value) + ": expected " + expected);
}

/// "host", "host:5000/some/path"
bool is_place(std::string_view text) {
  constexpr std::string_view kOther = " \t\"'<>\\^`{|}%?#@";
  bool plain = text.find_first_of(kOther) == text.npos && text.find("//") == text.npos &&
               text.find("://") == text.npos;
  return plain && !text.empty() && text.front() != '/' && text.back() != '/';
}

Result<void> check_place(const std::string& key, const std::string& value) {
  if (value.empty() || is_place(value)) return {};
  return wrong_registry(key, value, "HOST[:PORT][/PATH], without a scheme");
}

Result<void> check_file(const std::string& key, const std::string& path) {
  if (path.empty() || path.front() == '/') return {};
  return wrong_registry(key, path, "an absolute path");
}

Result<void> check_mirror(const RegistryMirror& mirror) {
  constexpr std::array kNames = {"", "all", "digest-only", "tag-only"};
  if (mirror.location.empty()) return wrong_registry("mirror.location", "", "a place");
  TRY(check_place("mirror.location", mirror.location));
  if (std::ranges::find(kNames, mirror.pull_from_mirror) != kNames.end()) return {};
  return wrong_registry("mirror.pull-from-mirror", mirror.pull_from_mirror,
                        "all, digest-only or tag-only");
}

Result<void> check_rule(const RegistryRule& rule) {
  if (rule.prefix.empty() && rule.location.empty()) {
    return make_error(Kind::usage, "registry: a prefix or a location is missing");
  }
  TRY(check_place("prefix", rule.prefix.starts_with("*.") ? rule.prefix.substr(2) : rule.prefix));
  TRY(check_place("location", rule.location));
  const std::string& place = rule.location.empty() ? rule.prefix : rule.location;
  if (rule.insecure && place.find('/') != place.npos) {
    return wrong_registry(
        "insecure", "true",
        "a rule for a whole host, as its TLS is not verified then, and not for " + quote(place));
  }
  for (const RegistryMirror& mirror : rule.mirror) TRY(check_mirror(mirror));
  TRY(check_file("tls-ca", rule.tls_ca));
  TRY(check_file("tls-certificate", rule.tls_certificate));
  TRY(check_file("tls-key", rule.tls_key));
  if (rule.tls_certificate.empty() && !rule.tls_key.empty()) {
    return wrong_registry("tls-key", rule.tls_key, "a tls-certificate beside it");
  }
  bool has_proxy =
      rule.proxy.empty() || rule.proxy == "none" || rule.proxy.find("://") != std::string::npos;
  if (!has_proxy) return wrong_registry("proxy", rule.proxy, "SCHEME://HOST:PORT or none");
  if (rule.connections <= kMostConnections) return {};
  return wrong_registry("connections", std::to_string(rule.connections),
                        "at most " + std::to_string(kMostConnections));
}

Result<void> add_file(const std::string& path, std::vector<RegistryRule>& rules) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMostBytes));
  if (!text) return {};
  for (RegistryRule& rule : TRY(parse_registries(*text, path))) rules.push_back(std::move(rule));
  return {};
}

/// The user's configuration directory; empty without a home.
std::string user_directory(const Environment& environment) {
  auto config = environment.get_filled("XDG_CONFIG_HOME");
  if (config) return std::string(*config);
  auto home = environment.get_filled("HOME");
  return home ? std::string(*home) + "/.config" : "";
}

}  // namespace

Result<std::vector<RegistryRule>> parse_registries(std::string_view text,
                                                   std::string_view document) {
  Registries found;
  for (const policy::TomlEntry& entry : TRY(policy::parse_toml(text, document))) {
    auto fault = policy::fill_entry(entry, document, found);
    if (fault) return std::move(*fault);
  }
  for (const RegistryRule& rule : found.registry) {
    TRY_CTX(check_rule(rule), std::string(document));
  }
  return std::move(found.registry);
}

Result<void> add_registries(const Context& context, image::RegistryAccess& access) {
  std::string user = user_directory(context.environment);
  if (!user.empty()) {
    TRY(add_file(user + "/berth/registries.toml", access.registries));
    access.certificate_directories.push_back(user + "/berth/certs.d");
    access.certificate_directories.push_back(user + "/containers/certs.d");
  }
  TRY(add_file(context.paths.config + "/registries.toml", access.registries));
  access.certificate_directories.push_back(context.paths.config + "/certs.d");
  access.certificate_directories.emplace_back("/etc/containers/certs.d");
  access.certificate_directories.emplace_back("/etc/docker/certs.d");
  return {};
}

}  // namespace berth::engine
