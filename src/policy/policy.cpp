// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::policy {
namespace {

Error refuse(std::string_view key, const std::string& what, std::string hint = {}) {
  return make_error(Kind::usage, fmt::format("{}: {}", key, what), std::move(hint));
}

Result<void> check_capabilities(std::string_view key, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const auto& known = capability_names();
    if (word == "all" || std::ranges::find(known, word) != known.end()) continue;
    auto near = nearest(word, known);
    return refuse(key, fmt::format("unknown capability {}", quote(word)),
                  near ? fmt::format("did you mean '{}'?", *near) : "");
  }
  return {};
}

Result<void> check_paths(std::string_view key, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    bool good = path.starts_with('/') && path.find('\0') == std::string::npos &&
                (path + "/").find("/../") == std::string::npos;
    if (!good) {
      return refuse(key, fmt::format("expected an absolute path, got {}", quote(path)));
    }
  }
  return {};
}

// "vendor.com/class"
bool is_kind(std::string_view text) {
  size_t slash = text.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
         text.find_first_of("= ,\t\n", 0) == std::string_view::npos &&
         text.find('/', slash + 1) == std::string_view::npos;
}

Result<void> check_words(std::string_view key, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (trim(word).empty()) return refuse(key, "an empty entry");
    if (escape_controls(word) != word) {
      return refuse(key, fmt::format("a control character in {}", quote(word)));
    }
  }
  return {};
}

}  // namespace

const std::vector<std::string>& variables_of_a_machine() {
  static const std::vector<std::string> kNames = {
      // Variables of the loader, the C library and terminals.
      "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GCONV_PATH", "LOCPATH", "NLSPATH", "TERMINFO",
      "TERMINFO_DIRS",
      // Shells.
      "BASH_ENV", "ENV", "SHELL", "CDPATH", "OLDPWD", "XDG_RUNTIME_DIR",
      // Module search paths of languages.
      "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX",
      "PERL5LIB", "PERLLIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "GEM_HOME", "GEM_PATH", "R_HOME",
      "R_LIBS", "R_LIBS_SITE", "R_LIBS_USER", "NODE_PATH", "TCLLIBPATH", "JAVA_HOME",
      "JULIA_DEPOT_PATH", "LUA_PATH", "LUA_CPATH",
      // Certificates.
      "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"};
  return kNames;
}

Result<void> check(const Policy& policy) {
  const Gpu& gpu = policy.gpu;
  TRY(check_words("gpu.always", gpu.always));
  TRY(check_words("gpu.never", gpu.never));
  TRY(check_capabilities("gpu.capabilities", gpu.capabilities));
  TRY(check_capabilities("gpu.default-capabilities", gpu.default_capabilities));
  TRY(check_paths("gpu.library-directories", gpu.library_directories));
  TRY(check_paths("gpu.files", gpu.files));
  TRY(check_paths("gpu.cdi-directories", gpu.cdi_directories));
  if (!gpu.ledger.empty()) TRY(check_paths("gpu.ledger", {gpu.ledger}));
  if (!gpu.driver_root.empty()) TRY(check_paths("gpu.driver-root", {gpu.driver_root}));
  TRY(check_words("gpu.annotation-prefixes", gpu.annotation_prefixes));
  TRY(check_words("gpu.swarm-resource", gpu.swarm_resource));
  if (!is_kind(gpu.default_kind)) {
    return refuse("gpu.default-kind",
                  fmt::format("expected vendor.com/class, got {}", quote(gpu.default_kind)));
  }
  TRY(check_paths("match.keys", policy.match.keys));
  const std::string& network = policy.network.default_mode;
  if (!network.empty() && network != "bridge" && network != "host" && network != "none") {
    return refuse("network.default", "expected bridge, host or none, got " + quote(network));
  }
  for (const std::string& name : policy.slurm.node_variables) {
    if (is_variable_name(name)) continue;
    return refuse("slurm.node-variables", quote(name) + " is not the name of a variable",
                  "slurm.node-variables");
  }
  if (policy.match.facts == PublishedFacts::only_signed && policy.match.keys.empty()) {
    return refuse("match.facts", "\"signed\" needs the keys that are trusted", "match.keys");
  }
  return {};
}

Result<Compiled> parse_compiled(std::string_view text, std::string_view document) {
  json::Value value = TRY(json::parse(text, document, {.max_bytes = 1 << 20, .max_depth = 12}));
  // Checked before the table, which refuses unknown members: another version of Berth has other
  // members.
  const json::Value* format = value.find("format");
  if (format != nullptr && *format != json::Value(int64_t{kFormat})) {
    return make_error(Kind::unsupported,
                      fmt::format("{}: written by another version of berth", document),
                      "berth policy apply");
  }
  Compiled compiled = TRY(json::from_value<Compiled>(std::move(value), document));
  auto good = check(compiled.policy);
  if (!good.ok()) {
    return make_error(Kind::corrupt, fmt::format("{}: {}", document, good.error().what),
                      "berth policy apply");
  }
  for (const PlacedRule& placed : compiled.rules) {
    std::vector<RuleFault> faults = check(placed.rule);
    if (faults.empty()) continue;
    return make_error(Kind::corrupt,
                      fmt::format("{}: rule {}: {}: {}", document, quote(title_of(placed)),
                                  faults.front().key, faults.front().error.what),
                      "berth policy apply");
  }
  return compiled;
}

Result<Compiled> read_compiled(const std::string& config_dir) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  std::string path = config_dir + "/" + kCompiledName;
  auto text = TRY(sys::read_trusted_file_if_exists(path, kMaxBytes));
  if (!text)
    return Compiled{.format = kFormat, .source = {}, .lines = {}, .policy = {}, .rules = {}};
  return parse_compiled(*text, path);
}

}  // namespace berth::policy
