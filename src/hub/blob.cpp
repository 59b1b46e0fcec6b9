// SPDX-License-Identifier: Apache-2.0
#include "hub/blob.hpp"

#include "base/text.hpp"
#include "transfer/registry/url.hpp"

namespace berth::hub {
namespace {

using transfer::HttpResponse;
using transfer::Nearness;
using Follow = transfer::Registry::Follow;

/// The headers of a blob, from its registry's answer.
Reply head_of(const HttpResponse& response, const BlobWish& wish) {
  Reply reply;
  reply.status = static_cast<unsigned>(response.status);
  reply.headers = {{"Content-Type", "application/octet-stream"},
                   {"Docker-Content-Digest", wish.digest.text()},
                   {"Accept-Ranges", "bytes"}};
  auto length = parse_u64(response.header("content-length").value_or(""));
  if (length) reply.length = *length;
  auto range = response.header("content-range");
  if (range && range->find_first_of("\r\n") == range->npos) {
    reply.headers.emplace_back("Content-Range", std::string(*range));
  }
  return reply;
}

Reply redirect_to(const transfer::Url& url) {
  Reply reply;
  reply.status = 307;
  reply.headers = {{"Location", url.text()}};
  return reply;
}

/// Whether the client can reach the URL as well as the hub can.
bool is_for(const transfer::Url& url, const BlobWish& wish) {
  Nearness near = transfer::nearness(url.host);
  return near == Nearness::anywhere || (near == Nearness::machine && wish.client_is_near);
}

/// Passes on the redirect, unless the client must not be sent there.
std::optional<Reply> pass_redirect(const HttpResponse& response, const BlobWish& wish) {
  auto next = transfer::resolve_url(response.url, std::string(*response.header("location")));
  if (!next.ok() || !is_for(*next, wish)) return std::nullopt;
  if (response.url.scheme == "https" && next->scheme == "http") return std::nullopt;
  // A remote registry's redirect could name an address of this machine, which a client on it can
  // reach.
  if (wish.client_is_near && response.from != Nearness::machine) return std::nullopt;
  return redirect_to(*next);
}

/// Checks that it is the blob, or the requested range: a 204 and the like would be passed on as it.
Result<void> check_status(const HttpResponse& response, const BlobWish& wish) {
  bool whole = response.status == 200;
  bool part = response.status == 206 && !wish.range.empty() && !wish.head;
  if (whole || part) return {};
  return make_error(Kind::corrupt, fmt::format("read '{}': the registry answers a request for {} "
                                               "with status {}",
                                               response.url.shown(),
                                               wish.range.empty() ? "a blob" : "a part of a blob",
                                               response.status));
}

Result<Reply> look_at(Source& source, const BlobWish& wish) {
  HttpResponse response = TRY(source.registry().look_at_blob(wish.digest, Follow::yes));
  if (response.broken) return std::move(*response.broken);
  TRY(check_status(response, wish));
  return head_of(response, wish);
}

Result<void> begin(const HttpResponse& head, const BlobWish& wish, Output& output) {
  if (output.begun()) return {};
  TRY(check_status(head, wish));
  return output.begin(head_of(head, wish));
}

/// Nothing if a redirect is met that the client cannot follow.
Result<std::optional<Reply>> stream(Source& source, const BlobWish& wish, Follow follow,
                                    Output& output) {
  auto take = [&](const HttpResponse& head, std::string_view bytes) -> Result<void> {
    TRY(begin(head, wish, output));
    return output.write(bytes);
  };
  HttpResponse response = TRY(source.registry().pass_blob(wish.digest, wish.range, follow, take));
  // First: docker-registry announces a length that its answer does not have, and so aborts it.
  if (response.status == 416) {
    return std::optional(refusal(416, "RANGE_INVALID", "the blob has no such bytes"));
  }
  if (response.broken) return std::move(*response.broken);
  if (transfer::is_redirect(response)) return pass_redirect(response, wish);
  TRY(begin(response, wish, output));  // of a blob without bytes
  return std::optional(Reply());
}

Result<Reply> give(Source& source, const BlobWish& wish, Blobs way, Output& output) {
  if (way == Blobs::redirect) {
    // A registry that serves it anonymously serves it to the client as well.
    Reply found = TRY(look_at(source, wish));
    if (wish.head) return found;
    transfer::Url url = source.registry().blob_url(wish.digest);
    if (source.registry().is_anonymous() && is_for(url, wish)) return redirect_to(url);
    auto given = TRY(stream(source, wish, Follow::no, output));
    if (given) return std::move(*given);
  }
  if (wish.head) return look_at(source, wish);
  auto given = TRY(stream(source, wish, Follow::yes, output));
  BERTH_ASSERT(given.has_value());
  return std::move(*given);
}

}  // namespace

Result<Reply> give_blob(Source& source, const BlobWish& wish, Blobs way, Output& output,
                        Note& note) {
  auto given = give(source, wish, way, output);
  if (given.ok()) return given;
  note.error = to_line(given.error());
  if (output.begun()) return given;
  return upstream_refusal(given.error(), "BLOB_UNKNOWN");
}

}  // namespace berth::hub
