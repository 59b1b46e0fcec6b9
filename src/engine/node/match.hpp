// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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

/// Which entry (manifest) of an image index a node chooses, and why: for `berth match` and related
/// commands.
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

/// A resolved reference, and the images among which a node chooses.
struct Offer {
  std::string asked;      ///< the reference as the user wrote it
  std::string reference;  ///< canonical
  std::string digest;     ///< of the index, or of the only manifest
  std::vector<match::Candidate> candidates;
};

/// The match on one node.
struct Answer {
  node::Profile node;
  match::Ranking ranking;
};

/// The user-land driver that a container gets in `mode`: the one of the host or of the image.
match::UserLand user_land_of(policy::DriverMode mode);

/// The user-land driver that containers get by the policy.  Errors: those of read_compiled().
Result<match::UserLand> usual_user_land(const Context& context);

/// Resolves the reference of `request`. An unreachable registry is only a warning if the store has
/// the image.
/// Errors: those of transfer(); not_found (the store does not have the image).
Result<Offer> look_up(const Context& context, const MatchRequest& request);

/// Returns in `document` the index or manifest of `reference` at the registry, byte by byte.
/// `insecure`: as if --insecure-registry named the registry of `reference`.
/// Errors: usage (not a reference), those of transfer().
Result<image::TransferResult> look_up_document(const Context& context, const std::string& reference,
                                               image::RegistryAccess access, bool insecure);

/// Errors: those of node::load_profile() and node::with(), and those of reading the policy.
Result<Answer> match_node(const Context& context, const MatchRequest& request, const Offer& offer);

/// Gets one answer for each profile of the fleet, by name.
using TakesAnswers = std::function<void(const Offer&, const std::vector<Answer>&)>;
/// Looks up one of `references` after the other, and judges it for each profile in `directory`.
/// Errors: those of look_up() and node::load_fleet().
Result<void> match_fleet(const Context& context, MatchRequest request,
                         const std::vector<std::string>& references, const std::string& directory,
                         const TakesAnswers& take);

/// What a request says about GPUs and the command, for judging an image.
struct GpuWish {
  std::optional<policy::DriverMode> driver_mode;  ///< none: the policy's
  bool needs_gpus = false;
  bool other_command = false;  ///< not the command of the image
};
/// Sets the criteria by which a pull chooses and judges an image: this machine's profile, the
/// driver mode, and the trusted facts. If this machine has no profile, the pull continues with a
/// warning.
void judge_by_this_node(const Context& context, const GpuWish& wish, image::PullRequest& request);

/// How to report the verdict on an image after the pull, when its files are known.
enum class Remarks {
  warn,    ///< warn of every remark: for a pull
  refuse,  ///< fail if the image does not run, else warn: for a pull before a start
};

/// Judges an image that was just unpacked, using the findings in its files. Records it if the image
/// does not run here, or not on the GPUs. Reports nothing if this machine has no profile, or if the
/// image has another architecture: of that the pull warns, and each start (engine/pull/pull.cpp).
/// Errors: unsupported (the image does not run here).
Result<void> judge_unpacked(const Context& context, const GpuWish& wish, const image::Image& image,
                            Remarks remarks);

/// For an image that was already present: fails if the image was recorded as not running here, or,
/// for a start with GPUs, as not running on them, and this start would fail. This usually costs
/// only the look-up of a file that does not exist. A start with GPUs and without the driver's files
/// is always judged. With `strict` always judges the image, and fails unless the verdict is a pass.
Result<void> judge_present(const Context& context, const GpuWish& wish, const image::Image& image,
                           bool strict);

/// Reads a PEM key.  Errors: not_found, denied, corrupt (over 64 KiB).
Result<std::string> read_key_file(const std::string& path);

/// Which published facts the policy trusts. Errors: those of read_compiled(), and if only signed
/// facts count those of reading the keys.
Result<image::FactsTrust> facts_trust(const Context& context);

}  // namespace berth::engine
