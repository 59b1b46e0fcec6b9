// SPDX-License-Identifier: Apache-2.0
// What `berth` asks of `berth-transfer` about layers that are unpacked: one request as a JSON
// object on its stdin, as those of transfer_protocol.hpp are. The events are those of a transfer,
// and TransferResult::status is the report, as JSON.
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

/// Makes files of unpacked layers that are the same one on the disk.  status: DedupeReport.
struct DedupeRequest {
  std::string verb = "dedupe";
  std::string root;
  bool dry_run = false;         ///< only tell
  std::vector<Digest> mounted;  ///< diff ids of layers that somebody looks at: as used ones
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// What became one, or would.
struct DedupeReport {
  uint64_t layers = 0;      ///< that were looked at
  uint64_t files = 0;       ///< the same
  uint64_t identical = 0;   ///< files that were made one with another
  uint64_t bytes = 0;       ///< that the disk has back
  uint64_t used = 0;        ///< layers that stay as they are, for containers use them
  uint64_t unrecorded = 0;  ///< layers that nothing is known of: from before there were records
  std::string way;          ///< "blocks" or "links"; empty where nothing is the same
};

/// Makes of the unpacked layers of images the other form, `layer_format`, from what they are.
/// status: ConvertReport.
struct ConvertRequest {
  std::string verb = "convert";
  std::string root;
  std::vector<std::string> images;  ///< names or ids
  Ownership ownership = Ownership::full;
  OverlayXattr overlay_xattr = OverlayXattr::trusted;
  LayerFormat layer_format = LayerFormat::directory;
};

/// What became of the layers of images.
struct ConvertReport {
  std::vector<Digest> layers;       ///< diff ids of those that were made anew
  uint64_t present = 0;             ///< that had the form already
  std::vector<std::string> shared;  ///< other images that have one of `layers`, too
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
