// SPDX-License-Identifier: Apache-2.0
#include "node/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace berth::node {
namespace {

class Comparison {
 public:
  void text(const std::string& member, const std::string& written, const std::string& here) {
    if (!written.empty() && written != here) add(member, written, here);
  }
  void number(const std::string& member, uint64_t written, uint64_t here) {
    if (written != 0 && written != here) {
      add(member, std::to_string(written), std::to_string(here));
    }
  }
  /// The elements that are in only one of two sorted lists.
  void list(const std::string& member, const std::vector<std::string>& written,
            const std::vector<std::string>& here) {
    if (written.empty()) return;
    std::vector<std::string> lost, gained;
    std::set_difference(written.begin(), written.end(), here.begin(), here.end(),
                        std::back_inserter(lost));
    std::set_difference(here.begin(), here.end(), written.begin(), written.end(),
                        std::back_inserter(gained));
    if (!lost.empty() || !gained.empty()) add(member, join(lost, " "), join(gained, " "));
  }
  void add(const std::string& member, std::string written, std::string here) {
    auto or_none = [](std::string text) { return text.empty() ? "none" : std::move(text); };
    out_.push_back({member, or_none(std::move(written)), or_none(std::move(here))});
  }
  std::vector<Difference> take() { return std::move(out_); }

 private:
  std::vector<Difference> out_;
};

void compare_gpus(const Profile& written, const Profile& here, Comparison& comparison) {
  if (written.gpus.size() != here.gpus.size()) {
    comparison.add("gpus", fmt::format("{} of them", written.gpus.size()),
                   fmt::format("{} of them", here.gpus.size()));
    return;
  }
  for (size_t i = 0; i < written.gpus.size(); ++i) {
    const NodeGpu& a = written.gpus[i];
    const NodeGpu& b = here.gpus[i];
    std::string member = fmt::format("gpus[{}].", i);
    comparison.text(member + "vendor", a.vendor, b.vendor);
    comparison.text(member + "model", a.model, b.model);
    comparison.text(member + "uuid", a.uuid, b.uuid);
    comparison.text(member + "compute_capability", a.compute_capability, b.compute_capability);
    comparison.text(member + "architecture", a.architecture, b.architecture);
    comparison.text(member + "brand", a.brand, b.brand);
    comparison.number(member + "memory_bytes", a.memory_bytes.value_or(0),
                      b.memory_bytes.value_or(0));
    if (a.mig && !b.mig) comparison.add(member + "mig", "on", "off");
    std::string slices = join(a.mig_profiles, " ");
    comparison.text(member + "mig_profiles", slices, join(b.mig_profiles, " "));
  }
}

std::string names_of(const std::vector<Mpi>& libraries) {
  std::vector<std::string> names;
  for (const Mpi& mpi : libraries) {
    names.push_back(mpi.family + (mpi.soname.empty() ? "" : " (" + mpi.soname + ")"));
  }
  return join(names, ", ");
}

}  // namespace

std::vector<Difference> differences(const Profile& written, const Profile& here) {
  Comparison comparison;
  comparison.text("architecture", written.architecture, here.architecture);
  comparison.text("os", written.os, here.os);
  comparison.text("cpu.vendor", written.cpu.vendor, here.cpu.vendor);
  comparison.text("cpu.model", written.cpu.model, here.cpu.model);
  comparison.text("cpu.microarchitecture", written.cpu.microarchitecture,
                  here.cpu.microarchitecture);
  comparison.number("cpu.level", written.cpu.level, here.cpu.level);
  comparison.list("cpu.features", written.cpu.features, here.cpu.features);
  comparison.text("cpu.part", written.cpu.part, here.cpu.part);
  comparison.text("kernel.release", written.kernel.release, here.kernel.release);
  comparison.list("kernel.abilities", written.kernel.abilities, here.kernel.abilities);
  comparison.text("libc", written.libc, here.libc);
  comparison.text("driver.module_version", written.driver.module_version,
                  here.driver.module_version);
  comparison.text("driver.library_version", written.driver.library_version,
                  here.driver.library_version);
  comparison.text("driver.cuda_version", written.driver.cuda_version, here.driver.cuda_version);
  comparison.text("driver.glibc_needed", written.driver.glibc_needed, here.driver.glibc_needed);
  compare_gpus(written, here, comparison);
  comparison.text("rocm", written.rocm, here.rocm);
  comparison.list("fabric", written.fabric, here.fabric);
  comparison.text("mpi", names_of(written.mpi), names_of(here.mpi));
  return comparison.take();
}

}  // namespace berth::node
