// SPDX-License-Identifier: Apache-2.0
// docs/variants.md shows the tables of drivers, CUDA versions, PTX and GPUs as the judge has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "match/cuda_rules.hpp"

namespace berth::match {
namespace {

/// The compute capabilities of CUDA's toolkits since 6.5, without the point.
constexpr std::array<std::string_view, 22> kCapabilities = {
    "35", "37", "50", "52", "53", "60",  "61",  "62",  "70",  "72",  "75",
    "80", "86", "87", "89", "90", "100", "101", "103", "110", "120", "121"};

std::string with_point(std::string_view digits) {
  return fmt::format("{}.{}", digits.substr(0, digits.size() - 1), digits.back());
}

std::string drivers_table() {
  std::string out =
      "| CUDA | Branch | First driver | Oldest driver for programs of this CUDA | PTX |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const CudaDriver& row : kCudaDrivers) {
    auto ptx = std::ranges::find(kPtxVersions, row.cuda, &PtxVersion::cuda);
    out += fmt::format("| {} | {} | {} | {} | {} |\n", row.cuda, branch_of(row.driver), row.driver,
                       oldest_driver(row.cuda), ptx == kPtxVersions.end() ? "" : ptx->ptx);
  }
  return out;
}

std::string ptx_table() {
  std::string out =
      "| PTX | CUDA | Oldest driver that compiles it |\n"
      "| --- | --- | --- |\n";
  for (const PtxVersion& row : kPtxVersions) {
    out += fmt::format("| {} | {} | {} |\n", row.ptx, row.cuda, driver_of_ptx(row.ptx));
  }
  return out;
}

/// The targets with `suffix` that have code for a GPU: "`sm_80` `sm_86`".
std::string targets_for(const node::NodeGpu& gpu, facts::GpuCode::Kind kind,
                        std::string_view suffix) {
  std::string out;
  for (std::string_view digits : kCapabilities) {
    // NVIDIA has code for one architecture since 9.0, and for a family since 10.0.
    if (suffix == "a" && digits.size() < 3 && digits != "90") continue;
    if (suffix == "f" && digits.size() < 3) continue;
    std::vector<facts::GpuCode> code = {{kind, fmt::format("{}{}", digits, suffix), {}}};
    if (best_fit(code, gpu, {}).code_class == CodeClass::none) continue;
    out += fmt::format("{}`{}_{}{}`", out.empty() ? "" : " ",
                       kind == facts::GpuCode::Kind::sass ? "sm" : "compute", digits, suffix);
  }
  return out;
}

std::string gpus_table() {
  using Kind = facts::GpuCode::Kind;
  std::string out =
      "| GPU | Code of its generation | Code of its family | Code for it alone | PTX |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (std::string_view digits : kCapabilities) {
    node::NodeGpu gpu;
    gpu.vendor = "nvidia";
    gpu.compute_capability = with_point(digits);
    std::string ptx = targets_for(gpu, Kind::ptx, "");
    std::string newest = ptx.substr(ptx.rfind('`', ptx.size() - 2));
    out += fmt::format("| {}{} | {} | {} | {} | up to {} |\n", gpu.compute_capability,
                       is_tegra(gpu.compute_capability) ? ", Tegra" : "",
                       targets_for(gpu, Kind::sass, ""), targets_for(gpu, Kind::sass, "f"),
                       targets_for(gpu, Kind::sass, "a"), newest);
  }
  return out;
}

TEST(CudaTables, are_those_in_the_documentation) {
  const std::string path = BERTH_TEST_DATA "/../../docs/variants.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  std::string text = read.str();
  bool accept = std::getenv("BERTH_ACCEPT") != nullptr;
  for (const auto& [name, table] :
       {std::pair("drivers", drivers_table()), {"ptx", ptx_table()}, {"gpus", gpus_table()}}) {
    std::string begin_mark = fmt::format("<!-- table of {} -->\n", name);
    size_t begin = text.find(begin_mark);
    ASSERT_NE(begin, std::string::npos) << name;
    begin += begin_mark.size();
    size_t end = text.find("<!-- end of table -->\n", begin);
    ASSERT_NE(end, std::string::npos) << name;
    if (accept) {
      text.replace(begin, end - begin, table);
    } else {
      EXPECT_EQ(text.substr(begin, end - begin), table) << "BERTH_ACCEPT=1 writes it";
    }
  }
  if (accept) std::ofstream(path) << text;
}

}  // namespace
}  // namespace berth::match
