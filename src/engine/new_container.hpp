// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "engine/bundle.hpp"
#include "engine/container_directory.hpp"
#include "engine/context.hpp"
#include "engine/request.hpp"
#include "engine/transfer.hpp"
#include "image/store.hpp"

namespace berth::engine {

/// 64 hexadecimal digits. The first 12, by which it is called, are no number: as a host name that
/// would be read as an address. Docker does the same.
std::string make_container_id();

/// Who will own a container once it is made.
enum class Owner {
  caller,   ///< this process, in front of it
  monitor,  ///< berth-monitor
  nobody,   ///< yet: `create`
};

/// Who is told how far the making of a container has come; any of them may be empty.
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
  ContainerRecord record;
  Draft draft;

  /// Decides everything and writes it down, for a request of complete_request(). On failure nothing
  /// of it is left.
  /// Errors: not_found (user, working directory), exists (the name), usage, denied, unsupported.
  static Result<NewContainer> make(const Context& context, const RunRequest& request,
                                   image::Store& store, const image::Image& image,
                                   const std::string& id, Owner owner, const Making& making = {});
};

/// The image of the store that a name means, by Store::find_image_named() where that finds one.
Result<std::optional<image::Image>> find_present_image(const image::Store& store,
                                                       const std::string& name);

/// Errors: not_found, denied (rules of the site), and those of pulling.
Result<image::Image> find_or_pull_image(const Context& context, const image::Store& store,
                                        const RunRequest& request, const RunCall& call,
                                        const Progress& progress);

/// Where the bundle of container `id` will lie; absolute.
std::string bundle_path(const Context& context, const RunRequest& request, const std::string& id);

/// The outcome of the container is what counts; what stays is swept by the next command.
void remove_quietly(const Context& context, ContainerDirectory& directory);

/// That of a container that there is. Errors: not_found.
Result<image::Image> image_of(const Context& context, const ContainerRecord& record,
                              const RunRequest& request);

/// What `berth explain` tells is kept in `files`, with those of the container's directory. Nobody's
/// container fails because of it.
void keep_reasons(const Context& context, Draft& draft, const sys::Fd& files);

/// Since 1970.
int64_t nanoseconds_now();

}  // namespace berth::engine
