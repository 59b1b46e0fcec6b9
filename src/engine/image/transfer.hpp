// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/layer_work.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/fd/fd.hpp"

/// Everything that talks to a registry, hashes or inflates: done by the child `berth-transfer`.
namespace berth::engine {

/// Is called for layer and status events while the child works; warnings go to the context's log.
using Progress = std::function<void(const image::TransferEvent&)>;

/// Runs one request; `root`, `ownership` and `overlay_xattr` of the request are filled from the
/// context. "/dev/fd/N" in a request is descriptor N of this process, which the child inherits.
/// Errors: what the child reports, with its kind, hint and context; interrupted (it was killed),
/// not_found (the program is missing), corrupt (it is of another version).
Result<image::TransferResult> transfer(const Context& context, image::TransferRequest request,
                                       const Progress& progress);

/// The same for work on layers that are unpacked.
Result<image::TransferResult> run_layer_work(const Context& context, image::LayerWork work,
                                             const Progress& progress);

/// "512m" → bytes. `what` names the flag or variable.  Errors: usage (what it is not, or too
/// small).
Result<uint64_t> parse_memory_budget(std::string_view what, std::string_view text);

/// Copies a tree: two children with a pipe between them. `output` and `input` are filled.
/// Errors: those of either.
Result<void> transfer_tree(const Context& context, image::ArchiveRequest from,
                           image::ExtractRequest to);

/// "/dev/fd/N", for requests.
std::string descriptor_name(const sys::Fd& fd);

}  // namespace berth::engine
