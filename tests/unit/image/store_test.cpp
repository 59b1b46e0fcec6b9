// SPDX-License-Identifier: Apache-2.0
#include "image/store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "json/fields.hpp"
#include "support/digests.hpp"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

/// Content does not matter to the store, so neither do true digests.
using test::made_digest;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/berth-tests-store-XXXXXX";
    root_ = ::mkdtemp(name);
    root_ += "/store";
    store_.emplace(take(Store::open(root_, {})));
  }
  void TearDown() override { fs::remove_all(fs::path(root_).parent_path()); }

  template <class T>
  static T take(Result<T> result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_line(result.error()));
    return std::move(result).value();
  }
  static void must(Result<void> result) {
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_line(result.error()));
  }

  ImageRecord make_image(Delivery& delivery, const std::string& seed,
                         std::vector<std::string> layers) {
    oci::Manifest manifest;
    oci::ImageConfig config;
    config.architecture = "amd64";
    config.os = "linux";
    for (const auto& layer : layers) {
      oci::Descriptor blob;
      blob.media_type = oci::media_type::kLayerGzip;
      blob.digest = made_digest("blob" + layer);
      manifest.layers.push_back(blob);
      config.rootfs.diff_ids.push_back(made_digest("diff" + layer));
      must(delivery.put_document(blob.digest, "blob " + layer));
      if (!take(delivery.keep_layer(made_digest("diff" + layer)))) {
        Staged staged = take(delivery.stage_layer());
        must(sys::write_file(staged.fd(), "fs/" + layer, "content"));
        must(delivery.publish_layer(std::move(staged), {made_digest("diff" + layer), {}, 1, 7}));
      }
    }
    manifest.config.media_type = oci::media_type::kConfig;
    manifest.config.digest = made_digest("config" + seed);
    must(delivery.put_document(made_digest("config" + seed), json::write(config)));
    must(delivery.put_document(made_digest("manifest" + seed), json::write(manifest)));
    ImageRecord record;
    record.target = record.manifest = made_digest("manifest" + seed);
    record.config = made_digest("config" + seed);
    return record;
  }

  Digest add(const std::string& name, const std::string& seed, std::vector<std::string> layers) {
    Delivery delivery = take(Delivery::begin(*store_));
    ImageRecord record = make_image(delivery, seed, std::move(layers));
    if (!name.empty()) record.reference = take(Reference::parse(name));
    must(delivery.publish_image(record));
    return record.config;
  }

  size_t count(const std::string& directory) {
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(root_ + "/" + directory)) {
      ++entries;
    }
    return entries;
  }

  std::string root_;
  std::optional<Store> store_;
};

TEST_F(StoreTest, is_private_and_reopens) {
  EXPECT_EQ(fs::status(root_).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(Store::open(root_, {}).ok());
  fs::remove(root_ + "/version");
  must(sys::write_file(sys::cwd(), root_ + "/version", "2\n"));
  auto later = Store::open(root_, {});
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(to_line(later.error()), "cannot open the store '" + root_ +
                                        "': the store has version '2', this program knows version "
                                        "1");
}

TEST_F(StoreTest, finds_by_name_digest_and_start_of_id) {
  Digest id = add("ubuntu", "one", {"a", "b"});
  auto image = take(store_->get_image("docker.io/library/ubuntu"));
  EXPECT_EQ(image.id, id);
  EXPECT_TRUE(image.unpacked());
  EXPECT_EQ(image.size, 14u);
  ASSERT_EQ(image.layer_directories().size(), 2u);
  EXPECT_TRUE(fs::exists(image.layer_directories()[0] + "/a"));
  EXPECT_TRUE(fs::exists(image.layer_directories()[1] + "/b"));
  EXPECT_EQ(take(store_->get_image(id.short_hex())).id, id);
  EXPECT_EQ(take(store_->get_image(id.text())).id, id);
  EXPECT_EQ(take(store_->get_image("ubuntu@" + made_digest("manifestone").text())).id, id);
  EXPECT_FALSE(take(store_->find_image("ubuntu:other")).has_value());
  EXPECT_EQ(to_line(store_->get_image("nothing").error()),
            "no such image: nothing; try: berth pull nothing");
}

TEST_F(StoreTest, a_name_that_moves_leaves_a_nameless_image) {
  Digest old_id = add("x:1", "one", {"a"});
  Digest new_id = add("x:1", "two", {"a", "b"});
  EXPECT_EQ(take(store_->get_image("x:1")).id, new_id);
  auto orphan = take(store_->get_image(old_id.text()));
  EXPECT_TRUE(orphan.references.empty());
  EXPECT_EQ(take(store_->list()).size(), 2u);
  must(store_->tag(orphan, take(Reference::parse("x:old"))));
  EXPECT_EQ(count("images"), 2u);
}

TEST_F(StoreTest, removal_keeps_what_others_need) {
  Digest one = add("x:1", "one", {"a", "b"});
  add("x:2", "two", {"a", "c"});
  auto removal = take(store_->remove("x:1", {}));
  ASSERT_EQ(removal.untagged.size(), 1u);
  EXPECT_EQ(removal.untagged[0].familiar(), "x:1");
  EXPECT_EQ(removal.deleted, (std::vector<Digest>{one, made_digest("diffb")}));
  EXPECT_TRUE(take(store_->get_image("x:2")).unpacked());
  EXPECT_EQ(count("layers"), 2u);
  EXPECT_EQ(count("blobs/sha256"), 4u);
  EXPECT_EQ(count("tmp"), 0u);
  take(store_->remove("x:2", {}));
  EXPECT_EQ(count("layers") + count("blobs/sha256") + count("images") + count("tmp"), 0u);
}

TEST_F(StoreTest, an_image_in_use_is_not_removed) {
  Digest id = add("x:1", "one", {"a"});
  auto image = take(store_->get_image("x:1"));
  fs::create_directory(root_ + "/containers/c1");
  must(store_->mark_used("c1", {image}));
  EXPECT_EQ(to_line(store_->remove("x:1", {}).error()),
            "remove image 'x:1': container c1 uses it; try: berth rm c1, or berth rmi -f");
  auto removal = take(store_->remove("x:1", {.force = true}));
  EXPECT_TRUE(removal.deleted.empty());
  EXPECT_TRUE(fs::exists(image.layer_directories()[0]));
  EXPECT_TRUE(fs::exists(store_->blob_path(image.manifest_digest)));
  fs::remove_all(root_ + "/containers/c1");
  EXPECT_EQ(take(store_->collect()), 4u);  // layer, its blob, config, manifest
  EXPECT_EQ(count("layers"), 0u);
}

TEST_F(StoreTest, an_id_with_several_names_needs_force) {
  Digest id = add("x:1", "one", {"a"});
  must(store_->tag(take(store_->get_image("x:1")), take(Reference::parse("y"))));
  EXPECT_EQ(to_line(store_->remove(id.short_hex(), {}).error()),
            "remove image '" + id.short_hex() +
                "': it has several names: x:1, y:latest; try: berth rmi NAME, or berth rmi -f for "
                "all of them");
  EXPECT_EQ(take(store_->remove(id.short_hex(), {.force = true})).untagged.size(), 2u);
}

TEST_F(StoreTest, a_delivery_keeps_what_it_saw_while_others_collect) {
  add("x:1", "one", {"a"});
  {
    Delivery delivery = take(Delivery::begin(*store_));
    ImageRecord record = make_image(delivery, "two", {"a", "b"});
    take(store_->remove("x:1", {}));
    EXPECT_TRUE(take(store_->has_layer(made_digest("diffa"))));
    EXPECT_TRUE(take(store_->has_layer(made_digest("diffb"))));
    record.reference = take(Reference::parse("x:2"));
    must(delivery.publish_image(record));
  }
  EXPECT_EQ(take(store_->collect()), 0u);
  EXPECT_TRUE(take(store_->get_image("x:2")).unpacked());
}

TEST_F(StoreTest, what_a_failed_delivery_left_is_collected) {
  {
    Delivery delivery = take(Delivery::begin(*store_));
    make_image(delivery, "one", {"a"});
  }
  EXPECT_EQ(take(store_->collect()), 4u);
  EXPECT_EQ(count("layers") + count("blobs/sha256") + count("tmp"), 0u);
}

TEST_F(StoreTest, what_a_killed_writer_left_is_swept_and_its_claim_taken_over) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    auto delivery = Delivery::begin(*store_);
    auto claim = delivery->claim_layer(made_digest("x"));
    auto staged = delivery->stage_layer();
    if (staged.ok() && claim.ok()) (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(count("tmp"), 3u);
  Delivery delivery = take(Delivery::begin(*store_));
  EXPECT_EQ(count("tmp"), 4u);  // its things are not ours to sweep while it lives
  auto refused = delivery.claim_layer(made_digest("x"), [] { return true; });
  EXPECT_EQ(refused.error().kind, Kind::interrupted);
  std::thread killer([&] {
    ::usleep(50'000);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
  auto claim = delivery.claim_layer(made_digest("x"));
  killer.join();
  EXPECT_TRUE(claim.ok());
  Delivery next = take(Delivery::begin(*store_));
  EXPECT_EQ(count("tmp"), 3u);  // our two pins and our claim
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(StoreTest, one_layer_is_made_once_by_many) {
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      auto delivery = Delivery::begin(*store_);
      auto claim = delivery->claim_layer(made_digest("x"));
      if (*delivery->keep_layer(made_digest("x"))) return;
      auto staged = delivery->stage_layer();
      if (delivery->publish_layer(std::move(*staged), {made_digest("x"), {}, 0, 0}).ok()) ++made;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(count("tmp"), 0u);
}

TEST_F(StoreTest, flavours_are_different_directories) {
  add("x", "one", {"a"});
  Store single = take(Store::open(root_, {Ownership::single, OverlayXattr::user}));
  auto image = take(single.get_image("x"));
  EXPECT_FALSE(image.unpacked());
  EXPECT_TRUE(image.layer_directories()[0].ends_with("-single/fs"));
}

TEST_F(StoreTest, an_image_is_one_layer_for_every_flavour) {
  constexpr LayerFlavor kFlavors[] = {{Ownership::full, OverlayXattr::trusted},
                                      {Ownership::full, OverlayXattr::user},
                                      {Ownership::single, OverlayXattr::user}};
  {
    Delivery delivery = take(Delivery::begin(*store_));
    Staged staged = take(delivery.stage_layer(LayerFormat::erofs));
    must(sys::write_file(staged.fd(), "fs.erofs", "content"));
    LayerFlavor flavor{Ownership::full, OverlayXattr::trusted, LayerFormat::erofs};
    must(delivery.publish_layer(std::move(staged), {made_digest("diffa"), flavor, 1, 7}));
    add("x", "one", {"a"});
  }
  for (LayerFlavor flavor : kFlavors) {
    Store store = take(Store::open(root_, flavor));
    auto image = take(store.get_image("x"));
    EXPECT_TRUE(image.unpacked());
    EXPECT_EQ(image.layer_directories()[0],
              root_ + "/layers/" + made_digest("diffa").hex() + "/fs.erofs");
    Delivery delivery = take(Delivery::begin(store));
    EXPECT_TRUE(take(delivery.keep_layer(made_digest("diffa"))));
  }
  EXPECT_EQ(count("layers"), 1u);
}

TEST_F(StoreTest, who_looks_while_others_remove_sees_an_image_or_none) {
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      add("x", "one", {"a"});
      take(store_->remove("x", {}));
    }
    ended = true;
  });
  size_t seen = 0;
  while (!ended) {
    for (bool named : {true, false}) {
      auto found = named ? store_->find_image_named("x") : store_->find_image("x");
      EXPECT_TRUE(found.ok()) << (found.ok() ? "" : to_line(found.error()));
      if (found.ok() && *found) ++seen;
    }
    std::vector<std::string> damaged;
    EXPECT_TRUE(store_->list(&damaged).ok());
    EXPECT_TRUE(damaged.empty()) << damaged.front();
  }
  writer.join();
  EXPECT_GT(seen, 0u);
}

TEST_F(StoreTest, a_damaged_record_stops_neither_finding_nor_listing_the_others) {
  add("x", "one", {"a"});
  must(sys::write_file(sys::cwd(), root_ + "/images/bad.json", "{"));
  std::vector<std::string> damaged;
  EXPECT_EQ(take(store_->list(&damaged)).size(), 1u);
  EXPECT_EQ(damaged, std::vector<std::string>{"image record 'bad.json' is damaged"});
  EXPECT_TRUE(take(store_->find_image("x")).has_value());
  EXPECT_EQ(to_line(store_->collect().error()),
            "read image record 'bad.json'; try: remove that file from images/ in the store and "
            "pull the image again");
  Removal removal = take(store_->remove("x", {}));
  EXPECT_EQ(removal.untagged.size(), 1u);
  EXPECT_TRUE(removal.deleted.empty());
  EXPECT_TRUE(removal.kept.has_value());
  EXPECT_FALSE(take(store_->find_image("x")).has_value());
}

TEST_F(StoreTest, half_a_mark_of_a_killed_container_is_no_use_of_an_image) {
  add("x", "one", {"a"});
  must(sys::make_directories(sys::cwd(), root_ + "/containers/c1"));
  must(sys::write_file(sys::cwd(), root_ + "/containers/c1/image", ""));
  EXPECT_FALSE(take(store_->remove("x", {})).deleted.empty());
}

}  // namespace
}  // namespace berth::image
