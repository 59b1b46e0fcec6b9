// SPDX-License-Identifier: Apache-2.0
#include "engine/node/facts_trust.hpp"

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxKey = size_t{64} << 10;

}  // namespace

Result<std::string> read_key_file(const std::string& path) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxKey));
  if (!text) return make_error(Kind::not_found, "there is no key file " + quote(path));
  return *std::move(text);
}

Result<image::FactsTrust> facts_trust(const Context& context) {
  policy::Compiled compiled = TRY(policy::read_compiled(context.paths.config));
  const policy::Match& match = compiled.policy.match;
  image::FactsTrust trust;
  trust.fetch = match.facts != policy::PublishedFacts::none;
  trust.signed_only = match.facts == policy::PublishedFacts::only_signed;
  if (!trust.fetch) return trust;
  for (const std::string& path : match.keys) {
    auto key = read_key_file(path);
    if (key.ok()) {
      trust.keys.push_back(std::move(*key));
    } else if (trust.signed_only) {
      return std::move(key).error();
    } else {
      context.log.warn(to_line(key.error()) + ", ignoring what it has signed");
    }
  }
  return trust;
}

}  // namespace berth::engine
