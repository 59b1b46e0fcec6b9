// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bake/bake_file.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/process.hpp"

/// The programs that build an image from a Containerfile, and their arguments.
namespace berth::engine {

/// The paths of builds in a store.
class BuildPaths {
 public:
  explicit BuildPaths(const Paths& paths) : directory_(paths.root + "/build") {}

  const std::string& directory() const { return directory_; }
  /// Each build holds a shared lock on this file.
  std::string lock() const { return directory_ + "/lock"; }
  /// The directory of buildah's caches. Each platform ("linux-arm64") has its own, because buildah
  /// ignores the platform when it looks up a cached step.
  std::string storages() const { return directory_ + "/storage"; }
  std::string runs() const { return directory_ + "/storage.run"; }

 private:
  std::string directory_;
};

/// The directory for the layers that builds keep, and for their temporary files. The lock prevents
/// a sweep while a build runs. A build that starts while no other runs removes what killed builds
/// left.
class BuildPlace {
 public:
  /// Errors: denied, io.
  static Result<BuildPlace> open(const Context& context);

  const BuildPaths& paths() const { return paths_; }
  /// A directory for this process only; removed with this object.
  const std::string& work() const { return work_path_; }

 private:
  explicit BuildPlace(const Paths& paths) : paths_(paths) {}

  BuildPaths paths_;
  sys::Fd lock_;
  sys::TempDir work_;
  std::string work_path_;
};

/// An image that a Containerfile names, saved as an OCI layout for the builder.
struct Base {
  std::string name;    ///< as in the Containerfile
  std::string layout;  ///< directory, in BuildPlace::work()
};

/// Options of a build beyond the file, its arguments and its names.
struct BuildExtras {
  std::vector<std::string> secrets;  ///< "id=token,src=/absolute", "id=token,type=env,env=TOKEN"
  std::vector<std::string> ssh;      ///< "default", "default=/absolute"
  std::vector<std::string> hosts;    ///< "name:address", for RUN
  std::vector<std::string> ulimits;  ///< "nofile=1024:2048", for RUN
  bool squash = false;               ///< one layer for everything that the file adds
  bool offline = false;              ///< RUN has no network
  bool docker_types = false;         ///< Docker's media types instead of OCI's
};

struct BuildJob {
  bake::Builder builder = bake::Builder::buildah;
  std::string tag;          ///< the tag for docker, and the name under which the image is loaded
  std::string context;      ///< absolute
  std::string file;         ///< absolute
  std::string ignore_file;  ///< absolute; empty: none
  std::string target, platform;
  std::map<std::string, std::string> args, labels;
  std::vector<Base> bases;
  BuildExtras extras;  ///< only for buildah
  bool no_cache = false;
  bool quiet = false;
  std::string out;  ///< the output: a directory or an archive, for load_built()
};

/// One program of a build; each runs only if the previous one succeeded.
struct BuildStep {
  std::string program;  ///< absolute
  std::vector<std::string> arguments;
  std::vector<std::string> environment = {};  ///< "K=V", added to the caller's environment
  std::string working_directory = {};
  /// Replaces "{id}" in the arguments by the contents of this file.
  std::string id_file = {};
};

/// The caller's environment with the variables of `step`; nothing if `step` adds none.
std::optional<std::vector<std::string>> with_variables(const Context& context,
                                                       const BuildStep& step);

/// Errors: not_found (the builder is not installed).
Result<std::vector<BuildStep>> build_steps(const Context& context, const BuildPlace& place,
                                           const BuildJob& job);

/// The file with the patterns of files to leave out of a context: .containerignore (which docker
/// does not know), else .dockerignore; empty: none.
Result<std::string> find_ignore_file(const std::string& context, bake::Builder builder);
/// The Containerfile of the context, else its Dockerfile.  Errors: not_found.
Result<std::string> find_containerfile(const std::string& context);

/// Parallel builds. A signal, or the end of this process, ends them with all of their processes.
class BuildRunner {
 public:
  /// From now on only wait() and check_signals() receive SIGINT, SIGTERM and SIGHUP.
  static Result<BuildRunner> make(const Context& context);
  BuildRunner(BuildRunner&&) = default;
  BuildRunner& operator=(BuildRunner&&) = default;
  ~BuildRunner() { end_all(); }

  /// `log`: the file for the output of the programs; empty: our stderr.
  /// Errors: not_found, denied, io.
  Result<void> start(size_t key, std::vector<BuildStep> steps, const std::string& log);
  size_t running() const { return builds_.size(); }

  struct Ended {
    size_t key = 0;
    std::optional<Error> error;  ///< of the step that failed
  };
  /// Returns the next build that ends.  Errors: interrupted (by a signal; all builds have ended),
  /// io.
  Result<Ended> wait();
  /// Errors: interrupted, if a signal has arrived since make().
  Result<void> check_signals();

 private:
  struct Build {
    size_t key = 0;
    std::deque<BuildStep> steps;  // the first one is running
    std::string log;
    sys::Fd output;
    sys::Process process;
  };
  BuildRunner() = default;
  Result<void> start_step(Build& build);
  /// Returns nothing while the build continues.
  std::optional<Ended> advance(Build& build, const sys::ExitStatus& status);
  void end_all();

  const Context* context_ = nullptr;
  sys::Fd signals_;
  std::list<Build> builds_;
};

}  // namespace berth::engine
