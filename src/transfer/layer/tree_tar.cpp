// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/tree_tar.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "sys/fd/blocks.hpp"
#include "sys/file/file.hpp"
#include "sys/file/tree.hpp"
#include "sys/process/stream.hpp"
#include "sys/user/namespace.hpp"
#include "transfer/tar/acl.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kTarBlock = size_t{1} << 20;
constexpr int kMaxTarDepth = 400;
constexpr uint64_t kTarSector = 512;                // of st_blocks
constexpr uint64_t kLargeFile = uint64_t{1} << 20;  // from this size on, zeros are searched
constexpr size_t kRun = size_t{64} << 10;           // the shortest run of zeros that becomes a hole
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY;

/// Writes a tar with libarchive; the entries are examined by handle before.
class TarSink {
 public:
  static Result<std::unique_ptr<TarSink>> open(ByteSink& sink, Detail detail) {
    auto tar = std::make_unique<TarSink>(sink);
    struct archive* a = tar->archive_.get();
    archive_write_set_format_pax(a);  // "restricted pax" drops fractions of seconds
    // Not the SCHILY form, which has changed names of attributes (a blank becomes "%20").
    if (detail == Detail::all &&
        archive_write_set_format_option(a, "pax", "xattrheader", "LIBARCHIVE") != ARCHIVE_OK) {
      return tar->fail();
    }
    archive_write_set_bytes_per_block(a, static_cast<int>(kTarBlock));
    archive_write_set_bytes_in_last_block(a, 512);
    if (archive_write_open(a, tar.get(), nullptr, write_bytes, nullptr) != ARCHIVE_OK) {
      return tar->fail();
    }
    return tar;
  }
  explicit TarSink(ByteSink& sink) : sink_(sink) {}

  Result<void> header(struct archive_entry* entry) {
    if (archive_write_header(archive_.get(), entry) < ARCHIVE_WARN) return fail();
    return {};
  }
  Result<void> content(std::string_view bytes) {
    if (archive_write_data(archive_.get(), bytes.data(), bytes.size()) < 0) return fail();
    return {};
  }
  Result<void> finish() {
    if (archive_write_close(archive_.get()) != ARCHIVE_OK) return fail();
    return {};
  }

 private:
  struct Free {
    void operator()(struct archive* a) const { archive_write_free(a); }
  };

  static la_ssize_t write_bytes(struct archive* a, void* data, const void* bytes, size_t size) {
    auto* self = static_cast<TarSink*>(data);
    auto written = self->sink_.write({static_cast<const char*>(bytes), size});
    if (written.ok()) return static_cast<la_ssize_t>(size);
    self->error_ = std::move(written).error();
    archive_set_error(a, EIO, "sink");
    return -1;
  }

  Error fail() {
    if (error_) return *error_;
    const char* text = archive_error_string(archive_.get());
    return make_error(Kind::unsupported,
                      std::string("write the archive: ") + (text ? text : "no reason given"));
  }

  ByteSink& sink_;
  std::optional<Error> error_;
  std::unique_ptr<struct archive, Free> archive_{archive_write_new()};
};

using Entry = std::unique_ptr<struct archive_entry, void (*)(struct archive_entry*)>;

/// Whether an attribute is portable. All others belong to the file systems and security modules of
/// one machine.
bool travels(std::string_view key) {
  return key == "security.capability" || key == kAccessAcl || key == kDefaultAcl ||
         (key.starts_with("user.") && !key.starts_with("user.overlay.") &&
          !key.starts_with("user.fuseoverlayfs."));
}

/// Whether the directory is on a file system of the kernel: its files are generated on reading, or
/// endless.
Result<bool> is_of_the_kernel(const sys::Fd& directory, const std::string& name) {
  constexpr long kKernels[] = {PROC_SUPER_MAGIC,    SYSFS_MAGIC,   CGROUP_SUPER_MAGIC,
                               CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
                               SECURITYFS_MAGIC,    BPF_FS_MAGIC,  DEVPTS_SUPER_MAGIC};
  long type = TRY(sys::file_system_type(directory, name));
  return std::ranges::find(kKernels, type) != std::end(kKernels);
}

class TreeTar {
 public:
  TreeTar(TarSink& tar, const TreeTarOptions& options) : tar_(tar), options_(options) {}

  /// `found` is an O_PATH handle for the member `name`.
  Result<void> add(const sys::Fd& found, const std::string& name, int depth) {
    struct stat status = TRY(sys::stat_fd(found, name));
    if (S_ISDIR(status.st_mode)) return add_directory(found, status, name, depth);
    if (S_ISREG(status.st_mode)) return add_file(found, status, name);
    if (S_ISSOCK(status.st_mode)) return {};
    if (is_whiteout(status)) return add_mark(parent_of(name) + ".wh." + base_of(name));
    Entry entry = make_entry(status, name);
    if (S_ISLNK(status.st_mode)) {
      std::string target = TRY(sys::read_link(found, ""));
      archive_entry_set_symlink(entry.get(), target.c_str());
    } else {
      archive_entry_set_rdevmajor(entry.get(), major(status.st_rdev));
      archive_entry_set_rdevminor(entry.get(), minor(status.st_rdev));
    }
    if (TRY(link_to_first(status, name, entry))) return {};
    return tar_.header(entry.get());
  }

  Result<void> add_left_out(const sys::Fd& tree, const LeftOutDevice& device) {
    if (!TRY(is_free(tree, device.path))) return {};
    struct stat status = {};
    status.st_mode = device.mode;
    std::string name = options_.name.empty() ? device.path : options_.name + "/" + device.path;
    Entry entry = make_entry(status, name);
    archive_entry_set_rdevmajor(entry.get(), major(device.number));
    archive_entry_set_rdevminor(entry.get(), minor(device.number));
    return tar_.header(entry.get());
  }

  void warn_of_rest() const {
    if (shrunk_ > 1) options_.on_warning(std::to_string(shrunk_ - 1) + " more, ignoring");
    if (marks_ > 1) options_.on_warning(std::to_string(marks_ - 1) + " more such names, ignoring");
  }

 private:
  static std::string parent_of(const std::string& name) {
    size_t slash = name.rfind('/');
    return slash == std::string::npos ? "" : name.substr(0, slash + 1);
  }
  static std::string base_of(const std::string& name) { return name.substr(name.rfind('/') + 1); }

  /// Whether nothing exists at `path` although its directory does.
  static Result<bool> is_free(const sys::Fd& tree, const std::string& path) {
    sys::Fd here = TRY(sys::open_at(tree, ".", O_PATH | O_DIRECTORY));
    const std::string directory = parent_of(path);
    for (std::string_view name : split(directory, '/')) {
      if (name.empty()) continue;
      auto entry = TRY(sys::stat_entry(here, std::string(name)));
      if (!entry || !S_ISDIR(entry->st_mode)) return false;
      here = TRY(sys::open_at(here, std::string(name), O_PATH | O_DIRECTORY | O_NOFOLLOW));
    }
    return !TRY(sys::stat_entry(here, base_of(path))).has_value();
  }

  bool is_whiteout(const struct stat& status) const {
    return options_.marks == Marks::layer && S_ISCHR(status.st_mode) &&
           status.st_rdev == makedev(0, 0);
  }

  Entry make_entry(const struct stat& status, const std::string& name) const {
    Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), status.st_mode & S_IFMT);
    archive_entry_set_perm(entry.get(), status.st_mode & 07777);
    archive_entry_set_uid(entry.get(), status.st_uid);
    archive_entry_set_gid(entry.get(), status.st_gid);
    auto latest = static_cast<int64_t>(options_.latest.value_or(0));
    bool later = options_.latest && status.st_mtim.tv_sec >= latest;
    set_time(entry, later ? latest : status.st_mtim.tv_sec, later ? 0 : status.st_mtim.tv_nsec);
    archive_entry_set_size(entry.get(), 0);
    return entry;
  }

  static void set_time(Entry& entry, int64_t seconds, long nanoseconds) {
    constexpr long kSecond = 1'000'000'000;
    // libarchive appends the fraction to the seconds even if the seconds are negative and the
    // fraction is positive: -2 s + 0.25 s would be written as -2.25. Times within the last second
    // before 1970 cannot be written at all.
    if (seconds < 0 && nanoseconds > 0) {
      nanoseconds = ++seconds == 0 ? 0 : kSecond - nanoseconds;
    }
    archive_entry_set_mtime(entry.get(), seconds, nanoseconds);
  }

  Result<void> add_mark(const std::string& name) {
    Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0600);
    archive_entry_set_size(entry.get(), 0);
    archive_entry_set_mtime(entry.get(), 0, 0);
    return tar_.header(entry.get());
  }

  /// A file that was already written under another name becomes a hard link to that name.
  Result<bool> link_to_first(const struct stat& status, const std::string& name, Entry& entry) {
    if (status.st_nlink < 2) return false;
    auto [first, is_first] = links_.try_emplace({status.st_dev, status.st_ino}, name);
    if (is_first) return false;
    archive_entry_set_size(entry.get(), 0);
    archive_entry_set_hardlink(entry.get(), first->second.c_str());
    TRY(tar_.header(entry.get()));
    return true;
  }

  /// The meaning of the overlay attributes of an entry.
  struct OverlaySays {
    bool opaque = false;
    bool whiteout = false;
  };
  Result<OverlaySays> take_attributes(const sys::Fd& opened, const std::string& name,
                                      Entry& entry) {
    OverlaySays says;
    // Sorted, because a file system lists them in the order of creation.
    std::vector<std::string> keys = TRY(sys::list_attributes(opened));
    std::ranges::sort(keys);
    for (const std::string& key : keys) {
      std::string_view mark = overlay_mark(key);
      if (options_.marks == Marks::layer && (mark == "redirect" || mark == "metacopy")) {
        return make_error(Kind::unsupported, quote(name) +
                                                 " is stored by overlay as a reference (" + key +
                                                 "), which a layer cannot contain");
      }
      if (mark != "opaque" && mark != "whiteout" && !travels(key)) continue;
      auto value = TRY(sys::read_attribute(opened, key));
      if (!value) continue;
      if (travels(key)) {
        archive_entry_xattr_add_entry(entry.get(), key.c_str(), value->data(), value->size());
      } else {
        says.opaque |= mark == "opaque" && *value == "y";
        says.whiteout |= mark == "whiteout";
      }
    }
    return says;
  }

  /// "opaque" for "trusted.overlay.opaque"; empty if the attribute is no mark of our overlay. Marks
  /// of the other prefix belong to an overlay that was mounted inside of the container.
  std::string_view overlay_mark(std::string_view key) const {
    std::string prefix = enum_text(options_.overlay) + ".overlay.";
    return key.starts_with(prefix) ? key.substr(prefix.size()) : std::string_view();
  }

  Result<void> add_directory(const sys::Fd& found, const struct stat& status,
                             const std::string& name, int depth) {
    if (depth > kMaxTarDepth) {
      return make_error(Kind::usage, "read " + quote(name.substr(0, 100)) + ": deeper than " +
                                         std::to_string(kMaxTarDepth) + " directories");
    }
    sys::Fd opened = TRY(sys::open_at(found, ".", kOpenDirectory));
    Entry entry = make_entry(status, name + "/");
    bool opaque = TRY(take_attributes(opened, name, entry)).opaque;
    if (!name.empty()) TRY(tar_.header(entry.get()));
    if (opaque && options_.marks == Marks::layer && !name.empty()) {
      TRY(add_mark(name + "/.wh..wh..opq"));
    }
    if (TRY(is_of_the_kernel(opened, name))) return {};
    for (const std::string& child : TRY(sys::list_directory(opened, "."))) {
      // fuse-overlayfs sets both marks, the attribute and the file.
      if (opaque && options_.marks == Marks::layer && child == ".wh..wh..opq") continue;
      const std::string path = name.empty() ? child : name + "/" + child;
      auto handle = sys::open_at(opened, child, O_PATH | O_NOFOLLOW);
      if (!handle.ok()) {
        // Removed meanwhile: possible in a container, but an error in an unchanging tree.
        bool changes = options_.detail != Detail::all;
        if (changes && handle.error().kind == Kind::not_found) continue;
        return std::move(handle).error();
      }
      if (child.starts_with(".wh.") && TRY(is_left_out(path))) continue;
      TRY(add(*handle, path, depth + 1));
    }
    return {};
  }

  /// Whether to leave out a file with the name of a mark: in a layer it would hide another file.
  Result<bool> is_left_out(const std::string& name) {
    if (options_.marks == Marks::plain) return false;
    const std::string why = quote("/" + name) + ": no layer can have a file of such a name";
    if (!options_.on_warning) return make_error(Kind::unsupported, why);
    if (marks_++ == 0) options_.on_warning(why + ", ignoring");
    return true;
  }

  Result<void> add_file(const sys::Fd& found, const struct stat& status, const std::string& name) {
    if (TRY(is_of_the_kernel(found, name))) {
      return make_error(Kind::unsupported,
                        quote(name) + " is in a file system of the kernel, which has no sizes",
                        "berth exec CONTAINER cat");
    }
    Entry entry = make_entry(status, name);
    auto instead = options_.instead.find(name);
    if (instead != options_.instead.end()) return add_instead(instead->second, entry);
    if (TRY(link_to_first(status, name, entry))) return {};
    // Through the handle, which was checked: it is not a device, on which an open may have effects.
    sys::Fd file =
        TRY(sys::open_at(sys::cwd(), sys::fd_path(found), O_RDONLY | O_NONBLOCK | O_NOCTTY));
    OverlaySays says = TRY(take_attributes(file, name, entry));
    if (says.whiteout && options_.marks == Marks::layer && status.st_size == 0) {
      return add_mark(parent_of(name) + ".wh." + base_of(name));
    }
    archive_entry_set_size(entry.get(), status.st_size);
    TRY(add_holes(file, status, name, entry));
    TRY(tar_.header(entry.get()));
    std::string buffer(std::min<uint64_t>(kTarBlock, static_cast<uint64_t>(status.st_size)), '\0');
    for (auto left = static_cast<uint64_t>(status.st_size); left > 0;) {
      std::span<char> room(buffer.data(), std::min<uint64_t>(buffer.size(), left));
      size_t count = TRY(sys::read_some(file, room, name));
      if (count == 0) {
        if (!options_.on_warning) {
          return make_error(Kind::busy, "read " + quote(name) + ": it shrank");
        }
        // The size was written already; a running container may shrink files at any time.
        if (shrunk_++ == 0) options_.on_warning(quote(name) + " shrank, using zeros instead");
        std::ranges::fill(buffer, '\0');
        count = room.size();
      }
      TRY(tar_.content({buffer.data(), count}));
      left -= count;
    }
    return {};
  }

  Result<void> add_instead(const std::optional<std::string>& bytes, Entry& entry) {
    if (!bytes) return {};
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes->size()));
    TRY(tar_.header(entry.get()));
    return tar_.content(*bytes);
  }

  /// Records the data ranges of the file; the archive then leaves out the rest.
  Result<void> add_holes(const sys::Fd& file, const struct stat& status, const std::string& name,
                         Entry& entry) {
    auto size = static_cast<uint64_t>(status.st_size);
    std::vector<sys::Stretch> data;
    if (options_.holes == Holes::filled || size == 0) return {};
    if (static_cast<uint64_t>(status.st_blocks) * kTarSector < size) {
      data = TRY(sys::data_stretches(file, size, name));
    } else if (options_.holes == Holes::found && size >= kLargeFile) {
      data = TRY(find_data(file, size, name));
    } else {
      return {};
    }
    if (data.size() == 1 && data[0].size == size) return {};
    // For a file that is a single hole, libarchive needs an empty range at its start.
    if (data.empty()) data.push_back({0, 0});
    for (const sys::Stretch& extent : data) {
      archive_entry_sparse_add_entry(entry.get(), static_cast<la_int64_t>(extent.offset),
                                     static_cast<la_int64_t>(extent.size));
    }
    return {};
  }

  /// The ranges without long runs of zeros.
  static Result<std::vector<sys::Stretch>> find_data(const sys::Fd& file, uint64_t size,
                                                     const std::string& name) {
    std::vector<sys::Stretch> data;
    std::string buffer(kRun, '\0');
    const std::string zeros(kRun, '\0');
    for (uint64_t at = 0; at < size; at += kRun) {
      size_t count = TRY(sys::read_at(file, at, buffer.data(), buffer.size(), name));
      if (count == 0) break;
      if (std::string_view(buffer.data(), count) == std::string_view(zeros).substr(0, count)) {
        continue;
      }
      bool follows = !data.empty() && data.back().offset + data.back().size == at;
      if (!follows) data.push_back({at, 0});
      data.back().size += count;
    }
    return data;
  }

  TarSink& tar_;
  const TreeTarOptions& options_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
  size_t shrunk_ = 0;
  size_t marks_ = 0;  ///< files with the names of marks
};

}  // namespace

Result<void> write_tree_tar(const sys::Fd& tree, const TreeTarOptions& options, ByteSink& sink) {
  auto tar = TRY(TarSink::open(sink, options.detail));
  TreeTar writer(*tar, options);
  TRY(writer.add(tree, options.name, 1));
  for (const LeftOutDevice& device : options.left_out) TRY(writer.add_left_out(tree, device));
  writer.warn_of_rest();
  return tar->finish();
}

}  // namespace berth::transfer
