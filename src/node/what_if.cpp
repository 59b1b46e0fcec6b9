// SPDX-License-Identifier: Apache-2.0
#include "node/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "node/archspec.hpp"
#include "node/check.hpp"
#include "scan/cuda_branch.hpp"

namespace berth::node {
namespace {

constexpr std::string_view kNone = "none";

Error no_value(std::string_view form) {
  return make_error(Kind::usage, fmt::format("expected {}", form));
}

Result<void> set_driver(Profile& profile, std::string_view value) {
  profile.driver = {};
  if (value == kNone) return {};
  if (!is_version(value)) return no_value("a version of the driver as '580.65.06', or 'none'");
  profile.driver.module_version = value;
  profile.driver.library_version = value;
  profile.driver.cuda_version = scan::cuda_of_branch(value);
  return {};
}

Result<void> set_cuda(Profile& profile, std::string_view value) {
  if (!is_version(value)) return no_value("a version of CUDA as '12.8'");
  profile.driver.cuda_version = value;
  return {};
}

Result<void> set_gpus(Profile& profile, std::string_view value) {
  profile.gpus.clear();
  if (value == kNone) return {};
  for (std::string_view one : split(value, ',')) {
    auto gpu = gpu_named(one);
    if (!gpu) return no_value("compute capabilities as 'sm_90', AMD's as 'gfx90a', or 'none'");
    profile.gpus.push_back(std::move(*gpu));
  }
  return {};
}

Result<void> set_brand(Profile& profile, std::string_view value) {
  for (NodeGpu& gpu : profile.gpus) {
    if (gpu.vendor == "nvidia") gpu.brand = value;
  }
  return {};
}

Result<void> set_cpu(Profile& profile, std::string_view value) {
  std::string name = TRY(microarchitecture_named(value));
  profile.cpu = {};
  profile.cpu.microarchitecture = name;
  auto architecture = architecture_named(family_of(name));
  if (!architecture.ok() && family_of(name) != "x86") return std::move(architecture).error();
  profile.architecture = architecture.ok() ? *architecture : "386";
  complete(family_of(name), profile.cpu);
  return {};
}

Result<void> set_level(Profile& profile, std::string_view value) {
  auto level = parse_u64(value);
  if (!level || *level < 1 || *level > 4) return no_value("a level of x86-64, 1 to 4");
  return set_cpu(profile, *level == 1 ? "x86_64" : fmt::format("x86_64_v{}", *level));
}

Result<void> set_architecture(Profile& profile, std::string_view value) {
  std::string name = TRY(architecture_named(value));
  if (name != profile.architecture) profile.cpu = {};
  profile.architecture = name;
  return {};
}

Result<void> set_kernel(Profile& profile, std::string_view value) {
  if (!is_kernel_release(value)) return no_value("a release of Linux as '6.1'");
  profile.kernel.release = value;
  return {};
}

Result<void> set_libc(Profile& profile, std::string_view value) {
  auto name = libc_name(value);
  if (!name) return no_value("'glibc-2.36', '2.36' or 'musl'");
  profile.libc = *name;
  return {};
}

Result<void> set_rocm(Profile& profile, std::string_view value) {
  if (!is_version(value)) return no_value("a version of ROCm as '6.2'");
  profile.rocm = value;
  return {};
}

Result<void> set_fabric(Profile& profile, std::string_view value) {
  profile.fabric.clear();
  if (value == kNone) return {};
  for (std::string_view one : split(value, ',')) {
    if (!is_fabric(one)) {
      return no_value("'efa', 'infiniband', 'iwarp', 'opa', 'roce', 'slingshot' or 'none'");
    }
    profile.fabric.emplace_back(one);
  }
  std::ranges::sort(profile.fabric);
  return {};
}

Result<void> set_mpi(Profile& profile, std::string_view value) {
  profile.mpi.clear();
  if (value == kNone) return {};
  auto mpi = mpi_named(value);
  if (!mpi) return no_value("'mpich', 'openmpi' or 'none'");
  profile.mpi.push_back(std::move(*mpi));
  return {};
}

struct Key {
  std::string_view name;
  Result<void> (*set)(Profile&, std::string_view);
};
constexpr std::array kKeys = {
    Key{"driver", set_driver},     Key{"cuda", set_cuda},     Key{"gpu", set_gpus},
    Key{"brand", set_brand},       Key{"cpu", set_cpu},       Key{"level", set_level},
    Key{"arch", set_architecture}, Key{"kernel", set_kernel}, Key{"libc", set_libc},
    Key{"rocm", set_rocm},         Key{"fabric", set_fabric}, Key{"mpi", set_mpi},
};

Error no_key(std::string_view name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const Key& key : kKeys) {
    names.push_back(key.name);
    list += (list.empty() ? "" : ", ") + std::string(key.name);
  }
  auto near = nearest(name, names);
  return make_error(Kind::usage, fmt::format("nodes have no property {}; {}", quote(name),
                                             near ? fmt::format("did you mean '{}'?", *near)
                                                  : fmt::format("expected one of: {}", list)));
}

}  // namespace

Result<Profile> with(Profile profile, std::string_view words) {
  for (std::string_view word : split_blank(words)) {
    size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    auto key = std::ranges::find(kKeys, name, &Key::name);
    if (key == kKeys.end()) return no_key(name);
    std::string_view value =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    if (value.empty()) {
      return make_error(Kind::usage, fmt::format("{}: expected {}=VALUE", quote(word), name));
    }
    auto set = key->set(profile, value);
    if (!set.ok()) {
      Error error = std::move(set).error();
      error.kind = Kind::usage;
      error.what = fmt::format("{}: {}", quote(word), error.what);
      return error;
    }
  }
  return profile;
}

}  // namespace berth::node
