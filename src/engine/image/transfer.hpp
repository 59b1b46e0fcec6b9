// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/fd/fd.hpp"

/// Runs the child `berth-transfer`, which does everything that contacts a registry, hashes or
/// inflates.
namespace berth::engine {

/// Called for layer and status events while the child runs; warnings go to the context's log.
using Progress = std::function<void(const image::TransferEvent&)>;

/// Runs one request; sets `root`, `flavor` and the other members that depend on the context.
/// "/dev/fd/N" in a request is descriptor N of this process, which the child inherits.
/// Errors: those that the child reports, with kind, hint and context; interrupted (the child was
/// killed), not_found (the program is missing), corrupt (the program has another version).
Result<image::TransferResult> transfer(const Context& context, image::TransferRequest request,
                                       const Progress& progress);

/// "512m" → bytes. `what`: the flag or variable, for errors.  Errors: usage (not a size, or too
/// small).
Result<uint64_t> parse_memory_budget(std::string_view what, std::string_view text);

/// Copies a tree with two children and a pipe between them. Sets `output` and `input`. Errors:
/// those of both children.
Result<void> transfer_tree(const Context& context, image::ArchiveRequest from,
                           image::ExtractRequest to);

/// "/dev/fd/N", for requests.
std::string descriptor_name(const sys::Fd& fd);

}  // namespace berth::engine
