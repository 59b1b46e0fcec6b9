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

/// Whether a file with these first bytes (four are enough) may be an ELF file or a bundle of GPU
/// code.
bool may_have_facts(std::string_view first_bytes);

/// Determines the x86-64 level of the instructions that a program always runs; 0: unknown.
using CodeLook = std::function<uint32_t(const scan::ElfFile& elf, const scan::ReadAt& read_at)>;

/// The facts about a file. Reads its headers and tables, never the whole file. Calls `look` for
/// programs. Nothing if it is not a program, library, code object or bundle of these (nothing for
/// object files, core dumps and big-endian files). Errors: corrupt, unsupported (an encoding of GPU
/// code), those of `read_at`.
Result<std::optional<FileFacts>> read_file_facts(const scan::ReadAt& read_at, std::string path,
                                                 const CodeLook& look = {});

}  // namespace berth::facts
