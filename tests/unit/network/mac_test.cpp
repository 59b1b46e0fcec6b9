// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "network/address.hpp"

namespace berth::network {
namespace {

std::string read(std::string_view text) {
  auto bytes = parse_mac(text);
  return bytes.ok() ? mac_text(*bytes) : to_line(bytes.error());
}

TEST(Mac, is_read_in_the_forms_that_docker_takes) {
  for (const char* text : {"02:42:ac:11:00:09", "02-42-AC-11-00-09", "0242.ac11.0009"}) {
    EXPECT_EQ(read(text), "02:42:ac:11:00:09") << text;
  }
}

TEST(Mac, that_is_none_is_refused) {
  for (const char* text :
       {"", "x", "02:42:ac:11:00", "02:42:ac:11:00:09:0a", "02:42:ac:11:00:0g", "02:42-ac:11:00:09",
        "2:42:ac:11:00:09", "02:42:ac:11:00:+9", "0242:ac11:0009", "0242ac110009",
        "02:42:ac:11:00:09:0a:0b", "02:42:ac:11:00:09 "}) {
    EXPECT_NE(read(text).find(" is not a valid mac address: expected six bytes"), std::string::npos)
        << text;
  }
}

TEST(Mac, that_no_interface_can_have_is_refused_with_the_reason) {
  EXPECT_NE(read("01:00:5e:00:00:01").find("one of a group"), std::string::npos);
  EXPECT_NE(read("ff:ff:ff:ff:ff:ff").find("one of a group"), std::string::npos);
  EXPECT_NE(read("00:00:00:00:00:00").find("that of nobody"), std::string::npos);
}

TEST(Mac, of_an_address_says_whose_it_is) {
  EXPECT_EQ(mac_text(mac_of(0x0a800002)), "02:be:0a:80:00:02");
}

}  // namespace
}  // namespace berth::network
