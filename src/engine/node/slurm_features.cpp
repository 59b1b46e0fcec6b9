// SPDX-License-Identifier: Apache-2.0
#include "engine/node/slurm_features.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"

namespace berth::engine {
namespace {

// A driver runs programs for all versions from this one up to its own (minor version
// compatibility).
constexpr uint64_t kFirstCuda = 11;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Converts to lower case, and characters with a meaning in Slurm to '_'.
std::string word_of(std::string_view text) {
  std::string word = to_lower(text);
  for (char& c : word) {
    bool plain = is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return word;
}

/// Features in order, without duplicates.
class FeatureWords {
 public:
  void add(std::string_view text) {
    std::string word = word_of(text);
    if (!word.empty() && seen_.insert(word).second) words_.push_back(std::move(word));
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::set<std::string> seen_;
  std::vector<std::string> words_;
};

void add_cpu(const node::Profile& profile, FeatureWords& words) {
  for (uint32_t level = 2; level <= profile.cpu.level; ++level) {
    words.add("x86-64-v" + std::to_string(level));
  }
  words.add(profile.cpu.microarchitecture);
}

void add_driver(const node::NodeDriver& driver, FeatureWords& words) {
  const std::string& version = driver.module_version;
  if (!version.empty()) {
    words.add("nvidia-" + version.substr(0, version.find('.')));
    words.add("nvidia-" + version);
  }
  const std::string& cuda = driver.cuda_version;
  uint64_t major = parse_u64(cuda.substr(0, cuda.find('.'))).value_or(0);
  for (uint64_t one = kFirstCuda; one <= std::min<uint64_t>(major, 99); ++one) {
    words.add("cuda-" + std::to_string(one));
  }
  if (!cuda.empty()) words.add("cuda-" + cuda);
}

void add_gpu(const node::NodeGpu& gpu, FeatureWords& words) {
  std::string capability = gpu.compute_capability;
  std::erase(capability, '.');
  if (!capability.empty()) words.add("sm_" + capability);
  words.add(gpu.architecture);
  words.add(slurm_gpu_type(gpu.model));
  if (gpu.mig) words.add("mig");
}

std::string slice_type(const std::string& model, const std::string& profile) {
  std::string type = slurm_gpu_type(model);
  return (type.empty() ? "mig" : type) + "_" + word_of(profile);
}

std::vector<std::string> paths_of(const gpu::Gpu& gpu, const gpu::MigDevice& slice) {
  std::vector<std::string> paths{gpu.node.path};
  for (const gpu::Node& node : slice.nodes) paths.push_back(node.path);
  return paths;
}

std::string gres_text(const SlurmGres& gres) {
  return "gpu:" + (gres.type.empty() ? "" : gres.type + ":") + std::to_string(gres.count);
}

}  // namespace

std::vector<std::string> slurm_features(const node::Profile& profile) {
  FeatureWords words;
  add_cpu(profile, words);
  add_driver(profile.driver, words);
  for (const node::NodeGpu& gpu : profile.gpus) add_gpu(gpu, words);
  for (const std::string& fabric : profile.fabric) words.add(fabric);
  return words.take();
}

std::string slurm_gpu_type(std::string_view model) {
  constexpr std::array<std::string_view, 6> kMakers = {"nvidia", "amd",      "intel",
                                                       "tesla",  "instinct", "(r)"};
  std::vector<std::string> words;
  std::string before;
  // "NVIDIA A100-SXM4-40GB": the part after the dash is the form factor.
  for (std::string_view word : split_blank(model)) {
    std::string plain = word_of(word.substr(0, word.find('-')));
    if (std::ranges::find(kMakers, to_lower(word)) != kMakers.end()) continue;
    if (std::ranges::any_of(plain, is_digit)) {
      bool is_number = std::ranges::all_of(plain, is_digit);
      return is_number && !before.empty() ? before + "_" + plain : plain;
    }
    words.push_back(plain);
    before = std::move(plain);
  }
  return join(words, "_");
}

std::vector<SlurmGres> slurm_gres(const node::Profile& profile) {
  std::vector<SlurmGres> out;
  auto add = [&](const std::string& type) {
    auto known = std::ranges::find_if(out, [&](const auto& one) { return one.type == type; });
    if (known == out.end()) known = out.insert(out.end(), {type, 0});
    ++known->count;
  };
  for (const node::NodeGpu& gpu : profile.gpus) {
    if (!gpu.mig) add(slurm_gpu_type(gpu.model));
    for (const std::string& slice : gpu.mig_profiles) add(slice_type(gpu.model, slice));
  }
  return out;
}

std::vector<SlurmDevice> slurm_devices(const gpu::Inventory& inventory, const NumaNodes& cores) {
  std::vector<SlurmDevice> out;
  for (const gpu::Gpu& gpu : inventory.gpus) {
    auto beside = gpu.numa_node ? cores.find(*gpu.numa_node) : cores.end();
    std::string numbers = beside == cores.end() ? "" : to_text(beside->second);
    if (!gpu.mig_mode) out.push_back({slurm_gpu_type(gpu.model), {gpu.node.path}, numbers});
    for (const gpu::MigDevice& slice : gpu.mig) {
      if (slice.profile.empty()) continue;  // as in the profile of the node
      out.push_back({slice_type(gpu.model, slice.profile), paths_of(gpu, slice), numbers});
    }
  }
  return out;
}

NumaNodes number_cores(const NumaNodes& processors,
                       const std::map<unsigned, ProcessorPlace>& places) {
  struct Core {
    unsigned package = 0, node = 0, lowest = 0;
    int numa = 0;
    auto operator<=>(const Core&) const = default;
  };
  std::set<Core> cores;
  for (const auto& [numa, numbers] : processors) {
    for (unsigned number : numbers) {
      auto place = places.find(number);
      if (place == places.end() || place->second.core.empty() || place->second.package.empty()) {
        return {};
      }
      cores.insert(
          {*place->second.package.begin(), *numbers.begin(), *place->second.core.begin(), numa});
    }
  }
  NumaNodes out;
  unsigned number = 0;
  for (const Core& core : cores) out[core.numa].insert(number++);
  if (out.size() < 2) return {};
  return out;
}

std::string slurm_conf_line(const SlurmNode& node) {
  std::string line = "NodeName=" + node.name;
  std::vector<std::string> gres;
  for (const SlurmGres& one : node.gres) gres.push_back(gres_text(one));
  if (!gres.empty()) line += " Gres=" + join(gres, ",");
  if (!node.features.empty()) line += " Feature=" + join(node.features, ",");
  return line + "\n";
}

std::string gres_conf_lines(const SlurmNode& node) {
  std::string text;
  for (const SlurmDevice& device : node.devices) {
    text += "NodeName=" + node.name + " Name=gpu";
    if (!device.type.empty()) text += " Type=" + device.type;
    text += (device.files.size() > 1 ? " MultipleFiles=" : " File=") + join(device.files, ",");
    if (!device.cores.empty()) text += " Cores=" + device.cores;
    text += "\n";
  }
  return text;
}

}  // namespace berth::engine
