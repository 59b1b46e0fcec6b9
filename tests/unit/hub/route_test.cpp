// SPDX-License-Identifier: Apache-2.0
#include "hub/route.hpp"

#include <gtest/gtest.h>

#include <random>

namespace berth::hub {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

/// The status of what is refused, or 0.
unsigned refused(std::string_view method, std::string_view target) {
  Route route = route_of(method, target);
  const auto* reply = std::get_if<Reply>(&route);
  return reply != nullptr ? reply->status : 0;
}

TEST(HubRoute, knows_the_four_objects) {
  EXPECT_TRUE(std::holds_alternative<PingRoute>(route_of("GET", "/v2/")));
  EXPECT_TRUE(std::holds_alternative<PingRoute>(route_of("HEAD", "/v2")));

  auto tag = std::get<ManifestRoute>(route_of("GET", "/v2/team/app/manifests/1.0_x"));
  EXPECT_EQ(tag.name, "team/app");
  EXPECT_EQ(tag.reference, "1.0_x");
  EXPECT_FALSE(tag.by_digest);
  EXPECT_TRUE(std::get<ManifestRoute>(route_of("HEAD", "/v2/app/manifests/" + kDigest)).by_digest);
  EXPECT_EQ(std::get<ManifestRoute>(route_of("GET", "/v2/a/manifests/manifests/b")).name,
            "a/manifests");

  auto blob = std::get<BlobRoute>(route_of("GET", "/v2/team/app/blobs/" + kDigest + "?ns=x"));
  EXPECT_EQ(blob.digest.text(), kDigest);

  auto tags = std::get<TagsRoute>(route_of("GET", "/v2/team/app/tags/list?n=5&last=1.0"));
  EXPECT_EQ(tags.count, 5u);
  EXPECT_EQ(tags.last, "1.0");
  EXPECT_EQ(std::get<TagsRoute>(route_of("GET", "/v2/a/tags/list?n=99999999")).count, 10'000u);
}

TEST(HubRoute, is_read_only) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "get", ""}) {
    EXPECT_EQ(refused(method, "/v2/app/manifests/latest"), 405u) << method;
  }
}

TEST(HubRoute, refuses_other_paths) {
  for (const char* target : {"", "/", "*", "/v1/", "/v3/", "/v2x", "/v2/_catalog", "/v2/app",
                             "/v2/app/referrers/sha256:0", "/v2/app/tags/all", "/metrics",
                             "http://other.example.org/v2/", "/v2/app/blobs/uploads/", "/v2//",
                             "/V2/app/manifests/x", "/v2/app/blobs/uploads/uuid"}) {
    unsigned status = refused("GET", target);
    EXPECT_TRUE(status == 404 || status == 400) << target << " " << status;
  }
}

TEST(HubRoute, refuses_names_that_are_none) {
  for (const char* name : {"", "/", "..", "a/../b", "App", "a//b", "-a", "a b", "%61", "a%2fb",
                           "a:5/b", "evil.example.org@x", "a/", "a\\b", "a?b", "_a"}) {
    std::string target = "/v2/" + std::string(name);
    EXPECT_NE(refused("GET", target + "/manifests/latest"), 0u) << name;
    EXPECT_NE(refused("GET", target + "/blobs/" + kDigest), 0u) << name;
    EXPECT_NE(refused("GET", target + "/tags/list"), 0u) << name;
  }
  EXPECT_NE(refused("GET", "/v2/" + std::string(300, 'a') + "/tags/list"), 0u);
}

TEST(HubRoute, refuses_references_that_are_none) {
  for (const char* what : {"", ".x", "a/b", "a b", "sha256:aa",
                           "sha512:"
                           "00",
                           "a%00", "x:y", "@"}) {
    EXPECT_NE(refused("GET", "/v2/app/manifests/" + std::string(what)), 0u) << what;
  }
  EXPECT_EQ(refused("GET", "/v2/app/manifests/" + std::string(129, 'a')), 400u);
  EXPECT_EQ(refused("GET", "/v2/app/blobs/latest"), 400u);
  EXPECT_EQ(refused("GET", "/v2/app/tags/list?n=0"), 400u);
  EXPECT_EQ(refused("GET", "/v2/app/tags/list?n=x"), 400u);
  EXPECT_EQ(refused("GET", "/v2/app/tags/list?last=a%20b"), 400u);
}

// Whatever the bytes: what is routed can be put into a URL of the upstream as it is.
TEST(HubRoute, never_lets_a_name_out_of_its_grammar) {
  constexpr std::string_view kParts[] = {
      "/v2/", "/", "..", "manifests", "blobs", "tags/list", "a", "app", "?",      "%2e", "@",
      ":",    "#", " ",  "\r\n",      "//",    "A",         "-", "_",   "latest", "\\"};
  const std::vector<std::string> tails = {"/manifests/latest", "/blobs/" + kDigest, "/tags/list",
                                          "/manifests/" + kDigest, "/tags/list?last=1.0"};
  std::mt19937 random(7);
  size_t routed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string target = round % 2 == 0 ? "/v2/" : "";
    for (size_t part = random() % 9; part > 0; --part) {
      target += random() % 8 == 0 ? kDigest : std::string(kParts[random() % std::size(kParts)]);
      if (random() % 2 == 0) target += '/';
    }
    if (random() % 2 == 0) target += tails[random() % tails.size()];
    Route route = route_of("GET", target);
    std::string name;
    if (const auto* manifest = std::get_if<ManifestRoute>(&route)) {
      name = manifest->name + manifest->reference;
    } else if (const auto* blob = std::get_if<BlobRoute>(&route)) {
      name = blob->name;
    } else if (const auto* tags = std::get_if<TagsRoute>(&route)) {
      name = tags->name + tags->last;
    } else {
      continue;
    }
    ++routed;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzA0123456789./_-:"), name.npos)
        << target;
    EXPECT_EQ(name.find(".."), name.npos) << target;
    EXPECT_EQ(name.find("//"), name.npos) << target;
  }
  EXPECT_GT(routed, 50u);
}

TEST(HubPlace, is_that_of_the_longest_prefix) {
  std::vector<Upstream> upstreams = {{"", "own", {"team/*"}},
                                     {"dockerhub", "docker.io", {"library/*"}},
                                     {"dockerhub/library", "other", {"*"}}};
  EXPECT_EQ(place_of(upstreams, "team/app")->upstream, 0u);
  EXPECT_EQ(place_of(upstreams, "team/app")->repository, "team/app");
  EXPECT_FALSE(place_of(upstreams, "others/app"));
  EXPECT_FALSE(place_of(upstreams, "dockerhub/me/app"));
  EXPECT_EQ(place_of(upstreams, "dockerhub/library/ubuntu")->upstream, 2u);
  EXPECT_EQ(place_of(upstreams, "dockerhub/library/ubuntu")->repository, "ubuntu");
  EXPECT_FALSE(place_of(upstreams, "dockerhub"));
  EXPECT_FALSE(place_of(upstreams, "dockerhubx/library/ubuntu"));
}

TEST(HubReferrers, have_a_tag_of_their_form_alone) {
  const std::string hex(64, 'a');
  EXPECT_TRUE(is_referrers_tag("sha256-" + hex));
  for (const std::string& tag :
       {std::string("latest"), std::string("sha256-"), "sha256-" + hex + ".sig", "sha512-" + hex,
        "sha256-" + hex + "a"}) {
    EXPECT_FALSE(is_referrers_tag(tag)) << tag;
  }
}

TEST(HubAccept, is_honoured) {
  constexpr std::string_view kType = "application/vnd.oci.image.manifest.v1+json";
  EXPECT_TRUE(accepts({}, kType));
  EXPECT_TRUE(accepts({"*/*"}, kType));
  EXPECT_TRUE(accepts({"application/*;q=0.5"}, kType));
  EXPECT_TRUE(accepts({"text/html", std::string(kType) + "; q=1"}, kType));
  EXPECT_TRUE(accepts({"text/html, Application/vnd.oci.image.manifest.v1+json"}, kType));
  EXPECT_FALSE(accepts({"application/vnd.docker.distribution.manifest.v2+json"}, kType));
  EXPECT_FALSE(accepts({""}, kType));
}

TEST(HubRange, passes_on_single_ranges_alone) {
  EXPECT_EQ(plain_range("bytes=0-"), "bytes=0-");
  EXPECT_EQ(plain_range("bytes=10-19"), "bytes=10-19");
  for (const char* value : {"", "bytes=", "bytes=-5", "bytes=1-2,4-5", "bytes=a-", "lines=1-",
                            "bytes=1-\r\nX: y", "bytes=99999999999999999999-"}) {
    EXPECT_EQ(plain_range(value), "") << value;
  }
}

}  // namespace
}  // namespace berth::hub
