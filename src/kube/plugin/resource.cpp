// SPDX-License-Identifier: Apache-2.0
#include "kube/plugin/resource.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "policy/site/toml.hpp"

namespace berth::kube {
namespace {

constexpr std::string_view kDomain = "berth.dev/gpu";
constexpr std::string_view kShare = "::";
constexpr uint32_t kMostShares = 1024;
constexpr size_t kMostResources = 64;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// "NVIDIA RTX 6000 Ada Generation" → "rtx-6000-ada-generation".
std::string plain(std::string_view text) {
  std::string out;
  for (char c : to_lower(text)) {
    if (is_lower_or_digit(c) || c == '.') {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && !is_lower_or_digit(out.back())) out.pop_back();
  return out;
}

Error fault(std::string_view document, uint32_t line, const std::string& what) {
  return make_error(Kind::corrupt, fmt::format("{}:{}: {}", document, line, what));
}

Result<std::string> text_of(const policy::TomlEntry& entry, std::string_view document) {
  if (const auto* text = entry.value.string()) return *text;
  return fault(document, entry.line, quote(policy::key_of(entry)) + ": expected a string");
}

Result<void> take(const policy::TomlEntry& entry, std::string_view document, Resource& resource) {
  const std::string key = policy::key_of(entry);
  if (key == "name") {
    resource.name = TRY(text_of(entry, document));
    if (is_resource_name(resource.name)) return {};
    return fault(
        document, entry.line,
        "name: " + quote(resource.name) + " is no name of a resource, such as 'example.org/gpu'");
  }
  if (key == "vendor") {
    std::string text = TRY(text_of(entry, document));
    auto vendor = parse_enum<gpu::Vendor>(text);
    if (vendor.ok()) {
      resource.vendor = *vendor;
      return {};
    }
    return fault(document, entry.line,
                 "vendor: " + quote(text) + ": there are nvidia, amd and intel");
  }
  if (key == "model") {
    resource.model = to_lower(TRY(text_of(entry, document)));
    return {};
  }
  if (key == "shares") {
    auto number = json::from_value<uint32_t>(entry.value, "shares");
    if (number.ok() && *number >= 1 && *number <= kMostShares) {
      resource.shares = *number;
      return {};
    }
    return fault(document, entry.line,
                 fmt::format("shares: expected a number from 1 to {}", kMostShares));
  }
  return fault(document, entry.line,
               "unknown key " + quote(key) + ": a resource has name, vendor, model and shares");
}

}  // namespace

bool is_resource_name(std::string_view name) {
  constexpr size_t kMostName = 63;
  constexpr size_t kMostDomain = 253;
  size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash > kMostDomain) return false;
  std::string_view domain = name.substr(0, slash);
  std::string_view rest = name.substr(slash + 1);
  if (rest.empty() || rest.size() > kMostName || domain == "kubernetes.io") return false;
  auto is_name = [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
  };
  auto is_end = [](char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); };
  for (std::string_view label : split(domain, '.')) {
    bool good = !label.empty() && is_lower_or_digit(label.front()) &&
                is_lower_or_digit(label.back()) &&
                std::ranges::all_of(label, [](char c) { return is_lower_or_digit(c) || c == '-'; });
    if (!good) return false;
  }
  return std::ranges::all_of(rest, is_name) && is_end(rest.front()) && is_end(rest.back());
}

Result<std::vector<Resource>> parse_resources(std::string_view text, std::string_view document) {
  std::vector<Resource> resources;
  std::set<std::string> names;
  for (const policy::TomlEntry& entry : TRY(policy::parse_toml(text, document))) {
    if (policy::key_of(entry) != "resource" || entry.tables.empty()) {
      return fault(document, entry.line,
                   "unknown key " + quote(policy::key_of(entry)) + ": the file has [[resource]]");
    }
    for (const auto& table : entry.tables) {
      Resource resource;
      for (const policy::TomlEntry& one : table) TRY(take(one, document, resource));
      uint32_t line = table.empty() ? entry.line : table.front().line;
      if (resource.name.empty()) return fault(document, line, "a resource without a name");
      if (!names.insert(resource.name).second) {
        return fault(document, line, quote(resource.name) + " is there twice");
      }
      resources.push_back(std::move(resource));
      if (resources.size() > kMostResources) {
        return fault(document, line, fmt::format("more than {} resources", kMostResources));
      }
    }
  }
  if (resources.empty()) return fault(document, 1, "there is no [[resource]]");
  return resources;
}

std::string model_label(const gpu::Selected& unit) {
  if (unit.slice != nullptr && !unit.slice->profile.empty())
    return "mig-" + plain(unit.slice->profile);
  std::string label = plain(unit.gpu->model);
  // The maker, and the series without a meaning, come first: "NVIDIA H100 80GB HBM3", "Tesla T4",
  // "AMD Instinct MI300X", "NVIDIA GeForce RTX 4090".
  for (std::string_view word :
       {"nvidia-", "amd-", "intel-", "tesla-", "instinct-", "geforce-", "quadro-"}) {
    if (label.starts_with(word)) label.erase(0, word.size());
  }
  // What says how it is built in ("-80gb-hbm3", "-pcie", "-sxm4") is left out.
  for (std::string_view word : {"-pcie", "-sxm", "-hbm", "-nvl"})
    label = label.substr(0, label.find(word));
  size_t dash = label.rfind('-');
  bool memory = dash != std::string::npos && label.ends_with("gb") &&
                label.find_first_not_of("0123456789", dash + 1) == label.size() - 2;
  if (memory) label.erase(dash);
  return label;
}

std::vector<gpu::Selected> units_of(const gpu::Inventory& inventory) {
  std::vector<gpu::Selected> units;
  for (const gpu::Gpu& one : inventory.gpus) {
    for (const gpu::MigDevice& slice : one.mig) units.push_back({&one, &slice});
    for (const gpu::Partition& part : one.partitions) units.push_back({&one, nullptr, &part});
    if (!one.mig_mode && one.mig.empty() && one.partitions.empty()) units.push_back({&one});
  }
  return units;
}

std::vector<gpu::Selected> units_of(const Resource& resource, const gpu::Inventory& inventory) {
  std::vector<gpu::Selected> units = units_of(inventory);
  std::erase_if(units, [&](const gpu::Selected& unit) {
    if (resource.vendor && unit.gpu->vendor != *resource.vendor) return true;
    // A name for whole GPUs does not stand for slices, which are smaller.
    if (resource.model.empty()) return unit.slice != nullptr;
    return ::fnmatch(resource.model.c_str(), model_label(unit).c_str(), 0) != 0;
  });
  return units;
}

std::vector<Resource> default_resources(const gpu::Inventory& inventory) {
  std::vector<Resource> all{{std::string(kDomain), std::nullopt, "", 1}};
  auto add = [&](Resource resource) {
    bool known = std::ranges::find(all, resource.name, &Resource::name) != all.end();
    if (!known && is_resource_name(resource.name)) all.push_back(std::move(resource));
  };
  for (const gpu::Selected& unit : units_of(inventory)) {
    std::string vendor(enum_text(unit.gpu->vendor));
    add({fmt::format("{}.{}", kDomain, vendor), unit.gpu->vendor, "", 1});
    std::string model = model_label(unit);
    if (!model.empty())
      add({fmt::format("{}.{}.{}", kDomain, vendor, model), unit.gpu->vendor, model, 1});
  }
  return all;
}

std::string device_id(const gpu::Selected& unit, const Resource& resource, uint32_t share) {
  std::string uuid = unit.slice != nullptr ? unit.slice->uuid : unit.gpu->uuid;
  std::string id = uuid.empty() || unit.partition != nullptr ? gpu::key_of(unit) : uuid;
  return resource.shares > 1 ? fmt::format("{}{}{}", id, kShare, share) : id;
}

std::string socket_name(std::string_view resource) {
  return fmt::format("berth-{:016x}.sock", fnv1a(resource));
}

std::string_view unit_of(std::string_view device_id) {
  return device_id.substr(0, device_id.find(kShare));
}

}  // namespace berth::kube
