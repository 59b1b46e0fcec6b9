// SPDX-License-Identifier: Apache-2.0
// CPU microarchitectures in archspec's terms: their names, features and ancestors. Pure; the table
// is generated from third_party/archspec when Berth is built. The features of a Cpu have to be
// sorted, as complete() does it.
// Source: archspec-json cpu/microarchitectures.json; archspec's documentation of detection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/profile.hpp"

namespace berth::node {

/// archspec's name for common spellings: "skylake-avx512", "x86-64-v3" and "Zen4" are
/// skylake_avx512, x86_64_v3 and zen4. Nothing for an unknown name.
std::optional<std::string_view> known_microarchitecture(std::string_view text);

/// The known name that `text` probably misspells.
std::optional<std::string_view> nearest_microarchitecture(std::string_view text);

/// All names, sorted.
std::vector<std::string_view> microarchitectures();

/// The microarchitectures that `microarchitecture` is compatible with, except itself, nearest
/// first: ordered by their number of ancestors, then by their number of features, then by name.
/// Empty for an unknown name.
std::vector<std::string_view> ancestors_of(std::string_view microarchitecture);

/// Features by the names of /proc/cpuinfo, sorted; archspec has none for Power and RISC-V.
std::vector<std::string_view> features_of(std::string_view microarchitecture);

/// The root of its ancestors: "x86_64", "aarch64", "ppc64le". Empty for an unknown name.
std::string_view family_of(std::string_view microarchitecture);

/// "GenuineIntel", "ARM", "generic"; empty for an unknown name.
std::string_view vendor_of(std::string_view microarchitecture);

/// The x86-64 level, 1 … 4, of a microarchitecture; 0: it is of another family, or unknown.
uint32_t level_of(std::string_view microarchitecture);

/// The family of an image-spec architecture: "amd64" → "x86_64". An architecture that archspec does
/// not know is its own family.
std::string_view family_of_architecture(std::string_view architecture);

/// Whether `cpu` has a feature, by /proc/cpuinfo's name or archspec's alias for it ("avx512",
/// "sse4.1", "neon"). A profile without features counts as having those of its microarchitecture.
bool has_feature(const Cpu& cpu, std::string_view feature);

/// Whether a processor has a feature, by the kernel's or archspec's name for it ("pni" is sse3).
enum class Presence {
  there,
  missing,
  unknown,  ///< the profile only lists its microarchitecture's features, which lack this one
};
Presence presence(const Cpu& cpu, std::string_view feature);

/// The least microarchitecture with all of `features` among that of `host` and its ancestors.
/// Nothing if none has them all, or if the microarchitecture is unknown.
std::optional<std::string_view> least_with(const Cpu& host,
                                           const std::vector<std::string>& features);

/// The least microarchitecture that has all of `features` and is `above` or descends from it (any
/// microarchitecture if `above` is not a known name). Prefers generic ones, then those with fewer
/// features. Nothing if archspec has none.
std::optional<std::string_view> least_known_with(const std::vector<std::string>& features,
                                                 std::string_view above);

/// Whether code for `microarchitecture` runs on `host`.
enum class Fit {
  runs,          ///< it is the host's own, an ancestor, or the host has all that it needs
  other_vendor,  ///< the host has all that it needs, but is of another vendor
  lacks,         ///< the host lacks a feature, or is of an older generation
  other_family,  ///< for example x86_64 and aarch64
  unknown,       ///< no such name, or the host is unknown
};
Fit fit(const Cpu& host, std::string_view microarchitecture);

/// fit() is Fit::runs: compatible in archspec's terms.
bool runs(const Cpu& host, std::string_view microarchitecture);

/// The closeness to the host, for ordering: larger is closer (by number of ancestors, then of
/// features). Nothing if it does not run.
std::optional<uint32_t> closeness(const Cpu& host, std::string_view microarchitecture);

/// The features of the microarchitecture that `host` lacks, sorted; for messages ("needs avx512f;
/// this node is broadwell"). None if either is unknown or they are of two families.
std::vector<std::string_view> lacking(const Cpu& host, std::string_view microarchitecture);

/// The microarchitecture of a CPU with known vendor, features and part, by archspec's algorithm: of
/// all that could run on it, takes the generic one with the most ancestors, then the descendant of
/// that one with the most ancestors, then with the most features. x86-64 is detected by vendor and
/// features, Arm also by `part`, Power by the generation in `part` and RISC-V by the name in
/// `part`. `family` is the machine from uname(2); a family that archspec does not know is returned
/// as the result.
std::string detect(std::string_view family, const Cpu& cpu);

/// Fills the members that follow from the known ones: microarchitecture (by detect()), ancestors,
/// level, vendor, features. Sorts the features. Known members are not changed, except that an alias
/// of a microarchitecture becomes archspec's name.
void complete(std::string_view family, Cpu& cpu);

}  // namespace berth::node
