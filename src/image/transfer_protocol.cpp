// SPDX-License-Identifier: Apache-2.0
#include "image/transfer_protocol.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::image {
namespace {

template <class Enum, size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<Ownership, 2> kOwnerships{
    {{Ownership::full, "full"}, {Ownership::single, "single"}}};
constexpr Names<OverlayXattr, 2> kOverlayXattrs{
    {{OverlayXattr::trusted, "trusted"}, {OverlayXattr::user, "user"}}};
constexpr Names<LayerFormat, 2> kLayerFormats{
    {{LayerFormat::directory, "directory"}, {LayerFormat::erofs, "erofs"}}};
constexpr Names<Owners, 2> kOwners{{{Owners::archive, "archive"}, {Owners::root, "root"}}};
constexpr Names<Trust, 2> kTrusts{{{Trust::inside, "inside"}, {Trust::outside, "outside"}}};
constexpr Names<LayerPhase, 7> kLayerPhases{{{LayerPhase::waiting, "waiting"},
                                             {LayerPhase::downloading, "downloading"},
                                             {LayerPhase::verifying, "verifying"},
                                             {LayerPhase::unpacking, "unpacking"},
                                             {LayerPhase::uploading, "uploading"},
                                             {LayerPhase::done, "done"},
                                             {LayerPhase::exists, "exists"}}};

template <class Enum, size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum wanted) {
  for (const auto& [value, name] : names) {
    if (value == wanted) return name;
  }
  return {};
}

template <class Enum, size_t N>
Result<Enum> value_of(const Names<Enum, N>& names, std::string_view wanted) {
  std::vector<std::string> known;
  for (const auto& [value, name] : names) {
    if (name == wanted) return value;
    known.emplace_back(name);
  }
  return make_error(Kind::corrupt,
                    "expected one of " + join(known, ", ") + ", got " + quote(wanted));
}

}  // namespace

std::string_view ownership_name(Ownership ownership) {
  return name_of(kOwnerships, ownership);
}
std::string_view overlay_xattr_name(OverlayXattr xattr) {
  return name_of(kOverlayXattrs, xattr);
}
std::string_view layer_format_name(LayerFormat format) {
  return name_of(kLayerFormats, format);
}
Result<LayerFormat> parse_layer_format(std::string_view text) {
  auto format = value_of(kLayerFormats, text);
  if (format.ok()) return format;
  Error error = std::move(format).error();
  error.kind = Kind::usage;
  return error;
}
std::string_view layer_phase_name(LayerPhase phase) {
  return name_of(kLayerPhases, phase);
}

// Textual forms and field tables, found by argument-dependent look-up.

static std::string to_json_text(const Ownership& value) {
  return std::string(ownership_name(value));
}
static Result<Ownership> from_json_text(std::string_view text, std::type_identity<Ownership>) {
  return value_of(kOwnerships, text);
}
static std::string to_json_text(const LayerFormat& value) {
  return std::string(layer_format_name(value));
}
static Result<LayerFormat> from_json_text(std::string_view text, std::type_identity<LayerFormat>) {
  return value_of(kLayerFormats, text);
}
static std::string to_json_text(const OverlayXattr& value) {
  return std::string(overlay_xattr_name(value));
}
static Result<OverlayXattr> from_json_text(std::string_view text,
                                           std::type_identity<OverlayXattr>) {
  return value_of(kOverlayXattrs, text);
}
static std::string to_json_text(const Owners& value) {
  return std::string(name_of(kOwners, value));
}
static Result<Owners> from_json_text(std::string_view text, std::type_identity<Owners>) {
  return value_of(kOwners, text);
}
static std::string to_json_text(const Trust& value) {
  return std::string(name_of(kTrusts, value));
}
static Result<Trust> from_json_text(std::string_view text, std::type_identity<Trust>) {
  return value_of(kTrusts, text);
}
static std::string to_json_text(const LayerPhase& value) {
  return std::string(layer_phase_name(value));
}
static Result<LayerPhase> from_json_text(std::string_view text, std::type_identity<LayerPhase>) {
  return value_of(kLayerPhases, text);
}

void fields(auto& v, FactsTrust& t) {
  v.always("fetch", t.fetch);
  v.optional("signed_only", t.signed_only);
  v.optional("keys", t.keys);
}

void fields(auto& v, PullRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("reference", r.reference);
  v.optional("platform", r.platform);
  access_fields(v, r.access);
  v.optional("ownership", r.ownership);
  v.optional("overlay_xattr", r.overlay_xattr);
  v.optional("layer_format", r.layer_format);
  v.optional("quiet", r.quiet);
  v.optional("node", r.node);
  v.optional("job", r.job);
  v.optional("force", r.force);
  v.optional("strict", r.strict);
  v.optional("facts", r.facts);
  v.always("scan", r.scan);
  v.optional("keep_blobs", r.keep_blobs);
  v.optional("memory_budget", r.memory_budget);
  v.optional("local", r.local);
  v.strict();
}

void fields(auto& v, ResolveRequest& r) {
  v.required("verb", r.verb);
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.optional("facts", r.facts);
  v.optional("as_document", r.as_document);
  v.strict();
}

void fields(auto& v, PublishFactsRequest& r) {
  v.required("verb", r.verb);
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.required("images", r.images);
  v.optional("sign_key", r.sign_key);
  v.optional("trusted_keys", r.trusted_keys);
  v.strict();
}

void fields(auto& v, PushRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.optional("quiet", r.quiet);
  v.strict();
}

void fields(auto& v, LoginRequest& r) {
  v.required("verb", r.verb);
  v.optional("registry", r.registry);
  v.required("username", r.username);
  v.required("password", r.password);
  access_fields(v, r.access);
  v.strict();
}

void fields(auto& v, LogoutRequest& r) {
  v.required("verb", r.verb);
  v.optional("registry", r.registry);
  access_fields(v, r.access);
  v.strict();
}

void fields(auto& v, SearchRequest& r) {
  v.required("verb", r.verb);
  v.required("registry", r.registry);
  v.required("text", r.text);
  v.required("limit", r.limit);
  v.optional("stars", r.stars);
  v.optional("official", r.official);
  v.optional("automated", r.automated);
  access_fields(v, r.access);
  v.strict();
}

void fields(auto& v, TagsRequest& r) {
  v.required("verb", r.verb);
  v.required("reference", r.reference);
  v.required("limit", r.limit);
  access_fields(v, r.access);
  v.strict();
}

void fields(auto& v, LoadRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("input", r.input);
  v.optional("platform", r.platform);
  v.optional("ownership", r.ownership);
  v.optional("overlay_xattr", r.overlay_xattr);
  v.optional("layer_format", r.layer_format);
  v.optional("quiet", r.quiet);
  v.strict();
}

void fields(auto& v, SaveRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  access_fields(v, r.access);
  v.required("references", r.references);
  v.required("output", r.output);
  v.required("format", r.format);
  v.strict();
}

void fields(auto& v, ImportRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("source", r.source);
  v.optional("reference", r.reference);
  v.optional("changes", r.changes);
  v.optional("message", r.message);
  v.optional("platform", r.platform);
  v.optional("source_date", r.source_date);
  v.optional("ownership", r.ownership);
  v.optional("overlay_xattr", r.overlay_xattr);
  v.optional("layer_format", r.layer_format);
  v.strict();
}

void fields(auto& v, ArchiveRequest& r) {
  v.required("verb", r.verb);
  v.required("tree", r.tree);
  v.required("name", r.name);
  v.required("output", r.output);
  v.optional("squashfs", r.squashfs);
  v.optional("epoch", r.epoch);
  v.strict();
}

void fields(auto& v, ExtractRequest& r) {
  v.required("verb", r.verb);
  v.required("directory", r.directory);
  v.optional("top", r.top);
  v.optional("path", r.path);
  v.required("input", r.input);
  v.optional("packed", r.packed);
  v.required("owners", r.owners);
  v.required("trust", r.trust);
  v.strict();
}

void fields(auto& v, CommitRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("base", r.base);
  v.required("tree", r.tree);
  v.optional("left_out", r.left_out);
  v.optional("loader_cache", r.loader_cache);
  v.optional("reference", r.reference);
  v.required("config", r.config);
  v.optional("changes", r.changes);
  v.optional("author", r.author);
  v.optional("message", r.message);
  v.optional("created_by", r.created_by);
  v.optional("source_date", r.source_date);
  v.optional("ownership", r.ownership);
  v.optional("overlay_xattr", r.overlay_xattr);
  v.optional("layer_format", r.layer_format);
  v.strict();
}

void fields(auto& v, PublishedEntry& e) {
  v.optional("image", e.image);
  v.optional("present", e.present);
  v.optional("annotations", e.annotations);
  v.strict();
}

void fields(auto& v, PublishRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.required("reference", r.reference);
  v.required("entries", r.entries);
  v.optional("annotations", r.annotations);
  v.optional("sign_key", r.sign_key);
  v.optional("trusted_keys", r.trusted_keys);
  access_fields(v, r.access);
  v.optional("quiet", r.quiet);
  v.strict();
}

void fields(auto& v, BuildContext& c) {
  v.required("directory", c.directory);
  v.optional("ignore_file", c.ignore_file);
  v.strict();
}

void fields(auto& v, DigestRequest& r) {
  v.required("verb", r.verb);
  v.optional("contexts", r.contexts);
  v.optional("texts", r.texts);
  v.strict();
}

void fields(auto& v, CheckKeyRequest& r) {
  v.required("verb", r.verb);
  v.required("sign_key", r.sign_key);
  v.strict();
}

void fields(auto& v, CheckRequest& r) {
  v.required("verb", r.verb);
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
  v.optional("repair", r.repair);
  v.optional("ownership", r.ownership);
  v.optional("overlay_xattr", r.overlay_xattr);
  v.optional("layer_format", r.layer_format);
  v.strict();
}

void fields(auto& v, CheckFinding& f) {
  v.required("kind", f.kind);
  v.required("object", f.object);
  v.required("text", f.text);
  v.optional("images", f.images);
  v.optional("done", f.done);
  v.optional("damage", f.damage);
}

void fields(auto& v, CheckReport& r) {
  v.optional("findings", r.findings);
  v.optional("damaged", r.damaged);
  v.optional("records", r.records);
  v.optional("blobs", r.blobs);
  v.optional("layers", r.layers);
  v.optional("files", r.files);
  v.optional("bytes", r.bytes);
}

void fields(auto& v, LayerEvent& e) {
  v.required("id", e.id);
  v.required("phase", e.phase);
  v.required("done", e.done);
  v.required("total", e.total);
}

void fields(auto& v, StatusEvent& e) {
  v.required("text", e.text);
}

void fields(auto& v, WarningEvent& e) {
  v.required("text", e.text);
}

void fields(auto& v, ResolvedEntry& e) {
  v.required("descriptor", e.descriptor);
  v.optional("config", e.config);
  v.optional("found", e.found);
  v.optional("runs", e.runs);
  v.optional("runs_believed", e.runs_believed);
}

void fields(auto& v, FoundRepository& r) {
  v.required("name", r.name);
  v.optional("description", r.description);
  v.optional("stars", r.stars);
  v.optional("official", r.official);
  v.optional("automated", r.automated);
}

void fields(auto& v, TransferResult& r) {
  v.optional("reference", r.reference);
  v.optional("digest", r.digest);
  v.optional("image_id", r.image_id);
  v.optional("status", r.status);
  v.optional("size", r.size);
  v.optional("loaded", r.loaded);
  v.optional("entries", r.entries);
  v.optional("document", r.document);
  v.optional("digests", r.digests);
  v.optional("check", r.check);
  v.optional("found", r.found);
  v.optional("tags", r.tags);
}

namespace {

/// An Error as it travels: its kind by name, its place in our source left behind.
struct ErrorEvent {
  std::string kind;
  int sys_errno = 0;
  std::string what;
  std::string hint;
  std::vector<std::string> context;
};

void fields(auto& v, ErrorEvent& e) {
  v.required("kind", e.kind);
  v.optional("errno", e.sys_errno);
  v.required("what", e.what);
  v.optional("hint", e.hint);
  v.optional("context", e.context);
}

struct Envelope {
  std::string verb;
  std::string event;
};

void fields(auto& v, Envelope& e) {
  v.optional("verb", e.verb);
  v.optional("event", e.event);
}

json::Value event_value(const LayerEvent& e) {
  return json::to_value(e);
}
json::Value event_value(const StatusEvent& e) {
  return json::to_value(e);
}
json::Value event_value(const WarningEvent& e) {
  return json::to_value(e);
}
json::Value event_value(const TransferResult& e) {
  return json::to_value(e);
}
json::Value event_value(const Error& e) {
  return json::to_value(
      ErrorEvent{std::string(kind_name(e.kind)), e.sys_errno, e.what, e.hint, e.context});
}

std::string_view event_name(const TransferEvent& event) {
  constexpr std::string_view kNames[] = {"layer", "status", "warning", "result", "error"};
  static_assert(std::size(kNames) == std::variant_size_v<TransferEvent>);
  return kNames[event.index()];
}

template <class T>
Result<TransferEvent> read_event(const json::Value& value) {
  T event = TRY(json::from_value<T>(value, "event"));
  return TransferEvent(std::move(event));
}

template <class T>
Result<TransferRequest> read_request(const json::Value& value) {
  Result<T> request = json::from_value<T>(value, "request");
  if (!request.ok()) {
    request.error().kind = Kind::usage;
    return std::move(request).error();
  }
  return TransferRequest(std::move(request).value());
}

}  // namespace

std::string to_json(const TransferRequest& request) {
  return std::visit([](const auto& r) { return json::write(r); }, request) + "\n";
}

Result<TransferRequest> parse_request(std::string_view text) {
  Result<json::Value> value = json::parse(text, "request");
  if (!value.ok()) {
    value.error().kind = Kind::usage;
    return std::move(value).error();
  }
  std::string verb = TRY(json::from_value<Envelope>(*value, "request")).verb;
  if (verb == "pull") return read_request<PullRequest>(*value);
  if (verb == "resolve") return read_request<ResolveRequest>(*value);
  if (verb == "publish-facts") return read_request<PublishFactsRequest>(*value);
  if (verb == "push") return read_request<PushRequest>(*value);
  if (verb == "login") return read_request<LoginRequest>(*value);
  if (verb == "logout") return read_request<LogoutRequest>(*value);
  if (verb == "search") return read_request<SearchRequest>(*value);
  if (verb == "tags") return read_request<TagsRequest>(*value);
  if (verb == "load") return read_request<LoadRequest>(*value);
  if (verb == "save") return read_request<SaveRequest>(*value);
  if (verb == "import") return read_request<ImportRequest>(*value);
  if (verb == "archive") return read_request<ArchiveRequest>(*value);
  if (verb == "extract") return read_request<ExtractRequest>(*value);
  if (verb == "commit") return read_request<CommitRequest>(*value);
  if (verb == "publish") return read_request<PublishRequest>(*value);
  if (verb == "digest") return read_request<DigestRequest>(*value);
  if (verb == "check") return read_request<CheckRequest>(*value);
  if (verb == "check-key") return read_request<CheckKeyRequest>(*value);
  return make_error(Kind::usage, "read the request: unknown verb " + quote(verb));
}

std::string to_json(const TransferEvent& event) {
  json::Object line{{"event", event_name(event)}};
  json::Value members = std::visit([](const auto& e) { return event_value(e); }, event);
  for (const auto& member : *members.object()) line.push_back(member);
  return json::dump(json::Value(std::move(line))) + "\n";
}

Result<TransferEvent> parse_event(std::string_view line) {
  json::Value value = TRY(json::parse(line, "event"));
  std::string name = TRY(json::from_value<Envelope>(value, "event")).event;
  if (name == "layer") return read_event<LayerEvent>(value);
  if (name == "status") return read_event<StatusEvent>(value);
  if (name == "warning") return read_event<WarningEvent>(value);
  if (name == "result") return read_event<TransferResult>(value);
  if (name == "error") {
    ErrorEvent e = TRY(json::from_value<ErrorEvent>(value, "event"));
    return TransferEvent(Error{kind_from_name(e.kind), e.sys_errno, std::move(e.what),
                               std::move(e.hint), std::move(e.context)});
  }
  return make_error(Kind::corrupt, "read an event: unknown name " + quote(name));
}

}  // namespace berth::image
