// SPDX-License-Identifier: Apache-2.0
#include "runtime/update.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/text.hpp"
#include "runtime/find.hpp"
#include "runtime/scope.hpp"
#include "sys/file.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxResources = size_t{4} << 20;

}  // namespace

Result<oci::Resources> read_resources(const std::string& file) {
  bool is_input = file == "-";
  std::string name = is_input ? "standard input" : file;
  sys::Fd input = is_input ? sys::Fd(STDIN_FILENO) : TRY(sys::open_at(sys::cwd(), file, O_RDONLY));
  auto read = sys::read_all(input, name, kMaxResources);
  if (is_input) input.release();
  std::string text = TRY(std::move(read));
  return oci::parse_resources(text, name);
}

Result<void> update(const Store& store, const std::string& id, const oci::Resources& wanted,
                    Log& log) {
  Found found = TRY(find(store, id));
  if (found.status == Status::stopped || found.status == Status::creating) {
    return make_error(Kind::usage, "container not running: " + quoted(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  oci::Resources resources = wanted;
  if (!resources.devices.empty()) {
    // kubelet sends all rules that it knows with every change of the processors.
    const auto& kept = found.state.added_devices;
    resources.devices.insert(resources.devices.end(), kept.begin(), kept.end());
  }
  CgroupLayout layout = TRY(detect_cgroup_layout());
  if (found.state.cgroup_path.empty()) {
    return make_error(Kind::unsupported, "find a cgroup on this machine");
  }
  // Before a directory is made that a `run` in the foreground does not know of.
  TRY(sys::write_file(found.entry.fd(), kUpdatedMark, ""));
  const State& state = found.state;
  TRY(found.cgroups.update(layout, state.cgroup_path, resources,
                           [&](const UnmetLimit& unmet) { return judge(unmet, log); }));
  if (!state.systemd_unit.empty()) {
    TRY(update_scope(state.systemd_unit, state.systemd_user, resources));
    // systemd rounds, and writes what it was told before. What is unmet has been told.
    TRY(found.cgroups.update(layout, state.cgroup_path, resources,
                             [](const UnmetLimit&) { return Result<void>(); }));
  }
  return {};
}

}  // namespace berth::runtime
