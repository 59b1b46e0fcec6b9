// SPDX-License-Identifier: Apache-2.0
#include "facts/amd_code.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "facts/window.hpp"

namespace berth::facts {
namespace {

/// EF_AMDGPU_MACH of the processors that ROCm's runtime loads code for.
constexpr std::array<std::pair<uint8_t, std::string_view>, 58> kProcessors = {
    {{0x22, "gfx700"},         {0x23, "gfx701"},          {0x24, "gfx702"},
     {0x25, "gfx703"},         {0x26, "gfx704"},          {0x3b, "gfx705"},
     {0x28, "gfx801"},         {0x29, "gfx802"},          {0x2a, "gfx803"},
     {0x3c, "gfx805"},         {0x2b, "gfx810"},          {0x2c, "gfx900"},
     {0x2d, "gfx902"},         {0x2e, "gfx904"},          {0x2f, "gfx906"},
     {0x30, "gfx908"},         {0x31, "gfx909"},          {0x3f, "gfx90a"},
     {0x32, "gfx90c"},         {0x40, "gfx940"},          {0x4b, "gfx941"},
     {0x4c, "gfx942"},         {0x4f, "gfx950"},          {0x33, "gfx1010"},
     {0x34, "gfx1011"},        {0x35, "gfx1012"},         {0x42, "gfx1013"},
     {0x36, "gfx1030"},        {0x37, "gfx1031"},         {0x38, "gfx1032"},
     {0x39, "gfx1033"},        {0x3e, "gfx1034"},         {0x3d, "gfx1035"},
     {0x45, "gfx1036"},        {0x41, "gfx1100"},         {0x46, "gfx1101"},
     {0x47, "gfx1102"},        {0x44, "gfx1103"},         {0x43, "gfx1150"},
     {0x4a, "gfx1151"},        {0x55, "gfx1152"},         {0x58, "gfx1153"},
     {0x5d, "gfx1170"},        {0x5e, "gfx1171"},         {0x5c, "gfx1172"},
     {0x48, "gfx1200"},        {0x4e, "gfx1201"},         {0x49, "gfx1250"},
     {0x5a, "gfx1251"},        {0x50, "gfx1310"},         {0x51, "gfx9-generic"},
     {0x5f, "gfx9-4-generic"}, {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"},
     {0x54, "gfx11-generic"},  {0x59, "gfx12-generic"},   {0x5b, "gfx12-5-generic"},
     {0x62, "gfx11-7-generic"}}};

/// The setting of a feature since version 4: 0 unsupported, 1 any, 2 off, 3 on.
std::string_view setting(uint64_t bits) {
  return bits == 2 ? "-" : bits == 3 ? "+" : "";
}

}  // namespace

std::optional<GpuCode> code_object_target(std::string_view header) {
  constexpr size_t kHeader = 64;
  bool elf = header.size() >= kHeader && header.starts_with(
                                             "\x7f"
                                             "ELF\2\1");
  if (!elf || number_at(header, 18, 2) != kMachineAmdGpu) return std::nullopt;
  auto abi = static_cast<unsigned char>(header[8]);
  uint64_t flags = number_at(header, 48, 4);
  constexpr unsigned char kVersion3 = 1;
  // Version 2 has the processor in a note. No compiler since LLVM 12 makes it.
  if (abi < kVersion3) return std::nullopt;
  const auto* row =
      std::ranges::find(kProcessors, flags & 0xff, &std::pair<uint8_t, std::string_view>::first);
  if (row == kProcessors.end()) return std::nullopt;
  std::string target(row->second);
  // Version 3 does not tell "on" from "any", and is loaded as "on".
  std::string_view ecc =
      abi == kVersion3 ? ((flags & 0x200) != 0 ? "+" : "") : setting(flags >> 10 & 3);
  std::string_view xnack =
      abi == kVersion3 ? ((flags & 0x100) != 0 ? "+" : "") : setting(flags >> 8 & 3);
  if (!ecc.empty()) target += ":sramecc" + std::string(ecc);
  if (!xnack.empty()) target += ":xnack" + std::string(xnack);
  return GpuCode{GpuCode::Kind::gfx, std::move(target), ""};
}

bool begins_like_bundle(std::string_view first_bytes) {
  // A file's first four bytes are looked at: "CCOB" is the start of a compressed bundle, "__CL"
  // that of a plain one.
  return first_bytes.starts_with("CCOB") || first_bytes.starts_with("__CL");
}

Result<void> read_bundle_file(const scan::ReadAt& read_at, FoundCode& found) {
  // The length of a file is not known here, and one that ends before its bundle does is cut short.
  constexpr uint64_t kNoLimit = UINT64_MAX / 2;
  uint64_t length = TRY(read_first_bundle(read_at, 0, kNoLimit, found));
  if (length == 0) return {};
  std::string last = TRY(read_at(length - 1, 1));
  if (last.empty()) return make_error(Kind::corrupt, "offload bundle: it is longer than its file");
  return {};
}

}  // namespace berth::facts
