// SPDX-License-Identifier: Apache-2.0
#include "image/layer_work.hpp"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

TEST(LayerWork, gives_back_the_requests_that_were_written) {
  DedupeRequest dedupe;
  dedupe.root = "/r";
  dedupe.dry_run = true;
  dedupe.ownership = Ownership::single;
  dedupe.overlay_xattr = OverlayXattr::user;
  auto read = parse_layer_work(to_json(LayerWork(dedupe)));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  const auto& same = std::get<DedupeRequest>(**read);
  EXPECT_EQ(same.root, "/r");
  EXPECT_TRUE(same.dry_run);
  EXPECT_EQ(same.ownership, Ownership::single);
  EXPECT_EQ(same.overlay_xattr, OverlayXattr::user);

  ConvertRequest convert;
  convert.root = "/r";
  convert.images = {"a", "b"};
  convert.layer_format = LayerFormat::erofs;
  read = parse_layer_work(to_json(LayerWork(convert)));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<ConvertRequest>(**read).images, convert.images);
  EXPECT_EQ(std::get<ConvertRequest>(**read).layer_format, LayerFormat::erofs);
}

TEST(LayerWork, leaves_other_requests_to_others) {
  auto read = parse_layer_work(R"({"verb":"pull","root":"/r"})");
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(*read);
  EXPECT_FALSE(*parse_layer_work("no JSON"));
}

TEST(LayerWork, refuses_what_it_does_not_know) {
  auto read = parse_layer_work(R"({"verb":"dedupe","root":"/r"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Kind::usage);
  read =
      parse_layer_work(R"({"verb":"dedupe","root":"/r","ownership":"half","overlay_xattr":"user",)"
                       R"("layer_format":"erofs"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_line(read.error()), "request: ownership: expected one of full, single, got 'half'");
}

TEST(LayerWork, gives_back_the_reports_that_were_written) {
  auto dedupe = parse_dedupe_report(to_json(DedupeReport{2, 30, 4, 5000, 1, 0, "links"}));
  ASSERT_TRUE(dedupe.ok()) << to_line(dedupe.error());
  EXPECT_EQ(dedupe->bytes, 5000u);
  EXPECT_EQ(dedupe->way, "links");
  EXPECT_FALSE(parse_dedupe_report("").ok());

  ConvertReport report{{Digest::from_sha256(std::string(32, 'x'))}, 1, {"c:1"}};
  auto convert = parse_convert_report(to_json(report));
  ASSERT_TRUE(convert.ok()) << to_line(convert.error());
  EXPECT_EQ(convert->layers, report.layers);
  EXPECT_EQ(convert->shared, report.shared);
}

}  // namespace
}  // namespace berth::image
