// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "facts/facts.hpp"

namespace berth::cli {

/// What `berth scan` prints for people: a fact a line, with the file that it is from. Pure.
std::string scan_text(const facts::ImageFacts& facts);

}  // namespace berth::cli
