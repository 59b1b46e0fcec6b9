// SPDX-License-Identifier: Apache-2.0
#include "engine/build/steps.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "bake/containerfile.hpp"
#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "engine/request/ulimits.hpp"
#include "oci/image_spec.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::seconds kProbe{60};
constexpr const char* kJob = "job-";
constexpr size_t kMaxBuildSteps = size_t{1} << 20;

/// buildah with its storage. It runs in its own mount namespace, so that its mounts end with it.
struct Buildah {
  std::string unshare, program, storage, run, driver;
  /// The variables that `buildah unshare` sets for its children. Without them buildah mistakes root
  /// of a user namespace for the machine's root, and opens /run/lock/netavark.lock, which an
  /// ordinary user may not open.
  std::vector<std::string> environment;
  bool single = false;
  bool offline = false;

  BuildStep step(std::vector<std::string> words) const {
    BuildStep step;
    step.program = unshare;
    step.arguments = {unshare, "--mount", "--propagation", "private"};
    // With chroot isolation RUN uses buildah's network.
    if (offline) step.arguments.push_back("--net");
    step.arguments.insert(step.arguments.end(), {"--", program, "--root", storage, "--runroot", run,
                                                 "--storage-driver", driver});
    step.environment = environment;
    if (single) {
      // With a single id the owners of a base image's files cannot be kept.
      step.arguments.push_back("--storage-opt");
      step.arguments.push_back(driver + ".ignore_chown_errors=true");
    }
    step.arguments.insert(step.arguments.end(), words.begin(), words.end());
    return step;
  }
};

Result<std::string> find_builder(const Context& context, const std::string& name,
                                 const std::string& hint) {
  std::string program = find_in_path(context, name);
  if (!program.empty()) return program;
  return make_error(Kind::not_found, "find '" + name + "' in PATH: it is not installed", hint);
}

Result<bool> succeeds(const Context& context, const BuildStep& step) {
  sys::SpawnOptions options;
  options.program = step.program;
  options.args = step.arguments;
  options.env = with_variables(context, step);
  sys::CommandOutput output = TRY(sys::run_command(options, {}, kProbe));
  return output.status.shell_code() == 0;
}

/// "linux-amd64" for this machine's own platform, "linux-arm64-v8": a file name.
std::string platform_name(const std::string& platform) {
  std::string name = platform.empty() ? oci::platform_text(oci::host_platform()) : platform;
  std::ranges::replace(name, '/', '-');
  return name;
}

Result<Buildah> find_buildah(const Context& context, const BuildPlace& place,
                             const std::string& platform) {
  Buildah buildah;
  buildah.program = TRY(find_builder(context, "buildah",
                                     sys::how_to_install("buildah") + ", or builder = \"docker\""));
  buildah.unshare = TRY(find_builder(context, "unshare", sys::how_to_install("util-linux")));
  buildah.storage = place.paths().storages() + "/" + platform;
  buildah.run = place.paths().runs() + "/" + platform;
  buildah.single = context.identity == Identity::single;
  if (context.identity != Identity::root) {
    std::string group =
        std::to_string(context.caller.groups.empty() ? 0 : context.caller.groups[0]);
    buildah.environment = {"_CONTAINERS_USERNS_CONFIGURED=done",
                           "_CONTAINERS_ROOTLESS_UID=" + std::to_string(context.caller.uid),
                           "_CONTAINERS_ROOTLESS_GID=" + group};
  }
  auto wished = context.environment.get_filled("STORAGE_DRIVER");
  buildah.driver = wished ? std::string(*wished) : "overlay";
  if (wished) return buildah;
  // Only a trial shows whether the kernel and the file system support overlay.
  bool works = TRY(succeeds(context, buildah.step({"images", "--quiet"})));
  if (!works) buildah.driver = "vfs";
  return buildah;
}

void add_pairs(std::vector<std::string>& words, const char* flag,
               const std::map<std::string, std::string>& pairs) {
  for (const auto& [name, value] : pairs) {
    words.emplace_back(flag);
    words.push_back(name + "=" + value);
  }
}

/// The flags that both builders have in common.
void add_common(std::vector<std::string>& words, const BuildJob& job) {
  add_pairs(words, "--build-arg", job.args);
  add_pairs(words, "--label", job.labels);
  if (!job.target.empty()) words.insert(words.end(), {"--target", job.target});
  if (!job.platform.empty()) words.insert(words.end(), {"--platform", job.platform});
  if (job.no_cache) words.emplace_back("--no-cache");
  if (job.quiet) words.emplace_back("--quiet");
  words.insert(words.end(), {"--file", job.file});
}

void add_extras(std::vector<std::string>& words, const BuildExtras& extras) {
  auto add = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.insert(words.end(), {flag, value});
  };
  add("--secret", extras.secrets);
  add("--ssh", extras.ssh);
  add("--add-host", extras.hosts);
  add("--ulimit", extras.ulimits);
  // Without layers for the steps, all steps make one layer. (buildah's --squash would include the
  // layers of the base image.) The next sweep removes what a failed build leaves.
  if (extras.squash) {
    words.emplace_back("--layers=false");
  } else {
    words.insert(words.end(), {"--layers", "--force-rm"});
  }
}

Result<std::vector<BuildStep>> steps_of_buildah(const Context& context, const BuildPlace& place,
                                                const Buildah& buildah, const BuildJob& job) {
  const std::string id_file = job.out + ".id";
  // Docker's config format keeps HEALTHCHECK, ONBUILD and SHELL, which buildah's OCI format loses.
  std::vector<std::string> words = {"build",    "--pull=false", "--identity-label=false",
                                    "--format", "docker",       "--iidfile",
                                    id_file};
  if (!context.environment.get_filled("BUILDAH_ISOLATION")) {
    words.insert(words.end(), {"--isolation", "chroot"});
  }
  add_common(words, job);
  add_extras(words, job.extras);
  for (const std::string& limit : TRY(limits_for_buildah(context, job.extras.ulimits))) {
    words.insert(words.end(), {"--ulimit", limit});
  }
  if (!job.ignore_file.empty()) words.insert(words.end(), {"--ignorefile", job.ignore_file});
  for (const Base& base : job.bases) {
    words.insert(words.end(),
                 {"--build-context", base.name + "=docker-image://oci:" + base.layout});
  }
  words.push_back(job.context);
  BuildStep build = buildah.step(std::move(words));
  build.working_directory = place.work();
  std::string name = job.out.substr(job.out.rfind('/') + 1);
  BuildStep push = buildah.step({"push", "--quiet", "--format", "v2s2", "{id}", "dir:" + name});
  push.working_directory = place.work();
  push.id_file = id_file;
  return std::vector<BuildStep>{std::move(build), std::move(push)};
}

/// Writes the Containerfile with the values of arguments in image names beside the output; it is
/// removed with that directory.
Result<std::string> write_containerfile(const BuildJob& job) {
  std::string text = TRY(sys::read_file(sys::cwd(), job.file, kMaxBuildSteps));
  text = TRY(bake::with_values_in_names(text, job.args));
  std::string path = job.out + ".containerfile";
  TRY(sys::write_file(sys::cwd(), path, text, 0600));
  return path;
}

std::vector<BuildStep> steps_of_docker(const std::string& docker, const BuildJob& job) {
  std::vector<std::string> words = {docker, "build", "--pull", "--tag", job.tag};
  add_common(words, job);
  words.push_back(job.context);
  return {{docker, std::move(words)}, {docker, {docker, "save", "--output", job.out, job.tag}}};
}

Result<std::string> first_of(const std::string& directory, std::vector<std::string> names) {
  for (const std::string& name : names) {
    std::string path = directory + "/" + name;
    if (!TRY(sys::stat_entry(sys::cwd(), path))) continue;
    // The context is untrusted, and opening a FIFO blocks until another process writes to it.
    sys::Fd held = TRY(sys::open_at(sys::cwd(), path, O_PATH));
    struct stat status = TRY(sys::stat_fd(held, path));
    if (S_ISREG(status.st_mode)) return path;
    return make_error(Kind::usage, "read " + quote(path) + ": it is not a regular file", "-f FILE");
  }
  return std::string();
}

/// Removes what killed builds left. Call only while no other build runs.
void sweep(const Context& context, const BuildPlace& place) {
  const std::string& directory = place.paths().directory();
  auto names = sys::list_directory(sys::cwd(), directory);
  bool killed = false;
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (!name.starts_with(kJob)) continue;
    killed = true;
    auto removed = sys::remove_tree(sys::cwd(), directory + "/" + name);
    if (!removed.ok()) context.log.warn(to_line(removed.error()) + ", ignoring");
  }
  if (!killed) return;
  auto platforms = sys::list_directory(sys::cwd(), place.paths().storages());
  for (const std::string& name : platforms.ok() ? *platforms : std::vector<std::string>()) {
    auto buildah = find_buildah(context, place, name);
    if (buildah.ok())
      ignore(succeeds(context, buildah->step({"rm", "--all"})));  // the next sweep retries
  }
}

constexpr std::chrono::seconds kGrace{10};

/// "buildah build": leaves out the program that creates its mount namespace.
std::string step_name(const BuildStep& step) {
  std::string name = step.program.substr(step.program.rfind('/') + 1);
  if (name == "unshare") name = "buildah";
  return name;
}

}  // namespace

Result<BuildPlace> BuildPlace::open(const Context& context) {
  BuildPlace place(context.paths);
  const std::string directory = place.paths_.directory();
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  std::string path = place.paths_.lock();
  place.lock_ = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_CREAT, 0600));
  bool alone = TRY(sys::try_lock(place.lock_, sys::LockMode::exclusive, path));
  if (alone) sweep(context, place);
  TRY(sys::wait_lock(place.lock_, sys::LockMode::shared, path));
  sys::Fd opened = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
  place.work_ = TRY(sys::TempDir::make(opened, kJob));
  place.work_path_ = directory + "/" + place.work_.name();
  return place;
}

std::optional<std::vector<std::string>> with_variables(const Context& context,
                                                       const BuildStep& step) {
  if (step.environment.empty()) return std::nullopt;
  std::vector<std::string> out = context.environment.entries();
  out.insert(out.end(), step.environment.begin(), step.environment.end());
  return out;
}

Result<std::vector<BuildStep>> build_steps(const Context& context, const BuildPlace& place,
                                           const BuildJob& job) {
  if (job.builder == bake::Builder::docker) {
    std::string docker = TRY(find_builder(
        context, "docker", sys::how_to_install("docker.io") + ", or builder = \"buildah\""));
    return steps_of_docker(docker, job);
  }
  Buildah buildah = TRY(find_buildah(context, place, platform_name(job.platform)));
  buildah.offline = job.extras.offline;
  BuildJob told = job;
  told.file = TRY_CTX(write_containerfile(job), "cannot read " + quote(job.file));
  return steps_of_buildah(context, place, buildah, told);
}

Result<std::string> find_ignore_file(const std::string& context, bake::Builder builder) {
  if (builder == bake::Builder::docker) return first_of(context, {".dockerignore"});
  return first_of(context, {".containerignore", ".dockerignore"});
}

Result<std::string> find_containerfile(const std::string& context) {
  std::string path = TRY(first_of(context, {"Containerfile", "Dockerfile"}));
  if (!path.empty()) return path;
  return make_error(Kind::not_found,
                    quote(context) + " has neither a Containerfile nor a Dockerfile",
                    "-f FILE, or file = \"…\" in the bake file");
}

Result<BuildRunner> BuildRunner::make(const Context& context) {
  BuildRunner runner;
  runner.context_ = &context;
  runner.signals_ = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGHUP}));
  return runner;
}

Result<void> BuildRunner::start(size_t key, std::vector<BuildStep> steps, const std::string& log) {
  Build build;
  build.key = key;
  build.steps.assign(std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
  build.log = log;
  if (!log.empty()) {
    build.output =
        TRY(sys::open_at(sys::cwd(), log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600));
  }
  TRY(start_step(build));
  builds_.push_back(std::move(build));
  return {};
}

Result<void> BuildRunner::start_step(Build& build) {
  BuildStep& step = build.steps.front();
  if (!step.id_file.empty()) {
    std::string id = TRY(sys::read_file(sys::cwd(), step.id_file, 256));
    for (std::string& word : step.arguments) {
      if (word == "{id}") word = trim(id);
    }
  }
  sys::Fd nothing = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDONLY));
  sys::Fd standard_error(STDERR_FILENO);
  const sys::Fd& output = build.log.empty() ? standard_error : build.output;
  sys::SpawnOptions options;
  options.program = step.program;
  options.args = step.arguments;
  options.in = &nothing;
  options.out = &output;
  options.err = &output;
  options.working_directory = step.working_directory;
  options.new_session = true;  // a process group of its own, which can be ended as a whole
  options.env = with_variables(*context_, step);
  auto process = sys::spawn(options);
  standard_error.release();  // not ours to close
  build.process = TRY(std::move(process));
  return {};
}

std::optional<BuildRunner::Ended> BuildRunner::advance(Build& build,
                                                       const sys::ExitStatus& status) {
  if (status.shell_code() != 0) {
    std::string how = status.signal != 0 ? "was ended by signal " + std::to_string(status.signal)
                                         : "ended with status " + std::to_string(status.code);
    // With a single id a process cannot change to another id, nor set its groups.
    std::string hint = context_->identity == Identity::single
                           ? "subordinate ids, which RUN needs: " + sys::how_to_install("uidmap") +
                                 ", and lines in /etc/subuid and /etc/subgid"
                           : "";
    return Ended{
        build.key,
        make_error(Kind::io, "build the image: " + step_name(build.steps.front()) + " " + how,
                   std::move(hint))};
  }
  build.steps.pop_front();
  if (build.steps.empty()) return Ended{build.key, std::nullopt};
  auto started = start_step(build);
  if (started.ok()) return std::nullopt;
  return Ended{build.key, std::move(started).error()};
}

Result<void> BuildRunner::check_signals() {
  auto signal = TRY(sys::read_signal(signals_));
  if (!signal) return {};
  end_all();
  return make_error(Kind::interrupted, "stopped by a signal");
}

Result<BuildRunner::Ended> BuildRunner::wait() {
  while (true) {
    TRY(check_signals());
    std::vector<pollfd> entries{{signals_.get(), POLLIN, 0}};
    for (const Build& build : builds_) entries.push_back({build.process.pidfd().get(), POLLIN, 0});
    TRY(sys::poll(entries, std::nullopt));
    for (auto build = builds_.begin(); build != builds_.end(); ++build) {
      auto status = TRY(build->process.wait_for(std::chrono::milliseconds(0)));
      if (!status) continue;
      auto ended = advance(*build, *status);
      if (ended) {
        builds_.erase(build);
        return std::move(*ended);
      }
    }
  }
}

void BuildRunner::end_all() {
  // A program may have ended already.
  for (Build& build : builds_) {
    if (build.process) ignore(sys::send_signal(-build.process.pid(), SIGTERM));
  }
  for (Build& build : builds_) {
    if (!build.process) continue;
    auto ended = build.process.wait_for(kGrace);
    ignore(sys::send_signal(-build.process.pid(), SIGKILL));
    if (ended.ok() && !*ended) ignore(build.process.wait());
  }
  builds_.clear();
}

}  // namespace berth::engine
