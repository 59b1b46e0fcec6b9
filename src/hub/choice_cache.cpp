// SPDX-License-Identifier: Apache-2.0
#include "hub/choice_cache.hpp"

namespace berth::hub {

std::optional<Choice> ChoiceCache::find(const std::string& key, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  auto kept = choices_.find(key);
  if (kept == choices_.end() || kept->second.end <= now) return std::nullopt;
  return kept->second.choice;
}

void ChoiceCache::put(const std::string& key, const Choice& choice, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (choices_.size() >= kMost) {
    std::erase_if(choices_, [now](const auto& one) { return one.second.end <= now; });
  }
  // Callers that invent nodes only lose the benefit of the cache.
  if (choices_.size() >= kMost) choices_.clear();
  choices_[key] = {choice, now + kLife};
}

}  // namespace berth::hub
