// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/draft/bundle.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "image/store.hpp"
#include "record/record.hpp"

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

/// Callbacks for the stages of making a container; any of them may be empty.
struct Making {
  /// The directory is there, and nothing is in it.
  std::function<Result<void>(const ContainerDirectory&)> directory_made = {};
  /// berth-runtime can read the bundle's config.
  std::function<void()> config_written = {};
  /// The container cannot be made. Called before the directory is removed: a process that was told
  /// of it (the monitor) has to end first.
  std::function<void()> abandoned = {};
};

/// A container that is made and not started. This process holds its lock.
struct NewContainer {
  ContainerDirectory directory;
  record::Container record;
  Draft draft;

  /// Decides everything and writes it down, for a request of complete_request(). On failure nothing
  /// of it is left.
  /// Errors: not_found (user, working directory), exists (the name), usage, denied, unsupported.
  static Result<NewContainer> make(const Context& context, const RunRequest& request,
                                   image::Store& store, const image::Image& image,
                                   const std::string& id, Owner owner, const Making& making = {});
};

/// The outcome of the container is what counts; what stays is swept by the next command.
void remove_quietly(const Context& context, ContainerDirectory& directory);

/// What `berth explain` tells is kept in `files`, with those of the container's directory. Nobody's
/// container fails because of it.
void save_explanation(const Context& context, Draft& draft, const sys::Fd& files);

}  // namespace berth::engine
