// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "json/fields.hpp"
#include "record/record.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The names in the directory of a container.
inline constexpr std::string_view kUpperDirectory = "upper";
inline constexpr std::string_view kWorkDirectory = "work";
inline constexpr std::string_view kBundleDirectory = "bundle";
inline constexpr std::string_view kRootDirectory = "rootfs";  ///< below the bundle
inline constexpr std::string_view kHostsFile = "hosts";
inline constexpr std::string_view kHostnameFile = "hostname";
inline constexpr std::string_view kResolverFile = "resolv.conf";
inline constexpr std::string_view kPasswdFile = "passwd";
inline constexpr std::string_view kGroupFile = "group";
/// The copied root of a container with the driver `copy`.
inline constexpr std::string_view kCopyDirectory = "root";

/// Whether a container remains after it has ended.
enum class Lifetime {
  removed,  ///< --rm: small files are in the state directory, which uses no disk space
  kept,     ///< all files are in the store
};

/// The contents of container.json (the record), and whether the container is owned.
struct ContainerFiles : record::Lines {
  bool owned = false;  ///< a process holds the lock of the container
};

/// The directory containers/<id> of a store, with the lock on it. The kernel releases the lock when
/// the process that holds it dies. A container is owned as long as its foreground berth, or its
/// berth-monitor with berth-holder, holds the lock.
class ContainerDirectory {
 public:
  ContainerDirectory() = default;

  /// Creates the directory with its parts (upper, work, bundle/rootfs) and acquires the lock.
  static Result<ContainerDirectory> create(const Paths& paths, const std::string& id,
                                           Lifetime lifetime);

  /// Opens an existing directory and acquires the lock; nothing if an owner holds the lock.
  /// Errors: not_found.
  static Result<std::optional<ContainerDirectory>> take_over(const Paths& paths,
                                                             const std::string& id);

  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }    ///< absolute; upper, work, log, /etc files
  const std::string& files() const { return files_; }  ///< absolute; bundle, record, request
  const sys::Fd& fd() const { return fd_; }            ///< of path(); holds the lock
  const sys::Fd& files_fd() const { return files_fd_ ? files_fd_ : fd_; }

  /// Binds `name` to this container, and calls mark_complete(). remove() releases the name.
  /// Errors: exists (reserve_name()).
  Result<void> reserve(const std::string& name);
  /// Removes the container's mark in incomplete_directory().
  void mark_complete() const;

  Result<void> write(const record::Container& record) const;
  /// Appends a line to the container's record.
  template <class Line>
  Result<void> append(const Line& line) const {
    return append_line(json::write(line));
  }
  Result<ContainerFiles> read() const;

  /// Releases the name, then removes the directory with all its contents. Holds the lock until the
  /// end.
  Result<void> remove();

 private:
  Result<void> append_line(const std::string& line) const;
  Result<void> give_up_name() const;

  Paths paths_;
  std::string id_;
  std::string path_;
  std::string files_;
  std::optional<std::string> name_;  ///< empty: no name; none: the record has the name
  sys::Fd fd_;
  sys::Fd files_fd_;  ///< empty: the same as fd_
};

/// The path() and the files() of a container, as create() makes them.
std::string container_path(const Paths& paths, const std::string& id);
std::string container_files(const Paths& paths, const std::string& id, Lifetime lifetime);

Lifetime lifetime_of(const RunRequest& request);

/// The absolute path of the bundle of container `id`, which was made from `request`.
std::string bundle_path(const Paths& paths, const RunRequest& request, const std::string& id);

/// The directory with a mark for each container that a process is creating or removing, or was
/// creating or removing when it was killed. Thanks to the marks a sweep need not check all
/// containers.
std::string incomplete_directory(const Paths& paths);

/// Appends a line to the record of a container that another process may own.  Errors: not_found,
/// io.
Result<void> append_to_record(const Paths& paths, const std::string& id, const std::string& line);

/// The directory with the files of the monitor of a container (monitor/protocol.hpp).
std::string monitor_directory(const Paths& paths, const std::string& id);

/// Errors: not_found, io.
Result<ContainerFiles> read_container(const Paths& paths, const std::string& id);

/// Reads containers of a store by id.
class AllContainers {
 public:
  /// Errors: io. A store without containers is not an error.
  static Result<AllContainers> open(const Paths& paths);
  const std::vector<std::string>& ids() const { return ids_; }
  /// Errors: not_found, io.
  Result<ContainerFiles> read(const std::string& id) const;

 private:
  Paths paths_;
  sys::Fd directory_;
  std::vector<std::string> ids_;
};

/// Waits for the end of a container. Keeps the files open, since the container may be removed at
/// its end.
class ExitWaiter {
 public:
  /// Errors: not_found, io.
  static Result<ExitWaiter> open(const Paths& paths, const std::string& id);
  /// Waits until no process owns the container, then reads its state.  Errors: io.
  Result<ContainerFiles> wait() const;
  /// Reads the current state.  Errors: io.
  Result<ContainerFiles> look() const;

 private:
  std::string id_;
  sys::Fd directory_;
  sys::Fd record_;
};

/// Ids of all containers, unsorted; empty if the store has none yet.
Result<std::vector<std::string>> container_ids(const std::string& root);

/// Binds `name` to `id`.
/// Errors: exists, Docker's message, with the id of the container that has the name.
Result<void> reserve_name(const std::string& root, const std::string& name, const std::string& id);

/// The target of a link in names/ for a container: the first 56 digits of its id.
std::string link_text(const std::string& id);

/// The id that `name` is bound to; nothing if the name is free.
Result<std::optional<std::string>> find_name(const std::string& root, const std::string& name);

/// Whether `name` is bound to `id`; cheaper than find_name().
Result<bool> is_name_of(const std::string& root, const std::string& name, const std::string& id);

/// Releases the name if it is bound to `id`.
Result<void> release_name(const std::string& root, const std::string& name, const std::string& id);

/// Absolute path of the link that binds `name`, and of the directory of all links.
std::string name_link(const std::string& root, const std::string& name);
std::string names_directory(const std::string& root);

/// Waits for the lock that protects changes to the request of the container in `files`, and
/// acquires it; destroying the result releases it. Errors: busy (after a minute), io.
Result<sys::Fd> take_turn(const sys::Fd& files, const std::string& name);

/// The latest configuration (config.json) of container `id`; nothing if it cannot be read.
std::optional<std::string> config_of(const Paths& paths, const std::string& id);

/// The ids of containers that have `needle`, such as a host path, in their config.json. A container
/// with an unreadable config.json may be incomplete, and is included.  Errors: io.
Result<std::vector<std::string>> containers_with(const Paths& paths, const std::string& needle);

}  // namespace berth::engine
