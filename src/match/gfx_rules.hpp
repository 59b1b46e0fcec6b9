// SPDX-License-Identifier: Apache-2.0
// AMD's processors, and the generic ones: their code runs on several.
// Source: LLVM docs/AMDGPUUsage.rst, "AMDGPU Generic Processors", "Generic Processor Versioning"
// (of all generic processors there is one version so far, with which each of its GPUs was added).
#pragma once

#include <string_view>

namespace berth::match {

/// Whether `name` is one of the generic processors: "gfx9-generic".
bool is_generic_processor(std::string_view name);

/// Whether a GPU with the processor `gpu` ("gfx906") runs code for `code`, both without features.
bool runs_code_for(std::string_view gpu, std::string_view code);

}  // namespace berth::match
