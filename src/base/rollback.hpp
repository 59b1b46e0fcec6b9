// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace berth {

/// Several steps that are undone together: `undo.add(…)` after each step, `undo.commit()` at the
/// end. Without the commit the steps are undone in reverse order. The undo functions must not
/// report failures: the user needs the first error.
class Rollback {
 public:
  Rollback() = default;
  Rollback(Rollback&&) = delete;
  ~Rollback() {
    while (!steps_.empty()) {
      steps_.back()();
      steps_.pop_back();
    }
  }
  void add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  void commit() { steps_.clear(); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace berth
