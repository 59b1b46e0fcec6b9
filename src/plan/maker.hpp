// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "oci/edit.hpp"
#include "plan/mount_options.hpp"
#include "plan/steps.hpp"

// Only for the files that make plans.
namespace berth::plan {

/// An error that begins with "config.json: "; `what` begins with the member's name.
Error usage(std::string what);
Error unsupported(std::string what);

/// "/a//b/./c/../d/" → "/a/b/d". Does not look at files: the path that is checked here is the path
/// that is opened later, and only then are links followed, inside the root.
std::string tidy(std::string_view path);

/// Inserts AwaitCgroup and AwaitConfinement, each before the first step that needs it. Pure.
Plan with_await_steps(Plan plan);

/// Collects the steps of one container; each method handles one subject of the spec, and make()
/// calls the methods in the order of execution.
class Maker {
 public:
  Maker(const oci::Spec& spec, const Container& container, const HostFacts& facts)
      : spec_(spec),
        process_(spec.process ? *spec.process : kNoProcess),
        container_(container),
        facts_(facts) {}

  Result<void> check();
  Result<void> check_process();
  Result<void> check_no_mounts() const;
  Result<void> own_root();
  void shared_root();
  Result<void> cgroup();
  Result<void> spawn();
  Result<void> root();
  Result<void> mounts();
  Result<void> devices();
  void console(bool named);
  /// The links that the annotations in oci/edit.hpp request. An image may write these annotations,
  /// too: each link is confined to the container's root, and an impossible one is a warning.
  void links();
  void loader_files();
  void fill_loader_files();
  Result<void> clocks();
  Result<void> resctrl();
  Result<void> labels();
  void oom_score();
  /// Comes before the steps for the spec's members, which override it.
  void free_affinity();
  void place();
  Result<void> attributes();
  Result<void> affinity();
  bool has_own_root() const { return creates("mount"); }
  void isolate_mounts() { add(IsolateMounts{}); }
  void join_container() {
    add(JoinContainer{keeps_ids()});
    if (container_.new_keyring) add(MakeKeyring{});
  }
  /// Makes those tmpfs read-only that stayed writable until mount points and devices were made in
  /// them.
  void close_filled();
  void masks();
  Result<void> interfaces();
  Result<void> kernel_settings();
  Result<void> hooks(const char* stage, const std::vector<oci::Hook>& hooks);
  Result<void> enter_root();
  Result<void> limits();
  void identity(Missing directory);
  void find_program();
  void await_start();
  void late_filter();
  void program();

  /// As late as possible: the child can work until this step while the parent moves it into its
  /// cgroups.
  void cgroup_namespace();

  Plan take() { return with_await_steps(std::move(plan_)); }

 private:
  bool creates(std::string_view type) const {
    for (const auto& space : spec_.linux_.namespaces) {
      if (space.type == type) return space.path.empty();
    }
    return false;
  }
  bool has_namespace(std::string_view type) const {
    return std::ranges::any_of(spec_.linux_.namespaces,
                               [&](const oci::Namespace& space) { return space.type == type; });
  }
  bool in_user_namespace() const { return facts_.user_namespace || has_namespace("user"); }
  Result<void> mount(size_t index);
  Result<void> mount_kernel_file_system(size_t index, MountOptions options);
  Result<std::optional<IdMap>> id_map(size_t index, const MountOptions& options) const;
  bool mount_layers(const std::string& target, const MountOptions& options);
  bool is_filled_later(size_t index) const;
  bool says(std::string_view annotation, std::string_view word) const {
    auto said = spec_.annotations.find(std::string(annotation));
    return said != spec_.annotations.end() && said->second == word;
  }
  LoadSeccomp load_seccomp(const oci::Seccomp& profile) const {
    return {profile, says(oci::kKnownCallsAnnotation, "1")};
  }
  // An image may have written the annotation. Groups of root would give other users inside access
  // to files; groups of an ordinary user give no access that this user lacks outside.
  bool keeps_groups() const {
    bool asked = says(oci::kKeepGroupsAnnotation, "1");
    return asked && (container_.of_engine || facts_.user_namespace);
  }
  // For root of the machine the ids of the container's user namespace have fewer rights than its
  // own ids.
  bool keeps_ids() const { return facts_.user_namespace && says(oci::kKeepIdsAnnotation, "yes"); }
  bool fills_loader_files() const {
    return spec_.process.has_value() && (!loader_entries_.empty() || compat_.has_value());
  }
  std::vector<unsigned> wished_numbers(std::string_view annotation);
  const std::string& host_path(const oci::Device& device) const;
  void device(const oci::Device& device);
  bool host_owns_dev() const;
  uint64_t capability_set(const std::vector<std::string>& names, const char* member);
  template <class T>
  void add(T step) {
    plan_.steps.emplace_back(std::move(step));
  }

  static const oci::Process kNoProcess;

  const oci::Spec& spec_;
  const oci::Process& process_;
  const Container& container_;
  const HostFacts& facts_;
  Plan plan_;
  std::vector<oci::LoaderLine> loader_entries_;
  std::optional<oci::CompatRequest> compat_;
  bool in_cgroup_namespace_ = false;
  std::vector<std::string> filled_;
};

}  // namespace berth::plan
