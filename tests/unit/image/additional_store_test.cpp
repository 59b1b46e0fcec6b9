// SPDX-License-Identifier: Apache-2.0
#include "image/additional_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "image/layout.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "support/digests.hpp"

namespace berth::image {
namespace {

namespace fs = std::filesystem;

/// Content does not matter to the store, so neither do true digests.
using test::made_digest;

class AdditionalStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/berth-tests-additional-XXXXXX";
    base_ = ::mkdtemp(name);
    add("first", "x", "one");
    add("first", "y", "one");
    add("second", "x", "two");
    add("second", "z", "two");
  }
  void TearDown() override { fs::remove_all(base_); }

  std::string at(const std::string& store) const { return base_ + "/" + store; }
  Store open(const std::vector<std::string>& additional, LayerFlavor flavor = {}) const {
    auto store = Store::open(at("own"), flavor, additional);
    EXPECT_TRUE(store.ok());
    return *std::move(store);
  }

  /// An image of one layer, all of whose digests begin with what `seed` is.
  void add(const std::string& place, const std::string& name, const std::string& seed) {
    Store store = *Store::open(at(place), {});
    Delivery delivery = *Delivery::begin(store);
    oci::Manifest manifest;
    oci::ImageConfig config;
    config.architecture = "amd64";
    config.os = "linux";
    oci::Descriptor blob;
    blob.media_type = oci::media_type::kLayerGzip;
    blob.digest = made_digest("blob" + seed);
    manifest.layers.push_back(blob);
    config.rootfs.diff_ids.push_back(made_digest("diff" + seed));
    if (!*delivery.keep_layer(made_digest("diff" + seed))) {
      Staged staged = *delivery.stage_layer();
      ASSERT_TRUE(
          delivery.publish_layer(std::move(staged), {made_digest("diff" + seed), {}, 1, 7}).ok());
    }
    manifest.config.media_type = oci::media_type::kConfig;
    manifest.config.digest = made_digest("config" + seed);
    ASSERT_TRUE(delivery.put_document(made_digest("config" + seed), json::write(config)).ok());
    ASSERT_TRUE(delivery.put_document(made_digest("manifest" + seed), json::write(manifest)).ok());
    ImageRecord record;
    record.reference = *Reference::parse(name);
    record.target = record.manifest = made_digest("manifest" + seed);
    record.config = made_digest("config" + seed);
    ASSERT_TRUE(delivery.publish_image(record).ok());
  }

  std::string base_;
};

TEST_F(AdditionalStoreTest, the_first_store_with_a_name_has_it) {
  Store store = open({at("first"), at("second")});
  auto image = *store.get_image("x");
  EXPECT_EQ(image.id, made_digest("configone"));
  EXPECT_EQ(image.store, at("first"));
  EXPECT_TRUE(image.unpacked());
  EXPECT_TRUE(image.layers[0].read_only);
  EXPECT_TRUE(image.layer_directories()[0].starts_with(at("first") + "/layers/"));
  EXPECT_EQ((*open({at("second"), at("first")}).find_image_named("x"))->id,
            made_digest("configtwo"));
  EXPECT_EQ((*store.get_image("z")).store, at("second"));
  EXPECT_FALSE(*store.find_own_image("x"));
  EXPECT_FALSE(*store.find_image("nothing"));
}

TEST_F(AdditionalStoreTest, a_list_has_each_name_once) {
  Store store = open({at("first"), at("second")});
  auto images = *store.list();
  std::vector<std::string> names;
  for (const auto& image : images) {
    for (const auto& reference : image.references) names.push_back(reference.familiar());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"x:latest", "y:latest", "z:latest"}));
}

TEST_F(AdditionalStoreTest, an_image_that_was_adopted_keeps_its_layers_where_they_are) {
  Store store = open({at("first")});
  {
    Delivery delivery = *Delivery::begin(store);
    ASSERT_TRUE(delivery.adopt(*store.get_image("x")).ok());
  }
  auto image = *store.get_image("x");
  EXPECT_EQ(image.store, "");
  EXPECT_TRUE(image.unpacked());
  EXPECT_TRUE(fs::is_empty(at("own/layers")));
  EXPECT_EQ(*store.collect(), 0u);
  EXPECT_EQ(image.references.size(), 2u);
  auto alone = *open({}).get_image("x");
  EXPECT_FALSE(alone.unpacked());
}

TEST_F(AdditionalStoreTest, a_name_of_another_store_is_not_removed) {
  Store store = open({at("first")});
  auto removed = store.remove("x", {});
  ASSERT_FALSE(removed.ok());
  EXPECT_EQ(removed.error().kind, Kind::denied);
  ASSERT_TRUE(store.tag(*store.get_image("x"), *Reference::parse("x")).ok());
  EXPECT_TRUE(store.remove("x", {}).ok());
  EXPECT_EQ((*store.get_image("x")).store, at("first"));
}

TEST_F(AdditionalStoreTest, layers_of_another_flavour_or_of_others_are_not_there) {
  EXPECT_FALSE(
      (*open({at("first")}, {Ownership::single, OverlayXattr::user}).get_image("x")).unpacked());
  std::string layer = at("first") + "/layers/" + layer_name(made_digest("diffone"), {});
  fs::permissions(layer, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE((*open({at("first")}).get_image("x")).unpacked());
}

TEST_F(AdditionalStoreTest, what_cannot_be_used_counts_as_empty) {
  for (const char* place : {"nowhere", "empty"}) {
    if (std::string_view(place) == "empty") fs::create_directory(at(place));
    auto opened = AdditionalStore::open(at(place));
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().kind, Kind::not_found);
    EXPECT_EQ(AdditionalStore::check_owner(at(place)).error().kind, Kind::not_found);
  }
  EXPECT_EQ((*open({at("nowhere"), at("empty"), at("second")}).get_image("x")).store, at("second"));
}

TEST_F(AdditionalStoreTest, one_that_others_can_write_to_is_refused) {
  EXPECT_TRUE(AdditionalStore::check_owner(at("first")).ok());
  fs::permissions(at("first/images"), fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(AdditionalStore::check_owner(at("first")).error().kind, Kind::denied);
}

TEST_F(AdditionalStoreTest, what_is_published_is_as_readable_as_its_directory) {
  for (const char* name : {"blobs/sha256", "images", "layers"}) {
    fs::permissions(at("first/") + name, fs::perms(0755));
  }
  mode_t before = ::umask(077);
  add("first", "later", "three");
  ::umask(before);
  auto mode = [&](const std::string& path) {
    return fs::status(at("first/") + path).permissions();
  };
  EXPECT_EQ(mode("blobs/sha256/" + made_digest("configthree").hex()), fs::perms(0644));
  EXPECT_EQ(mode("blobs/sha256/" + made_digest("configone").hex()), fs::perms(0600));
  EXPECT_EQ(mode("layers/" + made_digest("diffthree").hex()), fs::perms(0700));
}

}  // namespace
}  // namespace berth::image
