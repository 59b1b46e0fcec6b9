// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth::scan {

enum class ElfClass { elf32, elf64 };

/// The values of e_machine that have a name in Berth. elf.h
inline constexpr uint16_t kMachine386 = 3, kMachineArm = 40, kMachineX86_64 = 62,
                          kMachineAarch64 = 183;

struct ElfNote {
  std::string section;  ///< ".note.cuda.fwd_compatibility"; empty for a note found by segment
  std::string owner;    ///< "GNU", without its final zero byte
  uint32_t type = 0;
  std::string content;
};

/// Values of p_type and sh_type.  elf.h
inline constexpr uint32_t kSegmentLoad = 1, kSegmentDynamic = 2, kSegmentInterpreter = 3,
                          kSegmentNote = 4, kSectionNote = 7, kSectionNoBits = 8;

struct ElfSegment {
  uint32_t type = 0;
  uint64_t address = 0, offset = 0, alignment = 0;
  uint64_t size = 0;  ///< in the file
};

struct ElfSection {
  std::string name;  ///< empty if the table of names is invalid
  uint32_t type = 0;
  uint64_t address = 0, offset = 0, size = 0, alignment = 0;
};

/// The parts of a program or shared library that Berth needs.
struct ElfFile {
  ElfClass elf_class = ElfClass::elf64;
  uint16_t machine = 0;
  uint16_t type = 0;  ///< 2 executable, 3 shared object
  uint64_t entry = 0;
  std::string interpreter;          ///< of PT_INTERP
  std::string soname;               ///< empty when there is none
  std::vector<std::string> needed;  ///< in the order of the dynamic section
  std::vector<ElfNote> notes;
  std::string rpath;  ///< of DT_RPATH and DT_RUNPATH, unexpanded: "$ORIGIN/../lib:/opt"
  std::string runpath;
  std::vector<ElfSegment> segments;
  std::vector<ElfSection> sections;
  std::vector<std::pair<uint64_t, uint64_t>> dynamic;  ///< tags and values, without DT_NULL

  /// The file offset of `address`; nothing if the address is not in the file.
  std::optional<uint64_t> file_offset(uint64_t address) const;
  /// The value of the first entry with this tag.
  std::optional<uint64_t> dynamic_value(uint64_t tag) const;
};

/// Returns up to `length` bytes from `offset`; fewer only at the end of the file.
using ReadAt = std::function<Result<std::string>(uint64_t offset, size_t length)>;

/// Reads the headers, the dynamic section and the notes, not the whole file.
/// Errors: unsupported (not ELF, or big-endian), corrupt (a table beyond the file, or larger than
/// any linker writes), and those of `read_at`.  elf(5)
Result<ElfFile> read_elf(const ReadAt& read_at);
Result<ElfFile> read_elf(std::string_view bytes);

}  // namespace berth::scan
