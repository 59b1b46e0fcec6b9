// SPDX-License-Identifier: Apache-2.0
#include "sys/thread/work_behind.hpp"

#include <utility>

#include "sys/thread/thread.hpp"

namespace berth::sys {

WorkBehind::WorkBehind(size_t depth) : depth_(depth), thread_(start_thread([this] { serve(); })) {}

WorkBehind::~WorkBehind() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

bool WorkBehind::begin(Work work) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_ || works_.size() == depth_) return false;
    works_.push_back(std::move(work));
  }
  changed_.notify_all();
  return true;
}

Result<void> WorkBehind::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return works_.empty(); });
  return std::exchange(outcome_, {});
}

void WorkBehind::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !works_.empty() || ending_; });
    if (works_.empty()) return;
    Work work = std::move(works_.front());
    lock.unlock();
    Result<void> outcome = work();
    lock.lock();
    if (outcome_.ok()) outcome_ = std::move(outcome);
    works_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace berth::sys
