// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/context/filter.hpp"
#include "engine/image/transfer.hpp"
#include "image/registry_access.hpp"
#include "image/transfer_protocol.hpp"

namespace berth::engine {

/// A search at a registry.
struct SearchWish {
  std::string term;  ///< "cuda", "localhost:5000/cuda", "localhost:5000/"
  Filters filters;   ///< stars=N, is-official=BOOL, is-automated=BOOL
  uint32_t limit = 0;
  image::RegistryAccess access;
};

/// At most `limit` repositories, those with the most stars first.
/// Errors: usage (the term, a filter), and those of the registry.
Result<std::vector<image::FoundRepository>> search_registry(const Context& context,
                                                            const SearchWish& wish,
                                                            const Progress& progress);

/// Tags of one repository.
struct TagList {
  std::string name;  ///< in pull's form: "ubuntu", "localhost:5000/team/tool"
  std::vector<std::string> tags;
};

/// The first `limit` tags that the registry lists for the repository of wish.term.
/// Errors: usage (no repository, a filter), and those of the registry.
Result<TagList> list_tags(const Context& context, const SearchWish& wish, const Progress& progress);

}  // namespace berth::engine
