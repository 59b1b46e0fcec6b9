// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/record.hpp"
#include "sys/fd.hpp"

namespace berth::engine {

/// Whether a container stays when it has ended.
enum class Lifetime {
  removed,  ///< --rm: its small files lie in the state directory, which costs no disk
  kept,     ///< all of it lies in the store
};

/// What the files of a container say.
struct ContainerFiles {
  std::optional<ContainerRecord> record;  ///< none: it was never finished, or is damaged
  std::optional<Error> damage;            ///< why the record cannot be read
  std::optional<ExitRecord> exit;
  bool owned = false;  ///< somebody holds the lock
};

/// containers/<id> of a store, held by a lock on the directory itself that the kernel takes back
/// when the holder dies: a container lives as long as its owner (berth in the foreground,
/// berth-monitor behind it) holds the lock.
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

  /// Binds `name` to this container; remove() gives it up.
  /// Errors: exists (reserve_name()).
  Result<void> reserve(const std::string& name);

  Result<void> write(const ContainerRecord& record) const;
  /// After the container's record.
  Result<void> write(const ExitRecord& record) const;
  Result<ContainerFiles> read() const;

  /// Gives up the name, then removes the directory with all that is in it. The lock is held to the
  /// end.
  Result<void> remove();

 private:
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

/// Errors: not_found, io.
Result<ContainerFiles> read_container(const Paths& paths, const std::string& id);

/// Waits until nobody owns the container, then reads; also when the owner has removed it.
/// Errors: not_found (it was not there to begin with), io.
Result<ContainerFiles> await_container(const Paths& paths, const std::string& id);

/// Ids of all containers, in no order; nothing when the store has none yet.
Result<std::vector<std::string>> container_ids(const std::string& root);

/// Binds `name` to `id`.
/// Errors: exists, with Docker's words and the id of the container that has it.
Result<void> reserve_name(const std::string& root, const std::string& name, const std::string& id);

/// What a link in names/ says of the container: its first 56 digits.
std::string link_text(const std::string& id);

/// The id that `name` is bound to; nothing when there is no such container.
Result<std::optional<std::string>> find_name(const std::string& root, const std::string& name);

/// Takes the name away from `id`; another owner's name stays.
Result<void> release_name(const std::string& root, const std::string& name, const std::string& id);

/// Absolute path of the link that binds `name`.
std::string name_link(const std::string& root, const std::string& name);

}  // namespace berth::engine
