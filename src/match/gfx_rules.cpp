// SPDX-License-Identifier: Apache-2.0
#include "match/gfx_rules.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::match {
namespace {

struct Generic {
  std::string_view name;
  std::string_view processors;  ///< with blanks between them
};

constexpr std::array<Generic, 6> kGeneric = {{
    {"gfx9-generic", "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c"},
    {"gfx9-4-generic", "gfx942 gfx950"},
    {"gfx10-1-generic", "gfx1010 gfx1011 gfx1012 gfx1013"},
    {"gfx10-3-generic", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"},
    {"gfx11-generic", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153"},
    {"gfx12-generic", "gfx1200 gfx1201"},
}};

}  // namespace

bool is_generic_processor(std::string_view name) {
  return std::ranges::find(kGeneric, name, &Generic::name) != kGeneric.end();
}

bool runs_code_for(std::string_view gpu, std::string_view code) {
  if (gpu == code) return true;
  const auto* generic = std::ranges::find(kGeneric, code, &Generic::name);
  if (generic == kGeneric.end()) return false;
  return std::ranges::count(split(generic->processors, ' '), gpu) != 0;
}

}  // namespace berth::match
