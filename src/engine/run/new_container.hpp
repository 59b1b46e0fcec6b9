// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/decide.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/request/request.hpp"
#include "engine/run/owner.hpp"
#include "engine/state/directory.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// 64 hexadecimal digits. The first 12, the short id, are never all decimal digits: as a host name,
/// a number would be parsed as an address. Docker avoids this, too.
std::string make_container_id();

/// A container that is being created: its directory, locked by this process. If this object is
/// destroyed before keep(), nothing of the container is left.
class NewContainer {
 public:
  /// Creates the directory, with a new id.  Errors: denied, io.
  static Result<NewContainer> begin(const Context& context, const Resolved& resolved, Owner owner);
  NewContainer(NewContainer&& other) noexcept;
  NewContainer& operator=(NewContainer&&) = delete;
  ~NewContainer();

  const std::string& id() const { return directory_.id(); }
  const ContainerDirectory& directory() const { return directory_; }

  /// Writes the rest, after write_config(): its record, its name, the request for the next start,
  /// its volumes and files.
  /// Errors: exists (the name), not_found (a socket to mount), unsupported, denied, io.
  Result<void> write(const Decision& decision);

  void keep() { owned_ = false; }
  /// Removes the container now, not in the destructor.
  void remove();

 private:
  NewContainer(const Context& context, const Resolved& resolved, Owner owner,
               ContainerDirectory directory);
  Result<void> write_request();
  Result<void> take_name(record::Container& record);

  const Context* context_;
  const Resolved* resolved_;
  Owner owner_;
  ContainerDirectory directory_;
  bool owned_ = true;
};

/// Saves the output of `berth explain` for `decision` in `files`, the container's directory. A
/// failure is only a warning.
void save_explanation(const Context& context, Decision& decision, const sys::Fd& files);

/// The file of --cidfile: created before the container, so that of two callers with the same path
/// only one succeeds. The destructor removes it unless the id was written.
class CidFile {
 public:
  CidFile() = default;
  CidFile(CidFile&& other) noexcept;
  CidFile& operator=(CidFile&&) = delete;
  ~CidFile();

  /// Creates the file at `path`; does nothing without a path. Errors: exists, with docker's
  /// message; denied, io.
  static Result<CidFile> create(const std::optional<std::string>& path);

  /// Writes `id`; the file then stays. Errors: io.
  Result<void> write(const std::string& id);

 private:
  std::string path_;  ///< empty: nothing to remove
  sys::Fd fd_;
};

}  // namespace berth::engine
