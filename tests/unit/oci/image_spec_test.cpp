// SPDX-License-Identifier: Apache-2.0
#include "oci/image_spec.hpp"

#include <gtest/gtest.h>

#include "json/fields.hpp"

namespace berth::oci {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string descriptor(std::string_view type, std::string_view more = "") {
  return R"({"mediaType":")" + std::string(type) + R"(","digest":")" + kDigest + R"(","size":3)" +
         std::string(more) + "}";
}
std::string manifest_text(std::string_view type, size_t layers = 1) {
  std::string list;
  for (size_t i = 0; i < layers; ++i) {
    list += (i ? "," : "") + descriptor(media_type::kLayerGzip);
  }
  return R"({"schemaVersion":2,"mediaType":")" + std::string(type) + R"(","config":)" +
         descriptor(media_type::kConfig) + R"(,"layers":[)" + list + "]}";
}
std::string line(std::string_view bytes, std::string_view type = "") {
  auto parsed = parse_manifest(bytes, type);
  return parsed.ok() ? "ok" : to_line(parsed.error());
}

TEST(Manifest, oci_and_docker_names_mean_the_same) {
  EXPECT_EQ(line(manifest_text(media_type::kManifest), media_type::kManifest), "ok");
  EXPECT_EQ(line(manifest_text(media_type::kDockerManifest), media_type::kDockerManifest), "ok");
  EXPECT_EQ(line(manifest_text(media_type::kManifest),
                 std::string(media_type::kManifest) + "; charset=utf-8"),
            "ok");
  EXPECT_EQ(line(manifest_text(media_type::kManifest), ""), "ok");
}

TEST(Manifest, refuses_what_has_two_meanings) {
  EXPECT_EQ(line(R"({"schemaVersion":2,"layers":[],"manifests":[]})"),
            "manifest: it is an index and a manifest at once, so its meaning would depend on the "
            "reader");
  EXPECT_EQ(line(manifest_text(media_type::kManifest), media_type::kIndex),
            "manifest: it was announced as 'application/vnd.oci.image.index.v1+json' but calls "
            "itself 'application/vnd.oci.image.manifest.v1+json'");
  EXPECT_EQ(line(R"({"schemaVersion":2,"manifests":[]})", media_type::kManifest),
            "manifest: its content is not what its media type says");
  EXPECT_EQ(line(R"({"schemaVersion":2})"), "manifest: it has neither 'manifests' nor 'layers'");
}

TEST(Manifest, refuses_schema_1_with_the_reason) {
  std::string text =
      "manifest: it is a Docker schema 1 manifest, a format deprecated in 2017 that does not "
      "protect its layers; try: push the image again with a current docker, podman or skopeo";
  EXPECT_EQ(line(R"({"schemaVersion":1,"fsLayers":[]})"), text);
  EXPECT_EQ(line("{}", media_type::kDockerSchema1Signed), text);
}

TEST(Manifest, refuses_unknown_types_sizes_and_counts) {
  EXPECT_EQ(line(R"({"mediaType":"text/x","layers":[]})"),
            "manifest: media type 'text/x' is neither an image index nor an image manifest");
  EXPECT_EQ(line(std::string(kMaxManifestBytes + 1, ' ')),
            "manifest: 4194305 bytes, more than the 4 MiB allowed");
  EXPECT_EQ(line(manifest_text(media_type::kManifest, 501)),
            "manifest: 501 layers, more than the 500 allowed");
  EXPECT_EQ(line("[]"), "manifest: expected an object");
  EXPECT_EQ(
      line(
          R"({"schemaVersion":2,"config":{"mediaType":"x","digest":"sha256:../../x","size":1},"layers":[]})"),
      "manifest: config.digest: read digest 'sha256:../../x': expected 'sha256:' and 64 "
      "hexadecimal digits");
  EXPECT_EQ(line(R"({"schemaVersion":2,"config":{"mediaType":"x","digest":")" + kDigest +
                 R"(","size":-1},"layers":[]})"),
            "manifest: config.size: -1 is out of range");
}

TEST(Image, unknown_layer_types_are_refused_by_name) {
  Manifest manifest;
  manifest.config.media_type = media_type::kConfig;
  manifest.layers.resize(1);
  manifest.layers[0].media_type = "application/x-evil";
  auto checked = check_image(manifest, {});
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, Kind::unsupported);
  EXPECT_EQ(to_line(checked.error()),
            "layer media type 'application/x-evil' is unknown; tar, tar+gzip and tar+zstd can be "
            "unpacked");
  manifest.layers[0].media_type = media_type::kLayerZstd;
  EXPECT_EQ(to_line(check_image(manifest, {}).error()),
            "the config lists 0 layers, the manifest 1");
}

Index index_of(std::vector<std::string> platforms) {
  Index index;
  for (size_t i = 0; i < platforms.size(); ++i) {
    Descriptor entry;
    entry.media_type = media_type::kManifest;
    entry.size = i;
    if (!platforms[i].empty()) entry.platform = *parse_platform(platforms[i]);
    index.manifests.push_back(entry);
  }
  return index;
}

TEST(SelectPlatform, takes_the_first_entry_that_fits) {
  auto index = index_of({"unknown/unknown", "linux/arm64/v8", "linux/amd64", "linux/amd64/v3"});
  EXPECT_EQ(select_platform(index, *parse_platform("linux/amd64"))->size, 2u);
  EXPECT_EQ(select_platform(index, *parse_platform("linux/amd64/v3"))->size, 3u);
  EXPECT_EQ(select_platform(index, *parse_platform("linux/arm64"))->size, 1u);
  EXPECT_EQ(select_platform(index, *parse_platform("x86_64"))->size, 2u);
}

TEST(SelectPlatform, says_what_there_is) {
  auto index = index_of({"linux/s390x", "linux/arm64/v8", "unknown/unknown"});
  EXPECT_EQ(to_line(select_platform(index, *parse_platform("linux/amd64")).error()),
            "the image has no entry for linux/amd64; it has linux/arm64/v8, linux/s390x");
}

TEST(SelectPlatform, says_that_attestations_and_nameless_entries_are_no_images) {
  auto said = [](const Index& index) {
    return to_line(select_platform(index, *parse_platform("linux/amd64")).error());
  };
  EXPECT_EQ(
      said(index_of({"unknown/unknown", "unknown/unknown"})),
      "the image has no entry for linux/amd64; it has only unknown/unknown, as attestations have");
  Index nameless = index_of({"", ""});
  for (Descriptor& entry : nameless.manifests) entry.platform = Platform{};
  EXPECT_EQ(said(nameless),
            "the image has no entry for linux/amd64; it has one that names no platform");
}

TEST(SelectPlatform, a_lone_entry_without_a_platform_is_taken) {
  EXPECT_TRUE(select_platform(index_of({""}), host_platform()).ok());
  EXPECT_FALSE(select_platform(index_of({"", ""}), host_platform()).ok());
}

TEST(Platform, reads_common_spellings) {
  EXPECT_EQ(platform_text(*parse_platform("linux/armhf")), "linux/arm/v7");
  EXPECT_EQ(platform_text(*parse_platform("aarch64")), "linux/arm64");
  EXPECT_EQ(platform_text(*parse_platform("Linux")), platform_text(host_platform()));
  EXPECT_EQ(parse_platform("windows")->os, "windows");
  for (const char* bad : {"", "a/b/c/d", "linux/", "li nux/amd64"}) {
    EXPECT_FALSE(parse_platform(bad).ok()) << bad;
  }
}

TEST(Config, is_read_and_written_by_the_same_table) {
  std::string text =
      R"({"created":"2026-01-01T00:00:00Z","architecture":"amd64","os":"linux","config":{"User":"1","ExposedPorts":{"80/tcp":{}},"Env":["A=b"],"Cmd":["sh"],"Labels":{"k":"v"}},"rootfs":{"type":"layers","diff_ids":[")" +
      kDigest + R"("]},"history":[{"created_by":"x","empty_layer":true}]})";
  auto config = parse_config(text);
  ASSERT_TRUE(config.ok()) << to_line(config.error());
  EXPECT_EQ(json::write(*config), text);
  EXPECT_TRUE(
      parse_config(
          R"({"architecture":"a","os":"linux","config":{"Volumes":null,"Env":null},"rootfs":{"type":"layers","diff_ids":[]}})")
          .ok());
}

}  // namespace
}  // namespace berth::oci
