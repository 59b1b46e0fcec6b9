// SPDX-License-Identifier: Apache-2.0
#include "network/request.hpp"

#include "json/error_fields.hpp"
#include "json/fields.hpp"

namespace berth::network {

std::string write_failure(const Error& error) {
  return json::write(error);
}

std::optional<Error> read_failure(std::string_view text) {
  auto value = json::parse(text, "berth-network");
  Error failure;
  if (!value.ok() || json::fill(*value, json::Path("berth-network"), failure)) return std::nullopt;
  return failure;
}

}  // namespace berth::network
