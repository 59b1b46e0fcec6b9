// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"

/// Converts values of `berth build`'s flags to buildah's form, with absolute paths: buildah runs in
/// another directory.
namespace berth::engine {

/// "id=token,src=FILE", "id=token,env=NAME", or "id=token": the variable of that name, else the
/// file.
/// `here`: the working directory.
/// Errors: usage (no id, an unknown member), not_found (the file, the variable).
/// Source: docker build reference, "--secret"
Result<std::string> secret_text(std::string_view text, const std::string& here,
                                const Environment& environment);

/// "default" (the agent of SSH_AUTH_SOCK), "ID=SOCKET", "ID=KEY,KEY".
/// Errors: usage (no agent), not_found (a file).
/// Source: docker build reference, "--ssh"
Result<std::string> ssh_text(std::string_view text, const std::string& here,
                             const Environment& environment);

}  // namespace berth::engine
