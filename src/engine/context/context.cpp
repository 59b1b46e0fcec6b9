// SPDX-License-Identifier: Apache-2.0
#include "engine/context/context.hpp"

#include <array>

#include "gpu/grant/job.hpp"

namespace berth::engine {

std::string_view identity_name(Identity identity) {
  // In the order of Identity.
  constexpr std::array<std::string_view, 3> kNames = {"root", "mapped", "single"};
  return kNames[static_cast<size_t>(identity)];
}

Environment Environment::from(char** environ) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return Environment(std::move(entries));
}

std::optional<std::string_view> Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_) {
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::vector<std::string> Environment::without_loader() const {
  std::vector<std::string> out = entries_;
  std::erase_if(out, [](const std::string& entry) { return entry.starts_with("LD_"); });
  return out;
}

std::optional<std::string_view> Environment::get_filled(std::string_view name) const {
  auto value = get(name);
  return value && !value->empty() ? value : std::nullopt;
}

bool is_in_job(const Environment& environment) {
  return gpu::find_job(gpu::Variables({}, environment.entries())).has_value();
}

}  // namespace berth::engine
