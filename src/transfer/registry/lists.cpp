// SPDX-License-Identifier: Apache-2.0
// The lists of a registry: tags, repositories, referrers.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "transfer/registry/registry.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxQuery = 8192;

struct Link {
  std::string_view target;      ///< the string between '<' and '>'
  std::string_view parameters;  ///< the string up to the next link
};

std::vector<Link> links_in(std::string_view header) {
  std::vector<Link> links;
  while (true) {
    size_t begin = header.find('<');
    if (begin == header.npos) return links;
    size_t end = header.find('>', begin);
    if (end == header.npos) return links;
    size_t next = std::min(header.find('<', end), header.size());
    links.push_back(
        {header.substr(begin + 1, end - begin - 1), header.substr(end + 1, next - end - 1)});
    header.remove_prefix(next);
  }
}

bool is_next(const Link& link) {
  std::vector<std::string_view> parameters = split(link.parameters, ';');
  return std::ranges::any_of(parameters, [](std::string_view one) {
    std::string parameter = to_lower(trim(one.substr(0, one.find(','))));
    return parameter == "rel=next" || parameter == "rel=\"next\"";
  });
}

/// The string after '?'; nothing if it cannot be part of a request.
std::optional<std::string> query_of(std::string_view target) {
  size_t mark = target.find('?');
  if (mark == target.npos) return std::nullopt;
  std::string_view query = target.substr(mark + 1);
  query = query.substr(0, query.find('#'));
  bool plain = std::ranges::all_of(query, [](char c) { return c > ' ' && c < 127; });
  if (!plain || query.empty() || query.size() > kMaxQuery) return std::nullopt;
  return std::string(query);
}

/// Whether the path is unknown: registries answer with different statuses.
bool is_unknown(int status) {
  return status == 400 || status == 404 || status == 405 || status == 406 || status == 501;
}

}  // namespace

Result<std::optional<std::string>> next_page(const HttpResponse& response) {
  for (std::string_view header : response.header_values("link")) {
    for (const Link& link : links_in(header)) {
      if (!is_next(link)) continue;
      std::optional<std::string> query = query_of(link.target);
      if (query) return query;
      return make_error(Kind::corrupt,
                        "find the page after it: " + quote(link.target.substr(0, 200)) +
                            " is not an address with a query");
    }
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>> Registry::find_referrers(const Digest& subject,
                                                            std::string_view artifact_type) {
  std::string action =
      "list referrers of " + object("manifest", repository_ + "@" + subject.text());
  HttpRequest request;
  request.url = with_query(at("/v2/" + repository_ + "/referrers/" + subject.text()),
                           "artifactType=" + percent_encode(std::string(artifact_type)));
  request.max_body = oci::kMaxManifestBytes;
  request.headers = {fmt::format("Accept: {}", oci::media_type::kIndex)};
  HttpResponse response = TRY(send_with_retries(std::move(request), pull_scope(), action));
  if (is_unknown(response.status)) return std::optional<std::string>();
  if (!response.ok()) return refusal(response, action);
  return std::optional<std::string>(std::move(response.body));
}

Result<std::optional<HttpResponse>> Registry::find_list(const std::string& path,
                                                        const std::string& query,
                                                        const std::string& scope,
                                                        const std::string& action) {
  HttpResponse response = TRY(get_list(path, query, scope, action));
  if (is_unknown(response.status)) return std::optional<HttpResponse>();
  if (!response.ok()) return refusal(response, action);
  return std::optional<HttpResponse>(std::move(response));
}

Result<HttpResponse> Registry::get_list(const std::string& path, const std::string& query,
                                        const std::string& scope, const std::string& action) {
  HttpRequest request;
  request.url = at(path);
  request.url.query = query;
  request.max_body = oci::kMaxManifestBytes;
  return send_with_retries(std::move(request), scope, action);
}

Result<HttpResponse> Registry::list_tags(const std::string& query) {
  std::string action = "list tags of " + object("repository", repository_);
  HttpResponse response =
      TRY(get_list("/v2/" + repository_ + "/tags/list", query, pull_scope(), action));
  if (!response.ok()) return refusal(response, action);
  return response;
}

Result<std::optional<HttpResponse>> Registry::list_repositories(const std::string& query) {
  return find_list("/v2/_catalog", query, "registry:catalog:*",
                   fmt::format("list the repositories of registry '{}'", name_));
}

Result<std::optional<HttpResponse>> Registry::search(const std::string& query) {
  return find_list("/v1/search", query, "", fmt::format("search registry '{}'", name_));
}

}  // namespace berth::transfer
