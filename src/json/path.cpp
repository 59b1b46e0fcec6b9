// SPDX-License-Identifier: Apache-2.0
#include "json/path.hpp"

#include "base/text.hpp"

namespace berth::json {

std::string Path::text() const {
  constexpr size_t kMaxName = 100;
  std::string name = escape_controls(name_.substr(0, kMaxName));
  if (kind_ == Kind::root) return name;
  std::string text = parent_->text();
  if (parent_->kind_ == Kind::root) {
    text += ": ";
  } else if (kind_ == Kind::member) {
    text += '.';
  }
  if (kind_ == Kind::element) return text + "[" + std::to_string(index_) + "]";
  return kind_ == Kind::entry ? text + "['" + name + "']" : text + name;
}

}  // namespace berth::json
