// SPDX-License-Identifier: Apache-2.0
// Chooses the entry of an index for a node, as `berth match` does, and remembers recent choices.
// Pure except for the calls in `Beside`.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "image/published_facts.hpp"
#include "match/rank.hpp"
#include "node/profile.hpp"
#include "oci/image_spec.hpp"
#include "transfer/registry/variants.hpp"

namespace berth::hub {

struct Choice {
  /// If there is neither an entry nor a `refusal`, the document is a single manifest or not an
  /// image, and is passed on unchanged.
  std::optional<oci::Descriptor> entry;
  std::string refusal;  ///< why no entry runs: the reason against the nearest one
};

/// What is fetched besides the document. Called only for an index.
struct Beside {
  transfer::Fetch fetch;  ///< fetches the nested indexes
  /// The facts published about the images of the index.
  std::function<Result<std::optional<image::PublishedFacts>>()> facts;
};

/// Errors: those of transfer::list_variants() and of `beside`; corrupt (an invalid index).
Result<Choice> choose_entry(std::string_view document, std::string_view media_type,
                            const node::Profile& node, const match::Job& job, const Beside& beside);

/// Recent choices. A document never changes, but the facts published next to it may. Thread-safe.
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
