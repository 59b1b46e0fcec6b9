// SPDX-License-Identifier: Apache-2.0
// Small files for the parsers of facts, byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scan/elf.hpp"

namespace berth::facts {

template <class T>
void put(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Of a program with these sections and nothing else: (name, content). Contents are one after
/// another from byte 64 on.
inline std::string elf_with(const std::vector<std::pair<std::string, std::string>>& sections,
                            uint16_t type = 2, uint16_t machine = scan::kMachineX86_64,
                            uint32_t section_type = 1) {
  std::string out(64, '\0'), names(1, '\0'), table(64, '\0');
  std::memcpy(out.data(),
              "\x7f"
              "ELF\2\1\1",
              7);
  put<uint16_t>(out, 16, type);
  put<uint16_t>(out, 18, machine);
  put<uint64_t>(out, 24, 0x401000);
  auto add = [&](const std::string& name, uint32_t kind, const std::string& content) {
    std::string row(64, '\0');
    put<uint32_t>(row, 0, static_cast<uint32_t>(names.size()));
    put<uint32_t>(row, 4, kind);
    put<uint64_t>(row, 8, 2);  // SHF_ALLOC
    put<uint64_t>(row, 24, out.size());
    put<uint64_t>(row, 32, content.size());
    put<uint64_t>(row, 48, 8);
    names += name + '\0';
    out += content;
    out.resize((out.size() + 7) / 8 * 8);
    table += row;
  };
  for (const auto& [name, content] : sections) add(name, section_type, content);
  std::string shown = names + ".shstrtab" + '\0';
  add(".shstrtab", 3, shown);
  put<uint64_t>(out, 40, out.size());
  put<uint16_t>(out, 58, 64);
  put<uint16_t>(out, 60, static_cast<uint16_t>(table.size() / 64));
  put<uint16_t>(out, 62, static_cast<uint16_t>(table.size() / 64 - 1));
  return out + table;
}

struct MemberText {
  uint16_t kind = 2;  ///< 1 PTX, 2 cubin
  uint32_t arch = 80;
  uint64_t flags = 0x11;
  std::string payload = std::string(8, '\0');
  std::pair<uint16_t, uint16_t> version = {1, 7};  ///< major, minor
  uint32_t header_size = 64;
  uint32_t packed_size = 0;
};

inline std::string member(const MemberText& m) {
  std::string out(m.header_size, '\0');
  put<uint16_t>(out, 0, m.kind);
  put<uint16_t>(out, 2, 0x101);
  put<uint32_t>(out, 4, m.header_size);
  put<uint64_t>(out, 8, m.payload.size());
  put<uint32_t>(out, 16, m.packed_size);
  put<uint16_t>(out, 24, m.version.second);
  put<uint16_t>(out, 26, m.version.first);
  put<uint32_t>(out, 28, m.arch);
  put<uint64_t>(out, 40, m.flags);
  return out + m.payload;
}

inline std::string container(const std::string& members) {
  return raw<uint32_t>(0xba55ed50) + raw<uint16_t>(1) + raw<uint16_t>(16) +
         raw<uint64_t>(members.size()) + members;
}

/// The header of a cubin. `version` is 124 for CUDA 12.4, up to ABI version 7.
inline std::string cubin(uint8_t abi, uint32_t flags, uint32_t version = 1) {
  std::string out(64, '\0');
  std::memcpy(out.data(),
              "\x7f"
              "ELF\2\1\1",
              7);
  out[7] = abi == 7 ? 0x33 : 0x41;
  out[8] = static_cast<char>(abi);
  put<uint16_t>(out, 16, 2);
  put<uint16_t>(out, 18, 190);
  put<uint32_t>(out, 20, version);
  put<uint32_t>(out, 48, flags);
  return out;
}

/// An archive of (name, content), as ar writes it.
inline std::string archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out = "!<arch>\n";
  for (const auto& [name, content] : members) {
    std::string header(60, ' ');
    header.replace(0, name.size() + 1, name + "/");
    std::string size = std::to_string(content.size());
    header.replace(48, size.size(), size);
    header.replace(58, 2, "`\n");
    out += header + content;
    if (content.size() % 2 != 0) out += '\n';
  }
  return out;
}

inline scan::ReadAt reader(const std::string& bytes) {
  return [&bytes](uint64_t offset, size_t length) -> Result<std::string> {
    return offset < bytes.size() ? bytes.substr(static_cast<size_t>(offset), length)
                                 : std::string();
  };
}

}  // namespace berth::facts
