// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/build/steps.hpp"
#include "engine/context/context.hpp"
#include "engine/image/shared_layers.hpp"
#include "engine/image/transfer.hpp"

/// Builds one image from a Containerfile into the store: for `berth build`, and each cell of a
/// bake.
namespace berth::engine {

struct BuildRequest {
  std::string context;              ///< absolute; empty: nothing to copy from
  std::string file;                 ///< absolute; empty: Containerfile, else Dockerfile
  std::optional<std::string> text;  ///< the Containerfile's text; `file` is then not read
  std::vector<std::string> tags;    ///< empty: the image has no name
  std::map<std::string, std::string> args, labels;
  std::string target, platform;
  std::string id_file;  ///< absolute; the file to write the image's id to; empty: none
  bool pull = false;    ///< asks the registry even for images in the store
  bool no_cache = false;
  bool quiet = false;
  image::RegistryAccess access;
  BuildExtras extras;
};

/// The builder's output goes to stderr.
/// The result contains image_id and digest.
/// Errors: not_found (a builder, a base image, a Containerfile), usage (the Containerfile), io (the
/// build failed), interrupted.
Result<image::TransferResult> build_image(const Context& context, const BuildRequest& request,
                                          const Progress& progress);

/// Loads a builder's output into the store under the name `name`, or without a name if `name` is
/// empty. `path` is an OCI layout, a docker-archive, or a directory that buildah wrote as "dir:".
/// Errors: not_found, corrupt, io.
Result<image::TransferResult> load_built(const Context& context, const std::string& path,
                                         const std::string& name,
                                         MediaTypes types = MediaTypes::oci);

/// A command of the user that makes an image. "{out}" in its arguments is replaced by the path of
/// the output, which is also in $BERTH_OUT.
struct CommandJob {
  std::vector<std::string> words;
  std::string directory;  ///< its working directory
  std::string out;
  std::map<std::string, std::string> variables;
};
/// Errors: not_found (the program).
Result<BuildStep> command_step(const Context& context, const CommandJob& job);

/// Converts a value of `berth build --secret` to buildah's form, with absolute paths, since buildah
/// runs in another directory. Accepts "id=token,src=FILE", "id=token,env=NAME", and "id=token",
/// which is the variable of that name if set, else the file of that name. `here`: the working
/// directory. Errors: usage (no id, an unknown member), not_found (the file, the variable). Source:
/// docker build reference, "--secret"
Result<std::string> secret_text(std::string_view text, const std::string& here,
                                const Environment& environment);

/// The same for --ssh: "default" (the agent of SSH_AUTH_SOCK), "ID=SOCKET", "ID=KEY,KEY".
/// Errors: usage (no agent), not_found (a file).
/// Source: docker build reference, "--ssh"
Result<std::string> ssh_text(std::string_view text, const std::string& here,
                             const Environment& environment);

}  // namespace berth::engine
