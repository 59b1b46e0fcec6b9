// SPDX-License-Identifier: Apache-2.0
#include "scan/cuda_branch.hpp"

#include <array>
#include <cstdint>
#include <utility>

#include "base/text.hpp"

namespace berth::scan {
namespace {

constexpr std::array<std::pair<uint64_t, const char*>, 34> kCudaOfBranch = {{
    {340, "6.5"},  {346, "7.0"},  {352, "7.5"},  {361, "8.0"},  {367, "8.0"},  {375, "8.0"},
    {384, "9.0"},  {387, "9.1"},  {390, "9.1"},  {396, "9.2"},  {410, "10.0"}, {418, "10.1"},
    {440, "10.2"}, {450, "11.0"}, {455, "11.1"}, {460, "11.2"}, {465, "11.3"}, {470, "11.4"},
    {495, "11.5"}, {510, "11.6"}, {515, "11.7"}, {520, "11.8"}, {525, "12.0"}, {530, "12.1"},
    {535, "12.2"}, {545, "12.3"}, {550, "12.4"}, {555, "12.5"}, {560, "12.6"}, {565, "12.7"},
    {570, "12.8"}, {575, "12.9"}, {580, "13.0"}, {590, "13.1"},
}};

}  // namespace

std::string cuda_of_branch(std::string_view driver_version) {
  auto branch = parse_u64(driver_version.substr(0, driver_version.find('.')));
  for (const auto& [number, cuda] : kCudaOfBranch) {
    if (branch == number) return cuda;
  }
  return {};
}

}  // namespace berth::scan
