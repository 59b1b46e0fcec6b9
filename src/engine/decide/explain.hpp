// SPDX-License-Identifier: Apache-2.0
// Why a container has the GPUs, files, nodes and variables that it has.
#pragma once

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

/// What is kept of a start. Empty where nothing asked for GPUs.
struct Explanation {
  std::vector<gpu::Verdict> sources;  ///< which sources asked, and whether that counted
  std::vector<gpu::Reason> items;     ///< what came of it, and what did not
  bool empty() const { return sources.empty() && items.empty(); }
  bool granted() const;       ///< any GPU or device
  bool asks_nothing() const;  ///< nobody asked for one
};

/// Why the container of `spec` has what it has. Pure.
Explanation explain(Provenance provenance, const oci::Spec& spec);

/// An explanation with the container that it is about.
struct Explained {
  std::string id;  ///< empty: nothing was started
  std::string name;
  std::string image;  ///< as it was asked for
  Explanation explanation;
  std::optional<int> status = {};                 ///< of one that has ended
  std::optional<known_error::Found> reason = {};  ///< why it has failed, where that is known
};

/// One line for each source and item, members between tabs: a start writes it, so it is no JSON.
std::string write_explanation(const Explanation& explanation);
/// Errors: corrupt (with the number of the line).
Result<Explanation> parse_explanation(std::string_view text);

/// Keeps it beside the container's bundle, where it goes with the container; nothing is written for
/// one that says nothing.
Result<void> keep(const Explanation& explanation, const sys::Fd& files);

/// Errors: not_found ("no such container: X"), corrupt.
Result<Explained> explain_container(const Context& context, std::string_view reference);

}  // namespace berth::engine
