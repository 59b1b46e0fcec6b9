// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "image/transfer_protocol.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/mode.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"

namespace berth::transfer {

/// The target directory of members.
struct TreePlace {
  sys::Fd directory;  ///< the directory that members' names are relative to
  /// If there is a root, links on the way to a member are followed within the root, and `path` is
  /// the path of `directory` below it. Without a root, a link on the way is an error.
  sys::Fd root = {};
  std::string path = {};
};

struct TreeExtractOptions {
  image::Owners owners = image::Owners::root;
  image::Trust trust = image::Trust::inside;
  std::function<void(const std::string&)> on_warning;
};

/// Makes the members of a tar below a directory that others may change meanwhile: every step uses a
/// handle, and a file in the place of a member is replaced, never written through. Refused are
/// names with "..", directories in the place of other files, and other files in the place of
/// directories.
class TreeExtractor {
 public:
  TreeExtractor(TreePlace place, TreeExtractOptions options);

  /// Errors: usage (a directory in the place of a file), corrupt, io.
  Result<void> add(const TarEntry& entry, TarReader& tar);
  /// Sets the times of directories, which changed when members were made in them, and reports the
  /// entries that were left out.
  Result<void> finish();

 private:
  Result<std::vector<std::string>> parts_of(const std::string& path) const;
  enum class Missing { made, error };
  Result<sys::Fd> enter_beneath(const std::vector<std::string>& directories, Missing missing);
  Result<sys::Fd> enter_in_root(const std::vector<std::string>& directories, Missing missing);
  Result<sys::Fd> enter(const std::vector<std::string>& directories);
  Result<void> make_room(const sys::Fd& parent, const std::string& name, const TarEntry& entry);
  Result<void> make(const sys::Fd& parent, const std::string& name, const TarEntry& entry,
                    TarReader& tar);
  Result<void> make_file(const sys::Fd& parent, const std::string& name, const TarEntry& entry,
                         TarReader& tar);
  Result<void> make_directory(const sys::Fd& parent, const std::string& name,
                              const TarEntry& entry);
  Result<void> make_link(const sys::Fd& parent, const std::string& name, const TarEntry& entry);
  Result<void> make_device(const sys::Fd& parent, const std::string& name, const TarEntry& entry);
  Result<void> describe(const sys::Fd& fd, const TarEntry& entry);
  mode_t mode_of(const TarEntry& entry) const;
  std::pair<uid_t, gid_t> owner_of(const TarEntry& entry) const;
  Result<void> checked(Result<void> chown);
  void leave_out(const std::string& what, const std::string& path);
  Result<void> leave_out_device(const TarEntry& entry);

  TreePlace place_;
  TreeExtractOptions options_;
  std::vector<std::string> last_path_;  ///< path of the last member's directory
  sys::Fd last_;
  struct MadeDirectory {
    std::vector<std::string> path;
    sys::FileTime modified;
  };
  std::vector<MadeDirectory> directories_;
  std::set<std::vector<std::string>> devices_left_out_;
  std::map<std::string, std::pair<std::string, size_t>> left_out_;  ///< first path and count
};

}  // namespace berth::transfer
