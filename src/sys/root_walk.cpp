// SPDX-License-Identifier: Apache-2.0
#include "sys/root_walk.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel: MAXSYMLINKS

}  // namespace

Result<RootWalk> RootWalk::begin(const Fd& root, std::string_view path) {
  RootWalk walk;
  walk.path_ = path;
  Fd start = TRY(open_at(root, ".", O_PATH | O_DIRECTORY));
  walk.enter(std::move(start));
  walk.push(path);
  return walk;
}

std::optional<std::string> RootWalk::next() {
  while (!pending_.empty()) {
    std::string name = std::move(pending_.back());
    pending_.pop_back();
    if (name != "..") return name;
    if (parents_.size() > 1) parents_.pop_back();
  }
  return std::nullopt;
}

Result<void> RootWalk::follow(const std::string& name) {
  if (++links_ > kMaxLinks) return sys_error(ELOOP, "open " + quote(path_));
  std::string text = TRY(read_link(directory(), name));
  if (text.starts_with('/')) parents_.resize(1);
  push(text);
  return {};
}

void RootWalk::push(std::string_view path) {
  auto parts = split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") pending_.emplace_back(*part);
  }
}

}  // namespace berth::sys
