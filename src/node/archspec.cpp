// SPDX-License-Identifier: Apache-2.0
#include "node/archspec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <tuple>

#include "base/text.hpp"

namespace berth::node {
namespace {

using FeatureSet = std::array<uint64_t, 2>;  // one bit for each of kFeatureNames
struct Entry {
  std::string_view name;
  std::string_view vendor;
  std::string_view part;  ///< Arm
  uint32_t generation;    ///< Power
  uint16_t family;        ///< index of the family's entry
  uint16_t first_ancestor;
  uint16_t ancestor_count;
  uint16_t feature_count;
  FeatureSet features;
};
/// A feature that another feature, or a whole family, implies.
struct Alias {
  std::string_view name;
  std::string_view feature;
  std::string_view family;
};
struct ArmVendor {
  std::string_view code;
  std::string_view name;
};

#include "node/archspec_table.inc"

static_assert(kFeatureWords == std::tuple_size_v<FeatureSet>);
static_assert(std::ranges::is_sorted(kFeatureNames));

constexpr std::string_view kGeneric = "generic";
constexpr uint32_t kFeatureLimit = 256;  // for closeness(): more than any entry has

const Entry* find(std::string_view name) {
  auto at = std::ranges::lower_bound(kEntries, name, {}, &Entry::name);
  return at != kEntries.end() && at->name == name ? &*at : nullptr;
}

const Entry* find_written(std::string_view text) {
  if (const Entry* exact = find(text)) return exact;
  std::string name = to_lower(text);
  std::ranges::replace(name, '-', '_');
  return find(name);
}

std::span<const uint16_t> ancestors(const Entry& entry) {
  return std::span(kAncestors).subspan(entry.first_ancestor, entry.ancestor_count);
}

bool descends(const Entry& entry, const Entry& from) {
  auto above = ancestors(entry);
  auto index = static_cast<uint16_t>(&from - kEntries.data());
  return std::ranges::find(above, index) != above.end();
}

bool is_or_descends(const Entry& entry, const Entry& from) {
  return &entry == &from || descends(entry, from);
}

std::string_view family(const Entry& entry) {
  return kEntries[entry.family].name;
}

bool has(const Entry& entry, size_t feature) {
  return (entry.features[feature / 64] >> (feature % 64) & 1) != 0;
}

/// Calls `visit` with each feature, by name, until it returns false.
template <class Visit>
bool each_feature(const Entry& entry, Visit visit) {
  for (size_t word = 0; word < entry.features.size(); ++word) {
    for (uint64_t bits = entry.features[word]; bits != 0; bits &= bits - 1) {
      if (!visit(kFeatureNames[word * 64 + static_cast<size_t>(std::countr_zero(bits))])) {
        return false;
      }
    }
  }
  return true;
}

bool entry_has(const Entry& entry, std::string_view feature) {
  auto at = std::ranges::lower_bound(kFeatureNames, feature);
  return at != kFeatureNames.end() && *at == feature &&
         has(entry, static_cast<size_t>(at - kFeatureNames.begin()));
}

std::string_view arm_vendor(std::string_view code) {
  for (const ArmVendor& vendor : kArmVendors) {
    if (vendor.code == code) return vendor.name;
  }
  return code;
}

std::string vendor_code(const Entry& entry) {
  if (entry.vendor == kGeneric) return {};
  for (const ArmVendor& vendor : kArmVendors) {
    if (family(entry) == "aarch64" && vendor.name == entry.vendor) return std::string(vendor.code);
  }
  return std::string(entry.vendor);
}

/// The features of `cpu`: those it lists, or else those of its microarchitecture. An index of a
/// thousand entries causes a thousand queries, so nothing is precomputed.
class Features {
 public:
  Features(const Cpu& cpu, std::string_view family) : cpu_(cpu), family_(family) {
    if (cpu.features.empty()) entry_ = find_written(cpu.microarchitecture);
  }

  bool contains(std::string_view feature) const { return listed(feature) || has_by_alias(feature); }
  /// Calls `visit` with each missing feature of `entry`, by name, until it returns false.
  template <class Visit>
  bool each_missing(const Entry& entry, Visit visit) const {
    auto at = cpu_.features.begin();  // both lists are sorted
    return each_feature(entry, [&](std::string_view feature) {
      while (at != cpu_.features.end() && at->compare(feature) < 0) ++at;  // clang 14 has no '<'
      bool there = at != cpu_.features.end() && *at == feature;
      if (entry_ != nullptr) there = entry_has(*entry_, feature);
      return there || has_by_alias(feature) || visit(feature);
    });
  }
  bool contains_all(const Entry& entry) const {
    return each_missing(entry, [](std::string_view) { return false; });
  }

 private:
  bool has_by_alias(std::string_view feature) const {
    return std::ranges::any_of(kAliases, [&](const Alias& alias) {
      if (alias.name != feature) return false;
      return alias.family.empty() ? listed(alias.feature) : alias.family == family_;
    });
  }
  bool listed(std::string_view feature) const {
    if (entry_ != nullptr) return entry_has(*entry_, feature);
    return std::ranges::binary_search(cpu_.features, feature);
  }

  const Cpu& cpu_;
  std::string_view family_;
  const Entry* entry_ = nullptr;
};

/// "POWER9" → 9; 0 for other strings (an emulator may show the CPU of its host).
uint64_t power_generation(std::string_view part) {
  constexpr std::string_view kName = "POWER";
  size_t at = part.find(kName);
  if (at == std::string_view::npos) return 0;
  std::string_view digits = part.substr(at + kName.size());
  digits = digits.substr(0, digits.find_first_not_of("0123456789"));
  return parse_u64(digits).value_or(0);
}

std::string_view riscv_name(const Cpu& cpu) {
  if (cpu.part == "sifive,u74-mc") return "u74mc";
  if (cpu.part == "spacemit,x60" || cpu.model == "Spacemit(R) X60") return "x60";
  return cpu.part;
}

bool of_vendor(const Entry& entry, std::string_view vendor) {
  return entry.vendor == kGeneric || entry.vendor == vendor;
}

/// Tests one candidate as archspec does. Source: archspec cpu/detect.py, compatibility_check_*.
bool is_candidate(const Entry& entry, const Entry& root, const Cpu& cpu, const Features& features) {
  if (!is_or_descends(entry, root)) return false;
  if (root.name == "x86_64") return of_vendor(entry, cpu.vendor) && features.contains_all(entry);
  if (root.name == "aarch64") {
    // The versions of the Arm architecture cannot be told apart by features.
    if (entry.vendor == kGeneric) return &entry == &root;
    return of_vendor(entry, arm_vendor(cpu.vendor)) && features.contains_all(entry);
  }
  if (root.name.starts_with("ppc")) return entry.generation <= power_generation(cpu.part);
  if (root.name == "riscv64") return entry.vendor == kGeneric || entry.name == riscv_name(cpu);
  return &entry == &root;
}

/// Sort key: the number of ancestors, then of features.
std::pair<uint16_t, uint16_t> rank_of(const Entry& entry) {
  return {entry.ancestor_count, entry.feature_count};
}

const Entry* best_of(const std::vector<const Entry*>& entries) {
  auto best = std::ranges::max_element(entries, [&](const Entry* a, const Entry* b) {
    return rank_of(*a) < rank_of(*b) || (rank_of(*a) == rank_of(*b) && a->name > b->name);
  });
  return best == entries.end() ? nullptr : *best;
}

/// archspec and /proc/cpuinfo have different names for one feature.
std::string_view other_name(std::string_view feature) {
  if (feature == "pni") return "sse3";
  return feature == "sse3" ? "pni" : feature;
}

/// Whether archspec has a name for the feature.
bool is_named(std::string_view feature) {
  return std::ranges::binary_search(kFeatureNames, feature) ||
         std::ranges::any_of(kAliases, [&](const Alias& alias) { return alias.name == feature; });
}

/// Whether the features are exactly those that complete() fills in for the entry.
bool has_just(const std::vector<std::string>& features, const Entry& entry) {
  return features.size() == entry.feature_count &&
         std::ranges::all_of(features,
                             [&](const std::string& feature) { return entry_has(entry, feature); });
}

bool entry_has_all(const Entry& entry, const std::vector<std::string>& features) {
  Cpu cpu;
  cpu.microarchitecture = entry.name;
  Features all(cpu, family(entry));
  return std::ranges::all_of(features, [&](const std::string& one) {
    return all.contains(one) || all.contains(other_name(one));
  });
}

}  // namespace

std::optional<std::string_view> known_microarchitecture(std::string_view text) {
  const Entry* entry = find_written(text);
  return entry == nullptr ? std::nullopt : std::optional(entry->name);
}

std::optional<std::string_view> nearest_microarchitecture(std::string_view text) {
  std::string name = to_lower(text);
  std::ranges::replace(name, '-', '_');
  return nearest(name, microarchitectures());
}

std::vector<std::string_view> microarchitectures() {
  std::vector<std::string_view> out;
  for (const Entry& entry : kEntries) out.push_back(entry.name);
  return out;
}

std::vector<std::string_view> ancestors_of(std::string_view microarchitecture) {
  std::vector<std::string_view> out;
  const Entry* entry = find_written(microarchitecture);
  if (entry == nullptr) return out;
  for (uint16_t index : ancestors(*entry)) out.push_back(kEntries[index].name);
  return out;
}

std::vector<std::string_view> features_of(std::string_view microarchitecture) {
  std::vector<std::string_view> out;
  const Entry* entry = find_written(microarchitecture);
  if (entry == nullptr) return out;
  each_feature(*entry, [&](std::string_view feature) {
    out.push_back(feature);
    return true;
  });
  return out;
}

std::string_view family_of(std::string_view microarchitecture) {
  const Entry* entry = find_written(microarchitecture);
  return entry == nullptr ? std::string_view() : family(*entry);
}

std::string_view vendor_of(std::string_view microarchitecture) {
  const Entry* entry = find_written(microarchitecture);
  return entry == nullptr ? std::string_view() : entry->vendor;
}

uint32_t level_of(std::string_view microarchitecture) {
  const Entry* entry = find_written(microarchitecture);
  if (entry == nullptr || family(*entry) != "x86_64") return 0;
  constexpr std::array<std::string_view, 3> kLevels = {"x86_64_v4", "x86_64_v3", "x86_64_v2"};
  for (size_t i = 0; i < kLevels.size(); ++i) {
    const Entry* level = find(kLevels[i]);
    if (level != nullptr && is_or_descends(*entry, *level)) return static_cast<uint32_t>(4 - i);
  }
  return 1;
}

std::string_view family_of_architecture(std::string_view architecture) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNames = {{
      {"amd64", "x86_64"},
      {"arm64", "aarch64"},
      {"386", "x86"},
  }};
  for (const auto& [theirs, ours] : kNames) {
    if (architecture == theirs) return ours;
  }
  return architecture;
}

bool has_feature(const Cpu& cpu, std::string_view feature) {
  return Features(cpu, family_of(cpu.microarchitecture)).contains(feature);
}

Presence presence(const Cpu& cpu, std::string_view feature) {
  if (has_feature(cpu, feature) || has_feature(cpu, other_name(feature))) return Presence::there;
  const Entry* own = find_written(cpu.microarchitecture);
  if (cpu.features.empty() && own == nullptr) return Presence::unknown;
  // Features that complete() filled in were not read from a processor. Generic entries stand for
  // many processors, and features without a name in archspec are unknown.
  bool filled = own != nullptr && (cpu.features.empty() || has_just(cpu.features, *own));
  bool named = is_named(feature) || is_named(other_name(feature));
  bool told = own != nullptr && own->vendor != kGeneric && named;
  return filled && !told ? Presence::unknown : Presence::missing;
}

std::optional<std::string_view> least_with(const Cpu& host,
                                           const std::vector<std::string>& features) {
  const Entry* own = find_written(host.microarchitecture);
  if (own == nullptr || features.empty()) return std::nullopt;
  const Entry* least = entry_has_all(*own, features) ? own : nullptr;
  for (uint16_t index : ancestors(*own)) {
    const Entry& entry = kEntries[index];
    if (!entry_has_all(entry, features)) continue;
    if (least == nullptr || rank_of(entry) < rank_of(*least)) least = &entry;
  }
  return least == nullptr ? std::nullopt : std::optional(least->name);
}

std::optional<std::string_view> least_known_with(const std::vector<std::string>& features,
                                                 std::string_view above) {
  const Entry* from = find_written(above);
  const Entry* least = nullptr;
  auto key = [](const Entry& entry) {
    return std::pair(entry.vendor != kGeneric, entry.feature_count);
  };
  for (const Entry& entry : kEntries) {
    if (!entry_has_all(entry, features)) continue;
    if (from != nullptr && !is_or_descends(entry, *from)) continue;
    if (least == nullptr || key(entry) < key(*least)) least = &entry;
  }
  return least == nullptr ? std::nullopt : std::optional(least->name);
}

Fit fit(const Cpu& host, std::string_view microarchitecture) {
  const Entry* wanted = find_written(microarchitecture);
  auto is_wanted = [&](std::string_view name) {
    return wanted == nullptr ? name == microarchitecture : name == wanted->name;
  };
  // The profile may have been written by a later version that knows more names.
  if (is_wanted(host.microarchitecture) && !microarchitecture.empty()) return Fit::runs;
  if (std::ranges::any_of(host.ancestors, is_wanted)) return Fit::runs;
  const Entry* own = find_written(host.microarchitecture);
  if (wanted == nullptr || own == nullptr) return Fit::unknown;
  if (is_or_descends(*own, *wanted)) return Fit::runs;
  if (wanted->family != own->family) return Fit::other_family;
  Features features(host, family(*own));
  // If the entry has no features, only the ancestors decide.
  if (wanted->feature_count == 0 || !features.contains_all(*wanted)) return Fit::lacks;
  std::string_view vendor = host.vendor.empty() ? own->vendor : arm_vendor(host.vendor);
  return of_vendor(*wanted, vendor) ? Fit::runs : Fit::other_vendor;
}

bool runs(const Cpu& host, std::string_view microarchitecture) {
  return fit(host, microarchitecture) == Fit::runs;
}

std::optional<uint32_t> closeness(const Cpu& host, std::string_view microarchitecture) {
  if (!runs(host, microarchitecture)) return std::nullopt;
  const Entry* entry = find_written(microarchitecture);
  if (entry != nullptr) return entry->ancestor_count * kFeatureLimit + entry->feature_count;
  // The name is from the database of a later version. The host's list has the nearest ancestor
  // first, so each entry is followed by its own ancestors.
  if (microarchitecture == host.microarchitecture) {
    return static_cast<uint32_t>(host.ancestors.size()) * kFeatureLimit;
  }
  auto at = std::ranges::find(host.ancestors, microarchitecture);
  return static_cast<uint32_t>(host.ancestors.end() - at - 1) * kFeatureLimit;
}

std::vector<std::string_view> lacking(const Cpu& host, std::string_view microarchitecture) {
  std::vector<std::string_view> out;
  const Entry* wanted = find_written(microarchitecture);
  const Entry* own = find_written(host.microarchitecture);
  if (wanted == nullptr || own == nullptr || wanted->family != own->family) return out;
  if (fit(host, microarchitecture) == Fit::runs) return out;
  Features features(host, family(*own));
  features.each_missing(*wanted, [&](std::string_view feature) {
    out.push_back(feature);
    return true;
  });
  return out;
}

std::string detect(std::string_view family, const Cpu& cpu) {
  const Entry* root = find(family);
  if (root == nullptr) return std::string(family);
  Features features(cpu, family);
  std::vector<const Entry*> candidates;
  std::vector<const Entry*> generic;
  bool part_known = false;
  for (const Entry& entry : kEntries) {
    if (!is_candidate(entry, *root, cpu, features)) continue;
    candidates.push_back(&entry);
    if (entry.vendor == kGeneric) generic.push_back(&entry);
    part_known = part_known || (!entry.part.empty() && entry.part == cpu.part);
  }
  const Entry* best_generic = best_of(generic);
  if (best_generic == nullptr) return std::string(family);
  // Also keeps entries below the best generic one: one feature that the firmware disabled must not
  // exclude all others.
  std::erase_if(candidates, [&](const Entry* entry) {
    return !descends(*entry, *best_generic) || (part_known && entry->part != cpu.part);
  });
  const Entry* best = best_of(candidates);
  return std::string(best == nullptr ? best_generic->name : best->name);
}

void complete(std::string_view family, Cpu& cpu) {
  std::ranges::sort(cpu.features);
  cpu.features.erase(std::unique(cpu.features.begin(), cpu.features.end()), cpu.features.end());
  if (cpu.microarchitecture.empty()) cpu.microarchitecture = detect(family, cpu);
  const Entry* entry = find_written(cpu.microarchitecture);
  if (entry != nullptr) {
    cpu.microarchitecture = entry->name;
    if (cpu.vendor.empty()) cpu.vendor = vendor_code(*entry);
    if (cpu.level == 0) cpu.level = level_of(entry->name);
    if (cpu.ancestors.empty()) {
      for (std::string_view name : ancestors_of(entry->name)) cpu.ancestors.emplace_back(name);
    }
    if (cpu.features.empty()) {
      for (std::string_view feature : features_of(entry->name)) cpu.features.emplace_back(feature);
    }
  }
}

}  // namespace berth::node
