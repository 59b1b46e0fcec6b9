// SPDX-License-Identifier: Apache-2.0
#include "engine/update_gpus.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
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

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kNextConfig = "config.next.json";  ///< what is being made of it

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

/// `spec` with the devices of `other` too, and the rules for all of them.
oci::Spec with_all_devices(oci::Spec spec, const oci::Spec& other) {
  auto& devices = spec.linux_.devices;
  devices.insert(devices.end(), other.linux_.devices.begin(), other.linux_.devices.end());
  if (!spec.linux_.resources) spec.linux_.resources.emplace();
  if (!other.linux_.resources) return spec;
  auto& rules = spec.linux_.resources->devices;
  const auto& more = other.linux_.resources->devices;
  std::copy_if(more.begin(), more.end(), std::back_inserter(rules),
               [](const oci::DeviceRule& rule) { return rule.allow; });
  return spec;
}

/// One running container, as it is and as it is to be.
class GpuUpdate {
 public:
  GpuUpdate(const Context& context, const ContainerSummary& container, sys::Fd files)
      : context_(context), container_(container), files_(std::move(files)) {}

  Result<void> run(const RunRequest& wanted);

 private:
  enum class State { before, after, unknown };

  Result<oci::Spec> read_config();
  Result<void> write_config(const oci::Spec& spec);
  Result<void> set_devices(const oci::Spec& spec);
  Result<void> apply();
  Result<void> restore();
  Result<void> forget();
  Result<void> settle();

  const Context& context_;
  const ContainerSummary& container_;
  sys::Fd files_;
  pid_t pid_ = 0;
  oci::Spec before_;
  oci::Spec after_;
  Draft draft_;
  gpu::HeldLease lease_;
  State state_ = State::before;
};

// Whoever was killed in the middle of this has left what he wanted: the container may have all of
// it, or nothing.
Result<oci::Spec> GpuUpdate::read_config() {
  std::string text = TRY(sys::read_file(files_, in_bundle(kConfig), kMaxConfig));
  oci::Spec spec = TRY(oci::parse_spec(text));
  auto left = TRY(sys::read_file_if_exists(files_, in_bundle(kNextConfig), kMaxConfig));
  if (!left) return spec;
  oci::Spec other = TRY(oci::parse_spec(*left));
  spec = with_all_devices(std::move(spec), other);
  TRY(write_config(spec));
  TRY(sys::remove_entry(files_, in_bundle(kNextConfig)));
  return spec;
}

Result<void> GpuUpdate::write_config(const oci::Spec& spec) {
  return sys::replace_file(files_, in_bundle(kConfig), oci::write_spec(spec), 0600);
}

/// Of the container, by what its bundle says that it has.
Result<void> GpuUpdate::set_devices(const oci::Spec& spec) {
  TRY(call_runtime(context_, {"update", "--devices-of", "-", container_.id},
                   oci::write_spec(spec)));
  return {};
}

Result<void> GpuUpdate::run(const RunRequest& wanted) {
  before_ = TRY(read_config());
  auto note = TRY(read_lease_note(context_, wanted, container_.id));
  ContainerFiles known = TRY(read_container(context_.paths, container_.id));
  if (!known.record || !known.start) {
    return make_error(Kind::not_found, "no such container: " + container_.id);
  }
  pid_ = static_cast<pid_t>(known.start->pid);
  image::Image image = TRY(image_of(context_, *known.record, wanted));
  draft_ = TRY(draft_container(context_, wanted, image, container_.id, Leasing::change));
  lease_ = std::move(draft_.lease);
  if (!lease_ && note) lease_ = TRY(give_up(context_, *note));
  auto applied = apply();
  auto settled = settle();
  if (!applied.ok() && !settled.ok()) context_.log.warn(to_line(settled.error()) + ", ignoring");
  return applied.ok() ? settled : applied;
}

Result<void> GpuUpdate::apply() {
  oci::Cpu all = TRY(all_places());
  after_ = TRY(with_devices_of(before_, draft_.spec, all));
  // Written first: there is room for it, and who is killed leaves word.
  TRY(sys::replace_file(files_, in_bundle(kNextConfig), oci::write_spec(after_), 0600));
  state_ = State::unknown;
  auto set = set_devices(after_);
  if (!set.ok()) {
    auto restored = set.error().kind == Kind::interrupted ? restore() : forget();
    if (!restored.ok()) {
      context_.log.warn("what the container has now is not known, so it keeps all of it: " +
                        to_line(restored.error()));
    }
    return set;
  }
  TRY(sys::rename(files_, in_bundle(kNextConfig), files_, in_bundle(kConfig)));
  state_ = State::after;
  keep_reasons(context_, draft_, files_);
  return {};
}

// A runtime that was killed has put nothing back.
Result<void> GpuUpdate::restore() {
  TRY(write_config(with_all_devices(before_, after_)));
  TRY(set_devices(before_));
  TRY(write_config(before_));
  return forget();
}

Result<void> GpuUpdate::forget() {
  TRY(sys::remove_entry(files_, in_bundle(kNextConfig)));
  state_ = State::before;
  return {};
}

Result<void> GpuUpdate::settle() {
  if (!lease_) return {};
  // The old and the new ones are the container's until somebody knows better.
  if (state_ == State::unknown) {
    lease_.leave();
    return {};
  }
  // What was not widened was not there, and goes with the object.
  bool widened = lease_.is_widened();
  if (state_ == State::before && !widened) return {};
  gpu::Ledger ledger = TRY(gpu::Ledger::open(lease_.note().ledger, context_.paths.state));
  auto how = state_ == State::after ? gpu::Ledger::Settle::changed : gpu::Ledger::Settle::as_before;
  if (widened) TRY(ledger.settle(lease_, how));
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
