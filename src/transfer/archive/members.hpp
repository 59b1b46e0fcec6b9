// SPDX-License-Identifier: Apache-2.0
// The members of an archive: their names, and their files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {

/// One element of a docker-archive's manifest.json.
struct DockerImage {
  std::string config;  ///< this and `layers` name members of the archive
  std::vector<std::string> repo_tags;
  std::vector<std::string> layers;
};
void fields(auto& v, DockerImage& i) {
  v.required("Config", i.config);
  v.always("RepoTags", i.repo_tags);
  v.always("Layers", i.layers);
}

/// The path of a blob in an OCI layout. image-spec image-layout.md
inline std::string blob_name(const Digest& digest) {
  return "blobs/sha256/" + digest.hex();
}

/// The files of an archive or an OCI layout directory, copied into the store's tmp/ and hashed on
/// the way. So only a rename is needed to make a file a blob.
class ArchiveMembers {
 public:
  struct File {
    std::string staged;  ///< the file's name in the staged directory
    Digest digest;
    uint64_t size = 0;
  };

  /// `input` is a directory, an archive, or "/dev/fd/N" (an archive).
  /// Errors: not_found, corrupt (not an archive; more than 10,000 members), interrupted, io.
  static Result<ArchiveMembers> open(const std::string& input, image::Delivery& delivery,
                                     const Cancel& cancel);

  /// Follows links between members. Nothing if there is no such file.
  Result<std::optional<File>> find(const std::string& name);
  /// Errors: not_found, corrupt (larger than `max_bytes`).
  Result<std::string> read(const File& file, size_t max_bytes);

  const image::Staged& staged() const { return staged_; }

 private:
  Result<void> spool(const sys::Fd& input, const Cancel& cancel);
  Result<File> copy(const std::string& name, const std::function<Result<std::string_view>()>& more);

  image::Staged staged_;
  std::optional<sys::Fd> directory_;  ///< of an OCI layout; files are copied on demand
  std::map<std::string, File> files_;
  std::map<std::string, std::string> links_;
};

/// True for "/dev/fd/N", an inherited descriptor.
bool is_descriptor(const std::string& path);

/// The name of `path` in errors: an inherited descriptor is the caller's standard input.
std::string input_name(const std::string& path);

/// Opens `path` for reading; for "/dev/fd/N" duplicates the inherited descriptor N.
Result<sys::Fd> open_input(const std::string& path);

}  // namespace berth::transfer
