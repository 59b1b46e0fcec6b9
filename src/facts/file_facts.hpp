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

/// The number of bytes that may_have_facts() needs.
inline constexpr size_t kFirstBytes = 8;

/// Whether read_file_facts() may find something in the file at `path` that has these first bytes.
bool may_have_facts(std::string_view path, std::string_view first_bytes);

/// Determines the x86-64 level of the instructions that a program always runs; 0: unknown.
using CodeLook = std::function<uint32_t(const scan::ElfFile& elf, const scan::ReadAt& read_at)>;

/// The facts about a file. Reads its headers and tables, never the whole file. Calls `look` for
/// programs. Nothing if it is neither a program nor a library and has no GPU code: core dumps,
/// big-endian files, most object files and archives. Errors: corrupt, unsupported (an encoding of
/// GPU code), those of `read_at`.
Result<std::optional<FileFacts>> read_file_facts(const scan::ReadAt& read_at, std::string path,
                                                 const CodeLook& look = {});

}  // namespace berth::facts
