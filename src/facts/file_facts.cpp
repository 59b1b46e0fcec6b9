// SPDX-License-Identifier: Apache-2.0
#include "facts/file_facts.hpp"

#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "facts/amd_code.hpp"
#include "facts/fat_binary.hpp"
#include "facts/link_inputs.hpp"
#include "facts/offload_binary.hpp"
#include "facts/program_code.hpp"
#include "facts/ptx.hpp"
#include "facts/versions.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr uint32_t kPropertyNote = 5;         // NT_GNU_PROPERTY_TYPE_0
constexpr uint32_t kIsaNeeded = 0xc000'8002;  // GNU_PROPERTY_X86_ISA_1_NEEDED
constexpr size_t kMaxModuleInfo = size_t{1} << 16;
constexpr std::string_view kGoMagic = "\xff Go buildinf:";

size_t aligned(size_t size, size_t to) {
  return (size + to - 1) / to * to;
}

uint32_t level_of_note(std::string_view content, size_t alignment) {
  uint32_t bits = 0;
  for (size_t at = 0; at + 8 <= content.size();) {
    uint64_t type = number_at(content, at, 4), size = number_at(content, at + 4, 4);
    if (size > content.size() - at - 8) break;
    if (type == kIsaNeeded && size == 4)
      bits |= static_cast<uint32_t>(number_at(content, at + 8, 4));
    at += 8 + aligned(static_cast<size_t>(size), alignment);
    if (at > content.size()) break;
  }
  return static_cast<uint32_t>(std::bit_width(bits));
}

/// Removes a string and its varint length from the front of `bytes` and returns the string; empty
/// if the length is too large.
std::string_view take_text(std::string_view& bytes) {
  uint64_t size = 0;
  for (size_t i = 0; i < 5 && i < bytes.size(); ++i) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    size |= uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80U) != 0) continue;
    bytes.remove_prefix(i + 1);
    std::string_view text = bytes.substr(0, static_cast<size_t>(size));
    bytes.remove_prefix(text.size());
    return text;
  }
  bytes = {};
  return {};
}

/// The level in the property notes; glibc's loader refuses a program or library on a lower
/// processor. It is a lower bound, because compilers write "baseline" for higher levels too. Level
/// 0 without such a note.
/// Source: x86-64 psABI "program property", GNU_PROPERTY_X86_ISA_1_NEEDED; glibc
/// sysdeps/x86/dl-prop.h.
IsaNeed isa_of_notes(const scan::ElfFile& elf) {
  if (elf.machine != scan::kMachineX86_64) return {};
  uint32_t level = 0;
  size_t alignment = elf.elf_class == scan::ElfClass::elf64 ? 8 : 4;
  for (const scan::ElfNote& note : elf.notes) {
    if (note.owner != "GNU" || note.type != kPropertyNote) continue;
    level = std::max(level, level_of_note(note.content, alignment));
  }
  return level == 0 ? IsaNeed{} : IsaNeed{level, "note"};
}

/// GOAMD64 of a Go program, which the Go runtime checks at start; level 0 for other programs. Reads
/// the format of Go ≥ 1.18, which introduced GOAMD64. Errors: those of `read_at`.
/// Source: Go debug/buildinfo.
Result<IsaNeed> isa_of_go(const scan::ElfFile& elf, const scan::ReadAt& read_at) {
  if (elf.machine != scan::kMachineX86_64) return IsaNeed{};
  for (const scan::ElfSection& section : elf.sections) {
    if (section.name != ".go.buildinfo" || section.type == scan::kSectionNoBits) continue;
    auto size = static_cast<size_t>(std::min<uint64_t>(section.size, kMaxModuleInfo));
    std::string text = TRY(read_at(section.offset, size));
    std::string_view bytes = text;
    constexpr size_t kHeader = 32;
    constexpr unsigned kInline = 2;
    bool readable = bytes.size() > kHeader && bytes.starts_with(kGoMagic) &&
                    (static_cast<unsigned char>(bytes[15]) & kInline) != 0;
    if (!readable) return IsaNeed{};
    bytes.remove_prefix(kHeader);
    take_text(bytes);  // the version of Go
    std::string_view module = take_text(bytes);
    for (std::string_view line : split(module, '\n')) {
      constexpr std::string_view kSetting = "build\tGOAMD64=v";
      if (!line.starts_with(kSetting)) continue;
      auto level = parse_u64(line.substr(kSetting.size()));
      if (level && *level >= 1 && *level <= 4) {
        return IsaNeed{static_cast<uint32_t>(*level), "go"};
      }
    }
  }
  return IsaNeed{};
}

constexpr uint16_t kExecutable = 2, kShared = 3;
constexpr uint64_t kFlags1 = 0x6fff'fffb, kPie = 0x0800'0000;  // DT_FLAGS_1, DF_1_PIE
constexpr std::string_view kPtxEnding = ".ptx";

std::string machine_name(uint16_t machine) {
  constexpr std::array<std::pair<uint16_t, std::string_view>, 8> kNames = {
      {{scan::kMachineX86_64, "amd64"},
       {scan::kMachineAarch64, "arm64"},
       {scan::kMachine386, "386"},
       {scan::kMachineArm, "arm"},
       {21, "ppc64le"},
       {22, "s390x"},
       {243, "riscv64"},
       {258, "loong64"}}};
  for (const auto& [number, name] : kNames) {
    if (number == machine) return std::string(name);
  }
  return "elf:" + std::to_string(machine);
}

bool is_program(const scan::ElfFile& elf) {
  if (elf.entry == 0) return false;
  bool pie = (elf.dynamic_value(kFlags1).value_or(0) & kPie) != 0;
  return elf.type == kExecutable || pie || !elf.interpreter.empty();
}

using Code = std::vector<GpuCode>;

Result<void> read_gpu_code(const scan::ElfFile& elf, const scan::ReadAt& read_at,
                           FileFacts& facts) {
  ProgramCode found = TRY(read_program_code(elf, read_at));
  facts.gpu_code = Code(found.runs.code.begin(), found.runs.code.end());
  facts.linker_code = Code(found.linked.begin(), found.linked.end());
  facts.zstd_code = found.runs.zstd;
  facts.cuda = toolkit_text(found.runs.toolkit);
  return {};
}

/// A code object that is a file. A relocatable one is an input of a linker.
Result<bool> read_code_object(std::string_view header, const scan::ReadAt& read_at,
                              FileFacts& facts) {
  // The tables of a cubin list kernels, possibly thousands of them.
  auto target = TRY(read_cubin(read_at));
  if (!target) return false;
  bool loads = number_at(header, 16, 2) != kRelocatable;
  (loads ? facts.gpu_code : facts.linker_code).push_back(std::move(*target));
  if (loads) facts.cuda = toolkit_text(cubin_toolkit(header));
  return true;
}

/// Files of PTX, fat binaries, bundles and archives. False: it is none of these, or has no GPU
/// code.
Result<bool> read_without_elf(std::string_view header, const scan::ReadAt& read_at,
                              FileFacts& facts) {
  FoundCode found;
  bool is_bundle = begins_like_bundle(header);
  bool loads = is_bundle || header.starts_with(kFatBinaryMagic);
  facts.machine = is_bundle ? "" : machine_name(kMachineCuda);
  if (loads) {
    TRY(is_bundle ? read_bundle_file(read_at, found) : read_fat_binary_file(read_at, found));
  } else if (header.starts_with(kArchiveMagic)) {
    TRY(read_archive(read_at, found));
  } else if (facts.path.ends_with(kPtxEnding)) {
    constexpr size_t kDirectives = 4096;
    std::string text = TRY(read_at(0, kDirectives));
    auto target = ptx_target(text);
    if (target) found.code.insert(std::move(*target));
    loads = true;
  }
  (loads ? facts.gpu_code : facts.linker_code) = Code(found.code.begin(), found.code.end());
  if (loads) {
    facts.zstd_code = found.zstd;
    facts.cuda = toolkit_text(found.toolkit);
  }
  return !found.code.empty();
}

}  // namespace

bool begins_like_elf(std::string_view first_bytes) {
  return first_bytes.starts_with(kElfMagic);
}

bool may_have_facts(std::string_view path, std::string_view first_bytes) {
  return begins_like_elf(first_bytes) || first_bytes.starts_with(kFatBinaryMagic) ||
         first_bytes.starts_with(kArchiveMagic) || begins_like_bundle(first_bytes) ||
         path.ends_with(kPtxEnding);
}

Result<std::optional<FileFacts>> read_file_facts(const scan::ReadAt& read_at, std::string path,
                                                 const CodeLook& look) {
  std::optional<FileFacts> none;
  std::string header = TRY(read_at(0, 64));
  FileFacts facts;
  facts.path = std::move(path);
  if (!begins_like_elf(header)) {
    bool found = TRY(read_without_elf(header, read_at, facts));
    return found ? std::optional<FileFacts>(std::move(facts)) : none;
  }
  constexpr char kLittleEndian = 1;
  if (header.size() < 52 || header[5] != kLittleEndian) return none;
  auto machine = static_cast<uint16_t>(number_at(header, 18, 2));
  facts.machine = machine_name(machine);
  if (machine == kMachineCuda) {
    bool found = TRY(read_code_object(header, read_at, facts));
    return found ? std::optional<FileFacts>(std::move(facts)) : none;
  }
  if (machine == kMachineAmdGpu) {
    auto target = code_object_target(header);
    if (!target) return none;
    facts.gpu_code.push_back(std::move(*target));
    return std::optional<FileFacts>(std::move(facts));
  }
  auto type = static_cast<uint16_t>(number_at(header, 16, 2));
  if (type == kRelocatable) {
    FoundCode found;
    TRY(read_object(read_at, 0, UINT64_MAX, found));
    facts.linker_code = Code(found.code.begin(), found.code.end());
    return found.code.empty() ? none : std::optional<FileFacts>(std::move(facts));
  }
  if (type != kExecutable && type != kShared) return none;

  scan::ElfFile elf = TRY(scan::read_elf(read_at));
  facts.program = is_program(elf);
  facts.interpreter = elf.interpreter;
  facts.soname = elf.soname;
  facts.needed = elf.needed;
  facts.rpath = elf.rpath;
  facts.runpath = elf.runpath;
  IsaNeed go = TRY(isa_of_go(elf, read_at));
  facts.isa = std::max(isa_of_notes(elf), go);
  if (facts.program && look) {
    uint32_t level = look(elf, read_at);
    if (level > facts.isa.level) facts.isa = {level, "instructions"};
  }
  SymbolVersions versions = TRY(read_symbol_versions(elf, read_at));
  facts.needs = std::move(versions.needs);
  facts.offers = std::move(versions.offers);
  TRY(read_gpu_code(elf, read_at, facts));
  return std::optional<FileFacts>(std::move(facts));
}

}  // namespace berth::facts
