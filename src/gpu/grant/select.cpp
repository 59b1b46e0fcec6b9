// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "gpu/grant/pick.hpp"
#include "gpu/grant/traits.hpp"

namespace berth::gpu {
namespace {

using Want = Request::Want;
using Many = std::vector<Selected>;

std::string gpus(size_t count) {
  return count == 1 ? std::string("1 GPU") : fmt::format("{} GPUs", count);
}

bool contains(const Many& many, const Selected& one) {
  return std::ranges::find(many, one) != many.end();
}

void add_once(Many& many, const Selected& one) {
  if (!contains(many, one)) many.push_back(one);
}

/// Whether programs see the parts of the GPU (slices or partitions) as GPUs.
bool is_cut(const Gpu& gpu) {
  return gpu.mig_mode || !gpu.partitions.empty();
}

/// Adds the GPU, or its parts if is_cut().
void add_parts(Many& many, const Gpu& gpu) {
  if (!is_cut(gpu)) add_once(many, {&gpu});
  for (const MigDevice& slice : gpu.mig) add_once(many, {&gpu, &slice});
  for (const Partition& part : gpu.partitions) add_once(many, {&gpu, nullptr, &part});
}

size_t count_of(Vendor vendor, const Inventory& inventory) {
  return static_cast<size_t>(
      std::ranges::count_if(inventory.gpus, [&](const Gpu& gpu) { return gpu.vendor == vendor; }));
}

// An error of find_gpu() without the source of the request, which the caller puts in front.
Error fault(Kind kind, std::string what, std::string hint = "berth gpu list") {
  return make_error(kind, std::move(what), std::move(hint));
}

Error no_such_gpu(Vendor vendor, const Inventory& inventory) {
  return fault(Kind::not_found,
               fmt::format("no such GPU, this machine has {}", gpus(count_of(vendor, inventory))));
}

Result<Selected> whole(const Gpu& gpu) {
  if (!is_cut(gpu)) return Selected{&gpu};
  std::string what =
      gpu.mig_mode ? fmt::format("the GPU is in MIG mode, its {} slices are granted one by one",
                                 gpu.mig.size())
                   : fmt::format("the GPU is in mode {}, its {} partitions are granted one by one",
                                 gpu.compute_partition, gpu.partitions.size());
  return fault(Kind::usage, std::move(what), fmt::format("--gpus device={}:0", gpu.index));
}

Result<Selected> by_index(const std::string& id, Vendor vendor, const Inventory& inventory) {
  size_t colon = id.find(':');
  auto index = parse_u64(id.substr(0, colon));
  auto gpu = std::ranges::find_if(inventory.gpus, [&](const Gpu& one) {
    return one.vendor == vendor && index && one.index == *index;
  });
  if (gpu == inventory.gpus.end()) return no_such_gpu(vendor, inventory);
  if (colon == std::string::npos) return whole(*gpu);
  auto part = parse_u64(id.substr(colon + 1));
  for (const MigDevice& candidate : gpu->mig) {
    if (part == candidate.index) return Selected{&*gpu, &candidate};
  }
  for (const Partition& candidate : gpu->partitions) {
    if (part == candidate.index) return Selected{&*gpu, nullptr, &candidate};
  }
  if (vendor != Vendor::nvidia) {
    return fault(Kind::not_found,
                 fmt::format("GPU {} has {} partitions", *index, gpu->partitions.size()));
  }
  return fault(Kind::not_found, fmt::format("GPU {} has {} MIG slices", *index, gpu->mig.size()));
}

/// The GPUs and slices of `vendor` with an id that starts with `id`. If an id is equal to `id`,
/// only that GPU or slice.
Many by_prefix(const std::string& id, Vendor vendor, const Inventory& inventory) {
  Many matches;
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.vendor != vendor) continue;
    if (!gpu.uuid.empty() && gpu.uuid == id) return {{&gpu, nullptr}};
    if (!gpu.uuid.empty() && gpu.uuid.starts_with(id)) matches.push_back({&gpu, nullptr});
    for (const MigDevice& slice : gpu.mig) {
      // The older form MIG-GPU-<uuid>/<gi>/<ci> is known without NVML.
      std::string legacy =
          fmt::format("MIG-{}/{}/{}", gpu.uuid, slice.gpu_instance, slice.compute_instance);
      bool same = slice.uuid == id || (!gpu.uuid.empty() && legacy == id);
      if (same) return {{&gpu, &slice}};
      if (!slice.uuid.empty() && slice.uuid.starts_with(id)) matches.push_back({&gpu, &slice});
    }
  }
  return matches;
}

Result<Selected> by_uuid(const std::string& id, Vendor vendor, const Inventory& inventory) {
  Many matches = by_prefix(id, vendor, inventory);
  if (matches.size() == 1) {
    const Selected& match = matches.front();
    return match.slice != nullptr ? Result<Selected>(match) : whole(*match.gpu);
  }
  if (matches.size() > 1) {
    return fault(Kind::usage, fmt::format("{} GPUs have an id that starts so", matches.size()),
                 "give more of the id; berth gpu list");
  }
  bool any = std::ranges::any_of(
      inventory.gpus, [&](const Gpu& gpu) { return gpu.vendor == vendor && !gpu.uuid.empty(); });
  if (any && id.starts_with("MIG-GPU-")) {
    return fault(Kind::not_found,
                 "no such slice; this is how drivers before 470 named one, by GPU and instances",
                 "by number, --gpus device=0:0; berth gpu list");
  }
  if (any) return no_such_gpu(vendor, inventory);
  return fault(Kind::not_found, "the driver reports no GPU ids",
               "name it by index: --gpus device=0");
}

const Gpu* by_pci_address(const std::string& id, const Inventory& inventory) {
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.pci_address == to_lower(id)) return &gpu;
  }
  return nullptr;
}

bool is_uuid(std::string_view id) {
  return id.starts_with("GPU-") || id.starts_with("MIG-");
}

Error absent(std::optional<Vendor> vendor, const Inventory& inventory) {
  if (vendor && *vendor != Vendor::nvidia) {
    return make_error(Kind::not_found,
                      fmt::format("this machine has no {} GPU", vendor_name(*vendor)),
                      "berth gpu list");
  }
  if (inventory.driver.module_version.empty()) {
    return make_error(
        Kind::not_found, "no NVIDIA driver is loaded on this machine",
        inventory.driver.library_version.empty() ? "berth doctor gpu" : "modprobe nvidia");
  }
  return make_error(Kind::not_found, "the NVIDIA driver finds no GPU on this machine",
                    "berth doctor gpu");
}

class Selector {
 public:
  Selector(const Request& request, const Inventory& inventory, const Occupancy& occupancy)
      : request_(request), inventory_(inventory), occupancy_(occupancy) {}

  Result<Wanted> wanted();
  Result<Many> run();

 private:
  Many parts(Vendor vendor) const;
  Many not_withheld(Vendor vendor) const;
  Result<Many> within(const Limit& limit, const Many& left) const;
  Result<Selected> one_of(const Limit& limit, const std::string& id, const Many& left) const;
  Result<void> apply_limits();
  Result<Many> with_traits(const Many& many) const;
  Result<Wanted> all() const;
  Result<Wanted> count() const;
  Result<Many> keys() const;
  Result<Many> devices() const;
  Many free_of(const Many& many) const;
  Error taken(const Wanted& wanted, size_t free) const;
  Result<Selected> device(const std::string& id) const;
  bool withheld(const Selected& one) const;
  Error out_of_reach(const std::string& id, const Selected& one) const;
  std::string asked(const std::string& what) const;
  std::string asked_text() const;

  const Request& request_;
  const Inventory& inventory_;
  const Occupancy& occupancy_;
  Vendor vendor_ = Vendor::nvidia;
  Many left_;
  const Limit* narrowest_ = nullptr;
};

/// "--gpus device=0", "NVIDIA_VISIBLE_DEVICES=0,9: '9'".
std::string Selector::asked(const std::string& what) const {
  if (request_.source.empty()) return "--gpus " + escape_controls(what);
  size_t equals = what.find('=');
  std::string id = equals == std::string::npos ? what : what.substr(equals + 1);
  return request_.source + ": " + quote(id);
}

/// The whole request for messages; asked() is about one device.
std::string Selector::asked_text() const {
  if (request_.want == Want::all) return asked("all");
  if (request_.want == Want::count) return asked(std::to_string(request_.count));
  if (!request_.from.empty()) return asked("from:" + request_.from);
  return asked("device=" + join(request_.devices, ","));
}

Many Selector::parts(Vendor vendor) const {
  Many all;
  for (const Gpu& gpu : inventory_.gpus) {
    if (gpu.vendor == vendor) add_parts(all, gpu);
  }
  return all;
}

bool Selector::withheld(const Selected& one) const {
  auto has = [&](const std::string& key) {
    return std::ranges::find(request_.never, key) != request_.never.end();
  };
  return has(key_of({one.gpu})) || has(key_of(one));
}

Many Selector::not_withheld(Vendor vendor) const {
  Many all = parts(vendor), out;
  std::ranges::copy_if(all, std::back_inserter(out),
                       [&](const Selected& one) { return !withheld(one); });
  return out;
}

Result<Selected> Selector::one_of(const Limit& limit, const std::string& id,
                                  const Many& left) const {
  auto index = parse_u64(id);
  if (limit.of_the_rest && index) {
    if (*index < left.size()) return left[static_cast<size_t>(*index)];
    return no_such_gpu(vendor_, inventory_);
  }
  // An index counts partitions, as in ROCm.
  if (vendor_ == Vendor::amd && index) {
    Many all = parts(vendor_);
    if (*index < all.size()) return all[static_cast<size_t>(*index)];
    return no_such_gpu(vendor_, inventory_);
  }
  return find_gpu(id, vendor_, inventory_);
}

Result<Many> Selector::within(const Limit& limit, const Many& left) const {
  Many named;
  for (const std::string& id : limit.ids) {
    auto one = one_of(limit, id, left);
    if (one.ok()) {
      add_once(named, *one);
      continue;
    }
    // The index of a GPU in MIG mode means all of its slices.
    auto index = parse_u64(id);
    const Gpu* gpu = nullptr;
    for (const Gpu& candidate : inventory_.gpus) {
      bool same = candidate.vendor == vendor_ && index && candidate.index == *index;
      if (same && candidate.mig_mode) gpu = &candidate;
    }
    if (gpu != nullptr) {
      add_parts(named, *gpu);
    } else if (limit.rule == Limit::Rule::visible) {
      break;
    } else {
      Error error = std::move(one).error();
      error.what = fmt::format("{}={}: {}: {}", limit.variable, escape_controls(limit.value),
                               quote(id), error.what);
      return error;
    }
  }
  Many out;
  for (const Selected& one : named) {
    if (contains(left, one)) out.push_back(one);
  }
  return out;
}

Result<void> Selector::apply_limits() {
  left_ = not_withheld(vendor_);
  for (const Limit& limit : request_.limits) {
    bool counts =
        limit.vendors.empty() || std::ranges::find(limit.vendors, vendor_) != limit.vendors.end();
    if (!counts) continue;
    left_ = TRY(within(limit, left_));
    narrowest_ = &limit;
  }
  return {};
}

// For messages: "this machine has 8 GPUs", "CUDA_VISIBLE_DEVICES=4,5 leaves 2 GPUs"
std::string reach(const Limit* limit, size_t count) {
  if (limit == nullptr) return "this machine has " + gpus(count);
  return fmt::format("{}={} leaves {}", limit->variable, escape_controls(limit->value),
                     gpus(count));
}

Result<Many> Selector::with_traits(const Many& many) const {
  Many out = many;
  for (const Trait& trait : request_.traits) {
    std::erase_if(out, [&](const Selected& one) { return !has_trait(one, trait); });
    if (!out.empty()) continue;
    return make_error(Kind::not_found,
                      fmt::format("{}: {}, none of them is {}", asked_text(),
                                  reach(narrowest_, many.size()), escape_controls(to_text(trait))),
                      "berth gpu list");
  }
  return out;
}

Result<Wanted> Selector::all() const {
  if (!left_.empty()) {
    Many many = TRY(with_traits(left_));
    return Wanted{many, many.size()};
  }
  if (narrowest_ != nullptr) {
    return make_error(Kind::not_found,
                      fmt::format("{}: {}", asked("all"), reach(narrowest_, size_t{0})),
                      "--gpus none");
  }
  if (!request_.never.empty()) {
    return make_error(Kind::denied, asked("all") + ": the policy of this machine allows no GPU",
                      "berth policy show");
  }
  return make_error(Kind::not_found, asked("all") + ": every GPU is in MIG mode and has no slice",
                    "nvidia-smi mig -cgi 19 -C");
}

Result<Wanted> Selector::count() const {
  Many many = TRY(with_traits(left_));
  if (request_.count <= many.size()) return Wanted{std::move(many), request_.count};
  std::string there = request_.traits.empty() ? reach(narrowest_, many.size())
                                              : gpus(many.size()) + " of this machine match";
  return make_error(Kind::usage,
                    fmt::format("{}: {}", asked(std::to_string(request_.count)), there),
                    "berth gpu list");
}

Result<Many> Selector::keys() const {
  Many out;
  for (const std::string& key : request_.keys) {
    auto same = [&](const Selected& one) { return key_of(one) == key; };
    auto found = std::ranges::find_if(left_, same);
    if (found == left_.end()) {
      return make_error(
          Kind::not_found,
          fmt::format("{}: GPU {} does not exist, or is not accessible", asked_text(), key),
          "berth gpu list");
    }
    add_once(out, *found);
  }
  return out;
}

Many Selector::free_of(const Many& many) const {
  Many out;
  for (const Selected& one : many) {
    if (find_obstacle(occupancy_, key_of(one), request_.exclusive) == nullptr) out.push_back(one);
  }
  return out;
}

/// Names the holders of the wanted GPUs: "GPU 0,1 is held by container 'web' of root, GPU 2 is …".
Error Selector::taken(const Wanted& wanted, size_t free) const {
  constexpr size_t kMost = 4;
  std::vector<std::pair<std::string, std::string>> holders;  // each with its GPUs
  bool outside = false;
  for (const Selected& one : wanted.candidates) {
    const Holding* holding = find_obstacle(occupancy_, key_of(one), request_.exclusive);
    if (holding == nullptr) continue;
    outside = outside || is_outside(*holding);
    auto known = std::ranges::find_if(
        holders, [&](const auto& other) { return other.first == holding->holder; });
    if (known == holders.end()) {
      holders.emplace_back(holding->holder, index_of(one));
    } else {
      known->second += "," + index_of(one);
    }
  }
  size_t more = holders.size() > kMost ? holders.size() - kMost : 0;
  std::vector<std::string> parts;
  for (const auto& [holder, indices] : holders) {
    if (parts.size() < kMost) parts.push_back(fmt::format("GPU {} is held by {}", indices, holder));
  }
  std::string who = join(parts, ", ");
  if (more > 0) who += fmt::format(", the others by {} more", more);
  return make_error(
      Kind::busy,
      fmt::format("{}: {} of {} free: {}", asked_text(), free, gpus(wanted.candidates.size()), who),
      outside ? "--wait-gpus, or berth gpu top" : "--wait-gpus, or berth gpu list");
}

Error Selector::out_of_reach(const std::string& id, const Selected& one) const {
  std::string asked_for = asked("device=" + id);
  if (withheld(one)) {
    return make_error(Kind::denied,
                      asked_for + ": the policy of this machine does not allow this GPU",
                      "berth policy show");
  }
  return make_error(Kind::denied,
                    fmt::format("{}: not one of the GPUs of {}={}", asked_for,
                                narrowest_ != nullptr ? narrowest_->variable : "?",
                                narrowest_ != nullptr ? escape_controls(narrowest_->value) : ""),
                    "--gpus all for those");
}

Result<Selected> Selector::device(const std::string& id) const {
  auto one = find_gpu(id, vendor_, inventory_);
  if (!one.ok()) {
    Error error = std::move(one).error();
    error.what = asked("device=" + id) + ": " + error.what;
    return error;
  }
  if (!contains(left_, *one)) return out_of_reach(id, *one);
  return one;
}

Result<Many> Selector::devices() const {
  Many out;
  for (const std::string& id : request_.devices) add_once(out, TRY(device(id)));
  return out;
}

Result<Wanted> Selector::wanted() {
  if (request_.want == Want::none) return Wanted();
  // With a ledger, the keys of the other container's GPUs have already replaced this request.
  if (request_.want == Want::container) {
    return make_error(Kind::usage, asked_text() + ": only berth run can share a container's GPUs");
  }
  vendor_ = vendor_of(request_, inventory_);
  if (count_of(vendor_, inventory_) == 0) return absent(request_.vendor, inventory_);
  if (request_.want == Want::driver_files) return Wanted();
  TRY(apply_limits());
  if (request_.want == Want::count) return count();
  if (request_.want == Want::all) return all();
  Many named = TRY(request_.want == Want::keys ? keys() : devices());
  return Wanted{named, named.size()};
}

Result<Many> Selector::run() {
  Wanted all = TRY(wanted());
  Many free = free_of(all.candidates);
  if (free.size() < all.count) return taken(all, free.size());
  return pick_least_used(free, all.count, occupancy_);
}

}  // namespace

std::optional<Vendor> vendor_of_cdi_name(std::string_view name) {
  if (name.starts_with("nvidia.com/gpu=")) return Vendor::nvidia;
  if (name.starts_with("amd.com/gpu=")) return Vendor::amd;
  return std::nullopt;
}

std::string id_of_cdi_device(std::string_view device) {
  for (std::string_view word : {"gpu", "mig", "part"}) {
    if (!device.starts_with(word)) continue;
    std::string_view id = device.substr(word.size());
    bool part = word != "gpu";
    bool digits = !id.empty() && id.front() >= '0' && id.front() <= '9';
    if (digits && part == (id.find(':') != std::string_view::npos)) return std::string(id);
  }
  return std::string(device);
}

std::vector<std::string> keys_of(const std::vector<std::string>& names,
                                 const Inventory& inventory) {
  std::vector<std::string> out;
  auto add = [&](std::string key) {
    if (std::ranges::find(out, key) == out.end()) out.push_back(std::move(key));
  };
  for (const std::string& given : names) {
    auto vendor = vendor_of_cdi_name(given);
    std::string name = vendor ? id_of_cdi_device(given.substr(given.find('=') + 1)) : given;
    for (const Gpu& gpu : inventory.gpus) {
      if (vendor && gpu.vendor != *vendor) continue;
      bool whole_gpu = name == gpu.pci_address || name == std::to_string(gpu.index) ||
                       (vendor && name == "all") || (is_uuid(name) && gpu.uuid.starts_with(name));
      if (whole_gpu) add(gpu.pci_address);
    }
    for (Vendor one : {Vendor::nvidia, Vendor::amd}) {
      if (vendor && *vendor != one) continue;
      auto part = find_gpu(name, one, inventory);
      if (part.ok()) add(key_of(*part));
    }
  }
  return out;
}

Result<Selected> find_gpu(const std::string& id, Vendor vendor, const Inventory& inventory) {
  if (is_uuid(id)) return by_uuid(id, vendor, inventory);
  if (const Gpu* gpu = by_pci_address(id, inventory); gpu != nullptr && gpu->vendor == vendor) {
    return whole(*gpu);
  }
  return by_index(id, vendor, inventory);
}

// An id shows its vendor. Otherwise this is the first vendor, in the order of Vendor, that has GPUs
// in the machine.
Vendor vendor_of(const Request& request, const Inventory& inventory) {
  if (request.vendor) return *request.vendor;
  constexpr Vendor kAll[] = {Vendor::nvidia, Vendor::amd, Vendor::intel};
  if (request.want == Want::devices) {
    const std::string& id = request.devices.front();
    if (const Gpu* gpu = by_pci_address(id, inventory)) return gpu->vendor;
    for (Vendor vendor : kAll) {
      if (is_uuid(id) && !by_prefix(id, vendor, inventory).empty()) return vendor;
    }
  }
  for (Vendor vendor : kAll) {
    if (count_of(vendor, inventory) > 0) return vendor;
  }
  return Vendor::nvidia;
}

Result<Wanted> wanted_of(const Request& request, const Inventory& inventory) {
  return Selector(request, inventory, {}).wanted();
}

Result<std::vector<Selected>> select(const Request& request, const Inventory& inventory,
                                     const Occupancy& occupancy) {
  return Selector(request, inventory, occupancy).run();
}

}  // namespace berth::gpu
