// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gpu/cdi_hook/arguments.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu::cdi {

/// The root of a container, from the state that an engine passes to a hook on its standard input.
/// Errors: corrupt (not a state, no bundle, no config.json with a root), and those of opening it.
/// Source: runtime-spec runtime.md "State".
Result<sys::Fd> open_container_root(std::string_view state);

/// Carries out `request` in the container's root: links, the loader's cache (for musl its path
/// file), NVIDIA's parameters. Starts no program; a child that can do nothing else parses the
/// image's files.
Result<void> run_hook(const HookRequest& request, const sys::Fd& root);

/// A loader cache that has `entries` before those of `image`, the image's cache: a confined child
/// reads it; an unreadable one counts as empty.
Result<std::string> merge_loader_cache(std::string_view image,
                                       const std::vector<oci::LoaderLine>& entries);

}  // namespace berth::gpu::cdi
