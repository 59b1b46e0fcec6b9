// SPDX-License-Identifier: Apache-2.0
#include "facts/program_code.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "facts/offload_binary.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

// An entry of .nvFatBinSegment, by which a program registers a fat binary: magic, version, address
// of the fat binary, and another address.
constexpr uint64_t kWrapperMagic = 0x4662'43b1, kLinkedWrapper = 2;
constexpr uint64_t kWrapper = 24, kWrapperData = 8;
// NCCL has 130 containers of code to link, with one set of targets.
constexpr size_t kMaxParts = 64, kMaxWrappers = 100'000;

/// "90a" → 90. A target without a number is 0.
unsigned number_of(const GpuCode& code) {
  unsigned number = 0;
  std::from_chars(code.arch.data(), code.arch.data() + code.arch.size(), number);
  return number;
}

/// Whether `code` runs on the GPU that `wanted` is for, and as well: PTX is no replacement for a
/// code object, as the driver has to understand its version.
bool covers(const GpuCode& code, const GpuCode& wanted) {
  if (code == wanted) return true;
  if (code.kind == GpuCode::Kind::gfx) return false;
  constexpr unsigned kMinors = 10;
  unsigned has = number_of(code), needs = number_of(wanted);
  bool same_major = has / kMinors == needs / kMinors;
  if (code.arch.ends_with('a')) return code.kind <= wanted.kind && has == needs;
  if (code.kind == GpuCode::Kind::sass || code.arch.ends_with('f')) {
    return code.kind <= wanted.kind && same_major && has <= needs;
  }
  return code.kind == GpuCode::Kind::ptx && wanted.kind == GpuCode::Kind::ptx && has <= needs;
}

bool runs_at_all(const GpuCode& code) {
  return code.kind != GpuCode::Kind::ir;
}

class Program {
 public:
  Program(const scan::ElfFile& elf, const scan::ReadAt& read_at) : elf_(elf), read_at_(read_at) {}

  Result<ProgramCode> read();

 private:
  using Sections = std::vector<const scan::ElfSection*>;
  Sections sections() const;
  Result<void> find_linked(const Sections& sections);
  Result<void> read_section(const scan::ElfSection& section);
  CodePiece choose() const;

  const scan::ElfFile& elf_;
  const scan::ReadAt& read_at_;
  FoundCode found_;
  std::set<uint64_t> linked_at_;  ///< offsets of the containers that the linker made
  CodePiece own_;                 ///< of the other containers
  CodePiece linked_;
  std::map<std::set<GpuCode>, CodePiece> parts_;  ///< what `linked_` was made of
};

// Sections are sorted by offset and each byte is read once: a hostile table may name the same bytes
// many times.
Program::Sections Program::sections() const {
  Sections found;
  for (const scan::ElfSection& section : elf_.sections) {
    bool holds = section.name == ".nv_fatbin" || section.name == "__nv_relfatbin" ||
                 section.name == ".hip_fatbin" || section.name == ".llvm.offloading" ||
                 section.name == ".nvFatBinSegment";
    if (holds && section.type != scan::kSectionNoBits && section.size != 0) {
      found.push_back(&section);
    }
  }
  std::ranges::sort(
      found, [](const auto* left, const auto* right) { return left->offset < right->offset; });
  uint64_t end = 0;
  std::erase_if(found, [&](const auto* section) {
    if (section->offset < end) return true;
    end = section->offset + section->size;
    return false;
  });
  return found;
}

/// Finds the containers of linked code. The addresses of the table are those of the file without
/// relocations; linkers that leave them empty are not followed, and then nothing is found.
Result<void> Program::find_linked(const Sections& sections) {
  auto holds = [&](uint64_t at) {
    return std::ranges::any_of(sections, [&](const auto* section) {
      return section->name == ".nv_fatbin" && at >= section->offset &&
             at - section->offset < section->size;
    });
  };
  for (const scan::ElfSection* section : sections) {
    if (section->name != ".nvFatBinSegment") continue;
    Window table(read_at_);
    uint64_t count = std::min<uint64_t>(section->size / kWrapper, kMaxWrappers);
    for (uint64_t i = 0; i < count; ++i) {
      std::string_view row = TRY(table.read(section->offset + i * kWrapper, kWrapper));
      if (row.size() < kWrapper || number_at(row, 0, 4) != kWrapperMagic) break;
      if (number_at(row, 4, 4) != kLinkedWrapper) continue;
      auto at = elf_.file_offset(number_at(row, kWrapperData, 8));
      if (at && holds(*at)) linked_at_.insert(*at);
    }
  }
  return {};
}

Result<void> Program::read_section(const scan::ElfSection& section) {
  if (section.name == ".nvFatBinSegment") return {};
  if (section.name == ".hip_fatbin" || section.name == ".llvm.offloading") {
    auto read = section.name == ".hip_fatbin" ? read_offload_bundles : read_offload_binaries;
    FoundCode found;
    TRY(read(read_at_, section.offset, section.size, found));
    own_.add(found);
    return {};
  }
  bool to_link = section.name == "__nv_relfatbin";
  return read_fat_binaries(
      read_at_, section.offset, section.size, found_, [&](uint64_t at, const CodePiece& piece) {
        if (!to_link) {
          (linked_at_.contains(at) ? linked_ : own_).add(piece);
        } else if (std::ranges::any_of(piece.code, runs_at_all) &&
                   (parts_.size() < kMaxParts || parts_.contains(piece.code))) {
          parts_[piece.code].add(piece);
        }
      });
}

/// The code of the modules that the program registers. A linked module without parts is the empty
/// code object that nvcc adds to every program; parts without a linked module, beside other code,
/// are a library that nothing in the program uses.
CodePiece Program::choose() const {
  if (parts_.empty()) return own_.code.empty() ? linked_ : own_;
  if (!own_.code.empty() && linked_.code.empty() && !linked_at_.empty()) return own_;
  std::vector<CodePiece> parts;
  for (const auto& [code, piece] : parts_) parts.push_back(piece);
  CodePiece together = code_of_all(parts);
  // The driver links the parts only where the linker made no code.
  if (!linked_.code.empty()) together.zstd = linked_.zstd;
  together.add(linked_);
  if (own_.code.empty()) return together;
  if (!linked_at_.empty()) return code_of_all({own_, together});
  together.add(own_);  // which of it was made by the linker is not known
  return together;
}

Result<ProgramCode> Program::read() {
  Sections all = sections();
  TRY(find_linked(all));
  for (const scan::ElfSection* section : all) TRY(read_section(*section));
  ProgramCode code;
  code.runs = choose();
  found_.add(own_);  // of AMD's GPUs
  std::ranges::set_difference(found_.code, code.runs.code,
                              std::inserter(code.linked, code.linked.end()));
  return code;
}

}  // namespace

CodePiece code_of_all(const std::vector<CodePiece>& pieces) {
  auto is_ptx = [](const GpuCode& code) { return code.kind == GpuCode::Kind::ptx; };
  CodePiece all, common;
  for (const CodePiece& piece : pieces) {
    all.add(piece);
    for (const GpuCode& code : piece.code) {
      auto covered_by = [&](const CodePiece& other) {
        // Code objects alone do not run on the later GPUs that PTX is for.
        if (is_ptx(code) && std::ranges::none_of(other.code, is_ptx)) return false;
        return std::ranges::any_of(
            other.code, [&](const GpuCode& candidate) { return covers(candidate, code); });
      };
      if (runs_at_all(code) && std::ranges::all_of(pieces, covered_by)) common.code.insert(code);
    }
  }
  if (common.code.empty()) return all;
  common.zstd = all.zstd;
  common.toolkit = all.toolkit;
  return common;
}

Result<ProgramCode> read_program_code(const scan::ElfFile& elf, const scan::ReadAt& read_at) {
  return Program(elf, read_at).read();
}

}  // namespace berth::facts
