// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth {

Result<Digest> Digest::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  std::string_view hex = text.substr(std::min(kPrefix.size(), text.size()));
  bool valid = text.starts_with(kPrefix) && hex.size() == 64 &&
               hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!valid) {
    return make_error(Kind::corrupt, "read digest " + quote(text.substr(0, 100)) +
                                         ": expected 'sha256:' and 64 hexadecimal digits");
  }
  Digest digest;
  digest.hex_ = hex;
  return digest;
}

Digest Digest::from_sha256(std::string_view bytes) {
  BERTH_ASSERT(bytes.size() == 32);
  Digest digest;
  digest.hex_ = to_hex(bytes);
  return digest;
}

}  // namespace berth
