// SPDX-License-Identifier: Apache-2.0
#include "image/transfer_protocol.hpp"

#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "json/error_fields.hpp"
#include "json/fields.hpp"

namespace berth::image {

// Field tables, found by argument-dependent look-up; Whole adds the verbs.

void store_fields(auto& v, auto& r) {
  v.required("root", r.root);
  v.optional("additional_stores", r.additional_stores);
}

void flavor_fields(auto& v, auto& r) {
  v.optional("ownership", r.flavor.ownership);
  v.optional("overlay_xattr", r.flavor.overlay_xattr);
  v.optional("layer_format", r.flavor.format);
}

/// For requests that change existing layers.
void required_flavor_fields(auto& v, auto& r) {
  v.required("ownership", r.flavor.ownership);
  v.required("overlay_xattr", r.flavor.overlay_xattr);
  v.required("layer_format", r.flavor.format);
}

void fields(auto& v, FactsTrust& t) {
  v.always("fetch", t.fetch);
  v.optional("signed_only", t.signed_only);
  v.optional("keys", t.keys);
}

void fields(auto& v, PullRequest& r) {
  store_fields(v, r);
  v.required("reference", r.reference);
  v.optional("platform", r.platform);
  access_fields(v, r.access);
  flavor_fields(v, r);
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
}

void fields(auto& v, ResolveRequest& r) {
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.optional("facts", r.facts);
  v.optional("as_document", r.as_document);
}

void fields(auto& v, PublishFactsRequest& r) {
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.required("images", r.images);
  v.optional("sign_key", r.sign_key);
  v.optional("trusted_keys", r.trusted_keys);
}

void fields(auto& v, PushRequest& r) {
  store_fields(v, r);
  v.required("reference", r.reference);
  access_fields(v, r.access);
  v.optional("quiet", r.quiet);
}

void fields(auto& v, LoginRequest& r) {
  v.optional("registry", r.registry);
  v.required("username", r.username);
  v.required("password", r.password);
  access_fields(v, r.access);
}

void fields(auto& v, LogoutRequest& r) {
  v.optional("registry", r.registry);
  access_fields(v, r.access);
}

void fields(auto& v, SearchRequest& r) {
  v.required("registry", r.registry);
  v.required("text", r.text);
  v.required("limit", r.limit);
  v.optional("stars", r.stars);
  v.optional("official", r.official);
  v.optional("automated", r.automated);
  access_fields(v, r.access);
}

void fields(auto& v, TagsRequest& r) {
  v.required("reference", r.reference);
  v.required("limit", r.limit);
  access_fields(v, r.access);
}

void fields(auto& v, LoadRequest& r) {
  store_fields(v, r);
  v.required("input", r.input);
  v.optional("platform", r.platform);
  flavor_fields(v, r);
  v.optional("quiet", r.quiet);
}

void fields(auto& v, SaveRequest& r) {
  store_fields(v, r);
  access_fields(v, r.access);
  v.required("references", r.references);
  v.required("output", r.output);
  v.required("format", r.format);
}

void fields(auto& v, ImportRequest& r) {
  store_fields(v, r);
  v.required("source", r.source);
  v.optional("reference", r.reference);
  v.optional("changes", r.changes);
  v.optional("message", r.message);
  v.optional("platform", r.platform);
  v.optional("source_date", r.source_date);
  flavor_fields(v, r);
}

void fields(auto& v, ArchiveRequest& r) {
  v.required("tree", r.tree);
  v.required("name", r.name);
  v.required("output", r.output);
  v.optional("squashfs", r.squashfs);
  v.optional("epoch", r.epoch);
}

void fields(auto& v, ExtractRequest& r) {
  v.required("directory", r.directory);
  v.optional("top", r.top);
  v.optional("path", r.path);
  v.required("input", r.input);
  v.optional("packed", r.packed);
  v.required("owners", r.owners);
  v.required("trust", r.trust);
}

void fields(auto& v, CommitRequest& r) {
  store_fields(v, r);
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
  flavor_fields(v, r);
}

void fields(auto& v, PublishedEntry& e) {
  v.optional("image", e.image);
  v.optional("present", e.present);
  v.optional("annotations", e.annotations);
  v.strict();
}

void fields(auto& v, PublishRequest& r) {
  store_fields(v, r);
  v.required("reference", r.reference);
  v.required("entries", r.entries);
  v.optional("annotations", r.annotations);
  v.optional("sign_key", r.sign_key);
  v.optional("trusted_keys", r.trusted_keys);
  access_fields(v, r.access);
  v.optional("quiet", r.quiet);
}

void fields(auto& v, BuildContext& c) {
  v.required("directory", c.directory);
  v.optional("ignore_file", c.ignore_file);
  v.strict();
}

void fields(auto& v, DigestRequest& r) {
  v.optional("contexts", r.contexts);
  v.optional("texts", r.texts);
}

void fields(auto& v, CheckKeyRequest& r) {
  v.required("sign_key", r.sign_key);
}

void fields(auto& v, CheckRequest& r) {
  store_fields(v, r);
  v.optional("repair", r.repair);
  flavor_fields(v, r);
}

void fields(auto& v, DedupeRequest& r) {
  v.required("root", r.root);
  v.optional("dry_run", r.dry_run);
  v.optional("mounted", r.mounted);
  required_flavor_fields(v, r);
}

void fields(auto& v, ConvertRequest& r) {
  v.required("root", r.root);
  v.optional("images", r.images);
  required_flavor_fields(v, r);
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
  v.optional("dedupe", r.dedupe);
  v.optional("convert", r.convert);
  v.optional("found", r.found);
  v.optional("tags", r.tags);
}

namespace {

/// A request with its verb. Unknown members are errors.
template <class Request>
struct Whole {
  Request request;
};
template <class Request>
void fields(auto& v, Whole<Request>& whole) {
  v.required("verb", whole.request.verb);
  fields(v, whole.request);
  v.strict();
}

struct RequestVerb {
  std::string verb;
};
void fields(auto& v, RequestVerb& r) {
  v.optional("verb", r.verb);
}

/// Reads the alternative of TransferRequest with this verb.
/// Errors: usage (no request has it; a wrong or missing member).
template <size_t I = 0>
Result<TransferRequest> read_request(const json::Value& value, std::string_view verb) {
  if constexpr (I == std::variant_size_v<TransferRequest>) {
    return make_error(Kind::usage, "read the request: unknown verb " + quote(verb));
  } else {
    using Request = std::variant_alternative_t<I, TransferRequest>;
    if (verb != Request().verb) return read_request<I + 1>(value, verb);
    auto whole = json::from_value<Whole<Request>>(value, "request");
    if (whole.ok()) return TransferRequest(std::move(whole->request));
    whole.error().kind = Kind::usage;
    return std::move(whole).error();
  }
}

struct EventName {
  std::string event;
};

void fields(auto& v, EventName& e) {
  v.optional("event", e.event);
}

std::string_view event_name(const TransferEvent& event) {
  constexpr std::string_view kNames[] = {"layer", "status", "warning", "result", "error"};
  static_assert(std::size(kNames) == std::variant_size_v<TransferEvent>);
  return kNames[event.index()];
}

template <class T>
Result<TransferEvent> read_event(json::Value value) {
  T event = TRY(json::from_value<T>(std::move(value), "event"));
  return TransferEvent(std::move(event));
}

}  // namespace

std::string to_json(const TransferRequest& request) {
  auto write = [](const auto& r) { return json::write(Whole<std::decay_t<decltype(r)>>{r}); };
  return std::visit(write, request) + "\n";
}

Result<TransferRequest> parse_request(std::string_view text) {
  Result<json::Value> value = json::parse(text, "request");
  if (!value.ok()) {
    value.error().kind = Kind::usage;
    return std::move(value).error();
  }
  std::string verb = TRY(json::from_value<RequestVerb>(*value, "request")).verb;
  return read_request(*value, verb);
}

std::string to_json(const TransferEvent& event) {
  json::Object line{{"event", event_name(event)}};
  json::Value members = std::visit([](const auto& e) { return json::to_value(e); }, event);
  for (const auto& member : *members.object()) line.push_back(member);
  return json::dump(json::Value(std::move(line))) + "\n";
}

Result<TransferEvent> parse_event(std::string_view line) {
  json::Value value = TRY(json::parse(line, "event"));
  std::string name = TRY(json::from_value<EventName>(value, "event")).event;
  if (name == "layer") return read_event<LayerEvent>(std::move(value));
  if (name == "status") return read_event<StatusEvent>(std::move(value));
  if (name == "warning") return read_event<WarningEvent>(std::move(value));
  if (name == "result") return read_event<TransferResult>(std::move(value));
  if (name == "error") {
    Error failure;
    if (auto unread = json::fill(value, json::Path("event"), failure)) return std::move(*unread);
    return TransferEvent(std::move(failure));
  }
  return make_error(Kind::corrupt, "read an event: unknown name " + quote(name));
}

}  // namespace berth::image
