// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/credentials.hpp"
#include "transfer/registry/verbs.hpp"

namespace berth::transfer {
namespace {

/// The registry that a user names: "", "docker.io", "https://index.docker.io/v1/",
/// "localhost:5000".
std::string registry_name(std::string_view typed) {
  for (std::string_view scheme : {"https://", "http://"}) {
    if (typed.starts_with(scheme)) typed.remove_prefix(scheme.size());
  }
  std::string host(typed.substr(0, typed.find('/')));
  if (host.empty() || host == "index.docker.io" || host == "registry-1.docker.io") {
    return "docker.io";
  }
  return host;
}

}  // namespace

Result<image::TransferResult> login(const image::LoginRequest& request, const EventSink& sink,
                                    Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  image::TransferResult result;
  result.reference = registry_name(request.registry);
  std::string what = fmt::format("cannot log in to '{}'", escape_controls(result.reference));
  if (request.username.empty() || request.password.empty()) {
    return make_error(Kind::usage, "read the credential: a user name and a password are needed")
        .with_context(what);
  }
  Credential credential{request.username, request.password, {}};
  Http http(http_options(request.access), cancel);
  Registry registry =
      TRY_CTX(Registry::make(http, cancel, result.reference, "", credential,
                             [&events](const std::string& text) { events.status(text); }),
              what);
  TRY_CTX(registry.connect(), what);
  TRY_CTX(registry.check_login(), what);
  TRY_CTX(store_credential(auth_files(request.access), result.reference, credential), what);
  result.status = "Login Succeeded";
  return result;
}

Result<image::TransferResult> logout(const image::LogoutRequest& request) {
  image::TransferResult result;
  result.reference = registry_name(request.registry);
  std::string shown = credential_key(result.reference);
  bool erased = TRY_CTX(erase_credential(auth_files(request.access), result.reference),
                        fmt::format("cannot log out of '{}'", escape_controls(shown)));
  result.status = erased ? fmt::format("Removing login credentials for {}", shown)
                         : fmt::format("Not logged in to {}", shown);
  return result;
}

}  // namespace berth::transfer
