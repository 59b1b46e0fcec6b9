// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace berth::image {

/// Another registry with the same repositories, asked before the registry itself.
struct RegistryMirror {
  std::string location;  ///< "mirror.example.org:5000/hub": replaces the rule's prefix
  bool insecure = false;
  /// "all", "digest-only", "tag-only": the kinds of names to ask it for. Empty: all.
  std::string pull_from_mirror;
};

/// The settings of a site or a user for names that begin with a prefix: one [[registry]] of
/// registries.toml. Keys that containers-registries.conf(5) has, too, have the same meaning.
struct RegistryRule {
  std::string prefix;  ///< "docker.io", "quay.io/team", "*.example.org"; empty: that of `location`
  std::string location;  ///< replaces the prefix; empty: the prefix stays
  bool insecure = false;
  bool blocked = false;
  std::vector<RegistryMirror> mirror;
  std::string tls_ca;           ///< PEM file: authorities trusted besides the system's
  std::string tls_certificate;  ///< PEM file of the client, with `tls_key`
  std::string tls_key;
  std::string proxy;  ///< "http://proxy.example.org:3128", "none"; empty: that of the environment
  uint32_t connections = 0;  ///< maximal number at once for one pull; 0: the default
};

/// Machines of the same job that fetch an image once for all of them. They are asked before any
/// registry, each for the bytes that the previous one does not deliver. docs/decisions/0166
struct JobPeers {
  std::string reference;               ///< canonical: the one image that they have
  std::vector<std::string> addresses;  ///< "10.1.2.3:4567", the first one first
  std::string key;  ///< for TLS with them: a process that knows it belongs to the job
};

/// How registries are reached. The default is HTTPS with the system's CAs and plain HTTP to
/// loopback addresses.
struct RegistryAccess {
  std::optional<std::string> tls_ca;  ///< PEM file that replaces the system's CAs
  std::vector<std::string>
      insecure_registries;              ///< "host" or "host:port": unverified TLS, else HTTP
  std::vector<std::string> auth_files;  ///< read in order; empty: the default files
  uint32_t stall_seconds = 30;          ///< an answer that stalls for so long is dropped
  std::vector<RegistryRule> registries;
  /// Directories with a subdirectory per HOST or HOST:PORT: *.crt (authorities), *.cert and *.key
  /// (of the client). containers-certs.d(5)
  std::vector<std::string> certificate_directories;
  std::optional<JobPeers> peers;
};

/// The rule for a repository ("docker.io/library/debian"): the one with the longest matching
/// prefix, among equals the first; null if none matches.
const RegistryRule* rule_of(const std::vector<RegistryRule>& rules, std::string_view name);

/// `name` with the rule's prefix replaced by `location`.
std::string relocated(std::string_view name, const RegistryRule& rule, std::string_view location);

void fields(auto& v, RegistryMirror& m) {
  v.required("location", m.location);
  v.optional("insecure", m.insecure);
  v.optional("pull-from-mirror", m.pull_from_mirror);
  v.strict();
}

void fields(auto& v, JobPeers& p) {
  v.required("reference", p.reference);
  v.required("addresses", p.addresses);
  v.required("key", p.key);
}

void fields(auto& v, RegistryRule& r) {
  v.optional("prefix", r.prefix);
  v.optional("location", r.location);
  v.optional("insecure", r.insecure);
  v.optional("blocked", r.blocked);
  v.optional("mirror", r.mirror);
  v.optional("tls-ca", r.tls_ca);
  v.optional("tls-certificate", r.tls_certificate);
  v.optional("tls-key", r.tls_key);
  v.optional("proxy", r.proxy);
  v.optional("connections", r.connections);
  v.strict();
}

/// Inlines the members of `access` into the object that contains it.
void access_fields(auto& v, RegistryAccess& a) {
  v.optional("tls_ca", a.tls_ca);
  v.optional("insecure_registries", a.insecure_registries);
  v.optional("auth_files", a.auth_files);
  v.optional("stall_seconds", a.stall_seconds);
  v.optional("registries", a.registries);
  v.optional("certificate_directories", a.certificate_directories);
  v.optional("peers", a.peers);
}

/// The instructions of `berth slurm step` about the one image that this node passes on to other
/// nodes of its job. They are read by berth-hub, or by the `berth slurm give` that becomes
/// berth-hub on the first request.
struct JobOrder {
  std::string root;             ///< of the store: holds files in transfer, which have no names
  std::string reference;        ///< canonical: only this image is served
  std::string key;              ///< for TLS with the other nodes: authorises a client
  RegistryAccess access;        ///< the sources: the nodes above, then the registry
  uint32_t idle_seconds = 120;  ///< after so long without a request the program ends
};

/// One JSON object with its newline.
std::string to_json(const JobOrder& order);
/// Errors: corrupt (not in this form).
Result<JobOrder> parse_job_order(std::string_view text);

}  // namespace berth::image
