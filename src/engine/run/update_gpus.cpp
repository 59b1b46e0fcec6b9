// SPDX-License-Identifier: Apache-2.0
#include "engine/run/update_gpus.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "engine/container/launch.hpp"
#include "engine/decide/decide.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/gpu/placement.hpp"
#include "engine/run/bundle.hpp"
#include "engine/run/new_container.hpp"
#include "engine/state/directory.hpp"
#include "gpu/ledger/ledger.hpp"
#include "gpu/ledger/record.hpp"
#include "json/fields.hpp"
#include "oci/config.hpp"
#include "oci/edit.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxUpdatedConfig = size_t{16} << 20;

constexpr std::string_view kConfig = "config.json";

/// The path of a file in the bundle, below the container's directory.
std::string in_bundle(std::string_view name) {
  return std::string(kBundleDirectory) + "/" + std::string(name);
}

Result<void> check_changeable(const Context& context, const RunRequest& request,
                              const std::string& id) {
  const char* why = nullptr;
  if (context.identity != Identity::root) {
    why = "only a container of root's can get device nodes while it runs";
  }
  if (request.security.privileged) why = "--privileged gave it every device";
  if (request.gpu_driver == policy::DriverMode::copy) why = "its driver's files are copies";
  auto note = TRY(read_lease_note(context, request, id));
  bool by_mps = note && note->lease.mps;
  if (request.gpu_memory || request.gpu_cores || by_mps) {
    why = "its GPU limits are for the GPUs that it has now";
  }
  if (why == nullptr) return {};
  return make_error(Kind::unsupported, std::string("change its GPUs while it runs: ") + why,
                    "berth stop, berth update --gpus, berth start");
}

bool has_place(const oci::Spec& spec) {
  const auto& resources = spec.linux_.resources;
  return resources && resources->cpu &&
         (!resources->cpu->cpus.empty() || !resources->cpu->mems.empty());
}

/// Releases all GPUs of the lease `note`.
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

/// The processors and memory nodes that this process may use.
Result<oci::Cpu> all_places() {
  std::string status = TRY(sys::read_file(sys::cwd(), "/proc/self/status"));
  Allowed allowed = parse_allowed(status);
  oci::Cpu all;
  all.cpus = to_text(allowed.cpus);
  all.mems = to_text(allowed.mems);
  return all;
}

/// `spec` with the devices of `other` added, and the rules for all of them.
oci::Spec with_all_devices(oci::Spec spec, const oci::Spec& other) {
  auto& devices = spec.linux_.devices;
  devices.insert(devices.end(), other.linux_.devices.begin(), other.linux_.devices.end());
  if (!spec.linux_.resources) spec.linux_.resources.emplace();
  if (!other.linux_.resources) return spec;
  auto& rules = spec.linux_.resources->devices;
  const auto& more = other.linux_.resources->devices;
  std::ranges::copy_if(more, std::back_inserter(rules),
                       [](const oci::DeviceRule& rule) { return rule.allow; });
  return spec;
}

/// A running container, with its current and its new configuration.
class GpuUpdate {
 public:
  GpuUpdate(const Context& context, const ContainerSummary& container, sys::Fd files)
      : context_(context), container_(container), files_(std::move(files)) {}

  Result<void> run(const RunRequest& wanted);

 private:
  enum class State { before, after, unknown };

  Result<oci::Spec> read_spec(const std::string& path);
  Result<void> set_devices(const oci::Spec& spec);
  Result<void> apply();
  Result<void> carry_out();
  Result<void> put_back();
  Result<void> keep_lease();
  Result<void> write_lease();
  void move_beside();

  const Context& context_;
  const ContainerSummary& container_;
  sys::Fd files_;
  pid_t pid_ = 0;
  oci::Spec before_;
  std::optional<oci::Spec> left_;  ///< what a killed update was applying
  oci::Spec after_;
  Decision decision_;
  gpu::HeldLease lease_;
  State state_ = State::before;
};

Result<oci::Spec> GpuUpdate::read_spec(const std::string& path) {
  std::string text = TRY(sys::read_file(files_, path, kMaxUpdatedConfig));
  return oci::parse_spec(text, path);
}

Result<void> GpuUpdate::set_devices(const oci::Spec& spec) {
  TRY(call_runtime(context_, {"update", "--devices-of", "-", container_.id},
                   oci::write_spec(spec)));
  return {};
}

Result<pid_t> first_process_of(const Context& context, const std::string& id) {
  ContainerFiles known = TRY(read_container(context.paths, id));
  if (known.record && known.start) return static_cast<pid_t>(known.start->pid);
  return make_error(Kind::not_found, "no such container: " + id);
}

Result<void> GpuUpdate::run(const RunRequest& wanted) {
  before_ = TRY(read_spec(in_bundle(kConfig)));
  bool left = TRY(sys::stat_entry(files_, in_bundle(kNextConfig))).has_value();
  if (left) left_ = TRY(read_spec(in_bundle(kNextConfig)));
  auto note = TRY(read_lease_note(context_, wanted, container_.id));
  pid_ = TRY(first_process_of(context_, container_.id));
  ContainerFiles known = TRY(read_container(context_.paths, container_.id));
  const Resolved resolved = TRY(resolve_saved(context_, *known.record, wanted));
  decision_ = TRY(decide(context_, resolved, container_.id, Leasing::change));
  lease_ = std::move(decision_.lease);
  if (!lease_ && note) lease_ = TRY(give_up(context_, *note));
  auto applied = apply();
  auto kept = keep_lease();
  if (!applied.ok() && !kept.ok()) context_.log.warn(to_line(kept.error()) + ", ignoring");
  if (applied.ok()) move_beside();
  return applied.ok() ? kept : applied;
}

Result<void> GpuUpdate::apply() {
  // A new lease, or one from a lost ledger: from now on it ends with the container.
  if (lease_ && (!lease_.is_widened() || lease_.lease().life.pid == 0)) {
    gpu::Ledger ledger = TRY(gpu::Ledger::open(lease_.note().ledger, context_.paths.state));
    gpu::Here here = TRY(gpu::look_around());
    gpu::Life life = TRY(gpu::life_of(pid_, "", here));
    TRY(ledger.set_life(lease_, std::move(life)));
  }
  oci::Cpu all = TRY(all_places());
  after_ = TRY(with_devices_of(before_, decision_.spec, all));
  // Write the new config first: this proves that there is space, and a killed update leaves a
  // trace.
  oci::Spec next = left_ ? with_all_devices(after_, *left_) : after_;
  TRY(sys::replace_file(files_, in_bundle(kNextConfig), oci::write_spec(next), 0600));
  state_ = State::unknown;
  auto done = carry_out();
  if (done.ok() || state_ == State::after) return done;
  // A killed runtime has not restored the devices.
  auto back = done.error().kind == Kind::interrupted ? set_devices(before_) : Result<void>();
  if (back.ok()) back = put_back();
  if (!back.ok()) {
    context_.log.warn(
        "what the container has now is not known, so it keeps all GPUs that it may have: " +
        to_line(back.error()));
  }
  return done;
}

Result<void> GpuUpdate::carry_out() {
  TRY(set_devices(after_));
  if (TRY(first_process_of(context_, container_.id)) != pid_) {
    return make_error(Kind::interrupted, "it was restarted meanwhile", "berth update again");
  }
  TRY(sys::replace_file(files_, in_bundle(kConfig), oci::write_spec(after_), 0600));
  state_ = State::after;
  save_explanation(context_, decision_, files_);
  return sys::remove_entry(files_, in_bundle(kNextConfig));
}

// Restores what an earlier update left that was killed, because its devices may still be in use.
Result<void> GpuUpdate::put_back() {
  const std::string path = in_bundle(kNextConfig);
  if (left_) TRY(sys::replace_file(files_, path, oci::write_spec(*left_), 0600));
  if (!left_) TRY(sys::remove_entry(files_, path));
  state_ = State::before;
  return {};
}

// If the state is unknown or the ledger cannot be written, the container keeps both the old and the
// new GPUs.
Result<void> GpuUpdate::keep_lease() {
  if (!lease_) return {};
  auto written = state_ == State::unknown ? Result<void>() : write_lease();
  if (state_ != State::before) lease_.leave();
  return written;
}

Result<void> GpuUpdate::write_lease() {
  gpu::Ledger ledger = TRY(gpu::Ledger::open(lease_.note().ledger, context_.paths.state));
  if (lease_.is_widened()) {
    auto how =
        state_ == State::after ? gpu::Ledger::Finish::changed : gpu::Ledger::Finish::as_before;
    TRY(ledger.finish(lease_, how));
  } else if (state_ == State::before) {
    return ledger.set_life(lease_, gpu::Life());  // released with this object
  }
  TRY(sys::replace_file(files_, in_bundle(gpu::kLeaseNote), json::write(lease_.note()), 0600));
  lease_.leave();
  return {};
}

/// A failure is only a warning: the container keeps its GPUs even if its processors stay the same.
void GpuUpdate::move_beside() {
  auto place = [](const oci::Spec& spec) {
    if (!has_place(spec)) return std::pair<std::string, std::string>();
    return std::pair(spec.linux_.resources->cpu->cpus, spec.linux_.resources->cpu->mems);
  };
  if (after_.annotations != before_.annotations) {
    context_.log.warn("its processes stay on the CPUs that they had");
  }
  auto [cpus, mems] = place(after_);
  if (place(before_) == std::pair(cpus, mems)) return;
  std::vector<std::string> words = {"update", "--cpuset-cpus", cpus};
  if (!mems.empty()) words.insert(words.end(), {"--cpuset-mems", mems});
  words.push_back(container_.id);
  auto moved = call_runtime(context_, std::move(words));
  if (!moved.ok()) {
    context_.log.warn("it stays on the processors that it had: " + to_line(moved.error()));
  }
}

}  // namespace

Result<oci::Spec> with_devices_of(oci::Spec before, const oci::Spec& after, const oci::Cpu& all) {
  for (const oci::Mount& mount : after.mounts) {
    bool there = std::ranges::any_of(before.mounts, [&](const oci::Mount& other) {
      return other.destination == mount.destination;
    });
    // A missing file of a driver in /proc does not justify a restart.
    if (there || mount.destination.starts_with("/proc/")) continue;
    return make_error(
        Kind::unsupported,
        "change its GPUs while it runs: it was started without " + quote(mount.destination),
        "berth stop, berth update --gpus, berth start");
  }
  bool placed = has_place(before);
  before.linux_.devices = after.linux_.devices;
  if (before.process && after.process) before.process->env = after.process->env;
  for (std::string_view place : {oci::kProcessorsAnnotation, oci::kMemoryNodesAnnotation}) {
    before.annotations.erase(std::string(place));
    auto next = after.annotations.find(std::string(place));
    if (next != after.annotations.end()) before.annotations.insert(*next);
  }
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
  TRY(check_changeable(context, wanted, container.id));
  const std::string path = files_of(context, container);
  sys::Fd files = TRY(sys::open_at(sys::cwd(), path, O_DIRECTORY | O_RDONLY));
  return GpuUpdate(context, container, std::move(files)).run(wanted);
}

}  // namespace berth::engine
