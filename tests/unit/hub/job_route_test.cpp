// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "hub/job_front.hpp"

namespace berth::hub {
namespace {

const std::string kA = "sha256:" + std::string(64, 'a');
const std::string kB = "sha256:" + std::string(64, 'b');
const std::string kC = "sha256:" + std::string(64, 'c');

Digest parsed(const std::string& text) {
  return *Digest::parse(text);
}

std::string manifest() {
  return R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",)"
         R"("config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":")" +
         kB + R"(","size":7},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",)" +
         R"("digest":")" + kC + R"(","size":9}]})";
}

std::string index() {
  return R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)"
         R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" +
         kB + R"(","size":3}]})";
}

TEST(JobRoute, a_list_of_referrers_is_known_with_and_without_a_type) {
  auto plain = referrers_route("GET", "/v2/team/app/referrers/" + kA);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "team/app");
  EXPECT_EQ(plain->subject, parsed(kA));
  EXPECT_EQ(plain->artifact_type, "");
  auto typed = referrers_route(
      "GET", "/v2/app/referrers/" + kA + "?artifactType=application%2Fvnd.x.facts.v1%2Bjson");
  ASSERT_TRUE(typed);
  EXPECT_EQ(typed->artifact_type, "application/vnd.x.facts.v1+json");
}

TEST(JobRoute, what_is_no_list_of_referrers_is_none) {
  for (const char* target : {"/v2/app/referrers/latest", "/v2/referrers/x", "/v1/app/referrers/x",
                             "/v2/app/manifests/x"}) {
    EXPECT_FALSE(referrers_route("GET", target)) << target;
  }
  EXPECT_FALSE(referrers_route("PUT", "/v2/app/referrers/" + kA));
  EXPECT_FALSE(referrers_route("GET", "/v2/app/referrers/" + kA + "?artifactType=%0A"));
  EXPECT_FALSE(referrers_route("GET", "/v2/app/referrers/" + kA + "?artifactType=a%2"));
  EXPECT_FALSE(referrers_route("GET", "/v2/app/referrers/" + kA + "?n=1"));
}

TEST(JobRoute, a_range_ends_with_the_blob) {
  auto whole = range_of("", 10);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->begin, 0u);
  EXPECT_EQ(whole->end, 10u);
  auto middle = range_of("bytes=2-4", 10);
  ASSERT_TRUE(middle);
  EXPECT_EQ(middle->begin, 2u);
  EXPECT_EQ(middle->end, 5u);
  EXPECT_EQ(range_of("bytes=2-", 10)->end, 10u);
  EXPECT_EQ(range_of("bytes=2-99999999999999999", 10)->end, 10u);
  EXPECT_EQ(range_of("bytes=0-1,3-4", 10)->end, 10u);  // several: the whole
}

TEST(JobRoute, bytes_that_a_blob_does_not_have_are_none) {
  EXPECT_FALSE(range_of("bytes=10-", 10));
  EXPECT_FALSE(range_of("bytes=4-2", 10));
  EXPECT_FALSE(range_of("bytes=0-", 0));
  EXPECT_TRUE(range_of("", 0));
}

TEST(JobBelongings, nothing_belongs_to_an_image_but_its_name_at_first) {
  Belongings belongings("latest");
  EXPECT_TRUE(belongings.has_manifest("latest"));
  EXPECT_FALSE(belongings.has_manifest("other"));
  EXPECT_FALSE(belongings.has_manifest(kA));
  EXPECT_FALSE(belongings.blob(parsed(kB)));
}

TEST(JobBelongings, what_a_manifest_names_belongs_to_it) {
  Belongings belongings("latest");
  belongings.learn(parsed(kA), manifest(), "application/vnd.oci.image.manifest.v1+json");
  EXPECT_TRUE(belongings.has_manifest(kA));
  EXPECT_TRUE(belongings.has_manifest("sha256-" + std::string(64, 'a')));
  EXPECT_TRUE(belongings.has_manifest("sha256-" + std::string(64, 'a') + ".sig"));
  EXPECT_FALSE(belongings.has_manifest("sha256-" + std::string(64, 'd')));
  ASSERT_TRUE(belongings.blob(parsed(kC)));
  EXPECT_EQ(belongings.blob(parsed(kC))->size, 9u);
  EXPECT_TRUE(belongings.blob(parsed(kB)));
  EXPECT_FALSE(belongings.blob(parsed(kA)));
}

TEST(JobBelongings, what_an_index_names_belongs_to_it) {
  Belongings belongings("latest");
  belongings.learn(parsed(kA), index(), "application/vnd.oci.image.index.v1+json");
  EXPECT_TRUE(belongings.has_manifest(kB));
  EXPECT_FALSE(belongings.blob(parsed(kB)));
}

TEST(JobBelongings, bytes_that_are_no_document_name_nothing) {
  Belongings belongings("latest");
  belongings.learn(parsed(kA), "{", "");
  EXPECT_TRUE(belongings.has_manifest(kA));
  EXPECT_FALSE(belongings.has_manifest(kB));
}

}  // namespace
}  // namespace berth::hub
