// SPDX-License-Identifier: Apache-2.0
// Requests of `berth` to `berth-transfer` about unpacked layers: one JSON object on its stdin, as
// those of transfer_protocol.hpp. The events are those of a transfer, and TransferResult::status is
// the report, as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::image {

/// Stores identical files of unpacked layers once.  status: DedupeReport.
struct DedupeRequest {
  std::string verb = "dedupe";
  std::string root;
  bool dry_run = false;         ///< only report
  std::vector<Digest> mounted;  ///< diff ids of mounted layers: they count as used
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// The result of a DedupeRequest, or of its dry run.
struct DedupeReport {
  uint64_t layers = 0;      ///< examined layers
  uint64_t files = 0;       ///< examined files
  uint64_t identical = 0;   ///< files merged with another
  uint64_t bytes = 0;       ///< freed on the disk
  uint64_t used = 0;        ///< layers left unchanged because containers use them
  uint64_t unrecorded = 0;  ///< layers without a record, made by an old version
  std::string way;          ///< "blocks" or "links"; empty if nothing is identical
};

/// Converts the unpacked layers of images to `layer_format`.  status: ConvertReport.
struct ConvertRequest {
  std::string verb = "convert";
  std::string root;
  std::vector<std::string> images;  ///< names or ids
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// The result of a ConvertRequest.
struct ConvertReport {
  std::vector<Digest> layers;       ///< diff ids of the converted ones
  uint64_t present = 0;             ///< layers that had the format already
  std::vector<std::string> shared;  ///< other images with one of `layers`
};

using LayerWork = std::variant<DedupeRequest, ConvertRequest>;

/// One JSON object on one line, with its newline.
std::string to_json(const LayerWork& request);
/// Nothing where `text` is another request.  Errors: usage (a wrong or missing member).
Result<std::optional<LayerWork>> parse_layer_work(std::string_view text);

std::string to_json(const DedupeReport& report);
std::string to_json(const ConvertReport& report);
/// Errors: corrupt (the other program is of another version).
Result<DedupeReport> parse_dedupe_report(std::string_view text);
Result<ConvertReport> parse_convert_report(std::string_view text);

}  // namespace berth::image
