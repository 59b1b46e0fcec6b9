// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/resolve.hpp"

#include <algorithm>
#include <iterator>

#include "engine/container/list.hpp"
#include "engine/container/volumes_of_container.hpp"
#include "engine/decide/check_flags.hpp"
#include "engine/decide/image_mounts.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "engine/image/store.hpp"
#include "engine/pull/pull.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/keep_id.hpp"
#include "engine/site/environment_file.hpp"
#include "engine/site/rules.hpp"
#include "sys/file/mode.hpp"

namespace berth::engine {
namespace {

Result<std::string> id_of(const Context& context, const std::string& name) {
  return std::move(TRY(get_container(context, name)).id);
}

/// Looks up everything that depends on the caller and on the current state: defaults, the
/// launcher's variables, other containers.
Result<void> look_up_names(const Context& context, Asked& asked) {
  RunRequest& request = asked.request;
  if (asked.network) {
    TRY(apply_network_flags(context, *asked.network, request));
    keep_own_id(context, request);
  }
  if (asked.mpi) {
    TRY(join_launcher(context, *asked.mpi, asked.network.value_or(NetworkFlags()), request,
                      asked.call));
  }
  request.inherited = inherited_variables(request.environment, context.environment);
  for (NamespaceMode* mode : {&request.pid, &request.ipc, &request.uts, &request.cgroupns}) {
    if (mode->kind != NamespaceMode::Kind::container) continue;
    mode->container = TRY(id_of(context, mode->container));
  }
  if (request.network == Network::container) {
    request.network_container = TRY(id_of(context, request.network_container));
  }
  return {};
}

/// The entries of `fallback` that neither the image nor the request sets.
std::vector<std::string> missing_variables(const std::vector<std::string>& fallback,
                                           const image::Image& image, const RunRequest& request) {
  std::vector<std::string_view> named;
  for (const std::string& entry : image.config.config.env) named.push_back(variable_name(entry));
  for (const std::string& entry : request.environment) named.push_back(variable_name(entry));
  std::vector<std::string> missing;
  std::ranges::copy_if(fallback, std::back_inserter(missing), [&](const std::string& entry) {
    return std::ranges::find(named, variable_name(entry)) == named.end();
  });
  return missing;
}

/// Completes the request with its image. The site's rules come last, since they judge everything
/// else.
Result<RunRequest> with_image(const Context& context, Asked asked, const image::Image& image) {
  RunRequest request = std::move(asked.request);
  auto defined =
      TRY(expand_variables(context.environment, image.config.config.env, asked.variables));
  // Inserted before the variables of flags, which win.
  request.environment.insert(request.environment.begin(), defined.begin(), defined.end());
  auto missing = missing_variables(asked.fallback_environment, image, request);
  request.environment.insert(request.environment.end(), missing.begin(), missing.end());
  return apply_rules(context, std::move(request), image);
}

Result<void> choose_rootfs_driver(const Context& context, RunRequest& request) {
  if (request.rootfs) return {};
  RootfsChoice choice = TRY(rootfs_choice(context));
  if (!choice.cost.empty()) context.log.warn(choice.reason + ": " + choice.cost);
  if (choice.reason.empty()) return {};
  request.rootfs_driver = choice.driver;
  request.rootfs_reason = choice.reason;
  return {};
}

}  // namespace

Result<void> Resolved::mark_used(const std::string& id) const {
  if (images_.empty()) return {};
  return store_->mark_used(id, images_);
}

Result<Resolved> resolve(const Context& context, Asked asked, const Progress& progress) {
  TRY(look_up_names(context, asked));
  TRY(check_request(asked.request));
  TRY(check_call(asked.request, asked.call));
  sys::set_umask(022);
  Resolved resolved;
  resolved.call_ = asked.call;
  resolved.store_ = TRY(open_store(context));
  const image::Store& store = *resolved.store_;
  resolved.image_ = TRY(have_image(context, store, asked.request, asked.call, progress));
  resolved.request_ = TRY(with_image(context, std::move(asked), resolved.image_));
  RunRequest& request = resolved.request_;
  request.volumes = TRY(volumes_of(context, resolved.image_.config.config, request));
  TRY(choose_rootfs_driver(context, request));
  auto mounted = TRY(find_images(store, request.image_mounts));
  for (size_t i = 0; i < mounted.size(); ++i) {
    if (!mounted[i]) continue;
    request.image_mounts[i].id = mounted[i]->id.text();
    resolved.images_.push_back(std::move(*mounted[i]));
  }
  if (is_of_store(request)) resolved.images_.push_back(resolved.image_);
  return resolved;
}

Result<Resolved> resolve_saved(const Context& context, const record::Container& record,
                               RunRequest saved) {
  sys::set_umask(022);
  Resolved resolved;
  resolved.image_ = TRY(image_of(context, record, saved));
  resolved.request_ = std::move(saved);
  resolved.request_.name = record.name;
  return resolved;
}

Result<Resolved> resolve_again(const Context& context, const Resolved& was, Asked asked) {
  TRY(look_up_names(context, asked));
  const RunRequest& before = was.request();
  asked.request.image = before.image;
  asked.request.image_file = before.image_file;
  asked.request.rootfs = before.rootfs;
  asked.request.rootfs_driver = before.rootfs_driver;
  asked.request.rootfs_reason = before.rootfs_reason;
  std::ranges::copy_if(before.volumes, std::back_inserter(asked.request.volumes),
                       [](const Volume& volume) { return volume.anonymous; });
  TRY(check_request(asked.request));
  Resolved resolved;
  resolved.call_ = asked.call;
  resolved.image_ = was.image();
  resolved.request_ = TRY(with_image(context, std::move(asked), resolved.image_));
  resolved.request_.remove = before.remove;
  resolved.request_.name = before.name;
  return resolved;
}

}  // namespace berth::engine
