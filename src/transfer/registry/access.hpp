// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/reference.hpp"
#include "image/registry_access.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/registry/http.hpp"
#include "transfer/registry/registry.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

/// Converts the registry settings of a request into objects.
HttpOptions http_options(const image::RegistryAccess& access);

/// The credential files: those of the request, else the default ones.
std::vector<std::string> auth_files(const image::RegistryAccess& access);

/// A client of the reference's repository, at the location that the site's rules give, with the
/// credential from the files; already connected.
/// Errors: denied (a rule blocks it), usage (a rule yields an invalid repository), those of the
/// files and of Registry::connect().
Result<Registry> open_registry(Http& http, const Cancel& cancel,
                               const image::RegistryAccess& access,
                               const image::Reference& reference, Events& events);

/// A registry as a whole, at the location that the site's rules give.
struct WholeRegistry {
  Registry registry;
  std::string below;    ///< the path prefix of its repositories there: "hub"; empty: none
  bool is_hub = false;  ///< Docker Hub's index, which has a search and no list
  const image::RegistryRule* rule = nullptr;  ///< the rule that gave the location
};

/// A client of the registry `name`, without a repository; already connected. Ignores mirrors.
/// Errors: those of open_registry() and Registry::connect().
Result<WholeRegistry> open_whole(Http& http, const Cancel& cancel,
                                 const image::RegistryAccess& access, const std::string& name,
                                 Events& events);

/// Fails if a registry does not have the wanted object.
using Holds = std::function<Result<void>(Registry& registry)>;

/// As open_registry(), for reading: the first mirror that has the object by `holds`, else the
/// registry itself, for which `holds` is not called.  Errors: those of the registry itself.
Result<Registry> open_source(Http& http, const Cancel& cancel, const image::RegistryAccess& access,
                             const image::Reference& reference, Events& events, const Holds& holds);
/// The same for the image of the reference; machines of the same job are asked before all others.
/// Errors: the same.
Result<Registry> open_source(Http& http, const Cancel& cancel, const image::RegistryAccess& access,
                             const image::Reference& reference, Events& events);
/// The same without those machines.
Result<Registry> open_site_source(Http& http, const Cancel& cancel,
                                  const image::RegistryAccess& access,
                                  const image::Reference& reference, Events& events);

/// How many blobs the reference's registry may deliver at once; 0: no rule.
uint32_t connections_to(const image::RegistryAccess& access, const image::Reference& reference);

}  // namespace berth::transfer
