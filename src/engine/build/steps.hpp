// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bake/bake_file.hpp"
#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/remove_tree.hpp"

/// The programs that make an image of a Containerfile, and what they are called with.
namespace berth::engine {

/// Where builds keep their things in a store.
class BuildPaths {
 public:
  explicit BuildPaths(const Paths& paths) : directory_(paths.root + "/build") {}

  const std::string& directory() const { return directory_; }
  /// Held shared by each build.
  std::string lock() const { return directory_ + "/lock"; }
  /// Of all caches of buildah: one for each platform ("linux-arm64"), which buildah does not ask
  /// for when it looks for a step that was done before.
  std::string storages() const { return directory_ + "/storage"; }
  std::string runs() const { return directory_ + "/storage.run"; }

 private:
  std::string directory_;
};

/// The place where builds keep their layers from one time to the next, and their temporary files.
/// While one lives nobody sweeps; what a killed one has left goes with the next that is alone.
class BuildPlace {
 public:
  /// Errors: denied, io.
  static Result<BuildPlace> open(const Context& context);

  const BuildPaths& paths() const { return paths_; }
  /// A directory of this process's own; gone with this object.
  const std::string& work() const { return work_path_; }

 private:
  explicit BuildPlace(const Paths& paths) : paths_(paths) {}

  BuildPaths paths_;
  sys::Fd lock_;
  sys::TempDir work_;
  std::string work_path_;
};

/// An image that a Containerfile names, as an OCI layout for the builder.
struct Base {
  std::string name;    ///< as the Containerfile has it
  std::string layout;  ///< directory, in BuildPlace::work()
};

/// What is asked of the builder beyond the file, its arguments and its names.
struct BuildExtras {
  std::vector<std::string> secrets;  ///< "id=token,src=/absolute", "id=token,type=env,env=TOKEN"
  std::vector<std::string> ssh;      ///< "default", "default=/absolute"
  std::vector<std::string> hosts;    ///< "name:address", for RUN
  std::vector<std::string> ulimits;  ///< "nofile=1024:2048", for RUN
  bool squash = false;               ///< one layer of all that the file adds
  bool offline = false;              ///< RUN has no network
  bool docker_types = false;         ///< media types of Docker, not of OCI
};

struct BuildJob {
  bake::Builder builder = bake::Builder::buildah;
  std::string tag;          ///< what docker calls it, and what the image is loaded as
  std::string context;      ///< absolute
  std::string file;         ///< absolute
  std::string ignore_file;  ///< absolute; empty: none
  std::string target, platform;
  std::map<std::string, std::string> args, labels;
  std::vector<Base> bases;
  BuildExtras extras;  ///< for buildah alone
  bool no_cache = false;
  bool quiet = false;
  std::string out;  ///< what comes into being: a directory or an archive, for load_built()
};

/// One program after the other, each only when the one before has succeeded.
struct BuildStep {
  std::string program;  ///< absolute
  std::vector<std::string> arguments;
  std::vector<std::string> environment = {};  ///< more than the caller's: "K=V"
  std::string working_directory = {};
  /// "{id}" in the arguments: what this file holds.
  std::string id_file = {};
};

/// The caller's environment and that of `step`; nothing: the step needs no more than the caller's.
std::optional<std::vector<std::string>> with_variables(const Context& context,
                                                       const BuildStep& step);

/// Errors: not_found (the builder is not installed).
Result<std::vector<BuildStep>> build_steps(const Context& context, const BuildPlace& place,
                                           const BuildJob& job);

/// The file that says what of a context is left out: .containerignore, which docker does not know,
/// else .dockerignore; empty: none.
Result<std::string> find_ignore_file(const std::string& context, bake::Builder builder);
/// Containerfile, else Dockerfile, of a context.  Errors: not_found.
Result<std::string> find_containerfile(const std::string& context);

}  // namespace berth::engine
