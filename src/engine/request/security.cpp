// SPDX-License-Identifier: Apache-2.0
#include "engine/request/security.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "oci/capabilities.hpp"
#include "oci/default_seccomp.hpp"
#include "oci/default_spec.hpp"
#include "oci/docker_profile.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

using Strings = std::vector<std::string>;

Error wrong_option(std::string_view text, std::string_view why) {
  return make_error(Kind::usage,
                    "invalid --security-opt: " + quote(text) + ": " + std::string(why));
}

struct Wishes {
  uint64_t bits = 0;  ///< the named capabilities
  bool all = false;
};
Result<Wishes> wishes_of(const Strings& names, const char* flag) {
  Wishes wishes;
  for (const std::string& name : names) {
    if (to_lower(name) == "all" || to_lower(name) == "cap_all") {
      wishes.all = true;
      continue;
    }
    auto known = oci::parse_capability(name);
    if (!known.ok()) {
      return make_error(Kind::usage,
                        std::string("invalid ") + flag + ": unknown capability: " + quote(name),
                        known.error().hint);
    }
    wishes.bits |= uint64_t{1} << *oci::capability_number(*known);
  }
  return wishes;
}

/// As docker: if ALL is added, all capabilities but those dropped by name; else, if ALL is dropped,
/// only those added by name; else docker's defaults, plus the added ones, minus the dropped ones.
Result<uint64_t> capability_bits(const Security& security, uint64_t held) {
  Wishes added = TRY(wishes_of(security.cap_add, "CapAdd"));
  Wishes dropped = TRY(wishes_of(security.cap_drop, "CapDrop"));
  if (security.privileged) return held;
  if (added.all) return held & ~dropped.bits;
  if (dropped.all) return added.bits;
  uint64_t usual = 0;
  for (std::string_view name : oci::default_capabilities()) {
    usual |= uint64_t{1} << *oci::capability_number(name);
  }
  return (usual & ~dropped.bits) | added.bits;
}

Strings names_of(uint64_t bits) {
  Strings names;
  for (std::string_view name : oci::capability_names()) {
    if (bits >> *oci::capability_number(name) & 1) names.emplace_back(name);
  }
  return names;
}

Strings strings(std::span<const std::string_view> views) {
  return {views.begin(), views.end()};
}

/// Removes a path from `paths` if a wish names the path, matches it as "DIR/*", or is "ALL".
void unmask(Strings& paths, const Strings& wishes) {
  std::erase_if(paths, [&](const std::string& path) {
    return std::ranges::any_of(wishes, [&](const std::string& wish) {
      return wish == "ALL" || wish == path ||
             (wish.ends_with("/*") && path.starts_with(wish.substr(0, wish.size() - 1)));
    });
  });
}

/// Applies options such as "type:spc_t", "level:s0:c1,c2" to the default label of containers.
std::string selinux_label(const Strings& wishes) {
  if (wishes.empty()) return "";
  std::string user = "system_u", role = "system_r", type = "container_t", level = "s0";
  for (const std::string& wish : wishes) {
    if (wish == "disable") return "";
    size_t colon = wish.find(':');
    std::string name = wish.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : wish.substr(colon + 1);
    if (name == "user") user = value;
    if (name == "role") role = value;
    if (name == "type") type = value;
    if (name == "level") level = value;
  }
  return user + ":" + role + ":" + type + ":" + level;
}

Result<void> add_label(std::string_view text, std::string_view value, Security& security) {
  std::string_view name = value.substr(0, value.find(':'));
  bool known = value == "disable" || value == "nested" ||
               ((name == "user" || name == "role" || name == "type" || name == "level" ||
                 name == "filetype") &&
                value.size() > name.size() + 1);
  if (!known)
    return wrong_option(text,
                        "expected label=disable, or user:, role:, type: or level: with a value");
  security.labels.emplace_back(value);
  return {};
}

}  // namespace

Result<void> parse_security_option(std::string_view text, Security& security) {
  // As docker, also accept the colon of early versions.
  size_t at = text.find_first_of("=:");
  std::string_view name = text.substr(0, at);
  std::string_view value = at == std::string_view::npos ? "" : text.substr(at + 1);
  if (name == "no-new-privileges") {
    if (value.empty() || value == "true" || value == "false") {
      security.no_new_privileges = value != "false";
      return {};
    }
    return wrong_option(text, "expected true or false");
  }
  if (value.empty()) {
    return wrong_option(
        text,
        "expected no-new-privileges, or seccomp=, apparmor=, label=, systempaths=, mask= "
        "or unmask= with a value");
  }
  if (name == "seccomp") {
    security.seccomp = std::string(value);
  } else if (name == "apparmor") {
    security.apparmor = std::string(value);
  } else if (name == "label") {
    return add_label(text, value, security);
  } else if (name == "systempaths") {
    if (value != "unconfined") return wrong_option(text, "expected systempaths=unconfined");
    security.unmask = {"ALL"};
  } else if (name == "unmask" || name == "mask") {
    Strings& paths = name == "mask" ? security.mask : security.unmask;
    for (std::string_view path : split(value, ':')) {
      bool all = name == "unmask" && (path == "ALL" || path == "all");
      if (!all && !path.starts_with('/')) return wrong_option(text, "expected absolute paths");
      paths.emplace_back(all ? "ALL" : path);
    }
  } else {
    return wrong_option(text, "there is no such option");
  }
  return {};
}

Result<std::string> read_profile(const std::string& path) {
  constexpr size_t kMost = size_t{4} << 20;
  return TRY_CTX(sys::read_file(sys::cwd(), path, kMost), "cannot open the seccomp profile");
}

Result<Confinement> confine(const Security& security, const ConfinementFacts& facts) {
  Confinement out;
  uint64_t bits = TRY(capability_bits(security, facts.held));
  out.capabilities = names_of(bits);
  out.no_new_privileges = security.no_new_privileges;
  if (security.seccomp && *security.seccomp != "unconfined") {
    out.seccomp =
        TRY(oci::parse_docker_profile(*security.seccomp, "the seccomp profile",
                                      {out.capabilities, oci::native_machine(), facts.kernel}));
  } else if (!security.seccomp && !security.privileged) {
    out.seccomp = oci::default_seccomp(out.capabilities, oci::native_machine());
  }
  if (!security.privileged) {
    out.masked_paths = strings(oci::default_masked_paths());
    out.readonly_paths = strings(oci::default_readonly_paths());
    unmask(out.masked_paths, security.unmask);
    unmask(out.readonly_paths, security.unmask);
  }
  out.masked_paths.insert(out.masked_paths.end(), security.mask.begin(), security.mask.end());
  if (security.apparmor) out.apparmor = *security.apparmor;
  // As with docker, SELinux options have no effect if SELinux is off.
  if (facts.selinux) out.selinux = selinux_label(security.labels);
  return out;
}

}  // namespace berth::engine
