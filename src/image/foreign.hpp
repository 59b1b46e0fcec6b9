// SPDX-License-Identifier: Apache-2.0
// Configuration that images of other engines (enroot, Apptainer and Singularity) keep in their
// files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "oci/image_spec.hpp"

namespace berth::image {

/// The files of such an image.
class ForeignFiles {
 public:
  virtual ~ForeignFiles() = default;
  /// Reads a regular file of at most `max_bytes`; nothing if there is none.
  virtual Result<std::optional<std::string>> read(const std::string& path,
                                                  size_t max_bytes) const = 0;
  virtual Result<bool> exists(const std::string& path) const = 0;
};

/// Environment, command and labels. enroot: /etc/environment, and /etc/rc as the entrypoint. SIF:
/// the scripts in /.singularity.d/env run before a command, the runscript is the command, and
/// labels.json has the labels. The default command is /bin/sh.
/// Errors: those of `files`.
Result<oci::ContainerDefaults> describe_foreign(const ForeignFiles& files);

/// The reverse: the files that enroot reads in an image, made from a config as enroot makes them.
struct EnrootFiles {
  std::string environment;  ///< /etc/environment
  std::string rc;           ///< /etc/rc
  /// Variables that a line of /etc/environment cannot express.
  std::vector<std::string> left_out;
};
EnrootFiles make_enroot_files(const oci::ContainerDefaults& config);

}  // namespace berth::image
