// SPDX-License-Identifier: Apache-2.0
#include "facts/isa.hpp"

#include <algorithm>
#include <bit>

#include "base/text.hpp"
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

/// Removes a text with its varint length from the front of `bytes` and returns the text; empty if
/// the length is too large.
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

}  // namespace

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

}  // namespace berth::facts
