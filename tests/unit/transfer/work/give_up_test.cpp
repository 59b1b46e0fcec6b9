// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/give_up.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "image/store.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

namespace fs = std::filesystem;

/// A store with one blob that belongs to no image.
class GiveUp : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/berth-give-up-XXXXXX";
    base_ = ::mkdtemp(name);
    store_.emplace(*image::Store::open(base_ + "/store", {}));
    auto delivery = image::Delivery::begin(*store_);
    ASSERT_TRUE(delivery.ok());
    ASSERT_TRUE(delivery->put_document(blob_, "blob").ok());
  }
  void TearDown() override { fs::remove_all(base_); }

  Error give_up_after(Error error) {
    Events events([](const image::TransferEvent&) {}, Events::Layers::hidden);
    return give_up(*store_, std::move(error), events);
  }

  std::string base_;
  std::optional<image::Store> store_;
  Digest blob_ = sha256_of("blob");
};

TEST_F(GiveUp, takes_back_what_belongs_to_no_image) {
  EXPECT_EQ(give_up_after(make_error(Kind::corrupt, "read")).hint, "");
  EXPECT_FALSE(fs::exists(store_->blob_path(blob_)));
}

TEST_F(GiveUp, keeps_what_is_complete_after_a_signal) {
  EXPECT_EQ(give_up_after(make_error(Kind::interrupted, "stopped")).kind, Kind::interrupted);
  EXPECT_TRUE(fs::exists(store_->blob_path(blob_)));
}

TEST_F(GiveUp, says_how_to_make_room) {
  EXPECT_EQ(give_up_after(sys_error(ENOSPC, "write")).hint,
            "berth rmi IMAGE, or --root on a larger disk than '" + base_ + "/store'");
}

TEST_F(GiveUp, leaves_the_hint_of_who_knew_more) {
  EXPECT_EQ(give_up_after(sys_error(ENOSPC, "write").with_hint("another disk")).hint,
            "another disk");
}

}  // namespace
}  // namespace berth::transfer
