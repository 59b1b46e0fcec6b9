// SPDX-License-Identifier: Apache-2.0
#include "facts/file_facts.hpp"

#include <algorithm>

#include "facts/fat_binary.hpp"
#include "facts/isa.hpp"
#include "facts/versions.hpp"
#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr uint16_t kExecutable = 2, kShared = 3;
constexpr uint64_t kFlags1 = 0x6fff'fffb, kPie = 0x0800'0000;  // DT_FLAGS_1, DF_1_PIE
constexpr std::string_view kElf =
    "\x7f"
    "ELF";

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

Result<void> read_gpu_code(const scan::ElfFile& elf, const scan::ReadAt& read_at,
                           FileFacts& facts) {
  // By offset, each byte once: a hostile table may name one place many times.
  std::vector<const scan::ElfSection*> sections;
  for (const scan::ElfSection& section : elf.sections) {
    bool holds = section.name == ".nv_fatbin" || section.name == "__nv_relfatbin" ||
                 section.name == ".hip_fatbin";
    if (holds && section.type != scan::kSectionNoBits && section.size != 0) {
      sections.push_back(&section);
    }
  }
  std::ranges::sort(
      sections, [](const auto* left, const auto* right) { return left->offset < right->offset; });
  FoundCode found;
  uint64_t end = 0;
  for (const scan::ElfSection* section : sections) {
    if (section->offset < end) continue;
    auto read = section->name == ".hip_fatbin" ? read_offload_bundles : read_fat_binaries;
    TRY(read(read_at, section->offset, section->size, found));
    end = section->offset + section->size;
  }
  facts.gpu_code.assign(found.code.begin(), found.code.end());
  facts.zstd_code = found.zstd;
  return {};
}

}  // namespace

bool begins_like_elf(std::string_view first_bytes) {
  return first_bytes.starts_with(kElf);
}

Result<std::optional<FileFacts>> read_file_facts(const scan::ReadAt& read_at, std::string path,
                                                 const CodeLook& look) {
  std::optional<FileFacts> none;
  std::string header = TRY(read_at(0, 64));
  constexpr char kLittleEndian = 1;
  if (header.size() < 52 || !header.starts_with(kElf) || header[5] != kLittleEndian) return none;
  FileFacts facts;
  facts.path = std::move(path);
  auto machine = static_cast<uint16_t>(number_at(header, 18, 2));
  facts.machine = machine_name(machine);
  if (machine == kMachineCuda) {
    // Its tables list kernels, by the thousands.
    auto target = TRY(read_cubin(read_at));
    if (!target) return none;
    facts.gpu_code.push_back(std::move(*target));
    return std::optional<FileFacts>(std::move(facts));
  }
  auto type = static_cast<uint16_t>(number_at(header, 16, 2));
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
