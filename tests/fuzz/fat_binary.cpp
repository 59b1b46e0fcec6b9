// SPDX-License-Identifier: Apache-2.0
#include "facts/fat_binary.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "facts/amd_code.hpp"
#include "facts/link_inputs.hpp"
#include "facts/offload_binary.hpp"
#include "facts/ptx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  scan::ReadAt read_at = [&](uint64_t offset, size_t length) -> Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(bytes.substr(static_cast<size_t>(offset), length));
  };
  facts::FoundCode cuda, hip, openmp, bundle, file, archive, object;
  ignore(facts::read_fat_binaries(read_at, 0, size, cuda));
  ignore(facts::read_offload_bundles(read_at, 0, size, hip));
  ignore(facts::read_offload_binaries(read_at, 0, size, openmp));
  ignore(facts::read_bundle_file(read_at, bundle));
  ignore(facts::read_fat_binary_file(read_at, file));
  ignore(facts::read_archive(read_at, archive));
  // Inside of a file, as members of archives are.
  ignore(facts::read_object(read_at, size / 16, size - size / 8, object));
  static_cast<void>(facts::ptx_target(bytes));
  auto target = facts::code_object_target(bytes);
  if (target && !target->arch.starts_with("gfx")) __builtin_trap();
  return 0;
}
