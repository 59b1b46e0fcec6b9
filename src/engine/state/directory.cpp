// SPDX-License-Identifier: Apache-2.0
#include "engine/state/directory.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "engine/state/journal.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

std::string containers(const std::string& root) {
  return root + "/containers";
}
std::string directory_of(const std::string& root, const std::string& id) {
  return containers(root) + "/" + id;
}
std::string volatile_directory(const Paths& paths, const std::string& id) {
  return directory_of(paths.state, id);
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Ids are file names: accept only names that Berth creates.
bool is_id(std::string_view text) {
  return text.size() == 64 && is_hex(text);
}

// ext4 keeps a link target of at most 59 bytes in the inode. A longer target needs a block, which
// every start would allocate and free. 224 bits distinguish containers as well as 256.
constexpr size_t kLinkDigits = 56;

/// The target of the link of `name`, as link_text() makes it.
Result<std::optional<std::string>> read_name(const std::string& root, const std::string& name) {
  auto text = sys::read_link(sys::cwd(), name_link(root, name));
  if (!text.ok()) {
    if (text.error().kind == Kind::not_found) return std::optional<std::string>();
    return std::move(text).error();
  }
  if (text->size() == kLinkDigits && is_hex(*text)) {
    return std::optional<std::string>(std::move(*text));
  }
  return make_error(Kind::corrupt, "name " + quote(name) + " leads to " + quote(*text));
}

/// The container with an id that starts with `digits`.
Result<std::optional<std::string>> find_container(const std::string& root,
                                                  const std::string& digits) {
  for (std::string& id : TRY(container_ids(root))) {
    if (id.starts_with(digits)) return std::optional<std::string>(std::move(id));
  }
  return std::optional<std::string>();
}

Result<void> release_link(const std::string& root, const std::string& name,
                          const std::string& text) {
  auto bound = TRY(read_name(root, name));
  if (bound != text) return {};
  return sys::remove_entry(sys::cwd(), name_link(root, name));
}

// Makes the directory `path`, and first `parent` if necessary: the parent is missing only the first
// time, and a check would cost every start a system call.
Result<void> make_below(const std::string& parent, const std::string& path) {
  auto made = sys::make_directory(sys::cwd(), path, 0700);
  if (made.ok() || made.error().kind != Kind::not_found) return made;
  TRY(sys::make_directories(sys::cwd(), parent, 0700));
  return sys::make_directory(sys::cwd(), path, 0700);
}

std::string incomplete_mark(const Paths& paths, const std::string& id) {
  return incomplete_directory(paths) + "/" + id;
}

/// Call before the container's first file is created, and before one is removed.
Result<void> mark_incomplete(const Paths& paths, const std::string& id) {
  auto made = make_below(incomplete_directory(paths), incomplete_mark(paths, id));
  return made.ok() || made.error().kind == Kind::exists ? Result<void>() : made;
}

/// Open files of a container that another process may own or remove at any time.
struct Opened {
  sys::Fd directory;
  sys::Fd record;  ///< empty: there is no record yet
};
/// `path`: the path of the container below `parent`.
Result<Opened> open_container(const Paths& paths, const std::string& id, const sys::Fd& parent,
                              const std::string& path) {
  Opened opened;
  opened.directory = TRY(sys::open_at(parent, path, O_DIRECTORY | O_RDONLY));
  auto record = TRY(sys::open_if_exists(opened.directory, record::kFile, O_RDONLY | O_NOFOLLOW));
  if (!record) {
    record = TRY(sys::open_if_exists(
        sys::cwd(), volatile_directory(paths, id) + "/" + record::kFile, O_RDONLY | O_NOFOLLOW));
  }
  if (record) opened.record = std::move(*record);
  return opened;
}
Result<Opened> open_container(const Paths& paths, const std::string& id) {
  return open_container(paths, id, sys::cwd(), container_path(paths, id));
}

Result<ContainerFiles> read_opened(const Opened& opened, const std::string& id) {
  bool free = TRY(sys::try_lock(opened.directory, sys::LockMode::shared, id));
  // Read after the lock check, because an owner writes the exit before it releases the lock.
  record::Lines lines;
  if (opened.record) lines = TRY(record::read(opened.record));
  return ContainerFiles{std::move(lines), !free};
}

constexpr size_t kMaxContainerConfig = size_t{16} << 20;

}  // namespace

Lifetime lifetime_of(const RunRequest& request) {
  return request.remove ? Lifetime::removed : Lifetime::kept;
}

std::string bundle_path(const Paths& paths, const RunRequest& request, const std::string& id) {
  return container_files(paths, id, lifetime_of(request)) + "/" + std::string(kBundleDirectory);
}

std::string incomplete_directory(const Paths& paths) {
  return paths.state + "/unsettled";
}

std::string container_path(const Paths& paths, const std::string& id) {
  return directory_of(paths.root, id);
}

std::string container_files(const Paths& paths, const std::string& id, Lifetime lifetime) {
  return lifetime == Lifetime::kept ? directory_of(paths.root, id) : volatile_directory(paths, id);
}

Result<ContainerDirectory> ContainerDirectory::create(const Paths& paths, const std::string& id,
                                                      Lifetime lifetime) {
  ContainerDirectory made;
  made.paths_ = paths;
  made.id_ = id;
  made.path_ = container_path(paths, id);
  made.files_ = container_files(paths, id, lifetime);
  made.name_ = "";
  TRY(mark_incomplete(paths, id));
  TRY(make_below(containers(paths.root), made.path_));
  Rollback undo;
  undo.add([&] { ignore(made.remove()); });
  made.fd_ = TRY(sys::open_at(sys::cwd(), made.path_, O_DIRECTORY | O_RDONLY));
  TRY(sys::wait_lock(made.fd_, sys::LockMode::exclusive, made.path_));
  // The upper directory determines the mode of the container's root.
  TRY(sys::make_directory(made.fd_, std::string(kUpperDirectory), 0755));
  TRY(sys::make_directory(made.fd_, std::string(kWorkDirectory), 0700));
  if (lifetime == Lifetime::removed) {
    TRY(make_below(containers(paths.state), made.files_));
    made.files_fd_ = TRY(sys::open_at(sys::cwd(), made.files_, O_DIRECTORY | O_RDONLY));
  }
  TRY(sys::make_directory(made.files_fd(), std::string(kBundleDirectory), 0700));
  TRY(sys::make_directory(made.files_fd(),
                          std::string(kBundleDirectory) + "/" + std::string(kRootDirectory), 0700));
  undo.commit();
  return made;
}

Result<std::optional<ContainerDirectory>> ContainerDirectory::take_over(const Paths& paths,
                                                                        const std::string& id) {
  ContainerDirectory taken;
  taken.paths_ = paths;
  taken.id_ = id;
  taken.path_ = container_path(paths, id);
  taken.fd_ = TRY(sys::open_at(sys::cwd(), taken.path_, O_DIRECTORY | O_RDONLY));
  if (!TRY(sys::try_lock(taken.fd_, sys::LockMode::exclusive, taken.path_))) {
    return std::optional<ContainerDirectory>();
  }
  taken.files_ = taken.path_;
  std::string away = volatile_directory(paths, id);
  if (auto files = TRY(sys::open_if_exists(sys::cwd(), away, O_DIRECTORY | O_RDONLY))) {
    taken.files_ = std::move(away);
    taken.files_fd_ = std::move(*files);
  }
  return std::optional<ContainerDirectory>(std::move(taken));
}

Result<void> ContainerDirectory::reserve(const std::string& name) {
  TRY(reserve_name(paths_.root, name, id_));
  name_ = name;
  mark_complete();
  return {};
}

void ContainerDirectory::mark_complete() const {
  ignore(sys::remove_directory(sys::cwd(), incomplete_mark(paths_, id_)));
}

Result<void> ContainerDirectory::write(const record::Container& record) const {
  return sys::replace_file(files_fd(), record::kFile, json::write(record), 0600);
}

Result<void> ContainerDirectory::append_line(const std::string& line) const {
  return record::append(files_fd(), line);
}

Result<ContainerFiles> ContainerDirectory::read() const {
  auto file = TRY(sys::open_if_exists(files_fd(), record::kFile, O_RDONLY | O_NOFOLLOW));
  record::Lines lines;
  if (file) lines = TRY(record::read(*file));
  return ContainerFiles{std::move(lines), true};
}

Result<void> ContainerDirectory::give_up_name() const {
  if (name_) return name_->empty() ? Result<void>() : release_name(paths_.root, *name_, id_);
  auto files = read();
  if (files.ok() && files->record) return release_name(paths_.root, files->record->name, id_);
  auto all = sys::list_directory(sys::cwd(), names_directory(paths_.root));
  if (!all.ok())
    return all.error().kind == Kind::not_found ? Result<void>() : std::move(all).error();
  for (const std::string& name : *all) {
    auto released = release_name(paths_.root, name, id_);
    if (!released.ok() && released.error().kind != Kind::corrupt) return released;
  }
  return {};
}

Result<void> ContainerDirectory::remove() {
  // If the disk is full, the mark fails, but the removal still frees space.
  ignore(mark_incomplete(paths_, id_));
  // Release the name first: a process that reads the name must find the container.
  TRY(give_up_name());
  if (files_ != path_) TRY(sys::remove_tree(sys::cwd(), files_));
  TRY(sys::remove_tree(sys::cwd(), path_));
  mark_complete();
  // A container without a name had no "create" event.
  if (!name_ || !name_->empty()) emit_container_event(paths_, id_, "destroy");
  return {};
}

Result<void> append_to_record(const Paths& paths, const std::string& id, const std::string& line) {
  for (const std::string& path : {container_path(paths, id), volatile_directory(paths, id)}) {
    auto directory = TRY(sys::open_if_exists(sys::cwd(), path, O_DIRECTORY | O_RDONLY));
    if (!directory) continue;
    auto added = record::append(*directory, line);
    if (added.ok() || added.error().kind != Kind::not_found) return added;
  }
  return make_error(Kind::not_found, "no such container: " + id);
}

std::string monitor_directory(const Paths& paths, const std::string& id) {
  return paths.state + "/monitors/" + id;
}

Result<ContainerFiles> read_container(const Paths& paths, const std::string& id) {
  Opened opened = TRY(open_container(paths, id));
  return read_opened(opened, id);
}

Result<AllContainers> AllContainers::open(const Paths& paths) {
  AllContainers all;
  all.paths_ = paths;
  all.ids_ = TRY(container_ids(paths.root));
  if (all.ids_.empty()) return all;
  all.directory_ = TRY(sys::open_at(sys::cwd(), containers(paths.root), O_DIRECTORY | O_RDONLY));
  return all;
}

Result<ContainerFiles> AllContainers::read(const std::string& id) const {
  Opened opened = TRY(open_container(paths_, id, directory_, id));
  return read_opened(opened, id);
}

Result<ExitWaiter> ExitWaiter::open(const Paths& paths, const std::string& id) {
  Opened opened = TRY(open_container(paths, id));
  ExitWaiter waiter;
  waiter.id_ = id;
  waiter.directory_ = std::move(opened.directory);
  waiter.record_ = std::move(opened.record);
  return waiter;
}

Result<ContainerFiles> ExitWaiter::wait() const {
  TRY(sys::wait_lock(directory_, sys::LockMode::shared, id_));
  return look();
}

Result<ContainerFiles> ExitWaiter::look() const {
  record::Lines lines;
  if (record_) lines = TRY(record::read(record_));
  return ContainerFiles{std::move(lines), false};
}

std::string link_text(const std::string& id) {
  return id.substr(0, kLinkDigits);
}

Result<std::vector<std::string>> container_ids(const std::string& root) {
  auto listed = sys::list_directory(sys::cwd(), containers(root));
  if (!listed.ok()) {
    if (listed.error().kind == Kind::not_found) return std::vector<std::string>();
    return std::move(listed).error();
  }
  std::erase_if(*listed, [](const std::string& entry) { return !is_id(entry); });
  return listed;
}

std::string names_directory(const std::string& root) {
  return root + "/names";
}

std::string name_link(const std::string& root, const std::string& name) {
  return names_directory(root) + "/" + name;
}

Result<void> reserve_name(const std::string& root, const std::string& name, const std::string& id) {
  std::string link = name_link(root, name);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto made = sys::make_symlink(link_text(id), sys::cwd(), link);
    if (made.ok()) return made;
    if (made.error().kind == Kind::not_found) {
      TRY(sys::make_directories(sys::cwd(), names_directory(root), 0700));
      continue;
    }
    if (made.error().kind != Kind::exists) return made;
    auto bound = TRY(read_name(root, name));
    if (!bound) continue;  // the name was just released
    if (auto holder = TRY(find_container(root, *bound))) {
      return make_error(Kind::exists,
                        "Conflict. The container name \"/" + name +
                            "\" is already in use by container \"" + *holder + "\"",
                        "berth rm " + name);
    }
    // The container was removed: a name is bound only after the directory of the container was
    // made.
    TRY(release_link(root, name, *bound));
  }
  return make_error(
      Kind::busy, "container name " + quote(name) + " is taken by other processes again and again");
}

Result<std::optional<std::string>> find_name(const std::string& root, const std::string& name) {
  auto bound = TRY(read_name(root, name));
  if (!bound) return bound;
  return find_container(root, *bound);
}

Result<bool> is_name_of(const std::string& root, const std::string& name, const std::string& id) {
  return TRY(read_name(root, name)) == link_text(id);
}

Result<void> release_name(const std::string& root, const std::string& name, const std::string& id) {
  return release_link(root, name, link_text(id));
}

Result<sys::Fd> take_turn(const sys::Fd& files, const std::string& name) {
  constexpr std::chrono::seconds kPatience{60};
  constexpr std::chrono::milliseconds kPause{20};
  sys::Fd lock = TRY(sys::open_at(files, "update.lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!TRY(sys::try_lock(lock, sys::LockMode::exclusive, name))) {
    if (std::chrono::steady_clock::now() > end) {
      return make_error(Kind::busy,
                        "update container " + quote(name) + ": another update is running");
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

std::optional<std::string> config_of(const Paths& paths, const std::string& id) {
  for (Lifetime lifetime : {Lifetime::kept, Lifetime::removed}) {
    std::string bundle = container_files(paths, id, lifetime) + "/" + std::string(kBundleDirectory);
    auto config =
        sys::read_file_if_exists(sys::cwd(), bundle + "/config.json", kMaxContainerConfig);
    if (config.ok() && *config) return std::move(*config);
  }
  return std::nullopt;
}

Result<std::vector<std::string>> containers_with(const Paths& paths, const std::string& needle) {
  std::vector<std::string> out;
  for (std::string& id : TRY(container_ids(paths.root))) {
    auto config = config_of(paths, id);
    if (!config || config->find(needle) != std::string::npos) out.push_back(std::move(id));
  }
  return out;
}

}  // namespace berth::engine
