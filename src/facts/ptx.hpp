// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "facts/facts.hpp"

namespace berth::facts {

/// The target and version of a file of PTX, from its first bytes; nothing if it is not PTX.
/// Source: PTX ISA, ".version": the first directive of a module; ".target": the second one.
std::optional<GpuCode> ptx_target(std::string_view text);

}  // namespace berth::facts
