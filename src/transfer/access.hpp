// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "image/reference.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/event.hpp"
#include "transfer/registry.hpp"

namespace berth::transfer {

/// From what a request says of reaching registries to the objects that do it.
HttpOptions http_options(const image::RegistryAccess& access);

/// The files that are read for credentials: the request's own, else the usual ones.
std::vector<std::string> auth_files(const image::RegistryAccess& access);

/// A client of the reference's repository, with the credential that the files have for it; not yet
/// connected.
Result<Registry> open_registry(Http& http, const Cancel& cancel,
                               const image::RegistryAccess& access,
                               const image::Reference& reference, Events& events);

}  // namespace berth::transfer
