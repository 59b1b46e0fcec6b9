// SPDX-License-Identifier: Apache-2.0
// CPU microarchitectures as archspec knows them: which there are, what each can do, which it
// descends from. Pure; the table is made of third_party/archspec when Berth is built.
// The features of a Cpu are sorted, as complete() leaves them.
// Source: archspec-json cpu/microarchitectures.json; archspec's documentation of detection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/profile.hpp"

namespace berth::node {

/// archspec's name for what people write: "skylake-avx512", "x86-64-v3" and "Zen4" are
/// skylake_avx512, x86_64_v3 and zen4. Nothing: there is none of that name.
std::optional<std::string_view> known_microarchitecture(std::string_view text);

/// The known name that `text` is likely to be a slip of.
std::optional<std::string_view> nearest_microarchitecture(std::string_view text);

/// All names, sorted.
std::vector<std::string_view> microarchitectures();

/// All that a microarchitecture can do the work of, nearest first: by their own ancestors, most
/// first, then by features, most first, then by name. Without itself. None for an unknown name.
std::vector<std::string_view> ancestors_of(std::string_view microarchitecture);

/// Features as /proc/cpuinfo calls them, sorted; archspec has none for Power and RISC-V.
std::vector<std::string_view> features_of(std::string_view microarchitecture);

/// The ancestor that has none: "x86_64", "aarch64", "ppc64le". Empty for an unknown name.
std::string_view family_of(std::string_view microarchitecture);

/// "GenuineIntel", "ARM", "generic"; empty for an unknown name.
std::string_view vendor_of(std::string_view microarchitecture);

/// The level of x86-64 that it implies, 1 … 4; 0: of another family, or unknown.
uint32_t level_of(std::string_view microarchitecture);

/// The family of an architecture as the image-spec writes it: "amd64" → "x86_64". One that archspec
/// does not know is its own.
std::string_view family_of_architecture(std::string_view architecture);

/// Whether `cpu` has a feature, by /proc/cpuinfo's name or archspec's alias for it ("avx512",
/// "sse4.1", "neon"). A profile that names no features has those of its microarchitecture.
bool has_feature(const Cpu& cpu, std::string_view feature);

/// Whether `cpu` has a feature by the kernel's or archspec's name for it ("pni" is sse3).
enum class Presence {
  there,
  missing,
  unknown,  ///< the profile says no more than what its microarchitecture has, and that not of it
};
Presence presence(const Cpu& cpu, std::string_view feature);

/// The least of `host`'s own microarchitecture and its ancestors that has all of `features`.
/// Nothing: none has, or there are none.
std::optional<std::string_view> least_with(const Cpu& host,
                                           const std::vector<std::string>& features);

/// The least microarchitecture that has all of `features` and is `above` or descends from it (any,
/// where that is no name). Generic ones first, then those with fewer features. Nothing: archspec
/// knows none.
std::optional<std::string_view> least_known_with(const std::vector<std::string>& features,
                                                 std::string_view above);

/// Whether what was built for `microarchitecture` runs on `host`.
enum class Fit {
  runs,          ///< it is the host's own, an ancestor of it, or all that it needs is there
  other_vendor,  ///< all that it needs is there, but the host is of another vendor
  lacks,         ///< the host lacks something: a feature, or it is of an older generation
  other_family,  ///< x86_64 and aarch64
  unknown,       ///< no such name, or nothing is known of the host
};
Fit fit(const Cpu& host, std::string_view microarchitecture);

/// fit() is Fit::runs: what archspec calls compatible.
bool runs(const Cpu& host, std::string_view microarchitecture);

/// How close to the host that is: a number that orders those that run, the larger the closer (by
/// number of ancestors, then by features). Nothing: it does not run.
std::optional<uint32_t> closeness(const Cpu& host, std::string_view microarchitecture);

/// Features that the microarchitecture has and `host` has not, sorted: for reasons ("needs avx512f;
/// this node is broadwell"). None where nothing is known of either or they are of two families.
std::vector<std::string_view> lacking(const Cpu& host, std::string_view microarchitecture);

/// The microarchitecture of a CPU whose vendor, features and part are filled, as archspec finds it:
/// of all that could run here the generic one with most ancestors, then its descendant with most
/// ancestors, then most features. x86-64 goes by vendor and features, Arm by the part too, Power by
/// the generation and RISC-V by the name that `part` holds. `family` is what uname(2) says; one
/// that archspec does not know is the answer itself.
std::string detect(std::string_view family, const Cpu& cpu);

/// Fills what follows from what is there: microarchitecture (by detect()), ancestors, level,
/// vendor, features; sorts the features. What is there stays, but an own name for a
/// microarchitecture becomes archspec's.
void complete(std::string_view family, Cpu& cpu);

}  // namespace berth::node
