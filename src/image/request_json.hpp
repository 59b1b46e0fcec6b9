// SPDX-License-Identifier: Apache-2.0
// The JSON form of the requests of transfer_protocol.hpp and layer_work.hpp; only for their
// sources.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "json/fields.hpp"

namespace berth::image {

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

/// `Requests` is a variant. One JSON object on one line, with its newline.
template <class Requests>
std::string write_request(const Requests& request) {
  auto write = [](const auto& r) { return json::write(Whole<std::decay_t<decltype(r)>>{r}); };
  return std::visit(write, request) + "\n";
}

/// Reads the alternative of `Requests` with this verb; nothing if none has it.
/// Errors: usage (a wrong or missing member).
template <class Requests, size_t I = 0>
Result<std::optional<Requests>> read_request(const json::Value& value, std::string_view verb) {
  if constexpr (I == std::variant_size_v<Requests>) {
    return std::optional<Requests>();
  } else {
    using Request = std::variant_alternative_t<I, Requests>;
    if (verb != Request().verb) return read_request<Requests, I + 1>(value, verb);
    auto whole = json::from_value<Whole<Request>>(value, "request");
    if (whole.ok()) return std::optional<Requests>(std::move(whole->request));
    whole.error().kind = Kind::usage;
    return std::move(whole).error();
  }
}

}  // namespace berth::image
