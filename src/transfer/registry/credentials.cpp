// SPDX-License-Identifier: Apache-2.0
#include "transfer/registry/credentials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "transfer/work/base64.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kHubKey = "https://index.docker.io/v1/";
constexpr std::string_view kTokenUser = "<token>";  // how helpers mark an identity token
constexpr size_t kMaxFileBytes = 4 << 20;
constexpr std::chrono::seconds kHelperDeadline{60};  // the helper may ask the user

struct AuthEntry {
  std::string auth;  // base64 of "user:password"
  std::string username;
  std::string password;
  std::string identity_token;
  json::Rest rest;
};
void fields(auto& v, AuthEntry& e) {
  v.optional("auth", e.auth);
  v.optional("username", e.username);
  v.optional("password", e.password);
  v.optional("identitytoken", e.identity_token);
  v.rest(e.rest);
}

/// The known members of docker's config.json and podman's auth.json; other members are kept.
struct AuthFile {
  std::map<std::string, AuthEntry> auths;
  std::string creds_store;
  std::map<std::string, std::string> cred_helpers;
  json::Rest rest;
};
void fields(auto& v, AuthFile& f) {
  v.optional("auths", f.auths);
  v.optional("credsStore", f.creds_store);
  v.optional("credHelpers", f.cred_helpers);
  v.rest(f.rest);
}

/// The input and output of docker-credential-NAME.
struct HelperAnswer {
  std::string server_url;
  std::string username;
  std::string secret;
};
void fields(auto& v, HelperAnswer& a) {
  v.optional("ServerURL", a.server_url);
  v.required("Username", a.username);
  v.required("Secret", a.secret);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// "https://index.docker.io/v1/" → "docker.io", "http://h:5000/v2/" → "h:5000".
std::string normal_key(std::string_view key) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  }
  for (std::string_view tail : {"/", "/v1", "/v2"}) {
    if (key.ends_with(tail)) key.remove_suffix(tail.size());
  }
  for (std::string_view hub : {"index.docker.io", "registry-1.docker.io"}) {
    if (key == hub) return "docker.io";
  }
  return std::string(key);
}

/// "host/a/b", "host/a", "host": the first that has an entry is used.
std::vector<std::string> keys_for(const std::string& registry, const std::string& repository) {
  std::vector<std::string> keys;
  std::string key = repository.empty() ? registry : registry + "/" + repository;
  while (true) {
    keys.push_back(key);
    size_t slash = key.rfind('/');
    if (slash == std::string::npos) return keys;
    key.resize(slash);
  }
}

Result<std::optional<AuthFile>> read_auth_file(const std::string& path) {
  std::optional<std::string> text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxFileBytes));
  if (!text) return std::optional<AuthFile>();
  if (trim(*text).empty()) return std::optional<AuthFile>(AuthFile{});
  AuthFile file = TRY(json::read<AuthFile>(*text, path));
  return std::optional<AuthFile>(std::move(file));
}

Result<void> write_auth_file(const std::string& path, const AuthFile& file) {
  // If the path is a link to the real file (dot files in a repository), it stays a link.
  std::error_code missing;
  std::filesystem::path target = std::filesystem::canonical(path, missing);
  if (missing) target = path;
  if (target.has_parent_path()) {
    TRY(sys::make_directories(sys::cwd(), target.parent_path(), 0700));
  }
  return sys::replace_file(sys::cwd(), target, json::write(file, 8) + "\n", 0600, sys::Sync::yes);
}

std::string helper_for(const AuthFile& file, const std::string& registry) {
  for (const auto& [key, helper] : file.cred_helpers) {
    if (normal_key(key) == registry) return helper;
  }
  return file.creds_store;
}

Result<std::string> find_helper(const std::string& name) {
  bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  std::string program = "docker-credential-" + name;
  if (!plain) return make_error(Kind::corrupt, "find credential helper " + berth::quote(name));
  std::string path = environment("PATH");
  for (std::string_view directory : split(path, ':')) {
    if (!directory.starts_with('/')) continue;
    std::string candidate = std::string(directory) + "/" + program;
    std::error_code failure;
    if (std::filesystem::is_regular_file(candidate, failure)) return candidate;
  }
  return make_error(Kind::not_found, fmt::format("find '{}' in PATH", program));
}

Result<sys::CommandOutput> run_helper(const std::string& name, const std::string& verb,
                                      const std::string& input) {
  sys::SpawnOptions options;
  options.program = TRY(find_helper(name));
  options.args = {options.program, verb};
  return sys::run_command(std::move(options), input, kHelperDeadline, size_t{1} << 20);
}

Error helper_failure(const std::string& name, const std::string& verb,
                     const sys::CommandOutput& output) {
  std::string_view said = trim(output.out.empty() ? output.err : output.out);
  return make_error(Kind::io, fmt::format("run 'docker-credential-{} {}': status {}: {}", name,
                                          verb, output.status.shell_code(), said.substr(0, 200)));
}

Result<std::optional<Credential>> ask_helper(const std::string& name, const std::string& registry) {
  sys::CommandOutput output = TRY(run_helper(name, "get", credential_key(registry) + "\n"));
  if (output.status.shell_code() != 0) {
    // The message of all docker-credential-helpers for a missing credential.
    if (output.out.find("credentials not found") != std::string::npos) {
      return std::optional<Credential>();
    }
    return helper_failure(name, "get", output);
  }
  HelperAnswer answer = TRY(json::read<HelperAnswer>(output.out, "docker-credential-" + name));
  Credential credential;
  if (answer.username == kTokenUser) {
    credential.identity_token = answer.secret;
  } else {
    credential.username = answer.username;
    credential.password = answer.secret;
  }
  return std::optional<Credential>(std::move(credential));
}

/// Nothing if the entry only says that a helper has the credential.
std::optional<Credential> entry_credential(const AuthEntry& entry) {
  Credential credential{entry.username, entry.password, entry.identity_token};
  if (!entry.auth.empty()) {
    std::optional<std::string> pair = base64_decode(entry.auth);
    size_t colon = pair ? pair->find(':') : std::string::npos;
    if (colon != std::string::npos) {
      credential.username = pair->substr(0, colon);
      credential.password = pair->substr(colon + 1);
      while (credential.password.ends_with('\0')) credential.password.pop_back();  // as docker does
    }
  }
  if (credential.username.empty() && credential.identity_token.empty()) return std::nullopt;
  return credential;
}

std::optional<Credential> find_entry(const AuthFile& file, const std::string& registry,
                                     const std::string& repository) {
  for (const std::string& wanted : keys_for(registry, repository)) {
    for (const auto& [key, entry] : file.auths) {
      if (normal_key(key) != wanted) continue;
      if (std::optional<Credential> credential = entry_credential(entry)) return credential;
    }
  }
  return std::nullopt;
}

Result<std::optional<Credential>> find_in_file(const std::string& path, const std::string& registry,
                                               const std::string& repository) {
  std::optional<AuthFile> file = TRY(read_auth_file(path));
  if (!file) return std::optional<Credential>();
  std::string helper = helper_for(*file, registry);
  if (!helper.empty()) {
    std::optional<Credential> credential = TRY(ask_helper(helper, registry));
    if (credential) return credential;
  }
  return find_entry(*file, registry, repository);
}

/// Removes every entry of the registry itself (not of paths below it) from the file.
bool drop_entries(AuthFile& file, const std::string& registry) {
  return std::erase_if(file.auths,
                       [&](const auto& item) { return normal_key(item.first) == registry; }) > 0;
}

bool knows(const AuthFile& file, const std::string& registry) {
  return std::ranges::any_of(file.auths,
                             [&](const auto& item) { return normal_key(item.first) == registry; });
}

}  // namespace

std::vector<std::string> default_auth_files() {
  std::string named = environment("REGISTRY_AUTH_FILE");
  if (!named.empty()) return {named};
  std::vector<std::string> files;
  std::string runtime_dir = environment("XDG_RUNTIME_DIR");
  if (!runtime_dir.empty()) files.push_back(runtime_dir + "/containers/auth.json");
  std::string docker_config = environment("DOCKER_CONFIG");
  std::string home = environment("HOME");
  if (!docker_config.empty()) {
    files.push_back(docker_config + "/config.json");
  } else if (!home.empty()) {
    files.push_back(home + "/.docker/config.json");
  }
  return files;
}

std::string credential_key(std::string_view registry) {
  return registry == "docker.io" ? std::string(kHubKey) : std::string(registry);
}

Result<std::optional<Credential>> find_credential(const std::vector<std::string>& files,
                                                  const std::string& registry,
                                                  const std::string& repository, Log& log) {
  for (const std::string& path : files) {
    Result<std::optional<Credential>> found = find_in_file(path, registry, repository);
    if (!found.ok()) {
      log.warn(fmt::format("cannot get credentials from '{}': {}, ignoring", path,
                           to_line(found.error())));
    } else if (*found) {
      return found;
    }
  }
  return std::optional<Credential>();
}

Result<void> store_credential(const std::vector<std::string>& files, const std::string& registry,
                              const Credential& credential) {
  if (files.empty()) {
    return make_error(Kind::usage,
                      "find a place for credentials: neither HOME nor "
                      "REGISTRY_AUTH_FILE is set");
  }
  std::string path = files.back();
  AuthFile file = TRY(read_auth_file(path)).value_or(AuthFile{});
  for (const std::string& candidate : files) {
    AuthFile other = TRY(read_auth_file(candidate)).value_or(AuthFile{});
    if (!knows(other, registry)) continue;
    path = candidate;
    file = std::move(other);
    break;
  }

  std::string helper = helper_for(file, registry);
  drop_entries(file, registry);
  AuthEntry& entry = file.auths[credential_key(registry)];
  if (!helper.empty()) {
    HelperAnswer item{credential_key(registry), credential.username, credential.password};
    sys::CommandOutput output = TRY(run_helper(helper, "store", json::write(item)));
    if (output.status.shell_code() != 0) return helper_failure(helper, "store", output);
  } else {
    entry.auth = base64_encode(credential.username + ":" + credential.password);
  }
  return write_auth_file(path, file);
}

Result<bool> erase_credential(const std::vector<std::string>& files, const std::string& registry) {
  bool erased = false;
  for (const std::string& path : files) {
    std::optional<AuthFile> file = TRY(read_auth_file(path));
    if (!file) continue;
    bool dropped = drop_entries(*file, registry);
    std::string helper = helper_for(*file, registry);
    if (dropped && !helper.empty()) {
      sys::CommandOutput output = TRY(run_helper(helper, "erase", credential_key(registry) + "\n"));
      if (output.status.shell_code() != 0) return helper_failure(helper, "erase", output);
    }
    if (dropped) TRY(write_auth_file(path, *file));
    erased = erased || dropped;
  }
  return erased;
}

}  // namespace berth::transfer
