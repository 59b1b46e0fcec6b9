// SPDX-License-Identifier: Apache-2.0
// spank_berth.so: containers for the tasks of srun, sbatch and salloc, with the options of pyxis
// (docs/slurm.md).
//
//   plugstack.conf:  required /usr/local/lib/slurm/spank_berth.so [berth=PROGRAM]
//                    [execute_entrypoint=0|1] [sbatch_support=0|1] [container_scope=global|job]
//                    [one_fetch=0|1] [epilog_seconds=N]
//
// In srun, sbatch and salloc it parses and checks the options. In slurmstepd it makes a socket for
// the step, and forks a process that executes `berth slurm step` as the user when the first task of
// the node asks for it. That program makes the container. Every task joins the container by handles
// before Slurm executes the user's program (docs/decisions/0160). The engine is not loaded into
// slurmstepd. Data from an image or from the socket is read only after a task has become the user.
// When a job has ended, `berth slurm epilog` runs as the user and removes the remaining containers
// of the job (docs/decisions/0168).
//
// Runs as: slurmstepd, which is root, where the comment of a function says so; else as the user.
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "slurm/board.hpp"
#include "slurm/options.hpp"
#include "slurm/task_variables.hpp"
#include "spank/board.hpp"
#include "spank/cgroup.hpp"
#include "spank/job_end.hpp"
#include "spank/join.hpp"
#include "spank/site.hpp"
#include "spank/start.hpp"
#include "spank/step_watch.hpp"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>

// In C++ constants have no external linkage by default.
#pragma GCC visibility push(default)
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(berth, 1)
#pragma GCC visibility pop
}

namespace berth::spank {
namespace {

constexpr int kFailed = 125;         // docker's status if the container could not be made
constexpr int kPatience = 10'000;    // ms for a container to be gone after its last task
constexpr int kForSaving = 600'000;  // ms for one that is saved first
constexpr int kForOthers = 50'000;   // ms for a node that passes the image on

/// The state of the plugin in this process: srun, sbatch, salloc, or the slurmstepd of one step on
/// one node.
struct Plugin {
  Site site;
  slurm::Asked asked;
  std::optional<Error> fault;  ///< reported by the tasks, because elsewhere Slurm loses it
  bool wanted = false;         ///< this step has a container
  int ours = -1;               ///< our end of the step's socket
  ino_t socket = 0;            ///< the inode of the socket
  int rights = -1;             ///< slurm::kRightsFile
  Waiting berth;               ///< slurmstepd uses `process`, a task uses `order`
  std::string cgroup;          ///< made for berth, to be removed; empty: none
  /// The GPU variables of all tasks of this node; later each task gets its own values.
  std::array<std::optional<std::string>, slurm::kVisible.size()> visible;
  uint32_t tasks = 0;  ///< of this node
  uint32_t nodes = 1;  ///< of this step
  uint32_t ended = 0;
  bool killed = false;                 ///< a task was killed: the step is being ended
  std::unique_ptr<BoardServer> board;  ///< in srun: for the nodes of this step
};
Plugin plugin;

void say(const Error& error) {
  slurm_error("berth: %s", to_line(error).c_str());
}

/// Slurm's callback: `value` is the index in slurm::options().
int take_option(int value, const char* text, int) {
  auto taken = plugin.asked.take(slurm::options()[static_cast<size_t>(value)].key,
                                 text == nullptr ? "" : text);
  if (taken.ok()) return 0;
  say(taken.error());
  return -1;
}

Result<void> register_options(spank_t spank) {
  int value = 0;
  for (const slurm::Option& one : slurm::options()) {
    // spank_option_register() copies its arguments and does not change them.
    std::string usage = std::string("[berth] ") + one.help;
    spank_option option{const_cast<char*>(one.name),
                        const_cast<char*>(one.argument),
                        usage.data(),
                        one.argument == nullptr ? 0 : 1,
                        value++,
                        take_option};
    spank_err_t done = spank_option_register(spank, &option);
    if (done != ESPANK_SUCCESS) {
      return make_error(Kind::usage,
                        "register --" + std::string(one.name) + ": " + spank_strerror(done),
                        "no other plugin of plugstack.conf may have this option (pyxis)");
    }
  }
  return {};
}

std::optional<std::string> variable_of_job(spank_t spank, const std::string& name) {
  // execve(2) limits a string to 128 KiB, including the name.
  std::string value(size_t{128} << 10, '\0');
  if (spank_getenv(spank, name.c_str(), value.data(), static_cast<int>(value.size())) !=
      ESPANK_SUCCESS) {
    return std::nullopt;
  }
  value.resize(value.find('\0'));
  return value;
}

template <class T>
T item_of(spank_t spank, spank_item_t item, T otherwise) {
  T value = otherwise;
  return spank_get_item(spank, item, &value) == ESPANK_SUCCESS ? value : otherwise;
}

Result<std::vector<std::string>> words_of_step(spank_t spank) {
  uint32_t job = item_of(spank, S_JOB_ID, uint32_t{0});
  uint32_t step = item_of(spank, S_JOB_STEPID, uint32_t{0});
  std::vector<std::string> words = {"slurm", "step",
                                    "--job=" + std::to_string(job) + "." + std::to_string(step),
                                    "--scope=" + plugin.site.scope};
  // The site's setting does not apply if an environment file is used.
  if (plugin.site.entrypoint && plugin.asked.value(slurm::Key::no_entrypoint) == nullptr &&
      plugin.asked.value(slurm::Key::environment_file) == nullptr) {
    words.emplace_back("--container-entrypoint");
  }
  int argc = 0;
  char** argv = nullptr;
  bool known = spank_get_item(spank, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0;
  if (step == SLURM_BATCH_SCRIPT) {
    if (!known) return make_error(Kind::io, "Slurm does not say where the batch script is");
    words.push_back("--batch-script=" + std::string(argv[0]));
  } else if (known) {
    words.push_back("--program=" + std::string(argv[0]));
  }
  for (std::string& word : plugin.asked.words()) words.push_back(std::move(word));
  return words;
}

/// Variables that berth needs, if the job lacks them (--export=NONE).
void complete_environment(uid_t user, std::vector<std::string>& environment) {
  auto has = [&](std::string_view name) {
    return std::ranges::any_of(environment, [&](const std::string& entry) {
      return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
    });
  };
  if (!has("PATH")) {
    environment.emplace_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  if (has("HOME")) return;
  std::array<char, 16384> room;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) {
    environment.push_back(std::string("HOME=") + found->pw_dir);
  }
}

/// The variables of the job, with the GPUs of all tasks on this node.
Result<std::vector<std::string>> environment_of_node(spank_t spank) {
  char** environment = nullptr;
  if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) {
    return make_error(Kind::io, "Slurm does not give the job's environment");
  }
  std::vector<std::string> out;
  for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (std::ranges::find(slurm::kVisible, name) == slurm::kVisible.end()) {
      out.emplace_back(text);
    }
  }
  for (size_t i = 0; i < slurm::kVisible.size(); ++i) {
    if (plugin.visible[i])
      out.push_back(std::string(slurm::kVisible[i]) + "=" + *plugin.visible[i]);
  }
  complete_environment(::getuid(), out);
  return out;
}

/// The variables by which berth finds the containers of a user. More variables would let the user
/// influence more of what runs after the job.
constexpr const char* kPlaces[] = {"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"};

/// In slurmstepd, as root: records for the end of the job that it has containers.
Result<void> note_container(spank_t spank) {
  std::vector<std::string> environment;
  for (const char* name : kPlaces) {
    auto value = variable_of_job(spank, name);
    if (value) environment.push_back(std::string(name) + "=" + *value);
  }
  const char* node = std::getenv("SLURMD_NODENAME");
  if (node != nullptr) environment.push_back(std::string("SLURMD_NODENAME=") + node);
  complete_environment(item_of(spank, S_JOB_UID, uid_t{0}), environment);
  return note_job(item_of(spank, S_JOB_ID, uint32_t{0}), environment);
}

ino_t inode_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/// Whether this process has the descriptors in `plugin`. With PrologFlags=contain_spank, new in
/// Slurm 24.05, the hook that opens them may run in another process, which shares the memory of
/// slurmstepd but not the descriptors. Then the numbers mean something else in this process.
/// Source: Slurm, src/slurmd/slurmstepd/mgr.c; not tested.
bool has_descriptors() {
  return plugin.ours < 0 || inode_of(plugin.ours) == plugin.socket;
}

/// In slurmstepd, before it forks the tasks: makes the socket for requests of the tasks, and the
/// process that answers them.
Result<void> prepare(spank_t spank) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return errno_now().error("make a socket pair");
  }
  plugin.ours = pair[0];
  plugin.socket = inode_of(pair[0]);
  plugin.rights = ::memfd_create("rights", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Program program;
  program.path = plugin.site.program;
  program.step = pair[1];
  program.rights = plugin.rights;
  program.shows_output = plugin.asked.value(slurm::Key::entrypoint_log) != nullptr;
  auto forked = [&]() -> Result<Waiting> {
    if (plugin.rights < 0) return errno_now().error("make a memory file");
    program.words = TRY(words_of_step(spank));
    return fork_berth(program);
  }();
  // From here on only the process that makes the container has this end of the socket.
  ::close(pair[1]);
  plugin.berth = TRY(std::move(forked));
  return {};
}

/// The value of a GPU variable for this task: the container has the GPUs of all tasks on this node,
/// a task only some of them.
std::string value_of_task(spank_t spank, std::string_view name, const char* value) {
  for (size_t i = 0; i < slurm::kVisible.size(); ++i) {
    if (name != slurm::kVisible[i] || !plugin.visible[i]) continue;
    auto task = variable_of_job(spank, slurm::kVisible[i]);
    if (!task) break;
    return slurm::of_task(*plugin.visible[i], value, *task).value_or(value);
  }
  return value;
}

std::string first_node_of_step(spank_t spank) {
  auto nodes = variable_of_job(spank, "SLURM_STEP_NODELIST");
  if (!nodes) return "";
  auto list = slurm_hostlist_create(nodes->c_str());
  if (list == nullptr) return "";
  char* first = slurm_hostlist_shift(list);
  std::string out = first == nullptr ? "" : first;
  std::free(first);
  slurm_hostlist_destroy(list);
  return out;
}

/// The container's value of slurm::kDecidedVariable.
Result<std::vector<std::string>> decided_names(const Handles& handles) {
  std::vector<std::string> names;
  TRY(import_environment(handles, [&](std::string_view name, const char* value) -> Result<void> {
    if (name != slurm::kDecidedVariable) return {};
    for (std::string_view one : split(value, ',')) names.emplace_back(one);
    return {};
  }));
  return names;
}

Result<void> set_variables(spank_t spank, const Handles& handles) {
  std::vector<std::string> kept = plugin.asked.environment();
  for (const std::string& name : TRY(decided_names(handles))) {
    std::erase(kept, name);
    spank_unsetenv(spank, name.c_str());
  }
  auto is_kept = [&](std::string_view name) { return std::ranges::find(kept, name) != kept.end(); };
  // Do not pass on locales of the node, which the image may lack.
  for (const char* name : {"LANG", "LANGUAGE", "LC_ALL"}) {
    if (!is_kept(name)) spank_unsetenv(spank, name);
  }
  auto set = [&](const std::string& name, const std::string& value, int overwrite) -> Result<void> {
    spank_err_t done = spank_setenv(spank, name.c_str(), value.c_str(), overwrite);
    if (done == ESPANK_SUCCESS || done == ESPANK_ENV_EXISTS) return {};
    return make_error(Kind::io, "set " + name + ": " + spank_strerror(done));
  };
  bool torch = false;
  TRY(import_environment(handles, [&](const char* name, const char* value) -> Result<void> {
    if (std::string_view(name) == slurm::kDecidedVariable) return {};
    torch = torch || std::string_view(name) == "PYTORCH_VERSION";
    return set(name, value_of_task(spank, name, value), is_kept(name) ? 0 : 1);
  }));
  if (!torch) return {};
  auto variable = [&](const std::string& name) { return variable_of_job(spank, name); };
  for (const auto& [name, value] : slurm::torch_variables(variable, first_node_of_step(spank))) {
    TRY(set(name, value, 0));
  }
  return {};
}

/// Calls slurm_kill_job_step() with the parameters of this slurm.h: three numbers in 22.05,
/// additional flags since 23.11, the ids as a structure since 26.05.
template <class Kill>
void kill_step(Kill kill, uint32_t job, uint32_t step) {
  if constexpr (std::is_invocable_v<Kill, uint32_t, uint32_t, uint16_t>) {
    kill(job, step, SIGKILL);
  } else if constexpr (std::is_invocable_v<Kill, uint32_t, uint32_t, uint16_t, uint16_t>) {
    kill(job, step, SIGKILL, 0);
  } else {
    slurm_step_id_t id{};
    id.job_id = job;
    id.step_id = step;
    id.step_het_comp = NO_VAL;
    kill(&id, SIGKILL, 0);
  }
}

/// Ends the step on all nodes if one node fails. Otherwise the other nodes would go on, or wait
/// forever for the tasks of this node.
void end_step_everywhere(spank_t spank) {
  uint32_t step = item_of(spank, S_JOB_STEPID, uint32_t{0});
  bool alone = item_of(spank, S_JOB_NNODES, uint32_t{1}) < 2 || step > SLURM_MAX_NORMAL_STEP_ID;
  if (alone || item_of(spank, S_TASK_ID, -1) != 0) return;
  kill_step(slurm_kill_job_step, item_of(spank, S_JOB_ID, uint32_t{0}), step);
}

/// Waits for the container, before a task enters any namespace; a failure leaves the task
/// unchanged.
Result<Handles> await_container(spank_t spank) {
  if (plugin.fault) return std::move(*plugin.fault);
  if (!has_descriptors()) {
    return make_error(Kind::unsupported, "make a container with PrologFlags=contain_spank",
                      "PrologFlags of slurm.conf without it");
  }
  // When Slurm kills a step without cgroups, it spares processes that are named slurmstepd.
  ::prctl(PR_SET_NAME, "berth-join", 0, 0, 0);
  if (item_of(spank, S_TASK_ID, -1) == 0) {
    auto environment = TRY(environment_of_node(spank));
    TRY(begin_berth(plugin.berth.order, environment));
  } else {
    ::close(plugin.berth.order);
  }
  auto handles = TRY(ask(plugin.ours));
  if (!handles) {
    // The messages of berth are on the standard error of the first task.
    return make_error(Kind::not_found, "the container of this step was not started on this node");
  }
  return *handles;
}

Result<void> enter_container(spank_t spank) {
  auto handles = await_container(spank);
  if (!handles.ok()) {
    // Before entering the container, while this process is still in the namespaces of the node.
    end_step_everywhere(spank);
    return std::move(handles).error();
  }
  Confinement confinement = TRY(read_confinement(plugin.rights));
  spank_unsetenv(spank, slurm::kBoardVariable);  // a secret that the program does not need
  TRY(set_variables(spank, *handles));
  return join(*handles, confinement);
}

void close_and_forget(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

/// Waits `patience` ms, or until `watch` becomes readable; returns whether berth has ended. Uses
/// the pidfd if there is one, since any process that has the socket could shut it down.
bool has_ended(int patience, int watch = -1) {
  bool by_process = plugin.berth.process >= 0;
  std::array<pollfd, 2> entries{{{by_process ? plugin.berth.process : plugin.ours,
                                  static_cast<short>(by_process ? POLLIN : 0), 0},
                                 {watch, POLLIN, 0}}};
  while (::poll(entries.data(), entries.size(), patience) < 0 && errno == EINTR) {
  }
  return (entries[0].revents & (by_process ? POLLIN : POLLHUP)) != 0;
}

void kill_berth() {
  if (plugin.berth.process < 0) return;
  ::syscall(SYS_pidfd_send_signal, plugin.berth.process, SIGKILL, nullptr, 0);
}

/// Lets the container end, and waits until no process of it is left.
void end_for_removal() {
  if (!has_descriptors()) return;
  close_and_forget(plugin.berth.order);  // still open if no task was ever forked
  if (plugin.ours < 0) return;
  ::shutdown(plugin.ours, SHUT_WR);
  // Slurm drains a node if killed processes do not end.
  bool saves = plugin.asked.value(slurm::Key::save) != nullptr && !plugin.killed;
  bool gives = plugin.nodes > 1 && plugin.site.one_fetch && !plugin.killed;
  const int patience = saves ? kForSaving : (gives ? kForOthers : kPatience);
  std::optional<StepWatch> watch;
  if (patience > kPatience) watch.emplace();
  if (!has_ended(patience, watch ? watch->handle() : -1)) {
    // The entrypoint is still running, or berth does not end, for example because the job has
    // stopped it. Killing berth kills the container.
    slurm_error("berth: the container of this step has not ended within %d s%s, and is killed",
                patience / 1000, watch ? " or before the step was killed" : "");
    kill_berth();
    has_ended(kPatience);
  }
  close_and_forget(plugin.berth.process);
  close_and_forget(plugin.ours);
  if (!plugin.cgroup.empty()) remove_cgroup(std::exchange(plugin.cgroup, ""));
}

/// Opens the board, by which the nodes of a step with an image find each other. If that fails, each
/// node asks the registry.
Result<void> open_board(spank_t spank) {
  ::unsetenv(slurm::kBoardVariable);  // from a step in which this srun runs
  bool alone = item_of(spank, S_JOB_NNODES, uint32_t{1}) < 2;
  bool has_image = plugin.asked.value(slurm::Key::image) != nullptr ||
                   plugin.asked.value(slurm::Key::environment_file) != nullptr;
  bool wanted = plugin.site.one_fetch && has_image;
  // In a heterogeneous job each part numbers its own nodes, but all share one environment.
  if (alone || !wanted || plugin.board) return {};
  plugin.board = TRY(BoardServer::open());
  ::setenv(slurm::kBoardVariable, plugin.board->invitation().c_str(), 1);
  return {};
}

/// No exception may reach Slurm.
template <class Work>
int guarded(Work work) noexcept {
  try {
    Result<void> done = work();
    if (done.ok()) return 0;
    say(done.error());
  } catch (const std::exception& error) {
    slurm_error("berth: %s", error.what());
  }
  return -1;
}

}  // namespace
}  // namespace berth::spank

using namespace berth;         // NOLINT(google-build-using-namespace): below is C
using namespace berth::spank;  // NOLINT(google-build-using-namespace)

#define BERTH_HOOK extern "C" __attribute__((visibility("default"))) int

BERTH_HOOK slurm_spank_init(spank_t spank, int argc, char** argv) {
  return guarded([&]() -> Result<void> {
    TRY(take_arguments(argc, argv, plugin.site));
    spank_context_t context = spank_context();
    bool allocates = context == S_CTX_ALLOCATOR && plugin.site.batch;
    if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && !allocates) return {};
    return register_options(spank);
  });
}

BERTH_HOOK slurm_spank_init_post_opt(spank_t spank, int, char**) {
  return guarded([&]() -> Result<void> {
    bool remote = spank_context() == S_CTX_REMOTE;
    auto taken = plugin.asked.take_variables([&](const std::string& name) {
      if (remote) return variable_of_job(spank, name);
      const char* value = std::getenv(name.c_str());
      return value == nullptr ? std::optional<std::string>() : std::optional<std::string>(value);
    });
    if (remote) {
      if (!taken.ok()) plugin.fault = taken.error();
      // A variable with a fault may have requested a container.
      plugin.wanted = (plugin.asked.wants_container() || plugin.fault) &&
                      item_of(spank, S_JOB_STEPID, uint32_t{0}) != SLURM_EXTERN_CONT;
      return {};
    }
    TRY(std::move(taken));
    for (const std::string& option : plugin.asked.without_container()) {
      slurm_error(
          "berth: ignoring %s: none of --container-image, --container-name and "
          "--environment is set",
          option.c_str());
    }
    return {};
  });
}

// In srun, when it knows the step, and before any task of the step runs.
BERTH_HOOK slurm_spank_local_user_init(spank_t spank, int, char**) {
  guarded([&] { return open_board(spank); });
  return 0;
}

// In slurmstepd, with the effective user of the job. Slurm would lose an error here, so the tasks
// report it.
BERTH_HOOK slurm_spank_user_init(spank_t spank, int, char**) {
  if (!plugin.wanted) return 0;
  plugin.tasks = item_of(spank, S_JOB_LOCAL_TASK_COUNT, uint32_t{0});
  plugin.nodes = item_of(spank, S_JOB_NNODES, uint32_t{1});
  for (size_t i = 0; i < slurm::kVisible.size(); ++i) {
    plugin.visible[i] = variable_of_job(spank, slurm::kVisible[i]);
  }
  if (plugin.fault) return 0;
  return guarded([&]() -> Result<void> {
    auto prepared = prepare(spank);
    if (!prepared.ok()) plugin.fault = std::move(prepared).error();
    return {};
  });
}

// In slurmstepd, as root, when all tasks are forked and none runs yet.
BERTH_HOOK slurm_spank_task_post_fork(spank_t spank, int, char**) {
  if (!plugin.wanted || plugin.berth.order < 0 || !has_descriptors()) return 0;
  guarded([&] { return note_container(spank); });
  int tracked = guarded([&]() -> Result<void> {
    plugin.cgroup = TRY(track(item_of(spank, S_TASK_PID, pid_t{0}), plugin.berth.process));
    return {};
  });
  // Outside of the step's cgroup berth would give the container all devices of the job. Once berth
  // is killed, tasks get no answer.
  if (tracked != 0) kill_berth();
  close_and_forget(plugin.berth.order);
  return 0;
}

// In a task, as the user.
BERTH_HOOK slurm_spank_task_init(spank_t spank, int, char**) {
  if (!plugin.wanted) return 0;
  if (guarded([&] { return enter_container(spank); }) == 0) return 0;
  // With "optional" in plugstack.conf, Slurm would otherwise run the task outside of a container.
  _exit(kFailed);
}

// In slurmstepd, as root.
BERTH_HOOK slurm_spank_task_exit(spank_t spank, int, char**) {
  if (!plugin.wanted) return 0;
  int status = item_of(spank, S_TASK_EXIT_STATUS, 0);
  plugin.killed = plugin.killed || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  if (++plugin.ended >= plugin.tasks) end_for_removal();
  return 0;
}

// In `slurmstepd spank epilog`, as root, when no process of the job runs on this node. Slurm calls
// no other hook there.
BERTH_HOOK slurm_spank_job_epilog(spank_t spank, int argc, char** argv) {
  guarded([&]() -> Result<void> {
    TRY(take_arguments(argc, argv, plugin.site));
    JobEnd end;
    end.job = item_of(spank, S_JOB_ID, uint32_t{0});
    end.user = item_of(spank, S_JOB_UID, static_cast<uid_t>(-1));
    end.group = item_of(spank, S_JOB_GID, static_cast<gid_t>(-1));
    end.program = plugin.site.program;
    end.scope = plugin.site.scope;
    end.patience = plugin.site.epilog_seconds * 1000;
    TRY_CTX(end_job(end), "cannot remove what job " + std::to_string(end.job) + " has left");
    return {};
  });
  return 0;  // Slurm drains the node after an error
}

BERTH_HOOK slurm_spank_exit(spank_t, int, char**) {
  plugin.board.reset();  // end the thread before Slurm unloads the plugin
  if (plugin.wanted) end_for_removal();
  return 0;
}
