// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "facts/facts.hpp"
#include "scan/elf.hpp"

namespace berth::facts {

/// Whether a file that begins like this is worth a look.
bool begins_like_elf(std::string_view first_bytes);

/// The x86-64 level of the instructions that a program always runs; 0: nothing is known.
using CodeLook = std::function<uint32_t(const scan::ElfFile& elf, const scan::ReadAt& read_at)>;

/// What a file says of itself. Its headers and tables are read, never the whole; `path` is taken
/// over. `look` is asked of programs. Nothing for what is no program, library or code object: other
/// files, those that a linker would take, cores, big-endian ones. Errors: corrupt, unsupported (an
/// encoding of code for GPUs), those of `read_at`.
Result<std::optional<FileFacts>> read_file_facts(const scan::ReadAt& read_at, std::string path,
                                                 const CodeLook& look = {});

}  // namespace berth::facts
