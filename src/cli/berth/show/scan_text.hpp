// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "facts/facts.hpp"

namespace berth::cli {

/// The output of `berth scan` for people: a fact per line, with its file. Pure.
std::string scan_text(const facts::ImageFacts& facts);

}  // namespace berth::cli
