// SPDX-License-Identifier: Apache-2.0
#include "erofs/serve/server.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <thread>

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include "base/text.hpp"

namespace berth::erofs {
namespace {

/// Entries in the kernel's cache are valid for so many seconds, which is for ever.
constexpr double kForever = 1e9;
constexpr unsigned kFewestThreads = 4;
constexpr unsigned kMostThreads = 16;

struct Session {
  const ShownTree& tree;
  const sys::Fd& image;
  bool no_open = false;     ///< the kernel opens files without asking
  bool no_opendir = false;  ///< the kernel opens directories without asking
};

Session& session_of(fuse_req_t request) {
  return *static_cast<Session*>(fuse_req_userdata(request));
}

// For the kernel, node 1 is the root and node 0 is invalid. Inode numbers of an image can be 0 and
// 1, too.
constexpr fuse_ino_t kFirst = FUSE_ROOT_ID + 1;

fuse_ino_t node_of(const Session& session, uint64_t inode) {
  return inode == session.tree.reader().root() ? FUSE_ROOT_ID : inode + kFirst;
}

Result<Inode> inode_of(const Session& session, fuse_ino_t node) {
  uint64_t number = node == FUSE_ROOT_ID ? session.tree.reader().root() : node - kFirst;
  return session.tree.inode(number);
}

int errno_of(const Error& error) {
  if (error.kind == Kind::unsupported) return EOPNOTSUPP;
  return error.sys_errno != 0 ? error.sys_errno : EIO;
}

/// A fault of the image is only an error of this request.
template <class Work>
void answer(fuse_req_t request, const Work& work) {
  int failed = 0;
  try {
    Result<void> done = work(session_of(request));
    if (!done.ok()) failed = errno_of(done.error());
  } catch (const std::bad_alloc&) {
    failed = ENOMEM;
  }
  if (failed != 0) fuse_reply_err(request, failed);
}

struct stat status_of(const Inode& inode) {
  struct stat status = {};
  status.st_ino = inode.number;
  status.st_mode = inode.mode;
  status.st_nlink = inode.links;
  status.st_uid = inode.uid;
  status.st_gid = inode.gid;
  status.st_rdev = makedev(inode.device_major, inode.device_minor);
  status.st_size = static_cast<off_t>(inode.size);
  status.st_blksize = kBlock;
  status.st_blocks = static_cast<blkcnt_t>((inode.size + kBlock - 1) / kBlock * (kBlock / 512));
  status.st_mtim = {inode.modified, inode.modified_nanoseconds};
  status.st_atim = status.st_ctim = status.st_mtim;
  return status;
}

fuse_entry_param entry_of(const Session& session, const Inode& inode) {
  fuse_entry_param entry = {};
  entry.ino = node_of(session, inode.number);
  entry.attr = status_of(inode);
  entry.attr_timeout = entry.entry_timeout = kForever;
  return entry;
}

void initialise(void* data, fuse_conn_info* connection) {
  auto& session = *static_cast<Session*>(data);
  auto can = [&](unsigned flag) { return (connection->capable & flag) != 0; };
  // Not FUSE_CAP_SPLICE_MOVE: it would move pages out of the page cache of the image file, where
  // the next mount needs them.
  constexpr unsigned kWanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_SPLICE_WRITE |
                               FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
                               FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS |
                               FUSE_CAP_POSIX_ACL;
  connection->want |= kWanted & connection->capable;
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_MOVE);
  connection->max_background = 64;
  connection->congestion_threshold = 48;
  session.no_open = can(FUSE_CAP_NO_OPEN_SUPPORT);
  session.no_opendir = can(FUSE_CAP_NO_OPENDIR_SUPPORT);
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode directory = TRY(inode_of(session, parent));
    auto found = TRY(session.tree.reader().find(directory, name));
    fuse_entry_param entry = {};
    entry.entry_timeout = kForever;  // a negative entry stays valid too
    if (found) {
      Inode inode = TRY(session.tree.inode(*found));
      entry = entry_of(session, inode);
    }
    fuse_reply_entry(request, &entry);
    return {};
  });
}

void get_attributes(fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode inode = TRY(inode_of(session, node));
    struct stat status = status_of(inode);
    fuse_reply_attr(request, &status, kForever);
    return {};
  });
}

void read_link(fuse_req_t request, fuse_ino_t node) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode inode = TRY(inode_of(session, node));
    std::string target = TRY(session.tree.reader().read_link(inode));
    fuse_reply_readlink(request, target.c_str());
    return {};
  });
}

void open_file(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  // The kernel takes ENOSYS as the answer to all further opens.
  if (session_of(request).no_open) {
    fuse_reply_err(request, ENOSYS);
    return;
  }
  file->keep_cache = 1;
  fuse_reply_open(request, file);
}

void open_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  if (session_of(request).no_opendir) {
    fuse_reply_err(request, ENOSYS);
    return;
  }
  file->keep_cache = 1;
  file->cache_readdir = 1;
  fuse_reply_open(request, file);
}

void read_file(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info*) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode inode = TRY(inode_of(session, node));
    if (!S_ISREG(inode.mode)) return make_error(Kind::corrupt, "read what is not a file");
    // Without this check the missing end of a truncated image file would be read as zeros.
    TRY(session.tree.reader().check_length());
    // A vector of two buffers; the struct itself has room for one. libfuse splices a single buffer.
    alignas(fuse_bufvec) std::array<char, sizeof(fuse_bufvec) + sizeof(fuse_buf)> room = {};
    auto* content = new (room.data()) fuse_bufvec();
    for (const Piece& piece : Reader::places(inode, static_cast<uint64_t>(offset), size)) {
      if (piece.length == 0) continue;
      fuse_buf& part = content->buf[content->count++];
      part.size = piece.length;
      part.flags =
          static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY);
      part.fd = session.image.get();
      part.pos = static_cast<off_t>(piece.at);
    }
    if (content->count == 0) {
      fuse_reply_buf(request, nullptr, 0);
      return {};
    }
    fuse_reply_data(request, content, static_cast<fuse_buf_copy_flags>(0));
    return {};
  });
}

/// Entries of a directory in the kernel's format. The offset behind an entry is
/// "block << kIndexBits | index".
class Listing {
 public:
  enum class Form { names, entries };

  Listing(fuse_req_t request, const Session& session, Form form, size_t size)
      : request_(request), session_(session), form_(form), bytes_(size, '\0') {}

  Result<void> fill(const Inode& directory, uint64_t from) {
    uint64_t blocks = Reader::directory_blocks(directory);
    uint64_t index = from & kIndexMask;
    for (uint64_t at = from >> kIndexBits; at < blocks; ++at, index = 0) {
      auto block = TRY(session_.tree.reader().directory_block(directory, at));
      for (; index < block.size(); ++index) {
        DirectoryBlock::Entry entry = TRY(block.at(index));
        bool last = index + 1 == block.size();
        if (!add(entry, last ? (at + 1) << kIndexBits : at << kIndexBits | (index + 1))) return {};
      }
    }
    return {};
  }
  std::string_view bytes() const { return std::string_view(bytes_).substr(0, used_); }

 private:
  static constexpr unsigned kIndexBits = 12;
  static constexpr uint64_t kIndexMask = (1 << kIndexBits) - 1;

  static uint32_t type_bits(uint8_t type) {
    constexpr uint32_t kBits[] = {0,       S_IFREG, S_IFDIR,  S_IFCHR,
                                  S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK};
    return type < std::size(kBits) ? kBits[type] : 0;
  }

  /// Returns whether there was room for the entry.
  bool add(const DirectoryBlock::Entry& entry, uint64_t next) {
    std::string name(entry.name);
    char* to = bytes_.data() + used_;
    size_t left = bytes_.size() - used_;
    // If the inode is damaged, the entry has no node: the kernel will look it up, and get the error
    // then.
    fuse_entry_param shown = {};
    shown.attr.st_ino = entry.inode;
    shown.attr.st_mode = type_bits(entry.type);
    if (form_ == Form::entries && name != "." && name != ".." &&
        entry.inode != session_.tree.reader().root()) {
      auto inode = session_.tree.inode(entry.inode);
      if (inode.ok()) shown = entry_of(session_, *inode);
    }
    auto place = static_cast<off_t>(next);
    size_t needed = form_ == Form::entries
                        ? fuse_add_direntry_plus(request_, to, left, name.c_str(), &shown, place)
                        : fuse_add_direntry(request_, to, left, name.c_str(), &shown.attr, place);
    if (needed > left) return false;
    used_ += needed;
    return true;
  }

  fuse_req_t request_;
  const Session& session_;
  Form form_;
  std::string bytes_;
  size_t used_ = 0;
};

void list(fuse_req_t request, fuse_ino_t node, size_t size, off_t from, Listing::Form form) {
  constexpr size_t kMost = size_t{1} << 20;
  answer(request, [&](Session& session) -> Result<void> {
    Inode directory = TRY(inode_of(session, node));
    Listing listing(request, session, form, std::min(size, kMost));
    auto filled = listing.fill(directory, static_cast<uint64_t>(from));
    // Entries before the damage are returned first.
    if (!filled.ok() && listing.bytes().empty()) return filled;
    fuse_reply_buf(request, listing.bytes().data(), listing.bytes().size());
    return {};
  });
}

void list_names(fuse_req_t request, fuse_ino_t node, size_t size, off_t from, fuse_file_info*) {
  list(request, node, size, from, Listing::Form::names);
}

void list_entries(fuse_req_t request, fuse_ino_t node, size_t size, off_t from, fuse_file_info*) {
  list(request, node, size, from, Listing::Form::entries);
}

/// The kernel either asks for the size (`room` is 0) or passes the size of its buffer.
void reply_text(fuse_req_t request, std::string_view text, size_t room) {
  if (room == 0) {
    fuse_reply_xattr(request, text.size());
  } else if (text.size() > room) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, text.data(), text.size());
  }
}

void get_xattr(fuse_req_t request, fuse_ino_t node, const char* key, size_t room) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode inode = TRY(inode_of(session, node));
    auto value = TRY(session.tree.attribute(inode, key));
    if (value) {
      reply_text(request, *value, room);
    } else {
      fuse_reply_err(request, ENODATA);
    }
    return {};
  });
}

void list_xattrs(fuse_req_t request, fuse_ino_t node, size_t room) {
  answer(request, [&](Session& session) -> Result<void> {
    Inode inode = TRY(inode_of(session, node));
    std::string text;
    for (const std::string& name : TRY(session.tree.attribute_names(inode))) {
      text.append(name).push_back('\0');
    }
    reply_text(request, text, room);
    return {};
  });
}

void get_totals(fuse_req_t request, fuse_ino_t) {
  answer(request, [&](Session& session) -> Result<void> {
    struct statvfs totals = {};
    totals.f_bsize = totals.f_frsize = kBlock;
    totals.f_blocks = session.tree.reader().blocks();
    totals.f_files = session.tree.reader().inodes();
    totals.f_namemax = kMaxName;
    fuse_reply_statfs(request, &totals);
    return {};
  });
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops = {};
  ops.init = initialise;
  ops.lookup = look_up;
  ops.getattr = get_attributes;
  ops.readlink = read_link;
  ops.open = open_file;
  ops.read = read_file;
  ops.opendir = open_directory;
  ops.readdir = list_names;
  ops.readdirplus = list_entries;
  ops.getxattr = get_xattr;
  ops.listxattr = list_xattrs;
  ops.statfs = get_totals;
  return ops;
}

struct EndSession {
  void operator()(fuse_session* session) const { fuse_session_destroy(session); }
};
struct EndConfig {
  void operator()(fuse_loop_config* config) const { fuse_loop_cfg_destroy(config); }
};

}  // namespace

Result<void> serve(const ShownTree& tree, const sys::Fd& image, const std::string& place) {
  Session session{tree, image};
  fuse_lowlevel_ops ops = operations();
  char name[] = "berth-erofs";
  char* words[] = {name, nullptr};
  fuse_args args = {1, words, 0};
  std::unique_ptr<fuse_session, EndSession> fuse(
      fuse_session_new(&args, &ops, sizeof ops, &session));
  if (!fuse) return make_error(Kind::io, "begin a FUSE session");
  if (fuse_session_mount(fuse.get(), place.c_str()) != 0) {
    return make_error(Kind::io, "use FUSE at " + quote(place));
  }
  std::unique_ptr<fuse_loop_config, EndConfig> config(fuse_loop_cfg_create());
  // More threads than processors, as some wait for the disk. Each has its own queue if possible.
  unsigned threads =
      std::clamp(2 * std::thread::hardware_concurrency(), kFewestThreads, kMostThreads);
  fuse_loop_cfg_set_max_threads(config.get(), threads);
  fuse_loop_cfg_set_idle_threads(config.get(), threads);
  fuse_loop_cfg_set_clone_fd(config.get(), 1);
  int ended = fuse_session_loop_mt(fuse.get(), config.get());
  fuse_session_unmount(fuse.get());
  if (ended < 0) return sys_error(-ended, "serve the image");
  return {};
}

}  // namespace berth::erofs
