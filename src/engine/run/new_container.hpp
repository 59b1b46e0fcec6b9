// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/decide/decision.hpp"
#include "engine/decide/resolve.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"

namespace berth::engine {

/// 64 hexadecimal digits. The first 12, by which it is called, are no number: as a host name that
/// would be read as an address. Docker does the same.
std::string make_container_id();

/// Which process will own a container once it is made.
enum class Owner {
  caller,   ///< this process, in front of it
  monitor,  ///< berth-monitor
  nobody,   ///< yet: `create`
};

/// Who owns a container that is run. The caller, where it is the caller's alone: nobody detaches
/// from it, its output is nobody else's, and it is gone with its caller (docs/decisions/0008).
Owner owner_of(const Resolved& resolved);

/// A container in the making: its directory, whose lock this process holds, until keep(). Dropped
/// before that it leaves nothing.
class NewContainer {
 public:
  /// Makes the directory, with an id of its own.  Errors: denied, io.
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
  /// Now, instead of when this object is dropped.
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

/// Keeps what `berth explain` prints of `decision` in `files`, those of the container's directory.
/// A failure is a warning: no container fails because of it.
void save_explanation(const Context& context, Decision& decision, const sys::Fd& files);

}  // namespace berth::engine
