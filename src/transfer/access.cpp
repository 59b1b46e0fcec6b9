// SPDX-License-Identifier: Apache-2.0
#include "transfer/access.hpp"

#include "transfer/credentials.hpp"

namespace berth::transfer {

HttpOptions http_options(const image::RegistryAccess& access) {
  HttpOptions options;
  options.tls_ca = access.tls_ca;
  options.insecure_registries = access.insecure_registries;
  options.stall_timeout = std::chrono::seconds(access.stall_seconds);
  return options;
}

std::vector<std::string> auth_files(const image::RegistryAccess& access) {
  return access.auth_files.empty() ? default_auth_files() : access.auth_files;
}

Result<Registry> open_registry(Http& http, const Cancel& cancel,
                               const image::RegistryAccess& access,
                               const image::Reference& reference, Events& events) {
  std::optional<Credential> credential = TRY(
      find_credential(auth_files(access), reference.registry(), reference.repository(), events));
  return Registry::make(http, cancel, reference.registry(), reference.repository(),
                        std::move(credential),
                        [&events](const std::string& text) { events.status(text); });
}

}  // namespace berth::transfer
