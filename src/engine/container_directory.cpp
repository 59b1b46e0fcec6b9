// SPDX-License-Identifier: Apache-2.0
#include "engine/container_directory.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "engine/spec.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

std::string containers(const std::string& root) {
  return root + "/containers";
}
std::string names(const std::string& root) {
  return root + "/names";
}
std::string directory_of(const std::string& root, const std::string& id) {
  return containers(root) + "/" + id;
}
std::string volatile_directory(const Paths& paths, const std::string& id) {
  return directory_of(paths.state, id);
}

// Ids are file names: only what we made ourselves is taken for one.
bool is_id(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The parent exists but for the first time; asking before would cost every start a call.
Result<void> make_below(const std::string& parent, const std::string& path) {
  auto made = sys::make_directory(sys::cwd(), path, 0700);
  if (made.ok() || made.error().kind != Kind::not_found) return made;
  TRY(sys::make_directories(sys::cwd(), parent, 0700));
  return sys::make_directory(sys::cwd(), path, 0700);
}

template <class T>
Result<std::optional<T>> read_record(const sys::Fd& directory, const char* file) {
  constexpr size_t kMaxRecord = size_t{4} << 20;
  auto text = TRY(sys::read_file_if_exists(directory, file, kMaxRecord));
  if (!text) return std::optional<T>();
  return std::optional<T>(TRY(json::read<T>(*text, file)));
}

}  // namespace

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
  TRY(make_below(containers(paths.root), made.path_));
  Rollback undo;
  undo.add([&] { ignore(made.remove()); });
  made.fd_ = TRY(sys::open_at(sys::cwd(), made.path_, O_DIRECTORY | O_RDONLY));
  TRY(sys::wait_lock(made.fd_, sys::LockMode::exclusive, made.path_));
  // The root of the container shows the mode of its upper directory.
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
  return {};
}

Result<void> ContainerDirectory::write(const ContainerRecord& record) const {
  return sys::replace_file(files_fd(), kRecordFile, json::write(record), 0600);
}

Result<void> ContainerDirectory::write(const ExitRecord& record) const {
  return sys::replace_file(fd_, kExitFile, json::write(record), 0600);
}

Result<void> ContainerDirectory::remove() {
  if (!name_) {
    auto record = read_record<ContainerRecord>(files_fd(), kRecordFile);
    if (record.ok() && *record) name_ = (*record)->name;
  }
  // The name first: whoever reads it must find the container.
  if (name_ && !name_->empty()) TRY(release_name(paths_.root, *name_, id_));
  if (files_ != path_) TRY(sys::remove_tree(sys::cwd(), files_));
  return sys::remove_tree(sys::cwd(), path_);
}

Result<ContainerFiles> read_container(const Paths& paths, const std::string& id) {
  ContainerFiles files;
  sys::Fd directory =
      TRY(sys::open_at(sys::cwd(), container_path(paths, id), O_DIRECTORY | O_RDONLY));
  files.record = TRY(read_record<ContainerRecord>(directory, kRecordFile));
  auto away = files.record ? std::optional<sys::Fd>()
                           : TRY(sys::open_if_exists(sys::cwd(), volatile_directory(paths, id),
                                                     O_DIRECTORY | O_RDONLY));
  if (away) files.record = TRY(read_record<ContainerRecord>(*away, kRecordFile));
  files.owned = !TRY(sys::try_lock(directory, sys::LockMode::shared, id));
  // After the lock: an owner writes it before it goes.
  files.exit = TRY(read_record<ExitRecord>(directory, kExitFile));
  return files;
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

std::string name_link(const std::string& root, const std::string& name) {
  return names(root) + "/" + name;
}

Result<void> reserve_name(const std::string& root, const std::string& name, const std::string& id) {
  std::string link = name_link(root, name);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto made = sys::make_symlink(id, sys::cwd(), link);
    if (made.ok()) return made;
    if (made.error().kind == Kind::not_found) {
      TRY(sys::make_directories(sys::cwd(), names(root), 0700));
      continue;
    }
    if (made.error().kind != Kind::exists) return made;
    auto holder = TRY(find_name(root, name));
    if (!holder) continue;  // given up in this moment
    if (TRY(sys::stat_entry(sys::cwd(), directory_of(root, *holder)))) {
      return make_error(Kind::exists,
                        "Conflict. The container name \"/" + name +
                            "\" is already in use by container \"" + *holder + "\"",
                        "berth rm " + name);
    }
    // Its container is gone: a name is always bound after its directory was made.
    TRY(release_name(root, name, *holder));
  }
  return make_error(Kind::busy, "container name " + quoted(name) + " changes hands all the time");
}

Result<std::optional<std::string>> find_name(const std::string& root, const std::string& name) {
  auto id = sys::read_link(sys::cwd(), name_link(root, name));
  if (id.ok()) {
    if (is_id(*id)) return std::optional<std::string>(std::move(*id));
    return make_error(Kind::corrupt, "name " + quoted(name) + " leads to " + quoted(*id));
  }
  if (id.error().kind == Kind::not_found) return std::optional<std::string>();
  return std::move(id).error();
}

Result<void> release_name(const std::string& root, const std::string& name, const std::string& id) {
  auto holder = TRY(find_name(root, name));
  if (!holder || *holder != id) return {};
  return sys::remove_entry(sys::cwd(), name_link(root, name));
}

}  // namespace berth::engine
