// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "facts/facts.hpp"

namespace berth::cli {

/// The output of `berth scan` for people: one fact per line, with the file it was found in. Pure.
std::string scan_text(const facts::ImageFacts& facts);

}  // namespace berth::cli
