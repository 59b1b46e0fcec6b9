// SPDX-License-Identifier: Apache-2.0
#include "engine/run/new_container.hpp"

#include <signal.h>

#include <chrono>

#include "base/rollback.hpp"
#include "engine/container/container_volumes.hpp"
#include "engine/container/rootfs_driver.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/volumes.hpp"
#include "engine/context/moment.hpp"
#include "engine/context/name.hpp"
#include "engine/draft/explain.hpp"
#include "engine/draft/image_mounts.hpp"
#include "engine/request/text.hpp"
#include "engine/state/journal.hpp"
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

record::Container make_record(const RunRequest& request, const Draft& draft,
                              const image::Image& image, Owner owner) {
  record::Container record;
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

// The record comes first: a process that is killed between the two leaves no name without a record.
Result<void> take_name(const Context& context, const RunRequest& request,
                       ContainerDirectory& directory, record::Container& record) {
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
                  const record::Container& record) {
  std::map<std::string, std::string> attributes = image.config.config.labels;
  for (const auto& [name, value] : request.labels) attributes[name] = value;
  attributes["image"] = record.image;
  attributes["name"] = record.name;
  emit_container_event(context.paths, record.id, "create", std::move(attributes));
}

}  // namespace

std::string make_container_id() {
  while (true) {
    std::string id = sys::random_hex(32);
    if (id.find_first_not_of("0123456789") < 12) return id;
  }
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
                     " is not a signal, using SIGTERM instead");
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
  TRY(provide_volumes(context, request, id, made.draft.layers));
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

void save_explanation(const Context& context, Draft& draft, const sys::Fd& files) {
  auto kept = keep(explain(std::move(draft.evidence), draft.spec), files);
  if (!kept.ok()) {
    context.log.warn("cannot store what 'berth explain' shows: " + to_line(kept.error()) +
                     ", ignoring");
  }
}

}  // namespace berth::engine
