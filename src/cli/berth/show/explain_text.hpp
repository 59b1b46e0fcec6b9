// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "engine/decide/explain.hpp"
#include "json/value.hpp"

namespace berth::cli {

/// The explanation for people: the sources of the request, then what the container has and what it
/// lacks, each with the reason. Folds lines at `columns`; 0: never. Pure.
std::string explain_text(const engine::Explained& explained, size_t columns);

/// {"id", "name", "image", "granted", "sources": [{"source", "text", "counts", "why"}],
/// "items": [{"kind", "object", "given", "why", "host_path"}]}
json::Value explain_json(const engine::Explained& explained);

}  // namespace berth::cli
