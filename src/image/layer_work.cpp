// SPDX-License-Identifier: Apache-2.0
#include "image/layer_work.hpp"

#include "image/request_json.hpp"
#include "json/fields.hpp"

namespace berth::image {

void fields(auto& v, DedupeRequest& r) {
  v.required("root", r.root);
  v.optional("dry_run", r.dry_run);
  v.optional("mounted", r.mounted);
  v.required("ownership", r.ownership);
  v.required("overlay_xattr", r.overlay_xattr);
  v.required("layer_format", r.layer_format);
}

void fields(auto& v, ConvertRequest& r) {
  v.required("root", r.root);
  v.optional("images", r.images);
  v.required("ownership", r.ownership);
  v.required("overlay_xattr", r.overlay_xattr);
  v.required("layer_format", r.layer_format);
}

void fields(auto& v, DedupeReport& r) {
  v.required("layers", r.layers);
  v.required("files", r.files);
  v.required("identical", r.identical);
  v.required("bytes", r.bytes);
  v.required("used", r.used);
  v.required("unrecorded", r.unrecorded);
  v.optional("way", r.way);
}

void fields(auto& v, ConvertReport& r) {
  v.optional("layers", r.layers);
  v.optional("present", r.present);
  v.optional("shared", r.shared);
}

std::string to_json(const LayerWork& request) {
  return write_request(request);
}

Result<std::optional<LayerWork>> parse_layer_work(std::string_view text) {
  auto value = json::parse(text, "request");
  if (!value.ok()) return std::optional<LayerWork>();
  auto named = json::from_value<RequestVerb>(*value, "request");
  if (!named.ok()) return std::optional<LayerWork>();
  return read_request<LayerWork>(*value, named->verb);
}

std::string to_json(const DedupeReport& report) {
  return json::write(report);
}
std::string to_json(const ConvertReport& report) {
  return json::write(report);
}
Result<DedupeReport> parse_dedupe_report(std::string_view text) {
  return json::read<DedupeReport>(text, "report of berth-transfer");
}
Result<ConvertReport> parse_convert_report(std::string_view text) {
  return json::read<ConvertReport>(text, "report of berth-transfer");
}

}  // namespace berth::image
