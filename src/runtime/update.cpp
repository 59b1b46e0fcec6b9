// SPDX-License-Identifier: Apache-2.0
#include "runtime/update.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/text.hpp"
#include "oci/config.hpp"
#include "runtime/cgroup/scope.hpp"
#include "runtime/engine_scope.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

constexpr size_t kMaxText = size_t{16} << 20;

struct Text {
  std::string text;
  std::string name;
};
Result<Text> read_text(const std::string& file) {
  bool is_input = file == "-";
  std::string name = is_input ? "standard input" : file;
  sys::Fd input = is_input ? sys::Fd(STDIN_FILENO) : TRY(sys::open_at(sys::cwd(), file, O_RDONLY));
  auto read = sys::read_all(input, name, kMaxText);
  if (is_input) input.release();
  std::string text = TRY(std::move(read));
  return Text{std::move(text), std::move(name)};
}

}  // namespace

Result<oci::Resources> read_resources(const std::string& file) {
  Text read = TRY(read_text(file));
  return oci::parse_resources(read.text, read.name);
}

Result<oci::Spec> read_wanted_spec(const std::string& file) {
  Text read = TRY(read_text(file));
  return oci::parse_spec(read.text, read.name);
}

Result<Found> find_changeable(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status == Status::stopped || found.status == Status::creating) {
    return make_error(Kind::usage, "container not running: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  return found;
}

Result<void> apply_resources(Found& found, oci::Resources resources, Log& log) {
  const State& state = found.state;
  if (!resources.devices.empty()) {
    // kubelet sends all rules that it knows with every change of the processors.
    const auto& kept = state.added_devices;
    resources.devices.insert(resources.devices.end(), kept.begin(), kept.end());
  }
  CgroupLayout layout = TRY(cgroup_layout_of(state));
  TRY(give_scope(found));
  if (state.cgroup_path.empty()) {
    return make_error(Kind::unsupported, "find a cgroup on this machine");
  }
  // Before making a directory that a `run` in the foreground does not know of.
  TRY(sys::write_file(found.entry.fd(), kUpdatedMark, ""));
  TRY(found.cgroups.update(layout, state.cgroup_path, resources, [&](const UnmetLimit& unmet) {
    return judge(unmet, Unmet::is_error, log);
  }));
  if (!state.systemd_unit.empty()) {
    TRY(update_scope(state.systemd_unit, state.systemd_user, resources));
    // systemd rounds values, and writes old ones again. Unmet limits have been reported above.
    TRY(found.cgroups.update(layout, state.cgroup_path, resources,
                             [](const UnmetLimit&) { return Result<void>(); }));
  }
  return {};
}

Result<void> update(const Store& store, const std::string& id, const oci::Resources& resources,
                    Log& log) {
  Found found = TRY(find_changeable(store, id));
  return apply_resources(found, resources, log);
}

}  // namespace berth::runtime
