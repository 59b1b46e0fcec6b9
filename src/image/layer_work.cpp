// SPDX-License-Identifier: Apache-2.0
#include "image/layer_work.hpp"

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::image {
namespace {

/// The names of what a layer is made for, as transfer_protocol.hpp has them.
struct Flavor {
  std::string ownership;
  std::string overlay_xattr;
  std::string layer_format;
};

template <class Request>
Flavor flavor_of(const Request& request) {
  return {std::string(ownership_name(request.ownership)),
          std::string(overlay_xattr_name(request.overlay_xattr)),
          std::string(layer_format_name(request.layer_format))};
}

template <class Request>
Result<void> set_flavor(const Flavor& names, Request& request) {
  auto unknown = [](const std::string& name) {
    return make_error(Kind::usage, "request: " + quote(name) + " is unknown");
  };
  if (names.ownership == ownership_name(Ownership::single)) {
    request.ownership = Ownership::single;
  } else if (names.ownership != ownership_name(Ownership::full)) {
    return unknown(names.ownership);
  }
  if (names.overlay_xattr == overlay_xattr_name(OverlayXattr::user)) {
    request.overlay_xattr = OverlayXattr::user;
  } else if (names.overlay_xattr != overlay_xattr_name(OverlayXattr::trusted)) {
    return unknown(names.overlay_xattr);
  }
  request.layer_format = TRY(parse_layer_format(names.layer_format));
  return {};
}

/// Both requests: members that one has not stay as they are.
struct Message {
  std::string verb;
  std::string root;
  bool dry_run = false;
  std::vector<Digest> mounted;
  std::vector<std::string> images;
  Flavor flavor;
};

void fields(auto& v, Message& m) {
  v.required("verb", m.verb);
  v.required("root", m.root);
  v.optional("dry_run", m.dry_run);
  v.optional("mounted", m.mounted);
  v.optional("images", m.images);
  v.required("ownership", m.flavor.ownership);
  v.required("overlay_xattr", m.flavor.overlay_xattr);
  v.required("layer_format", m.flavor.layer_format);
  v.strict();
}

Message message_of(const DedupeRequest& r) {
  return {r.verb, r.root, r.dry_run, r.mounted, {}, flavor_of(r)};
}
Message message_of(const ConvertRequest& r) {
  return {r.verb, r.root, false, {}, r.images, flavor_of(r)};
}

struct Verb {
  std::string verb;
};
void fields(auto& v, Verb& e) {
  v.optional("verb", e.verb);
}

Result<Message> read_message(std::string_view text) {
  auto message = json::read<Message>(text, "request");
  if (!message.ok()) message.error().kind = Kind::usage;
  return message;
}

}  // namespace

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
  return json::write(std::visit([](const auto& r) { return message_of(r); }, request)) + "\n";
}

Result<std::optional<LayerWork>> parse_layer_work(std::string_view text) {
  auto verb = json::read<Verb>(text, "request");
  bool known = verb.ok() && (verb->verb == "dedupe" || verb->verb == "convert");
  if (!known) return std::optional<LayerWork>();
  Message message = TRY(read_message(text));
  if (message.verb == "dedupe") {
    DedupeRequest request;
    request.root = std::move(message.root);
    request.dry_run = message.dry_run;
    request.mounted = std::move(message.mounted);
    TRY(set_flavor(message.flavor, request));
    return std::optional<LayerWork>(std::move(request));
  }
  ConvertRequest request;
  request.root = std::move(message.root);
  request.images = std::move(message.images);
  TRY(set_flavor(message.flavor, request));
  return std::optional<LayerWork>(std::move(request));
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
