// SPDX-License-Identifier: Apache-2.0
// Reasons for a container's GPUs, files, nodes and variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/gpu/provenance.hpp"
#include "gpu/grant/grant.hpp"
#include "gpu/grant/sources.hpp"
#include "gpu/inventory/inventory.hpp"
#include "known_error/find.hpp"
#include "oci/edit.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/driver_files.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// What `berth explain` shows of a start; empty: nothing to explain.
struct Explanation {
  std::vector<gpu::Verdict> sources;  ///< the sources of requests, and whether each counted
  std::vector<gpu::Reason> items;     ///< what was granted, and what was not
  bool empty() const { return sources.empty() && items.empty(); }
  bool granted() const;       ///< any GPU or device
  bool asks_nothing() const;  ///< no source requested a GPU or device
};

/// Explains what the container of `spec` contains. Pure.
Explanation explain(Provenance provenance, const oci::Spec& spec);

/// An explanation, and the container that it is about.
struct Explained {
  std::string id;  ///< empty: not started
  std::string name;
  std::string image;  ///< as requested
  Explanation explanation;
  std::optional<int> status = {};                 ///< if it has ended
  std::optional<known_error::Found> reason = {};  ///< why it failed, if known
};

/// One line for each source and item, with tabs between members. Not JSON, because every start
/// writes it and must be fast.
std::string write_explanation(const Explanation& explanation);
/// Errors: corrupt (the error names the line).
Result<Explanation> parse_explanation(std::string_view text);

/// Saves the explanation next to the container's bundle, so that it is removed with the container.
/// Writes nothing if it is empty.
Result<void> keep(const Explanation& explanation, const sys::Fd& files);

/// Errors: not_found ("no such container: X"), corrupt.
Result<Explained> explain_container(const Context& context, std::string_view reference);

}  // namespace berth::engine
