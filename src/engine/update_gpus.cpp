// SPDX-License-Identifier: Apache-2.0
#include "engine/update_gpus.hpp"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "engine/bundle.hpp"
#include "engine/container_directory.hpp"
#include "engine/gpu_placement.hpp"
#include "engine/launch.hpp"
#include "engine/new_container.hpp"
#include "engine/spec.hpp"
#include "gpu/ledger/alive.hpp"
#include "gpu/ledger/ledger.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxConfig = size_t{16} << 20;

/// In the bundle of a container whose files are below.
std::string in_bundle(std::string_view name) {
  return std::string(kBundleDirectory) + "/" + std::string(name);
}

Result<void> check_changeable(const Context& context, const RunRequest& request) {
  const char* why = nullptr;
  if (context.identity != Identity::root) why = "only root's can be given nodes while they run";
  if (request.security.privileged) why = "--privileged gives it every device of the machine";
  if (request.gpu_driver == policy::DriverMode::copy) why = "its driver's files are copies";
  if (request.gpu_memory) why = "--gpu-memory is about those that it has";
  if (why == nullptr) return {};
  return make_error(Kind::unsupported, std::string("change its GPUs while it runs: ") + why,
                    "berth stop, berth update --gpus, berth start");
}

bool has_place(const oci::Spec& spec) {
  const auto& resources = spec.linux_.resources;
  return resources && resources->cpu &&
         (!resources->cpu->cpus.empty() || !resources->cpu->mems.empty());
}

/// Nothing of it is wished for any more.
Result<gpu::HeldLease> give_up(const Context& context, const gpu::LeaseNote& note) {
  gpu::Ledger ledger = TRY(gpu::Ledger::open(note.ledger, context.paths.state));
  gpu::HeldLease held = TRY(ledger.hold_again(note.file, note.lease));
  auto nothing = [](const gpu::Holders&, gpu::Lease& lease) -> Result<void> {
    lease.keys.clear();
    return {};
  };
  TRY(ledger.widen(held, nothing));
  return held;
}

/// Where any container may run.
Result<oci::Cpu> all_places() {
  std::string status = TRY(sys::read_file(sys::cwd(), "/proc/self/status"));
  Allowed allowed = parse_allowed(status);
  oci::Cpu all;
  all.cpus = to_text(allowed.cpus);
  all.mems = to_text(allowed.mems);
  return all;
}

/// One running container, as it is and as it is to be.
class GpuUpdate {
 public:
  GpuUpdate(const Context& context, const ContainerSummary& container, sys::Fd files)
      : context_(context), container_(container), files_(std::move(files)) {}

  Result<void> run(const RunRequest& wanted);

 private:
  Result<void> apply();
  Result<void> settle(gpu::Ledger::Settle how);
  Result<void> write_down();

  const Context& context_;
  const ContainerSummary& container_;
  sys::Fd files_;
  pid_t pid_ = 0;
  oci::Spec spec_;
  Draft draft_;
  gpu::HeldLease lease_;
};

Result<void> GpuUpdate::run(const RunRequest& wanted) {
  std::string config = TRY(sys::read_file(files_, in_bundle("config.json"), kMaxConfig));
  spec_ = TRY(oci::parse_spec(config));
  auto note = TRY(read_lease_note(context_, wanted, container_.id));
  ContainerFiles known = TRY(read_container(context_.paths, container_.id));
  if (!known.record || !known.start) {
    return make_error(Kind::not_found, "no such container: " + container_.id);
  }
  pid_ = known.start->pid;
  image::Image image = TRY(image_of(context_, *known.record, wanted));
  draft_ = TRY(draft_container(context_, wanted, image, container_.id, Leasing::change));
  lease_ = std::move(draft_.lease);
  if (!lease_ && note) lease_ = TRY(give_up(context_, *note));
  auto applied = apply();
  if (!applied.ok()) {
    auto settled = settle(gpu::Ledger::Settle::as_before);
    if (!settled.ok()) context_.log.warn(to_line(settled.error()) + ", ignoring");
    return applied;
  }
  TRY(write_down());
  return settle(gpu::Ledger::Settle::changed);
}

Result<void> GpuUpdate::apply() {
  oci::Cpu all = TRY(all_places());
  spec_ = TRY(with_devices_of(std::move(spec_), draft_.spec, all));
  TRY(call_runtime(context_, {"update", "--devices-of", "-", container_.id},
                   oci::write_spec(spec_)));
  return {};
}

// What is not written down yet stays in the lease: too much is taken rather than too little.
Result<void> GpuUpdate::write_down() {
  TRY(sys::replace_file(files_, in_bundle("config.json"), oci::write_spec(spec_), 0600));
  keep_reasons(context_, draft_, files_);
  return {};
}

Result<void> GpuUpdate::settle(gpu::Ledger::Settle how) {
  if (!lease_) return {};
  gpu::Ledger ledger = TRY(gpu::Ledger::open(lease_.note().ledger, context_.paths.state));
  bool widened = lease_.is_widened();
  if (widened) TRY(ledger.settle(lease_, how));
  if (!widened && how == gpu::Ledger::Settle::as_before) return {};  // it goes with the object
  if (lease_.lease().life.pid == 0) {
    gpu::Here here = TRY(gpu::look_around());
    gpu::Life life = TRY(gpu::life_of(pid_, "", here));
    TRY(ledger.set_life(lease_, std::move(life)));
  }
  TRY(sys::replace_file(files_, in_bundle(gpu::kLeaseNote), json::write(lease_.note()), 0600));
  lease_.leave();
  return {};
}

}  // namespace

Result<oci::Spec> with_devices_of(oci::Spec before, const oci::Spec& after, const oci::Cpu& all) {
  for (const oci::Mount& mount : after.mounts) {
    bool there = std::any_of(
        before.mounts.begin(), before.mounts.end(),
        [&](const oci::Mount& other) { return other.destination == mount.destination; });
    // What /proc tells of a driver is not worth a restart.
    if (there || mount.destination.starts_with("/proc/")) continue;
    return make_error(
        Kind::unsupported,
        "change its GPUs while it runs: it was started without " + quoted(mount.destination),
        "berth stop, berth update --gpus, berth start");
  }
  bool placed = has_place(before);
  before.linux_.devices = after.linux_.devices;
  if (before.process && after.process) before.process->env = after.process->env;
  if (!before.linux_.resources) before.linux_.resources.emplace();
  oci::Resources& resources = *before.linux_.resources;
  resources.devices.clear();
  if (after.linux_.resources) resources.devices = after.linux_.resources->devices;
  if (!placed && !has_place(after)) return before;
  if (!resources.cpu) resources.cpu.emplace();
  const oci::Cpu& place = has_place(after) ? *after.linux_.resources->cpu : all;
  resources.cpu->cpus = place.cpus;
  resources.cpu->mems = place.mems;
  return before;
}

Result<void> update_gpus(const Context& context, const ContainerSummary& container,
                         const RunRequest& wanted) {
  TRY(check_changeable(context, wanted));
  Lifetime lifetime = container.remove ? Lifetime::removed : Lifetime::kept;
  const std::string path = container_files(context.paths, container.id, lifetime);
  sys::Fd files = TRY(sys::open_at(sys::cwd(), path, O_DIRECTORY | O_RDONLY));
  return GpuUpdate(context, container, std::move(files)).run(wanted);
}

}  // namespace berth::engine
