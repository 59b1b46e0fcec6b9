// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iterator>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "runtime/checkpoint/criu.hpp"
#include "runtime/launch.hpp"
#include "runtime/state/find.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {
namespace {

// Writing the memory takes as long as a disk, or the network to a page server, needs.
constexpr std::chrono::hours kLongestDump{24};
constexpr int kStandardStreams = 3;

void append_checkpoint(std::vector<std::string>& words, std::vector<std::string> more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

/// The value of a line "name:\tvalue" of a file in procfs.
std::string field_of(std::string_view text, std::string_view name) {
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with(name)) return std::string(trim(line.substr(name.size())));
  }
  return {};
}

/// What a descriptor refers to ("pipe:[123]"), and its access mode. An empty name: it is closed.
struct Descriptor {
  std::string name;
  uint64_t access = 0;  ///< O_RDONLY, O_WRONLY or O_RDWR
  std::string mount;    ///< the mount id
};
Descriptor look_at(pid_t pid, const std::string& number) {
  std::string base = "/proc/" + std::to_string(pid);
  auto name = sys::read_link(sys::cwd(), base + "/fd/" + number);
  auto info = sys::read_file(sys::cwd(), base + "/fdinfo/" + number, 65536);
  if (!name.ok() || !info.ok()) return {};
  std::string flags = field_of(*info, "flags:");
  bool is_octal = std::ranges::all_of(flags, [](char c) { return c >= '0' && c <= '7'; });
  if (flags.empty() || !is_octal) return {};
  return {std::move(*name), static_cast<uint64_t>(flags.back() - '0') & O_ACCMODE,
          field_of(*info, "mnt_id:")};
}

/// Whether no process of the container has the other end of this pipe.
bool ends_outside(const Descriptor& pipe, const std::vector<pid_t>& processes) {
  for (pid_t pid : processes) {
    auto numbers = sys::list_directory(sys::cwd(), "/proc/" + std::to_string(pid) + "/fd");
    if (!numbers.ok()) continue;  // the process has ended
    for (const auto& number : *numbers) {
      Descriptor other = look_at(pid, number);
      if (other.name == pipe.name && other.access != pipe.access) return false;
    }
  }
  return true;
}

/// Makes one checkpoint; the order of the steps is in checkpoint().
class Dump {
 public:
  Dump(const Store& store, const CheckpointRequest& request, Found found)
      : store_(store), request_(request), found_(std::move(found)) {}

  Result<void> prepare();
  Result<void> run();
  Result<void> finish(Log& log);

 private:
  Result<void> add_pages();
  Result<void> add_namespaces();
  Result<void> add_mounts();
  Result<void> add_streams();
  Result<std::string> key_of(const sys::Fd& root, const sys::MountEntry& mount) const;
  std::string verb() const { return request_.pre_dump ? "pre-dump" : "dump"; }
  std::string process() const { return std::to_string(found_.state.pid); }

  const Store& store_;
  const CheckpointRequest& request_;
  Found found_;
  plan::Plan plan_;
  CriuDirectories directories_;
  std::vector<std::string> words_;
  std::vector<sys::MountEntry> mounts_;  ///< the mounts of the container
};

Result<void> Dump::add_pages() {
  if (!request_.parent_path.empty()) {
    if (request_.parent_path.starts_with("/")) {
      return make_error(Kind::usage, "--parent-path: must be relative to --image-path");
    }
    TRY_CTX(sys::open_at(sys::cwd(), directories_.images + "/" + request_.parent_path,
                         O_PATH | O_DIRECTORY),
            "cannot use --parent-path");
    append_checkpoint(words_, {"--track-mem", "--prev-images-dir", request_.parent_path});
  } else if (request_.pre_dump) {
    words_.emplace_back("--track-mem");
  }
  const std::string& server = request_.page_server;
  if (!server.empty()) {
    size_t colon = server.rfind(':');
    auto port = colon == std::string::npos ? std::nullopt : parse_u64(server.substr(colon + 1));
    if (colon == 0 || !port || *port == 0 || *port > 65535) {
      return make_error(Kind::usage, "--page-server: expected ADDRESS:PORT");
    }
    append_checkpoint(words_, {"--page-server", "--address", server.substr(0, colon), "--port",
                               std::to_string(*port)});
  }
  if (!request_.status_fd) return {};
  constexpr uint64_t kMostDescriptor = 1'000'000;
  if (*request_.status_fd > kMostDescriptor ||
      !sys::is_inherited(static_cast<int>(*request_.status_fd))) {
    return make_error(Kind::usage, "--status-fd: not an open descriptor");
  }
  append_checkpoint(words_, {"--status-fd", std::to_string(*request_.status_fd)});
  return {};
}

Result<void> Dump::add_namespaces() {
  const auto* spawn = plan::find<plan::Spawn>(plan_);
  bool has_network = std::ranges::find(spawn->created, "network") != spawn->created.end();
  // Interfaces and routes are restored by the program that created the network, as with runc.
  if (has_network) append_checkpoint(words_, {"--empty-ns", "net"});
  for (const auto& space : TRY(outside_namespaces(plan_))) {
    if (space.key.empty()) continue;
    sys::Fd opened = TRY(sys::open_at(sys::cwd(), space.path, O_RDONLY));
    struct stat info = TRY(sys::stat_fd(opened, space.path));
    append_checkpoint(
        words_, {"--external", space.type + "[" + std::to_string(info.st_ino) + "]:" + space.key});
  }
  return {};
}

Result<std::string> Dump::key_of(const sys::Fd& root, const sys::MountEntry& mount) const {
  auto place = sys::open_in_root(root, mount.point, O_PATH | O_NOFOLLOW);
  // If the mount point cannot be reached, because another mount covers it, its path is the key.
  if (!place.ok()) return mount.point;
  bool covered = TRY(sys::is_device(*place, "c", 1, 3, mount.point));
  return covered ? std::string(kNullKey) : mount.point;
}

Result<void> Dump::add_mounts() {
  std::vector<std::string> bound;
  for (const auto& step : plan_.steps) {
    if (const auto* bind = std::get_if<plan::MountBind>(&step)) bound.push_back(bind->target);
  }
  auto host = TRY(sys::mount_table());
  sys::Fd root =
      TRY(sys::open_at(sys::cwd(), "/proc/" + process() + "/root", O_PATH | O_DIRECTORY));
  std::vector<std::string> keys;
  for (const auto& mount : outside_mounts(mounts_, host, bound)) {
    std::string key = TRY(key_of(root, mount));
    append_checkpoint(words_, {"--external", "mnt[" + mount.point + "]:" + key});
    if (key != kNullKey) keys.push_back(std::move(key));
  }
  return sys::write_file(sys::cwd(), directories_.images + "/" + kOutsideMountsFile,
                         json::write(keys), 0600);
}

// Adds the descriptors that restore replaces by its own standard streams: pipes that lead out of
// the container, and files that the container cannot see.
Result<void> Dump::add_streams() {
  std::vector<pid_t> processes = TRY(processes_of(found_));
  std::vector<std::string> names;
  for (int number = 0; number < kStandardStreams; ++number) {
    Descriptor stream = look_at(found_.state.pid, std::to_string(number));
    bool is_pipe = stream.name.starts_with("pipe:[");
    if (is_pipe && !ends_outside(stream, processes)) stream.name.clear();
    bool is_visible = std::ranges::any_of(mounts_, [&](const sys::MountEntry& mount) {
      return std::to_string(mount.id) == stream.mount;
    });
    if (stream.name.starts_with("/") && !is_visible) {
      sys::Fd file = TRY(
          sys::open_at(sys::cwd(), "/proc/" + process() + "/fd/" + std::to_string(number), O_PATH));
      struct stat info = TRY(sys::stat_fd(file, stream.name));
      std::array<char, 64> key{};
      std::snprintf(key.data(), key.size(), "file[%lx:%lx]", parse_u64(stream.mount).value_or(0),
                    info.st_ino);
      stream.name = key.data();
      append_checkpoint(words_, {"--external", stream.name});
    }
    names.push_back(std::move(stream.name));
  }
  return sys::write_file(sys::cwd(), directories_.images + "/" + kDescriptorsFile,
                         json::write(names), 0600);
}

Result<void> Dump::prepare() {
  LaunchRequest request;
  request.id = found_.state.id;
  request.bundle = found_.state.bundle;
  plan_ = TRY(plan_bundle(request));
  TRY(check_restorable(plan_));
  std::string program = TRY(find_criu());
  directories_ = TRY_CTX(open_criu_directories(request_.criu, MakeImages::yes),
                         "cannot make the images' directory");
  words_ = criu_command(program, verb(), directories_, request_.criu);
  append_checkpoint(words_, {"--tree", process(), "--root", found_.state.rootfs});
  if (request_.leave_running) words_.emplace_back("--leave-running");
  // The freezer that CgroupSet::freeze() thaws.
  const sys::Fd* freezer = found_.cgroups.directory("");
  if (freezer == nullptr) freezer = found_.cgroups.directory("freezer");
  if (freezer != nullptr) {
    append_checkpoint(words_,
                      {"--freeze-cgroup", TRY(sys::read_link(sys::cwd(), sys::fd_path(*freezer)))});
  }
  // criu links libnftables, while iptables is a separate package.
  if (!has_iptables()) append_checkpoint(words_, {"--network-lock", "nftables"});
  TRY(add_pages());
  TRY(add_namespaces());
  if (request_.pre_dump) return {};
  mounts_ = TRY(sys::mount_table(process()));
  TRY(add_mounts());
  return add_streams();
}

Result<void> Dump::run() {
  sys::SpawnOptions options;
  options.program = words_.front();
  options.args = words_;
  options.env = criu_environment();
  options.working_directory = "/";
  // criu thaws the container itself when it fails, but not when it is killed.
  options.die_with_parent = false;
  if (request_.status_fd) options.keep = {static_cast<int>(*request_.status_fd)};
  auto output = TRY(sys::run_command(std::move(options), "", kLongestDump));
  if (output.status.shell_code() == 0) return {};
  return criu_error(directories_, verb(), output.status, output.out + output.err);
}

Result<void> Dump::finish(Log& log) {
  if (request_.leave_running || request_.pre_dump) return {};
  return dispose(store_, found_.state, std::move(found_.cgroups), log);
}

}  // namespace

Result<void> checkpoint(const Store& store, const CheckpointRequest& request, Log& log) {
  Found found = TRY(find(store, request.id));
  bool was_paused = found.status == Status::paused;
  if (found.status != Status::running && !was_paused) {
    return make_error(Kind::usage, "container cannot be checkpointed in " +
                                       std::string(status_name(found.status)) + " state");
  }
  CgroupSet cgroups = TRY(cgroups_of(found.state));
  Dump dump(store, request, std::move(found));
  TRY(dump.prepare());
  auto dumped = dump.run();
  if (dumped.ok()) return dump.finish(log);
  auto frozen = cgroups.is_frozen();
  if (!was_paused && frozen.ok() && *frozen) {
    auto thawed = cgroups.freeze(CgroupSet::Freeze::thaw);
    if (!thawed.ok()) log.warn(to_line(thawed.error()) + "; ignoring");
  }
  return dumped;
}

}  // namespace berth::runtime
