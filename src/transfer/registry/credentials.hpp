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
  std::string identity_token;  ///< a refresh token instead of the password
};

/// The credential files of docker and podman: only $REGISTRY_AUTH_FILE when it is set, else
/// $XDG_RUNTIME_DIR/containers/auth.json, then $DOCKER_CONFIG/config.json or ~/.docker/config.json.
std::vector<std::string> default_auth_files();

/// The key of docker's credential files: "https://index.docker.io/v1/" for Docker Hub, else the
/// registry itself.
std::string credential_key(std::string_view registry);

/// The first credential in `files` for `registry`; an entry for "registry/some/path" applies to
/// repositories below it and has precedence over the entry for the registry. Helpers
/// ("credHelpers", "credsStore") are run as docker-credential-NAME with the protocol on stdin and
/// stdout. Missing files are skipped; for an unreadable file or a failing helper `log` gets a
/// warning, and the next source is tried.
Result<std::optional<Credential>> find_credential(const std::vector<std::string>& files,
                                                  const std::string& registry,
                                                  const std::string& repository, Log& log);

/// Stores the credential in the first of `files` that already has an entry for the registry, else
/// in the last file: with the helper that the file names, or in the file itself. The file is
/// replaced by rename, gets mode 0600 and keeps its other members.
/// Errors: denied, io, corrupt (the file is not in docker's format).
Result<void> store_credential(const std::vector<std::string>& files, const std::string& registry,
                              const Credential& credential);

/// Removes the registry's credential from every file and helper. Returns whether one had it.
/// Errors: as above.
Result<bool> erase_credential(const std::vector<std::string>& files, const std::string& registry);

}  // namespace berth::transfer
