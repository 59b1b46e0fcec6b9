// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/cdi_hook/arguments.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

/// The root of the container that an engine tells a hook of on its standard input.
/// Errors: corrupt (not a state, no bundle, no config.json with a root), and those of opening it.
/// Source: runtime-spec runtime.md "State".
Result<sys::Fd> open_container_root(std::string_view state);

/// Does what `request` says in the container's root: links, the loader's cache (for musl its path
/// file), NVIDIA's parameters. Starts no program; what the image holds is parsed by a child that
/// can do nothing but that.
Result<void> run_hook(const HookRequest& request, const sys::Fd& root);

/// The bytes of a loader cache that has `entries` before those of `image`, the bytes of the
/// image's: read in a confined child, and taken as none where it cannot be read.
Result<std::string> merge_loader_cache(std::string_view image,
                                       const std::vector<oci::LoaderLine>& entries);

}  // namespace berth::gpu::cdi
