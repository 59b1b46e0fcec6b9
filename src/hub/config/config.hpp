// SPDX-License-Identifier: Apache-2.0
// What a hub is told: hub.toml for people, and the same as JSON from `berth hub` to `berth-hub`.
// docs/hub.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "match/run_record.hpp"

namespace berth::hub {

/// What is served of one registry.
struct Upstream {
  std::string prefix;    ///< of names at the hub; empty: the registry's own names
  std::string registry;  ///< "docker.io", "registry.example.org:5000"
  /// Repositories at the registry: "team/app", "team/*" (all below), "*" (all).
  std::vector<std::string> repositories;
};

/// The node of a client that logs in by a name.
struct LoginNode {
  std::string name;
  std::string profile;
};

/// The node of a client that calls from an address.
struct AddressNode {
  std::string network;  ///< "10.1.0.0/16"
  std::string profile;
};

enum class Blobs {
  pass,      ///< through the hub
  redirect,  ///< from where the registry has them, where that needs no credentials
};
constexpr EnumNames<Blobs, 2> names_of(std::type_identity<Blobs>) {
  return {{{Blobs::pass, "pass"}, {Blobs::redirect, "redirect"}}};
}

enum class LogForm { text, json };
constexpr EnumNames<LogForm, 2> names_of(std::type_identity<LogForm>) {
  return {{{LogForm::text, "text"}, {LogForm::json, "json"}}};
}

/// How registries are reached, as the flags of pull say it.
struct Access {
  std::string tls_ca;
  std::vector<std::string> insecure_registries;
  std::vector<std::string> auth_files;
};

struct Limits {
  uint32_t connections = 512;
  /// 0: as many as there may be at all. An address has the same part of all threads.
  std::optional<uint32_t> connections_per_address;
  uint32_t transfers = 64;  ///< blobs on their way at the same time
  uint32_t cache_mib = 16;  ///< of manifests
};

struct Config {
  std::vector<std::string> listen;  ///< "127.0.0.1:5050"; empty: that
  std::string tls_certificate;      ///< PEM file: the certificate, then those above it
  std::string tls_key;
  std::string htpasswd;
  bool plain_passwords = false;  ///< passwords may come without TLS, from behind a proxy
  std::string fleet;             ///< directory of profiles
  std::string usual;             ///< profile of clients that name none; empty: the index as it is
  std::optional<match::UserLand> user_land;  ///< none: as the policy's driver mode
  Blobs blobs = Blobs::pass;
  LogForm log = LogForm::text;
  std::vector<Upstream> upstream;
  std::vector<LoginNode> login;
  std::vector<AddressNode> address;
  Access access;
  Limits limits;
};

/// What the command line of `berth hub` says.
struct Flags {
  std::vector<std::string> listen;  ///< in the place of the file's
  std::optional<std::string> upstream;
  std::vector<std::string> repositories;  ///< of `upstream`, which has no prefix
  std::optional<std::string> fleet;
  std::optional<std::string> usual;  ///< profile of clients that name none
  std::optional<std::string> htpasswd;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> blobs;  ///< "pass", "redirect"
  std::optional<std::string> log;    ///< "text", "json"
  std::optional<std::string> tls_ca;
  std::vector<std::string> insecure_registries;  ///< beside the file's
};

/// What `berth hub` hands to `berth-hub`: all that files say which only the engine reads.
struct Order {
  Config config;
  std::string file;                          ///< that `config` was read from; empty: none
  Flags flags;                               ///< which are in `config` already
  std::optional<match::UserLand> user_land;  ///< where the file says none
  bool fetch_facts = true;                   ///< those that are published beside images
  bool signed_only = false;                  ///< of these, only what one of `keys` has signed
  std::vector<std::string> keys;             ///< public keys, PEM
  bool check = false;                        ///< ends before it serves
};

inline constexpr size_t kMaxConfig = size_t{1} << 20;
inline constexpr std::string_view kUsualListen = "127.0.0.1:5050";

/// hub.toml; `document` names it in errors.
/// Errors: corrupt (no TOML), usage (an unknown key with the nearest, a value that is none).
Result<Config> read_config(std::string_view text, std::string_view document);

/// What the types alone cannot say; files are not looked at.
/// Errors: usage, as "upstream[0].registry: …".
Result<void> check(const Config& config);

/// How many connections the clients of one address may have: what is said, else a quarter of all.
uint32_t connections_per_address(const Limits& limits);

/// Whether one of an upstream's patterns has `repository`.
bool serves(const Upstream& upstream, std::string_view repository);

void fields(auto& v, Upstream& u) {
  v.always("prefix", u.prefix);
  v.required("registry", u.registry);
  v.required("repositories", u.repositories);
  v.strict();
}

void fields(auto& v, LoginNode& l) {
  v.required("name", l.name);
  v.required("profile", l.profile);
  v.strict();
}

void fields(auto& v, AddressNode& a) {
  v.required("network", a.network);
  v.required("profile", a.profile);
  v.strict();
}

void fields(auto& v, Access& a) {
  v.always("tls-ca", a.tls_ca);
  v.always("insecure-registries", a.insecure_registries);
  v.always("auth-files", a.auth_files);
  v.strict();
}

void fields(auto& v, Limits& l) {
  v.always("connections", l.connections);
  v.always("connections-per-address", l.connections_per_address);
  v.always("transfers", l.transfers);
  v.always("cache-mib", l.cache_mib);
  v.strict();
}

void fields(auto& v, Config& c) {
  v.always("listen", c.listen);
  v.always("tls-certificate", c.tls_certificate);
  v.always("tls-key", c.tls_key);
  v.always("htpasswd", c.htpasswd);
  v.always("plain-passwords", c.plain_passwords);
  v.always("fleet", c.fleet);
  v.always("default", c.usual);
  v.always("user-land", c.user_land);
  v.always("blobs", c.blobs);
  v.always("log", c.log);
  v.always("upstream", c.upstream);
  v.always("login", c.login);
  v.always("address", c.address);
  v.always("access", c.access);
  v.always("limits", c.limits);
  v.strict();
}

void fields(auto& v, Flags& f) {
  v.always("listen", f.listen);
  v.always("upstream", f.upstream);
  v.always("repositories", f.repositories);
  v.always("fleet", f.fleet);
  v.always("usual", f.usual);
  v.always("htpasswd", f.htpasswd);
  v.always("tls_certificate", f.tls_certificate);
  v.always("tls_key", f.tls_key);
  v.always("blobs", f.blobs);
  v.always("log", f.log);
  v.always("tls_ca", f.tls_ca);
  v.always("insecure_registries", f.insecure_registries);
  v.strict();
}

void fields(auto& v, Order& o) {
  v.required("config", o.config);
  v.always("file", o.file);
  v.always("flags", o.flags);
  v.always("user_land", o.user_land);
  v.always("fetch_facts", o.fetch_facts);
  v.always("signed_only", o.signed_only);
  v.always("keys", o.keys);
  v.always("check", o.check);
  v.strict();
}

}  // namespace berth::hub
