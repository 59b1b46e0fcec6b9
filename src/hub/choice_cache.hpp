// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "hub/choice.hpp"

namespace berth::hub {

/// Recent choices. A document never changes, but the facts published beside it may. Thread-safe.
class ChoiceCache {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLife{60};
  static constexpr size_t kMost = 4096;

  std::optional<Choice> find(const std::string& key, Clock::time_point now = Clock::now());
  void put(const std::string& key, const Choice& choice, Clock::time_point now = Clock::now());

 private:
  struct Kept {
    Choice choice;
    Clock::time_point end;
  };
  std::mutex mutex_;
  std::map<std::string, Kept> choices_;
};

}  // namespace berth::hub
