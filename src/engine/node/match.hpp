// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/context/context.hpp"
#include "image/store.hpp"
#include "image/transfer_protocol.hpp"
#include "match/choose.hpp"
#include "match/verdict.hpp"
#include "policy/policy.hpp"

/// Which entry of an image a node takes, and why: `berth match` and its kin.
namespace berth::engine {

/// Where an image is looked up.
enum class LookUp { registry, store };

struct MatchRequest {
  std::string reference;
  LookUp look_up = LookUp::registry;
  std::optional<std::string> node;                ///< a saved profile; none: this machine
  std::string what_if;                            ///< words of node::with()
  std::optional<policy::DriverMode> driver_mode;  ///< none: the policy's
  bool needs_gpus = false;
  image::RegistryAccess access;
};

/// What a reference means.
struct Offer {
  std::string reference;  ///< canonical
  std::string digest;     ///< of the index, or of the only manifest
  std::vector<match::Candidate> candidates;
};

/// What one node makes of it.
struct Answer {
  node::Profile node;
  match::Ranking ranking;
};

/// Which user-land driver, the host's or the image's, a container has in a driver mode.
match::UserLand user_land_of(policy::DriverMode mode);

/// Which user-land driver containers have by the policy.  Errors: those of read_compiled().
Result<match::UserLand> usual_user_land(const Context& context);

/// A registry that cannot be reached is a warning where the store has the image.
/// Errors: those of transfer(); not_found (the store does not have it).
Result<Offer> look_up(const Context& context, const MatchRequest& request);

/// `document` of the result: the index or manifest that the registry has under `reference`, byte by
/// byte. `insecure`: as if --insecure-registry named its registry.
/// Errors: usage (no reference), those of transfer().
Result<image::TransferResult> look_up_document(const Context& context, const std::string& reference,
                                               image::RegistryAccess access, bool insecure);

/// Errors: those of node::load_profile() and node::with(); the policy's.
Result<Answer> match_node(const Context& context, const MatchRequest& request, const Offer& offer);

/// The profiles in `directory`, by name.  Errors: those of node::load_fleet().
Result<std::vector<Answer>> match_fleet(const Context& context, const MatchRequest& request,
                                        const Offer& offer, const std::string& directory);

/// What a pull on this machine judges by: its profile and the policy's driver mode. Where the
/// profile cannot be had the pull goes on without, with a warning.
struct GpuWish {
  std::optional<policy::DriverMode> driver_mode;  ///< none: the policy's
  bool needs_gpus = false;
  bool other_command = false;  ///< than the image's own
};
void judge_by_this_node(const Context& context, const GpuWish& wish, image::PullRequest& request);

/// What is said against an image of the store, now that its files are known.
enum class Remarks {
  warn,    ///< all of it: for a pull
  refuse,  ///< remarks, and an error where it does not run: for a pull that is followed by a start
};

/// Judges an image that was just unpacked by what was found in it, and remembers where it does not
/// run here. Nothing is said where this machine's profile cannot be had, or where the image is of
/// another architecture, which a person has asked for.
/// Errors: unsupported (it does not run here).
Result<void> judge_unpacked(const Context& context, const GpuWish& wish, const image::Image& image,
                            Remarks remarks);

/// For one that has been there: an error where it was remembered that it does not run, and that is
/// still so. Costs a look at a file that is mostly not there. With `strict` it is judged in any
/// case, and whatever is no pass is an error.
Result<void> judge_present(const Context& context, const GpuWish& wish, const image::Image& image,
                           bool strict);

}  // namespace berth::engine
