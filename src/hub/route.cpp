// SPDX-License-Identifier: Apache-2.0
#include "hub/route.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "image/reference.hpp"

namespace berth::hub {
namespace {

constexpr std::string_view kRoot = "/v2";
constexpr uint64_t kMostTags = 10'000;

Reply no_such_path() {
  return refusal(404, "UNSUPPORTED", "this hub serves only manifests, blobs and lists of tags");
}

Reply no_name() {
  return refusal(400, "NAME_INVALID", "the name of the repository is none");
}

/// Parses `name` followed by `tail` (":tag", "@sha256:…") as any image reference.
std::optional<image::Reference> read_reference(std::string_view name, const std::string& tail) {
  auto reference = image::Reference::parse("hub.invalid/" + std::string(name) + tail);
  bool same =
      reference.ok() && reference->registry() == "hub.invalid" && reference->repository() == name;
  if (!same) return std::nullopt;
  return std::move(*reference);
}

Route manifest_route(std::string_view name, std::string_view text) {
  bool by_digest = text.find(':') != std::string_view::npos;
  auto reference = read_reference(name, (by_digest ? "@" : ":") + std::string(text));
  if (!reference) {
    if (!read_reference(name, "")) return no_name();
    return refusal(
        400, by_digest ? "DIGEST_INVALID" : "TAG_INVALID",
        by_digest ? "expected sha256: and 64 hexadecimal digits" : "the tag of the image is none");
  }
  return ManifestRoute{std::string(name), std::string(text), by_digest};
}

Route blob_route(std::string_view name, std::string_view text) {
  if (!read_reference(name, "")) return no_name();
  auto digest = Digest::parse(text);
  if (!digest.ok()) {
    return refusal(400, "DIGEST_INVALID", "expected sha256: and 64 hexadecimal digits");
  }
  return BlobRoute{std::string(name), std::move(*digest)};
}

/// The value of `key` in "a=1&b=2".
std::string_view query_value(std::string_view query, std::string_view key) {
  for (std::string_view one : split(query, '&')) {
    if (one.size() > key.size() && one.starts_with(key) && one[key.size()] == '=') {
      return one.substr(key.size() + 1);
    }
  }
  return {};
}

Route tags_route(std::string_view name, std::string_view query) {
  if (!read_reference(name, "")) return no_name();
  TagsRoute route{std::string(name), std::string(query_value(query, "last")), 0};
  if (!route.last.empty() && !read_reference(name, ":" + route.last)) {
    return refusal(400, "TAG_INVALID", "last is not a tag");
  }
  std::string_view count = query_value(query, "n");
  if (count.empty()) return route;
  auto number = parse_u64(count);
  if (!number || *number == 0) {
    return refusal(400, "PAGINATION_NUMBER_INVALID", "n is not a positive number");
  }
  route.count = static_cast<uint32_t>(std::min(*number, kMostTags));
  return route;
}

}  // namespace

Route route_of(std::string_view method, std::string_view target) {
  if (method != "GET" && method != "HEAD") {
    Reply reply = refusal(405, "UNSUPPORTED", "this hub is read-only: GET and HEAD");
    reply.headers.emplace_back("Allow", "GET, HEAD");
    return reply;
  }
  size_t question = target.find('?');
  std::string_view path = target.substr(0, question);
  std::string_view query =
      question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
  if (path == kRoot || path == "/v2/") return PingRoute{};
  if (!path.starts_with("/v2/")) return no_such_path();
  path.remove_prefix(kRoot.size() + 1);

  // "NAME/KIND/WHAT": a name may have a part 'manifests' too, so the path is read from the end.
  size_t last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return no_such_path();
  size_t middle = path.rfind('/', last - 1);
  if (middle == std::string_view::npos) return no_such_path();
  std::string_view name = path.substr(0, middle);
  std::string_view kind = path.substr(middle + 1, last - middle - 1);
  std::string_view what = path.substr(last + 1);
  if (kind == "manifests") return manifest_route(name, what);
  if (kind == "blobs") return blob_route(name, what);
  if (kind == "tags" && what == "list") return tags_route(name, query);
  return no_such_path();
}

std::optional<Place> place_of(const std::vector<Upstream>& upstreams, std::string_view name) {
  std::optional<Place> place;
  size_t longest = 0;
  for (size_t i = 0; i < upstreams.size(); ++i) {
    const std::string& prefix = upstreams[i].prefix;
    if (prefix.empty()) {
      if (!place) place = Place{i, std::string(name)};
      continue;
    }
    bool below =
        name.size() > prefix.size() + 1 && name.starts_with(prefix) && name[prefix.size()] == '/';
    if (!below || prefix.size() < longest) continue;
    longest = prefix.size();
    place = Place{i, std::string(name.substr(prefix.size() + 1))};
  }
  if (place && !serves(upstreams[place->upstream], place->repository)) return std::nullopt;
  return place;
}

bool is_referrers_tag(std::string_view tag) {
  constexpr std::string_view kPrefix = "sha256-";
  if (!tag.starts_with(kPrefix)) return false;
  return Digest::parse("sha256:" + std::string(tag.substr(kPrefix.size()))).ok();
}

bool accepts(const std::vector<std::string>& accept, std::string_view media_type) {
  if (accept.empty()) return true;
  std::string_view group = media_type.substr(0, media_type.find('/'));
  for (const std::string& header : accept) {
    for (std::string_view one : split(header, ',')) {
      std::string range = to_lower(trim(one.substr(0, one.find(';'))));
      if (range == "*/*" || range == media_type || range == std::string(group) + "/*") return true;
    }
  }
  return false;
}

std::string plain_range(std::string_view value) {
  constexpr std::string_view kUnit = "bytes=";
  constexpr size_t kMostDigits = 19;
  if (!value.starts_with(kUnit)) return {};
  std::string_view range = value.substr(kUnit.size());
  size_t dash = range.find('-');
  if (dash == std::string_view::npos) return {};
  std::string_view first = range.substr(0, dash);
  std::string_view last = range.substr(dash + 1);
  auto number = [](std::string_view text) {
    return text.size() <= kMostDigits && parse_u64(text).has_value();
  };
  bool plain = number(first) && (last.empty() || number(last));
  return plain ? std::string(value) : std::string();
}

}  // namespace berth::hub
