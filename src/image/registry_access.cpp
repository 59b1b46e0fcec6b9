// SPDX-License-Identifier: Apache-2.0
#include "image/registry_access.hpp"

#include "json/fields.hpp"

namespace berth::image {
namespace {

/// The number of characters of `name` that the prefix matches; nothing if it does not match.
std::optional<size_t> covered(std::string_view name, std::string_view prefix) {
  if (prefix.empty()) return std::nullopt;
  if (prefix.starts_with("*.")) {
    std::string_view domain = prefix.substr(1);
    size_t end = name.find_first_of(":/");
    if (end == name.npos) end = name.size();
    bool below = end > domain.size() && name.substr(0, end).ends_with(domain);
    return below ? std::optional(end) : std::nullopt;
  }
  if (!name.starts_with(prefix)) return std::nullopt;
  bool ends = name.size() == prefix.size() || name[prefix.size()] == '/';
  return ends ? std::optional(prefix.size()) : std::nullopt;
}

std::string_view prefix_of(const RegistryRule& rule) {
  return rule.prefix.empty() ? rule.location : rule.prefix;
}

}  // namespace

const RegistryRule* rule_of(const std::vector<RegistryRule>& rules, std::string_view name) {
  const RegistryRule* best = nullptr;
  for (const RegistryRule& rule : rules) {
    if (!covered(name, prefix_of(rule))) continue;
    if (best == nullptr || prefix_of(rule).size() > prefix_of(*best).size()) best = &rule;
  }
  return best;
}

std::string relocated(std::string_view name, const RegistryRule& rule, std::string_view location) {
  std::optional<size_t> replaced = covered(name, prefix_of(rule));
  if (location.empty() || !replaced) return std::string(name);
  return std::string(location) + std::string(name.substr(*replaced));
}

void fields(auto& v, JobOrder& o) {
  v.required("root", o.root);
  v.required("reference", o.reference);
  v.required("key", o.key);
  access_fields(v, o.access);
  v.optional("idle_seconds", o.idle_seconds);
  v.strict();
}

std::string to_json(const JobOrder& order) {
  return json::write(order) + "\n";
}

Result<JobOrder> parse_job_order(std::string_view text) {
  return json::read<JobOrder>(text, "job order");
}

}  // namespace berth::image
