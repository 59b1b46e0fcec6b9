// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/base64.hpp"

#include <gtest/gtest.h>

namespace berth::transfer {
namespace {

TEST(Base64, gives_back_every_length) {
  std::string bytes;
  for (int length = 0; length < 8; ++length) {
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
    bytes += static_cast<char>(200 + length);
  }
  EXPECT_EQ(base64_encode("u:p"), "dTpw");
  EXPECT_EQ(base64_decode("dTpwMQ"), "u:p1");  // padding left out
  EXPECT_EQ(base64_decode("!!!!"), std::nullopt);
}

}  // namespace
}  // namespace berth::transfer
