// SPDX-License-Identifier: Apache-2.0
#include "facts/facts.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"

namespace berth::facts {
namespace {

using CodeKind = GpuCode::Kind;
constexpr std::array<std::pair<CodeKind, std::string_view>, 4> kKinds = {{{CodeKind::sass, "sass"},
                                                                          {CodeKind::ptx, "ptx"},
                                                                          {CodeKind::ir, "ir"},
                                                                          {CodeKind::gfx, "gfx"}}};

}  // namespace

std::string to_json_text(GpuCode::Kind kind) {
  for (const auto& [known, text] : kKinds) {
    if (known == kind) return std::string(text);
  }
  return {};
}

Result<GpuCode::Kind> from_json_text(std::string_view text, std::type_identity<GpuCode::Kind>) {
  for (const auto& [kind, known] : kKinds) {
    if (known == text) return kind;
  }
  return make_error(Kind::corrupt, "expected sass, ptx, ir or gfx, got " + quote(text));
}

}  // namespace berth::facts
