// SPDX-License-Identifier: Apache-2.0
#include "oci/docker_profile.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::oci {
namespace {

using Strings = std::vector<std::string>;

struct Architecture {
  std::string architecture;
  Strings sub_architectures;
};
void fields(auto& v, Architecture& a) {
  v.required("architecture", a.architecture);
  v.optional("subArchitectures", a.sub_architectures);
}

/// The "includes" or "excludes" of a rule: an empty member is no condition.
struct Filter {
  Strings caps;
  Strings arches;  ///< "amd64"
  std::string min_kernel;
};
void fields(auto& v, Filter& f) {
  v.optional("caps", f.caps);
  v.optional("arches", f.arches);
  v.optional("minKernel", f.min_kernel);
}

struct Argument {
  uint32_t index = 0;
  uint64_t value = 0;
  uint64_t value_two = 0;
  std::string op;
};
void fields(auto& v, Argument& a) {
  v.required("index", a.index);
  v.optional("value", a.value);
  v.optional("valueTwo", a.value_two);
  v.required("op", a.op);
}

struct Rule {
  std::string name;  ///< in the old form each rule has one name
  Strings names;
  std::string action;
  std::optional<uint32_t> errno_ret;
  std::vector<Argument> args;
  Filter includes;
  Filter excludes;
};
void fields(auto& v, Rule& r) {
  v.optional("name", r.name);
  v.optional("names", r.names);
  v.required("action", r.action);
  v.optional("errnoRet", r.errno_ret);
  v.optional("args", r.args);
  v.optional("includes", r.includes);
  v.optional("excludes", r.excludes);
}

struct Profile {
  std::string default_action;
  std::optional<uint32_t> default_errno_ret;
  Strings architectures;
  std::vector<Architecture> arch_map;
  Strings flags;
  std::string listener_path;
  std::string listener_metadata;
  std::vector<Rule> syscalls;
};
void fields(auto& v, Profile& p) {
  v.required("defaultAction", p.default_action);
  v.optional("defaultErrnoRet", p.default_errno_ret);
  v.optional("architectures", p.architectures);
  v.optional("archMap", p.arch_map);
  v.optional("flags", p.flags);
  v.optional("listenerPath", p.listener_path);
  v.optional("listenerMetadata", p.listener_metadata);
  v.optional("syscalls", p.syscalls);
}

bool contains(const Strings& many, std::string_view one) {
  return std::ranges::find(many, one) != many.end();
}

std::string_view go_name(Machine machine) {
  return machine == Machine::x86_64 ? "amd64" : "arm64";
}
std::string_view seccomp_name(Machine machine) {
  return machine == Machine::x86_64 ? "SCMP_ARCH_X86_64" : "SCMP_ARCH_AARCH64";
}

struct Version {
  uint64_t major = 0;
  uint64_t minor = 0;
  auto operator<=>(const Version&) const = default;
};

/// The first two numbers of "6.1.0-18-amd64".
std::optional<Version> version_of(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(dot + 1);
  auto major = parse_u64(text.substr(0, dot));
  auto minor =
      parse_u64(rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size())));
  if (!major || !minor) return std::nullopt;
  return Version{*major, *minor};
}

class Chooser {
 public:
  Chooser(std::string_view document, const ProfileFacts& facts)
      : document_(document), facts_(facts) {}

  // All of "includes" have to match: the machine is listed, each capability is held, the kernel is
  // new enough.
  Result<bool> included(const Filter& filter) const {
    if (!filter.arches.empty() && !contains(filter.arches, go_name(facts_.machine))) return false;
    for (const std::string& capability : filter.caps) {
      if (!contains(facts_.capabilities, capability)) return false;
    }
    if (filter.min_kernel.empty()) return true;
    return new_enough(filter.min_kernel);
  }

  // One match in "excludes" is enough.
  Result<bool> excluded(const Filter& filter) const {
    if (contains(filter.arches, go_name(facts_.machine))) return true;
    for (const std::string& capability : filter.caps) {
      if (contains(facts_.capabilities, capability)) return true;
    }
    if (filter.min_kernel.empty()) return false;
    return new_enough(filter.min_kernel);
  }

 private:
  Result<bool> new_enough(const std::string& wish) const {
    auto wanted = version_of(wish);
    if (!wanted) {
      return make_error(Kind::corrupt, std::string(document_) +
                                           ": minKernel: expected such as 4.8, got " + quote(wish));
    }
    auto here = version_of(facts_.kernel);
    return here && *here >= *wanted;
  }

  std::string_view document_;
  const ProfileFacts& facts_;
};

Strings architectures_of(const Profile& profile, Machine machine) {
  if (!profile.architectures.empty()) return profile.architectures;
  for (const Architecture& one : profile.arch_map) {
    if (one.architecture != seccomp_name(machine)) continue;
    Strings all = {one.architecture};
    all.insert(all.end(), one.sub_architectures.begin(), one.sub_architectures.end());
    return all;
  }
  return {};
}

}  // namespace

Result<Seccomp> parse_docker_profile(std::string_view text, std::string_view document,
                                     const ProfileFacts& facts) {
  Profile profile = TRY(json::read<Profile>(text, document, {.max_bytes = 4 << 20}));
  if (!profile.architectures.empty() && !profile.arch_map.empty()) {
    return make_error(Kind::corrupt, std::string(document) +
                                         ": 'architectures' and 'archMap' cannot both be there");
  }
  Seccomp out;
  out.default_action = std::move(profile.default_action);
  out.default_errno_ret = profile.default_errno_ret;
  out.architectures = architectures_of(profile, facts.machine);
  out.flags = std::move(profile.flags);
  out.listener_path = std::move(profile.listener_path);
  out.listener_metadata = std::move(profile.listener_metadata);
  Chooser chooser(document, facts);
  for (Rule& rule : profile.syscalls) {
    if (!rule.name.empty() && !rule.names.empty()) {
      return make_error(Kind::corrupt, std::string(document) +
                                           ": syscalls: 'name' and 'names' cannot both be there");
    }
    bool counts = TRY(chooser.included(rule.includes));
    if (counts) {
      bool out_of_it = TRY(chooser.excluded(rule.excludes));
      counts = !out_of_it;
    }
    if (!counts) continue;
    if (!rule.name.empty()) rule.names = {std::move(rule.name)};
    SeccompSyscall call{std::move(rule.names), std::move(rule.action), rule.errno_ret, {}};
    for (Argument& argument : rule.args) {
      call.args.push_back(
          {argument.index, argument.value, argument.value_two, std::move(argument.op)});
    }
    out.syscalls.push_back(std::move(call));
  }
  return out;
}

}  // namespace berth::oci
