// SPDX-License-Identifier: Apache-2.0
// The configuration of a hub: people write hub.toml; `berth hub` passes the same as JSON to
// `berth-hub`. docs/hub.md
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

/// A registry, and which part of it the hub serves.
struct Upstream {
  std::string prefix;    ///< of names at the hub; empty: names are those of the registry
  std::string registry;  ///< "docker.io", "registry.example.org:5000"
  /// Repositories at the registry: "team/app", "team/*" (all below), "*" (all).
  std::vector<std::string> repositories;
};

/// The node of a client that logs in with a name.
struct LoginNode {
  std::string name;
  std::string profile;
};

/// The node of a client at an address.
struct AddressNode {
  std::string network;  ///< "10.1.0.0/16"
  std::string profile;
};

enum class Blobs {
  pass,      ///< through the hub
  redirect,  ///< to the location that the registry names, if it needs no credentials
};
constexpr EnumNames<Blobs, 2> names_of(std::type_identity<Blobs>) {
  return {{{Blobs::pass, "pass"}, {Blobs::redirect, "redirect"}}};
}

enum class LogForm { text, json };
constexpr EnumNames<LogForm, 2> names_of(std::type_identity<LogForm>) {
  return {{{LogForm::text, "text"}, {LogForm::json, "json"}}};
}

/// How registries are reached. The names are those of the flags of `pull`.
struct Access {
  std::string tls_ca;
  std::vector<std::string> insecure_registries;
  std::vector<std::string> auth_files;
};

struct Limits {
  uint32_t connections = 512;
  /// 0: an address may use all connections. The fraction of the connections that an address may use
  /// is also the fraction of the threads that it may use.
  std::optional<uint32_t> connections_per_address;
  uint32_t transfers = 64;  ///< concurrent transfers of blobs
  uint32_t cache_mib = 16;  ///< of manifests
};

struct Config {
  std::vector<std::string> listen;  ///< "127.0.0.1:5050", which is also the default if empty
  std::string tls_certificate;      ///< PEM file: the certificate, then its issuers
  std::string tls_key;
  std::string htpasswd;
  bool plain_passwords = false;  ///< accept passwords without TLS, behind a proxy that has TLS
  std::string fleet;             ///< directory of node profiles
  std::string usual;             ///< profile of all other clients; empty: they get the whole index
  std::optional<match::UserLand> user_land;  ///< none: derived from the policy's driver mode
  Blobs blobs = Blobs::pass;
  LogForm log = LogForm::text;
  std::vector<Upstream> upstream;
  std::vector<LoginNode> login;
  std::vector<AddressNode> address;
  Access access;
  Limits limits;
};

/// The flags of `berth hub`.
struct Flags {
  std::vector<std::string> listen;  ///< replaces the value of the file
  std::optional<std::string> upstream;
  std::vector<std::string> repositories;  ///< of `upstream`, which then has no prefix
  std::optional<std::string> fleet;
  std::optional<std::string> usual;  ///< profile of clients that name none
  std::optional<std::string> htpasswd;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> blobs;  ///< "pass", "redirect"
  std::optional<std::string> log;    ///< "text", "json"
  std::optional<std::string> tls_ca;
  std::vector<std::string> insecure_registries;  ///< in addition to those of the file
};

/// What `berth hub` passes to `berth-hub`: everything from files that only the engine reads.
struct Order {
  Config config;
  std::string file;                          ///< the file that `config` was read from; empty: none
  Flags flags;                               ///< already applied to `config`
  std::optional<match::UserLand> user_land;  ///< used if the file sets none
  bool fetch_facts = true;                   ///< fetch the facts published next to images
  bool signed_only = false;                  ///< only facts signed by one of `keys`
  std::vector<std::string> keys;             ///< public keys, PEM
  bool check = false;                        ///< only check the configuration, do not serve
};

inline constexpr size_t kMaxConfig = size_t{1} << 20;
inline constexpr std::string_view kUsualListen = "127.0.0.1:5050";

/// Parses hub.toml; `document` names it in errors.
/// Errors: corrupt (invalid TOML), usage (an unknown key, suggesting the nearest one; an invalid
/// value).
Result<Config> read_config(std::string_view text, std::string_view document);

/// Checks what types cannot express; opens no files.
/// Errors: usage, as "upstream[0].registry: …".
Result<void> check(const Config& config);

/// The limit of connections from one address: the configured one, else a quarter of the limit of
/// all connections.
uint32_t connections_per_address(const Limits& limits);

/// Whether one of an upstream's patterns matches `repository`.
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

/// Applies `flags` to the values of a file.
/// Errors: usage (`repositories` without `upstream`), corrupt (an unknown value of `blobs` or
/// `log`).
Result<void> add_flags(Config& config, const Flags& flags);

/// Copies the values that a serving hub cannot change from `running` to `next`, and returns the
/// keys of those that differed: "listen", "limits.transfers".
std::vector<std::string> keep_fixed(const Config& running, Config& next);

}  // namespace berth::hub
