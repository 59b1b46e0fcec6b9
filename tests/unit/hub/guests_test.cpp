// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hub/client_limits.hpp"
#include "unit/hub/address.hpp"

namespace berth::hub {
namespace {

TEST(HubGuests, an_address_has_so_many_and_others_have_theirs) {
  Guests guests(2, 1);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::served);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::served);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::refused);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::closed);
  EXPECT_EQ(guests.add(at("10.0.0.2")), Welcome::served);
  EXPECT_EQ(guests.served(), 3u) << "who is refused takes no place";
}

TEST(HubGuests, a_place_that_was_left_is_free_again) {
  Guests guests(1, 1);
  ASSERT_EQ(guests.add(at("10.0.0.1")), Welcome::served);
  ASSERT_EQ(guests.add(at("10.0.0.1")), Welcome::refused);
  guests.remove(at("10.0.0.1"), Welcome::served);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::served) << "though one is still being refused";
  ASSERT_EQ(guests.add(at("10.0.0.1")), Welcome::closed);
  guests.remove(at("10.0.0.1"), Welcome::refused);
  EXPECT_EQ(guests.add(at("10.0.0.1")), Welcome::refused);
  guests.remove(at("10.0.0.1"), Welcome::refused);
  EXPECT_FALSE(guests.empty());
  guests.remove(at("10.0.0.1"), Welcome::served);
  EXPECT_TRUE(guests.empty());
}

TEST(HubGuests, a_machine_is_one_whatever_it_calls_itself) {
  Guests guests(1, 0);
  ASSERT_EQ(guests.add(at("10.0.0.1")), Welcome::served);
  EXPECT_EQ(guests.add(at("::ffff:10.0.0.1")), Welcome::closed);
  ASSERT_EQ(guests.add(at("fd00:1:2:3::1")), Welcome::served);
  EXPECT_EQ(guests.add(at("fd00:1:2:3:ffff:eeee:dddd:cccc")), Welcome::closed);
  EXPECT_EQ(guests.add(at("fd00:1:2:4::1")), Welcome::served);
  EXPECT_EQ(guests.add(at("10.0.0.2")), Welcome::served) << "all of IPv4 is one /64 of IPv6";
  guests.remove(at("fd00:1:2:3:ffff:eeee:dddd:cccc"), Welcome::served);
  EXPECT_EQ(guests.add(at("fd00:1:2:3::1")), Welcome::served);
}

}  // namespace
}  // namespace berth::hub
