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

/// Whether a container stays when it has ended.
enum class Lifetime {
  removed,  ///< --rm: its small files lie in the state directory, which costs no disk
  kept,     ///< all of it lies in the store
};

/// What the files of a container say.
struct ContainerFiles : record::Lines {
  bool owned = false;  ///< somebody holds the lock
};

/// containers/<id> of a store, held by a lock on the directory itself that the kernel takes back
/// when the holder dies: a container lives as long as its owner (berth in front of it, or
/// berth-monitor with berth-holder) holds the lock.
class ContainerDirectory {
 public:
  ContainerDirectory() = default;

  /// Makes the directory with its parts (upper, work, bundle/rootfs) and takes the lock.
  static Result<ContainerDirectory> create(const Paths& paths, const std::string& id,
                                           Lifetime lifetime);

  /// Opens an existing one and takes the lock; nothing when an owner holds it.
  /// Errors: not_found.
  static Result<std::optional<ContainerDirectory>> take_over(const Paths& paths,
                                                             const std::string& id);

  const std::string& id() const { return id_; }
  const std::string& path() const { return path_; }    ///< absolute; upper, work, log, exit status
  const std::string& files() const { return files_; }  ///< absolute; bundle, record, /etc files
  const sys::Fd& fd() const { return fd_; }            ///< of path(); holds the lock
  const sys::Fd& files_fd() const { return files_fd_ ? files_fd_ : fd_; }

  /// Binds `name` to this container, which is mark_complete() with it; remove() gives it up.
  /// Errors: exists (reserve_name()).
  Result<void> reserve(const std::string& name);
  /// It is whole.
  void mark_complete() const;

  Result<void> write(const record::Container& record) const;
  /// Adds a line after the container's record.
  template <class Line>
  Result<void> append(const Line& line) const {
    return append_line(json::write(line));
  }
  Result<ContainerFiles> read() const;

  /// Gives up the name, then removes the directory with all that is in it. The lock is held to the
  /// end.
  Result<void> remove();

 private:
  Result<void> append_line(const std::string& line) const;
  Result<void> give_up_name() const;

  Paths paths_;
  std::string id_;
  std::string path_;
  std::string files_;
  std::optional<std::string> name_;  ///< empty: known to have none; none: ask the record
  sys::Fd fd_;
  sys::Fd files_fd_;  ///< empty: the same as fd_
};

/// Where create() puts the parts of a container: its path() and its files().
std::string container_path(const Paths& paths, const std::string& id);
std::string container_files(const Paths& paths, const std::string& id, Lifetime lifetime);

Lifetime lifetime_of(const RunRequest& request);

/// Where the bundle of container `id` of `request` lies; absolute.
std::string bundle_path(const Paths& paths, const RunRequest& request, const std::string& id);

/// There while a container is in the making or being removed, and after the process that did that
/// was killed: in a directory of the state, so that a sweep need not look at all containers for it.
std::string incomplete_directory(const Paths& paths);

/// Adds a line to the record of a container that somebody else may own.  Errors: not_found, io.
Result<void> append_to_record(const Paths& paths, const std::string& id, const std::string& line);

/// Where a container that is watched has what its monitor makes (monitor/protocol.hpp).
std::string monitor_directory(const Paths& paths, const std::string& id);

/// Errors: not_found, io.
Result<ContainerFiles> read_container(const Paths& paths, const std::string& id);

/// All containers of a store, to be read one after the other.
class AllContainers {
 public:
  /// Errors: io; none where the store has no containers yet.
  static Result<AllContainers> open(const Paths& paths);
  const std::vector<std::string>& ids() const { return ids_; }
  /// Errors: not_found, io.
  Result<ContainerFiles> read(const std::string& id) const;

 private:
  Paths paths_;
  sys::Fd directory_;
  std::vector<std::string> ids_;
};

/// Waits for the end of a container that may remove itself meanwhile: it holds what it needs open.
class ExitWaiter {
 public:
  /// Errors: not_found, io.
  static Result<ExitWaiter> open(const Paths& paths, const std::string& id);
  /// Waits until nobody owns the container, then reads.  Errors: io.
  Result<ContainerFiles> wait() const;
  /// What is known by now.  Errors: io.
  Result<ContainerFiles> look() const;

 private:
  std::string id_;
  sys::Fd directory_;
  sys::Fd record_;
};

/// Ids of all containers, in no order; nothing when the store has none yet.
Result<std::vector<std::string>> container_ids(const std::string& root);

/// Binds `name` to `id`.
/// Errors: exists, with Docker's words and the id of the container that has it.
Result<void> reserve_name(const std::string& root, const std::string& name, const std::string& id);

/// What a link in names/ says of the container: its first 56 digits.
std::string link_text(const std::string& id);

/// The id that `name` is bound to; nothing when there is no such container.
Result<std::optional<std::string>> find_name(const std::string& root, const std::string& name);

/// Whether `name` is bound to `id`; cheaper than find_name().
Result<bool> is_name_of(const std::string& root, const std::string& name, const std::string& id);

/// Takes the name away from `id`; another owner's name stays.
Result<void> release_name(const std::string& root, const std::string& name, const std::string& id);

/// Absolute path of the link that binds `name`, and of the directory of all of them.
std::string name_link(const std::string& root, const std::string& name);
std::string names_directory(const std::string& root);

/// Waits for the lock that everyone takes before changing the request of the container in `files`,
/// and takes it; it goes with what is returned. Errors: busy (after a minute), io.
Result<sys::Fd> take_turn(const sys::Fd& files, const std::string& name);

}  // namespace berth::engine
