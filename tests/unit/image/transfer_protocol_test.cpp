// SPDX-License-Identifier: Apache-2.0
#include "image/transfer_protocol.hpp"

#include <gtest/gtest.h>

namespace berth::image {
namespace {

TEST(TransferProtocol, gives_back_the_pull_request_that_was_written) {
  PullRequest request;
  request.root = "/var/lib/berth";
  request.reference = "ubuntu";
  request.platform = "linux/arm64";
  request.access.tls_ca = "/etc/ca.pem";
  request.access.insecure_registries = {"h:5000"};
  request.access.stall_seconds = 7;
  request.flavor.ownership = Ownership::single;
  request.flavor.overlay_xattr = OverlayXattr::user;
  request.quiet = true;

  Result<TransferRequest> read = parse_request(to_json(request));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  const auto& pull = std::get<PullRequest>(*read);
  EXPECT_EQ(pull.root, request.root);
  EXPECT_EQ(pull.reference, request.reference);
  EXPECT_EQ(pull.platform, request.platform);
  EXPECT_EQ(pull.access.tls_ca, request.access.tls_ca);
  EXPECT_EQ(pull.access.insecure_registries, request.access.insecure_registries);
  EXPECT_EQ(pull.access.stall_seconds, 7u);
  EXPECT_EQ(pull.flavor.ownership, Ownership::single);
  EXPECT_EQ(pull.flavor.overlay_xattr, OverlayXattr::user);
  EXPECT_TRUE(pull.quiet);
  EXPECT_FALSE(pull.local);
}

TEST(TransferProtocol, tells_the_verbs_apart) {
  LoginRequest login;
  login.username = "u";
  login.password = "p\"\n";
  Result<TransferRequest> read = parse_request(to_json(login));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<LoginRequest>(*read).password, "p\"\n");

  SaveRequest save;
  save.root = "/r";
  save.references = {"a", "b"};
  save.output = "/dev/fd/4";
  save.format = "archive";
  read = parse_request(to_json(save));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<SaveRequest>(*read).references, save.references);

  ImportRequest import;
  import.source = "/s";
  import.source_date = 1'600'000'000;
  read = parse_request(to_json(import));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<ImportRequest>(*read).source_date, import.source_date);
}

TEST(TransferProtocol, gives_back_the_requests_about_layers) {
  DedupeRequest dedupe;
  dedupe.root = "/r";
  dedupe.dry_run = true;
  dedupe.flavor.ownership = Ownership::single;
  dedupe.flavor.overlay_xattr = OverlayXattr::user;
  Result<TransferRequest> read = parse_request(to_json(dedupe));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  const auto& same = std::get<DedupeRequest>(*read);
  EXPECT_EQ(same.root, "/r");
  EXPECT_TRUE(same.dry_run);
  EXPECT_EQ(same.flavor.ownership, Ownership::single);
  EXPECT_EQ(same.flavor.overlay_xattr, OverlayXattr::user);

  ConvertRequest convert;
  convert.root = "/r";
  convert.images = {"a", "b"};
  convert.flavor.format = LayerFormat::erofs;
  read = parse_request(to_json(convert));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<ConvertRequest>(*read).images, convert.images);
  EXPECT_EQ(std::get<ConvertRequest>(*read).flavor.format, LayerFormat::erofs);
}

TEST(TransferProtocol, refuses_requests_about_layers_without_their_form) {
  Result<TransferRequest> read = parse_request(R"({"verb":"dedupe","root":"/r"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Kind::usage);
  read = parse_request(R"({"verb":"dedupe","root":"/r","ownership":"half","overlay_xattr":"user",)"
                       R"("layer_format":"erofs"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_line(read.error()), "request: ownership: expected one of full, single, got 'half'");
}

TEST(TransferProtocol, refuses_an_unknown_verb_and_an_unknown_member) {
  Result<TransferRequest> read = parse_request(R"({"verb":"fly"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, Kind::usage);
  EXPECT_EQ(to_line(read.error()), "read the request: unknown verb 'fly'");

  read = parse_request(R"({"verb":"pull","root":"/r","reference":"x","platfrom":"linux/amd64"})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_line(read.error()), "request: platfrom: unknown member; did you mean 'platform'?");
}

TEST(TransferProtocol, gives_back_every_kind_of_event) {
  Result<TransferEvent> read =
      parse_event(to_json(LayerEvent{"0123456789ab", LayerPhase::downloading, 5, 10}));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(std::get<LayerEvent>(*read).phase, LayerPhase::downloading);
  EXPECT_EQ(std::get<LayerEvent>(*read).done, 5u);

  read = parse_event(to_json(StatusEvent{"Pulling"}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<StatusEvent>(*read).text, "Pulling");

  read = parse_event(to_json(WarningEvent{"odd, ignoring"}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<WarningEvent>(*read).text, "odd, ignoring");

  TransferResult result;
  result.reference = "docker.io/library/x:latest";
  result.status = "downloaded";
  result.loaded = {"x:1"};
  read = parse_event(to_json(result));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<TransferResult>(*read).reference, result.reference);
  EXPECT_EQ(std::get<TransferResult>(*read).loaded, result.loaded);
}

TEST(TransferProtocol, gives_back_the_reports_about_layers) {
  TransferResult result;
  result.dedupe = DedupeReport{2, 30, 4, 5000, 1, 0, "links"};
  result.convert = ConvertReport{{Digest::from_sha256(std::string(32, 'x'))}, 1, {"c:1"}};
  Result<TransferEvent> read = parse_event(to_json(result));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  const auto& same = std::get<TransferResult>(*read);
  EXPECT_EQ(same.dedupe->bytes, 5000u);
  EXPECT_EQ(same.dedupe->way, "links");
  EXPECT_EQ(same.convert->layers, result.convert->layers);
  EXPECT_EQ(same.convert->shared, result.convert->shared);
}

TEST(TransferProtocol, carries_an_error_with_all_that_the_user_reads) {
  Error error = sys_error(ENOSPC, "write blob 'sha256:00'");
  error.hint = "df";
  error.context = {"cannot store the layer", "cannot pull 'x'"};
  Result<TransferEvent> read = parse_event(to_json(error));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(to_line(std::get<Error>(*read)), to_line(error));
  EXPECT_EQ(std::get<Error>(*read).kind, error.kind);
}

TEST(TransferProtocol, writes_one_line_per_event) {
  std::string line = to_json(StatusEvent{"two\nlines"});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace berth::image
