// SPDX-License-Identifier: Apache-2.0
#include "plan/maker.hpp"

#include "base/text.hpp"

namespace berth::plan {

Error usage(std::string what) {
  return make_error(Kind::usage, "config.json: " + std::move(what));
}

Error unsupported(std::string what) {
  return make_error(Kind::unsupported, "config.json: " + std::move(what));
}

std::string tidy(std::string_view path) {
  std::string out;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

}  // namespace berth::plan
