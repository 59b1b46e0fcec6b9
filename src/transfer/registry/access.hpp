// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "image/reference.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// From what a request says of reaching registries to the objects that do it.
HttpOptions http_options(const image::RegistryAccess& access);

/// The files that are read for credentials: the request's own, else the usual ones.
std::vector<std::string> auth_files(const image::RegistryAccess& access);

/// A client of the reference's repository, at the location that the site's rules give it, with the
/// credential that the files have for it; not yet connected.
/// Errors: denied (a rule blocks it), usage (a rule makes it no repository), those of the files.
Result<Registry> open_registry(Http& http, const Cancel& cancel,
                               const image::RegistryAccess& access,
                               const image::Reference& reference, Events& events);

/// A registry as a whole, at the place to which the site's rules lead its name.
struct WholeRegistry {
  Registry registry;
  std::string below;    ///< the path there in which its repositories lie: "hub"; empty: all are its
  bool is_hub = false;  ///< Docker Hub's index, which has a search and no list
  const image::RegistryRule* rule = nullptr;  ///< which says so
};

/// A client of the registry `name`, of no repository; connected. Mirrors are not asked.
/// Errors: those of open_registry() and Registry::connect().
Result<WholeRegistry> open_whole(Http& http, const Cancel& cancel,
                                 const image::RegistryAccess& access, const std::string& name,
                                 Events& events);

/// Asks a place whether it has what is wanted.
using Holds = std::function<Result<void>(Registry& registry)>;

/// The same for who reads: the first mirror that holds it, else the registry itself, which is not
/// asked; connected.  Errors: those of the registry itself.
Result<Registry> open_source(Http& http, const Cancel& cancel, const image::RegistryAccess& access,
                             const image::Reference& reference, Events& events, const Holds& holds);
/// Of the image that the reference means; machines of the same job are asked before all others.
/// Errors: the same.
Result<Registry> open_source(Http& http, const Cancel& cancel, const image::RegistryAccess& access,
                             const image::Reference& reference, Events& events);
/// The same without those machines.
Result<Registry> open_site_source(Http& http, const Cancel& cancel,
                                  const image::RegistryAccess& access,
                                  const image::Reference& reference, Events& events);

/// How many blobs at once may come from where the reference leads; 0: the rules do not say.
uint32_t connections_to(const image::RegistryAccess& access, const image::Reference& reference);

}  // namespace berth::transfer
