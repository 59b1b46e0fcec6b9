// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"

namespace berth::transfer {

struct Credential {
  std::string username;
  std::string password;
  std::string identity_token;  ///< a refresh token in the place of the password
};

/// Where credentials are kept, as docker and podman keep them: $REGISTRY_AUTH_FILE alone when it is
/// set, else $XDG_RUNTIME_DIR/containers/auth.json, then $DOCKER_CONFIG/config.json or
/// ~/.docker/config.json.
std::vector<std::string> default_auth_files();

/// The name under which docker files credentials: "https://index.docker.io/v1/" for Docker Hub,
/// else the registry itself.
std::string credential_key(std::string_view registry);

/// The first credential that `files` have for `registry`; an entry for "registry/some/path" counts
/// for repositories below it and wins over the registry's own. Helpers ("credHelpers",
/// "credsStore") are run as docker-credential-NAME with the protocol on stdin and stdout.
/// A file that is missing is passed over; one that cannot be read or a helper that fails is a
/// warning in `log`, and the next place is tried.
Result<std::optional<Credential>> find_credential(const std::vector<std::string>& files,
                                                  const std::string& registry,
                                                  const std::string& repository, Log& log);

/// Files the credential in the first of `files` that already knows the registry, else in the last:
/// with the helper that the file names or in the file itself, which is replaced by rename and gets
/// mode 0600; its other members stay.
/// Errors: denied, io, corrupt (the file is not what docker writes).
Result<void> store_credential(const std::vector<std::string>& files, const std::string& registry,
                              const Credential& credential);

/// Takes the registry's credential out of every file and helper. Returns whether one had it.
/// Errors: as above.
Result<bool> erase_credential(const std::vector<std::string>& files, const std::string& registry);

}  // namespace berth::transfer
