// SPDX-License-Identifier: Apache-2.0
#include "engine/run/new_container.hpp"

#include <fcntl.h>
#include <signal.h>

#include <chrono>

#include "base/text.hpp"
#include "engine/container/sweep.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/container/volumes_of_container.hpp"
#include "engine/context/name.hpp"
#include "engine/context/time.hpp"
#include "engine/decide/explain.hpp"
#include "engine/request/environment.hpp"
#include "engine/request/text.hpp"
#include "engine/run/bundle.hpp"
#include "engine/state/journal.hpp"
#include "record/record.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

// Parses hex digits that Berth generated.
uint64_t parse_hex(std::string_view digits) {
  uint64_t value = 0;
  for (char c : digits)
    value = value * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

/// The first signal of `stop`: of --stop-signal, else of the image, else TERM.
int stop_signal_of(const RunRequest& request, const image::Image& image) {
  // The image's config is untrusted: as docker, use TERM for an invalid signal.
  auto signal = parse_signal(request.stop_signal.value_or(image.config.config.stop_signal));
  return signal.ok() ? *signal : SIGTERM;
}

record::Container make_record(const RunRequest& request, const Decision& decision,
                              const image::Image& image, Owner owner) {
  record::Container record;
  record.id = decision.id;
  record.image = request.rootfs.value_or(request.image);
  if (!image.id.empty()) record.image_id = image.id.text();
  record.command = decision.command;
  record.created_ns = nanoseconds_now();
  record.remove = request.remove;
  record.prepared = owner == Owner::nobody;
  record.watched = owner != Owner::caller;
  record.terminal = request.terminal;
  record.interactive = request.interactive;
  record.stop_signal = stop_signal_of(request, image);
  record.stop_timeout = request.stop_timeout;
  return record;
}

/// The container's name at the `attempt`th try: a name that the user chose is tried twice.
std::string choose_name(const RunRequest& request, const std::string& id, size_t attempt) {
  if (request.name) return *request.name;
  std::string name = name_from(parse_hex(id.substr(0, 8)) + attempt);
  return attempt < 8 ? name : name + "_" + id.substr(0, 6 + attempt);
}

// Later events contain only the id.
void emit_created(const Context& context, const RunRequest& request, const image::Image& image,
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

NewContainer::NewContainer(const Context& context, const Resolved& resolved, Owner owner,
                           ContainerDirectory directory)
    : context_(&context), resolved_(&resolved), owner_(owner), directory_(std::move(directory)) {}

NewContainer::NewContainer(NewContainer&& other) noexcept
    : context_(other.context_),
      resolved_(other.resolved_),
      owner_(other.owner_),
      directory_(std::move(other.directory_)),
      owned_(std::exchange(other.owned_, false)) {}

NewContainer::~NewContainer() {
  remove();
}

Result<NewContainer> NewContainer::begin(const Context& context, const Resolved& resolved,
                                         Owner owner) {
  const Lifetime lifetime = lifetime_of(resolved.request());
  return NewContainer(
      context, resolved, owner,
      TRY(ContainerDirectory::create(context.paths, make_container_id(), lifetime)));
}

// A failure is only a warning, since the container's outcome counts; a later command removes what
// is left.
void NewContainer::remove() {
  if (!std::exchange(owned_, false)) return;
  const std::string id = directory_.id();
  auto removed = directory_.remove();
  if (!removed.ok()) context_->log.warn(to_line(removed.error()) + ", ignoring");
  remove_volumes_of(*context_, id);
}

Result<void> NewContainer::write(const Decision& decision) {
  const RunRequest& request = resolved_->request();
  const image::Image& image = resolved_->image();
  TRY(resolved_->mark_used(id()));
  record::Container record = make_record(request, decision, image, owner_);
  const std::string& signal = image.config.config.stop_signal;
  if (!request.stop_signal && !signal.empty() && !parse_signal(signal).ok()) {
    context_->log.warn("the image's stop signal " + quote(signal) +
                       " is not a signal, using SIGTERM instead");
  }
  TRY(write_request());
  TRY(take_name(record));
  emit_created(*context_, request, image, record);
  TRY(provide_volumes(*context_, request, id(), decision.layers));
  return write_files(request, decision, directory_);
}

// The next start needs the request. A container that ends with its caller has no next start, but
// other commands may read its request: --volumes-from for the volumes, exec for the groups and
// HOME, network connect for the networks.
Result<void> NewContainer::write_request() {
  const RunRequest& request = resolved_->request();
  bool is_read = !request.volumes.empty() || !request.networks.empty() ||
                 !request.group_add.empty() || names_home(request.environment);
  if (owner_ == Owner::caller && !is_read) return {};
  return sys::write_file(directory_.files_fd(), kRequestFile, json::write(request), 0600);
}

// The record comes first: a process killed between the two leaves no name without a record.
Result<void> NewContainer::take_name(record::Container& record) {
  const RunRequest& request = resolved_->request();
  const size_t last = request.name ? 1 : 16;
  for (size_t attempt = 0;; ++attempt) {
    record.name = choose_name(request, record.id, attempt);
    TRY(directory_.write(record));
    auto reserved = directory_.reserve(record.name);
    if (reserved.ok() || reserved.error().kind != Kind::exists || attempt == last) return reserved;
    if (request.name) sweep(*context_);  // the container with this name may have lost its owner
  }
}

void save_explanation(const Context& context, Decision& decision, const sys::Fd& files) {
  auto kept = keep(explain(std::move(decision.provenance), decision.spec), files);
  if (!kept.ok()) {
    context.log.warn("cannot store what 'berth explain' shows: " + to_line(kept.error()) +
                     ", ignoring");
  }
}

CidFile::CidFile(CidFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}

CidFile::~CidFile() {
  // If the removal fails, the user is left with an empty file.
  if (!path_.empty()) static_cast<void>(sys::remove_entry(sys::cwd(), path_).ok());
}

Result<CidFile> CidFile::create(const std::optional<std::string>& path) {
  CidFile file;
  if (!path) return file;
  auto fd = sys::open_at(sys::cwd(), *path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!fd.ok() && fd.error().kind == Kind::exists) {
    return make_error(Kind::exists,
                      "container ID file found, make sure the other container isn't "
                      "running or delete " +
                          *path);
  }
  file.fd_ = TRY_CTX(std::move(fd), "cannot create the container ID file");
  file.path_ = *path;
  return file;
}

Result<void> CidFile::write(const std::string& id) {
  if (path_.empty()) return {};
  std::string path = path_;
  TRY(sys::write_all(fd_, id, path));
  TRY(sys::close_checked(std::move(fd_), path));
  path_.clear();
  return {};
}

}  // namespace berth::engine
