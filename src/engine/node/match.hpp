// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/store.hpp"
#include "image/transfer_protocol.hpp"
#include "match/rank.hpp"
#include "match/verdict.hpp"
#include "policy/policy.hpp"

/// The entry of an image that a node chooses, and the reasons: `berth match` and related commands.
namespace berth::engine {

/// Where to look up an image.
enum class LookUp { registry, store };

struct MatchRequest {
  std::string reference;
  LookUp look_up = LookUp::registry;
  std::optional<std::string> node;                ///< a saved profile; none: this machine
  std::string what_if;                            ///< changes for node::with()
  std::optional<policy::DriverMode> driver_mode;  ///< none: the policy's
  bool needs_gpus = false;
  image::RegistryAccess access;
};

/// The resolved reference.
struct Offer {
  std::string reference;  ///< canonical
  std::string digest;     ///< of the index, or of the only manifest
  std::vector<match::Candidate> candidates;
};

/// The result for one node.
struct Answer {
  node::Profile node;
  match::Ranking ranking;
};

/// The user-land driver of a container in a driver mode: the host's or the image's.
match::UserLand user_land_of(policy::DriverMode mode);

/// The user-land driver of containers by the policy.  Errors: those of read_compiled().
Result<match::UserLand> usual_user_land(const Context& context);

/// An unreachable registry is only a warning if the store has the image.
/// Errors: those of transfer(); not_found (the store does not have it).
Result<Offer> look_up(const Context& context, const MatchRequest& request);

/// Returns in `document` the index or manifest of `reference` at the registry, byte by byte.
/// `insecure`: as if --insecure-registry named its registry.
/// Errors: usage (not a reference), those of transfer().
Result<image::TransferResult> look_up_document(const Context& context, const std::string& reference,
                                               image::RegistryAccess access, bool insecure);

/// Errors: those of node::load_profile() and node::with(); the policy's.
Result<Answer> match_node(const Context& context, const MatchRequest& request, const Offer& offer);

/// The profiles in `directory`, by name.  Errors: those of node::load_fleet().
Result<std::vector<Answer>> match_fleet(const Context& context, const MatchRequest& request,
                                        const Offer& offer, const std::string& directory);

/// The criteria of a pull on this machine: its profile and the policy's driver mode. Without a
/// profile the pull continues, with a warning.
struct GpuWish {
  std::optional<policy::DriverMode> driver_mode;  ///< none: the policy's
  bool needs_gpus = false;
  bool other_command = false;  ///< not the image's own
};
void judge_by_this_node(const Context& context, const GpuWish& wish, image::PullRequest& request);

/// How to report the verdict on an image in the store, once its files are known.
enum class Remarks {
  warn,    ///< warn of everything: for a pull
  refuse,  ///< warn, but fail if it does not run: for a pull before a start
};

/// Judges an image that was just unpacked by the findings in its files, and records whether it does
/// not run here. Reports nothing without a profile of this machine, or for an image of another
/// architecture, which a user must have requested.
/// Errors: unsupported (it does not run here).
Result<void> judge_unpacked(const Context& context, const GpuWish& wish, const image::Image& image,
                            Remarks remarks);

/// For an image that was already present: an error if it was recorded not to run, and still does
/// not. Costs one check for a file that mostly does not exist. With `strict` always judges it, and
/// everything but a pass is an error.
Result<void> judge_present(const Context& context, const GpuWish& wish, const image::Image& image,
                           bool strict);

/// Reads a PEM key.  Errors: not_found, denied, corrupt (over 64 KiB).
Result<std::string> read_key_file(const std::string& path);

/// The published facts that the policy trusts.
/// Errors: those of read_compiled(); those of reading the keys, if only signed facts count.
Result<image::FactsTrust> facts_trust(const Context& context);

}  // namespace berth::engine
