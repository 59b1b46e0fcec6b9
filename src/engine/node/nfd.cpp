// SPDX-License-Identifier: Apache-2.0
#include "engine/node/nfd.hpp"

#include "bake/nfd_document.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

Result<bake::NfdRules> rules_of_file(const Context& context, const std::string& path,
                                     const std::optional<std::string>& tag) {
  std::string text = TRY(sys::read_file(sys::cwd(), path, bake::nfd::kMostBytes));
  bake::NfdRules rules = TRY(bake::read_nfd(text, path, tag));
  for (const std::string& line : bake::remarks_of(rules, path)) context.log.warn(line);
  return rules;
}

}  // namespace berth::engine
