// SPDX-License-Identifier: Apache-2.0
#include "transfer/gzip/inflater.hpp"

#include <isa-l/igzip_lib.h>

#include <string>

namespace berth::transfer {

Error gzip_error(int code) {
  std::string reason = "the data is damaged";
  if (code == ISAL_INCORRECT_CHECKSUM) reason = "the checksum does not hold";
  if (code == ISAL_INVALID_WRAPPER) reason = "a header is damaged";
  if (code == ISAL_UNSUPPORTED_METHOD) reason = "it is not deflate";
  return make_error(Kind::corrupt, "gzip: " + reason);
}

}  // namespace berth::transfer
