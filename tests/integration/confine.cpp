// SPDX-License-Identifier: Apache-2.0
// Calls the parts of Berth that confine a process, one per verb, for the tests that need the real
// kernel. CONFIG is a config.json, of which linux.resources is used.
//   confine user-namespace [PROGRAM ARGUMENT…]    enter as the caller; print the kind, or execute
//   confine cgroup-run CONFIG PATH PROGRAM…       run in a cgroup, as the runtime does, then remove
//   it confine cgroup-create CONFIG PATH             make it and print its directories confine
//   cgroup-update CONFIG PATH confine cgroup-{freeze,thaw,kill,remove} PATH confine cgroup-time
//   CONFIG PATH ROUNDS        print the median of create, join and remove in µs confine seccomp
//   PROGRAM ARGUMENT…             execute under the default profile
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "oci/capabilities.hpp"
#include "oci/config.hpp"
#include "oci/default_seccomp.hpp"
#include "runtime/cgroup/cgroup.hpp"
#include "runtime/seccomp/seccomp.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"
#include "sys/user/user_namespace.hpp"

namespace {

using berth::Error;
using berth::Result;
using berth::runtime::CgroupSet;

class PrintedLog final : public berth::Log {
 public:
  void warn(const std::string& text) override {
    std::fprintf(stderr, "warning: %s\n", text.c_str());
  }
  void debug(const std::string&) override {}
};

Result<int> execute(char** program) {
  execvp(*program, program);
  return berth::sys_error(errno, "execute " + std::string(*program));
}

Result<int> user_namespace(char** program) {
  auto self = TRY(berth::sys::identity());
  auto mapping = TRY(berth::sys::plan_mapping(self.uid, self.gid, berth::sys::user_name(self.uid)));
  PrintedLog log;
  auto kind = TRY(berth::sys::enter_user_namespace(mapping, log));
  if (*program != nullptr) return execute(program);
  std::puts(kind == berth::sys::UserNamespaceKind::mapped ? "mapped" : "single");
  return 0;
}

Result<berth::oci::Resources> read_resources(const std::string& config) {
  auto text = TRY(berth::sys::read_file(berth::sys::cwd(), config));
  auto spec = TRY(berth::oci::parse_spec(text));
  return spec.linux_.resources.value_or(berth::oci::Resources{});
}

void print(const berth::runtime::UnmetLimit& unmet) {
  std::fprintf(stderr, "unmet: %s: %s\n", unmet.name.c_str(), unmet.reason.c_str());
}

void print_unmet(const CgroupSet& cgroups) {
  for (const auto& unmet : cgroups.unmet()) print(unmet);
}

Result<CgroupSet> make_cgroups(const berth::runtime::CgroupLayout& layout, const std::string& path,
                               const berth::oci::Resources& resources) {
  auto cgroups = TRY(CgroupSet::create(layout, path, resources));
  print_unmet(cgroups);
  auto devices = TRY(cgroups.restrict_devices(layout, path, resources.devices));
  if (devices) print(*devices);
  return cgroups;
}

/// Starts `program` (or nothing but a wait) inside, with CLONE_INTO_CGROUP where there is v2.
Result<pid_t> start_inside(const CgroupSet& cgroups, char** program) {
  auto gate = TRY(berth::sys::make_pipe());
  auto cloned = TRY(berth::sys::clone3(0, cgroups.unified_fd()));
  if (cloned.pid == 0) {
    gate.write.reset();
    char byte = 0;
    if (read(gate.read.get(), &byte, 1) < 0 || program == nullptr) _exit(0);
    execvp(*program, program);
    _exit(127);
  }
  auto unified =
      cgroups.unified_fd() >= 0 ? CgroupSet::Unified::already_inside : CgroupSet::Unified::join;
  TRY(cgroups.add(cloned.pid, unified));
  return cloned.pid;
}

Result<int> cgroup_run(const std::string& config, const std::string& path, char** program) {
  auto layout = TRY(berth::runtime::detect_cgroup_layout());
  auto resources = TRY(read_resources(config));
  auto cgroups = TRY(make_cgroups(layout, path, resources));
  pid_t pid = TRY(start_inside(cgroups, program));
  int status = 0;
  waitpid(pid, &status, 0);
  TRY(cgroups.remove());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<int> cgroup_create(const std::string& config, const std::string& path) {
  auto layout = TRY(berth::runtime::detect_cgroup_layout());
  auto resources = TRY(read_resources(config));
  auto cgroups = TRY(make_cgroups(layout, path, resources));
  for (const auto& directory : cgroups.paths()) std::puts(directory.c_str());
  return 0;
}

Result<int> cgroup_update(const std::string& config, const std::string& path) {
  auto layout = TRY(berth::runtime::detect_cgroup_layout());
  auto resources = TRY(read_resources(config));
  auto cgroups = TRY(CgroupSet::open(layout, path));
  TRY(cgroups.update(layout, path, resources, [](const auto&) { return berth::Result<void>(); }));
  print_unmet(cgroups);
  return 0;
}

Result<int> cgroup_act(const std::string& verb, const std::string& path) {
  auto layout = TRY(berth::runtime::detect_cgroup_layout());
  auto cgroups = TRY(CgroupSet::open(layout, path));
  if (verb == "cgroup-freeze") TRY(cgroups.freeze(CgroupSet::Freeze::freeze));
  if (verb == "cgroup-thaw") TRY(cgroups.freeze(CgroupSet::Freeze::thaw));
  if (verb == "cgroup-kill") TRY(cgroups.kill_all());
  if (verb == "cgroup-remove") TRY(cgroups.remove());
  return 0;
}

Result<int> cgroup_time(const std::string& config, const std::string& path, int rounds) {
  auto resources = TRY(read_resources(config));
  std::vector<double> steps[3];
  for (int i = 0; i < rounds; ++i) {
    auto start = std::chrono::steady_clock::now();
    auto lap = [&](std::vector<double>& into) {
      auto now = std::chrono::steady_clock::now();
      into.push_back(std::chrono::duration<double, std::micro>(now - start).count());
      start = now;
    };
    auto layout = TRY(berth::runtime::detect_cgroup_layout());
    auto cgroups = TRY(make_cgroups(layout, path, resources));
    lap(steps[0]);
    pid_t pid = TRY(start_inside(cgroups, nullptr));
    lap(steps[1]);
    waitpid(pid, nullptr, 0);
    start = std::chrono::steady_clock::now();
    TRY(cgroups.remove());
    lap(steps[2]);
  }
  const char* names[] = {"create", "join", "remove"};
  for (int i = 0; i < 3; ++i) {
    std::sort(steps[i].begin(), steps[i].end());
    std::printf("%s %.0f\n", names[i], steps[i][steps[i].size() / 2]);
  }
  return 0;
}

Result<int> seccomp(char** program) {
  auto names = berth::oci::default_capabilities();
  auto profile =
      berth::oci::default_seccomp({names.begin(), names.end()}, berth::oci::native_machine());
  auto compiled = TRY(berth::runtime::compile_seccomp(profile));
  auto flags = TRY(berth::runtime::seccomp_flags(profile));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return berth::sys_error(errno, "set no_new_privs");
  }
  TRY(berth::runtime::load_seccomp(compiled, flags));
  return execute(program);
}

Result<int> run(int argc, char** argv) {
  std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "user-namespace") return user_namespace(argv + 2);
  if (verb == "seccomp" && argc > 2) return seccomp(argv + 2);
  if (verb == "cgroup-run" && argc > 4) return cgroup_run(argv[2], argv[3], argv + 4);
  if (verb == "cgroup-create" && argc == 4) return cgroup_create(argv[2], argv[3]);
  if (verb == "cgroup-update" && argc == 4) return cgroup_update(argv[2], argv[3]);
  if (verb == "cgroup-time" && argc == 5) return cgroup_time(argv[2], argv[3], atoi(argv[4]));
  if (verb.starts_with("cgroup-") && argc == 3) return cgroup_act(verb, argv[2]);
  return berth::make_error(berth::Kind::usage, "unknown verb '" + verb + "'");
}

}  // namespace

int main(int argc, char** argv) {
  auto status = run(argc, argv);
  if (status.ok()) return *status;
  std::fprintf(stderr, "confine: %s\n", to_line(status.error()).c_str());
  return 1;
}
