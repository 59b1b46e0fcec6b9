// SPDX-License-Identifier: Apache-2.0
#include "engine/new_container.hpp"

#include <signal.h>

#include <chrono>

#include "base/rollback.hpp"
#include "engine/containers.hpp"
#include "engine/events.hpp"
#include "engine/explain.hpp"
#include "engine/image_file.hpp"
#include "engine/image_mounts.hpp"
#include "engine/match.hpp"
#include "engine/name.hpp"
#include "engine/rootfs.hpp"
#include "engine/rootfs_driver.hpp"
#include "engine/run.hpp"
#include "engine/site_rules.hpp"
#include "engine/spec.hpp"
#include "engine/store.hpp"
#include "engine/sweep.hpp"
#include "engine/volumes.hpp"
#include "sys/file.hpp"
#include "sys/umask.hpp"

namespace berth::engine {
namespace {

// Of hex digits that we made ourselves.
uint64_t parse_hex(std::string_view digits) {
  uint64_t value = 0;
  for (char c : digits)
    value = value * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

Error no_such_image(const std::string& name) {
  return make_error(Kind::not_found, "no such image: " + name, "berth pull " + name);
}

/// udocker and enroot run containers by their names.
Error no_such_registry_image(const Context& context, const std::string& reference, Error error) {
  auto container = get_container(context, reference);
  if (!container.ok() || container->name != reference) return error;
  error.hint = quote(reference) + " is a container here: berth start -a " + reference +
               ", or berth exec " + reference + " COMMAND";
  return error;
}

GpuWish wish_of(const RunRequest& request) {
  return {.driver_mode = request.gpu_driver,
          .needs_gpus = request.gpus && *request.gpus != "none",
          .other_command = request.entrypoint || !request.command.empty()};
}

Result<void> pull_image(const Context& context, const RunRequest& request, const RunCall& call,
                        bool local, const Progress& progress) {
  image::PullRequest pull;
  pull.reference = request.image;
  pull.force = call.force;
  pull.strict = call.strict;
  if (!local) judge_by_this_node(context, wish_of(request), pull);
  pull.platform = call.platform;
  pull.access = call.registry;
  pull.quiet = call.quiet;
  pull.local = local;
  TRY(transfer(context, std::move(pull), progress));
  return {};
}

/// Forgets an image that is not for the platform that was asked for: it is pulled then, as docker
/// does, or where nothing may be pulled that is the error. Gives what is wrong with it, or "".
Result<std::string> check_platform(const RunCall& call, const std::string& reference,
                                   std::optional<image::Image>& found) {
  if (!call.platform) return std::string();
  oci::Platform wish = TRY(oci::parse_platform(*call.platform));
  if (!found) return std::string();
  const oci::ImageConfig& config = found->config;
  std::string os = config.os.empty() ? "linux" : config.os;
  oci::Platform here{config.architecture, os, {}, {}, config.variant};
  auto named = oci::parse_platform(os + "/" + config.architecture);  // "aarch64" is arm64
  if (named.ok()) here.architecture = named->architecture;
  bool fits = here.os == wish.os && here.architecture == wish.architecture &&
              (wish.variant.empty() || here.variant.empty() || here.variant == wish.variant);
  if (fits) return std::string();
  // An id is that of one platform, and of nothing at a registry.
  std::string id = found->id.text();
  bool by_id = id.starts_with(reference) || id.substr(id.find(':') + 1).starts_with(reference);
  found.reset();
  std::string wrong = "image " + quote(reference) + " is here for " +
                      escape_controls(oci::platform_text(here)) + ", not for " +
                      oci::platform_text(wish);
  if (call.pull != PullPolicy::never && !by_id) return wrong;
  return make_error(Kind::not_found, std::move(wrong), "--pull missing");
}

ContainerRecord make_record(const RunRequest& request, const Draft& draft,
                            const image::Image& image, Owner owner) {
  ContainerRecord record;
  record.id = draft.id;
  record.image = request.rootfs.value_or(request.image);
  if (!image.id.empty()) record.image_id = image.id.text();
  record.command = draft.command;
  record.created_ns = nanoseconds_now();
  record.remove = request.remove;
  record.prepared = owner == Owner::nobody;
  record.watched = owner != Owner::caller;
  record.terminal = request.terminal;
  record.interactive = request.interactive;
  // What an image says is foreign: docker takes TERM for what is no signal.
  auto signal = parse_signal(request.stop_signal.value_or(image.config.config.stop_signal));
  record.stop_signal = signal.ok() ? *signal : SIGTERM;
  record.stop_timeout = request.stop_timeout;
  return record;
}

/// What the container is called at the `attempt`th try: a name of the user is tried twice.
std::string choose_name(const RunRequest& request, const std::string& id, size_t attempt) {
  if (request.name) return *request.name;
  std::string name = name_from(parse_hex(id.substr(0, 8)) + attempt);
  return attempt < 8 ? name : name + "_" + id.substr(0, 6 + attempt);
}

// The record comes first: whoever is killed between the two leaves no name that nobody can tell.
Result<void> take_name(const Context& context, const RunRequest& request,
                       ContainerDirectory& directory, ContainerRecord& record) {
  const size_t last = request.name ? 1 : 16;
  for (size_t attempt = 0;; ++attempt) {
    record.name = choose_name(request, record.id, attempt);
    TRY(directory.write(record));
    auto reserved = directory.reserve(record.name);
    if (reserved.ok() || reserved.error().kind != Kind::exists || attempt == last) return reserved;
    if (request.name) sweep(context);  // its container may have lost its owner
  }
}

// Later events of it are told by its id alone.
void tell_created(const Context& context, const RunRequest& request, const image::Image& image,
                  const ContainerRecord& record) {
  std::map<std::string, std::string> attributes = image.config.config.labels;
  for (const auto& [name, value] : request.labels) attributes[name] = value;
  attributes["image"] = record.image;
  attributes["name"] = record.name;
  tell_container(context.paths, record.id, "create", std::move(attributes));
}

}  // namespace

std::string make_container_id() {
  while (true) {
    std::string id = sys::random_hex(32);
    if (id.find_first_not_of("0123456789") < 12) return id;
  }
}

Result<std::optional<image::Image>> find_present_image(const image::Store& store,
                                                       const std::string& name) {
  auto found = TRY(store.find_image_named(name));
  if (found) return found;
  return store.find_image(name);
}

Result<image::Image> find_or_pull_image(const Context& context, const image::Store& store,
                                        const RunRequest& request, const RunCall& call,
                                        const Progress& progress) {
  const std::string& reference = request.image;
  std::optional<image::Image> found;
  std::string other_platform;  // that the image which is here is for
  if (is_of_store(request)) {
    if (call.pull != PullPolicy::always) {
      found = TRY(find_present_image(store, reference));
      if (!found) TRY(check_no_image_file(reference));
    }
    other_platform = TRY(check_platform(call, reference, found));
    TRY(check_registry(context, request, found ? &*found : nullptr));
  }
  TRY(pull_image_mounts(context, store, request, call, progress));
  if (request.rootfs) return no_image();
  if (request.image_file) return describe_image_file(request.image);
  if (found && found->unpacked()) {
    if (!call.force) TRY(judge_present(context, wish_of(request), *found, call.strict));
    return std::move(*found);
  }
  if (!found && call.pull == PullPolicy::never) return no_such_image(reference);
  auto pulled = pull_image(context, request, call, found.has_value(), progress);
  if (!pulled.ok()) {
    Error error = no_such_registry_image(context, reference, std::move(pulled).error());
    if (!other_platform.empty()) return std::move(error).with_context(std::move(other_platform));
    return error;
  }
  image::Image image = TRY(store.get_image(reference));
  if (call.strict && !call.force) {
    TRY(judge_present(context, wish_of(request), image, call.strict));
  } else if (!call.force) {
    TRY(judge_unpacked(context, wish_of(request), image, Telling::refuse));
  }
  return image;
}

int64_t nanoseconds_now() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

std::string bundle_path(const Context& context, const RunRequest& request, const std::string& id) {
  return container_files(context.paths, id, lifetime_of(request)) + "/" +
         std::string(kBundleDirectory);
}

Result<NewContainer> NewContainer::make(const Context& context, const RunRequest& asked,
                                        image::Store& store, const image::Image& image,
                                        const std::string& id, Owner owner, const Making& making) {
  RunRequest request = asked;
  TRY(complete_volumes(context, image.config.config, request));
  TRY(choose_rootfs_driver(context, request));
  NewContainer made;
  made.directory = TRY(ContainerDirectory::create(context.paths, id, lifetime_of(request)));
  Rollback undo;
  undo.add([&] {
    if (making.abandoned) making.abandoned();
    remove_quietly(context, made.directory);
  });
  if (making.directory_made) TRY(making.directory_made(made.directory));
  std::vector<image::Image> used = TRY(fix_image_mounts(store, request));
  if (is_of_store(request)) used.push_back(image);
  Leasing leasing = owner == Owner::nobody ? Leasing::nothing : Leasing::take;
  made.draft = TRY(draft_container(context, request, image, id, leasing));
  TRY(write_config(made.draft, made.directory));
  if (making.config_written) making.config_written();
  if (!used.empty()) TRY(store.mark_used(id, used));
  made.record = make_record(request, made.draft, image, owner);
  const std::string& signal = image.config.config.stop_signal;
  if (!request.stop_signal && !signal.empty() && !parse_signal(signal).ok()) {
    context.log.warn("the image's stop signal " + quote(signal) +
                     " is no signal, using SIGTERM instead");
  }
  // Whoever starts it again decides by it, which nobody does when it is gone with its caller;
  // --volumes-from another container asks for the volumes of both.
  // exec asks for the groups and the HOME that were given.
  bool exec_asks = !request.group_add.empty() || names_home(request.environment);
  // network connect asks for its networks.
  bool keeps = !request.volumes.empty() || !request.networks.empty() || exec_asks;
  if (made.record.watched || keeps) {
    TRY(sys::write_file(made.directory.files_fd(), kRequestFile, json::write(request), 0600));
  }
  TRY(take_name(context, request, made.directory, made.record));
  tell_created(context, request, image, made.record);
  TRY(provide_volumes(context, request, made.draft));
  TRY(write_files(request, made.draft, made.directory));
  undo.commit();
  return made;
}

// The outcome of the container is what counts; what stays is swept by the next command.
void remove_quietly(const Context& context, ContainerDirectory& directory) {
  auto removed = directory.remove();
  if (!removed.ok()) context.log.warn(to_line(removed.error()) + ", ignoring");
  remove_volumes_of(context, directory.id());
}

Result<image::Image> image_of(const Context& context, const ContainerRecord& record,
                              const RunRequest& request) {
  if (request.image_file) return describe_image_file(request.image);
  image::Store store = TRY(open_store(context));
  if (request.rootfs) return no_image();
  image::Image image = TRY(store.get_image(record.image_id));
  store.note_used(image.manifest_digest);
  return image;
}

void keep_reasons(const Context& context, Draft& draft, const sys::Fd& files) {
  auto kept = keep(explain(std::move(draft.evidence), draft.spec), files);
  if (!kept.ok()) {
    context.log.warn("cannot keep what 'berth explain' tells: " + to_line(kept.error()) +
                     ", ignoring");
  }
}

}  // namespace berth::engine
