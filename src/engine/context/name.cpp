// SPDX-License-Identifier: Apache-2.0
#include "engine/context/name.hpp"

#include <array>

#include "base/text.hpp"

namespace berth::engine {
namespace {

constexpr std::array<std::string_view, 64> kAdjectives = {
    "able",   "agile",   "amber",  "ample",  "apt",    "bold",    "brave",   "bright",
    "brisk",  "calm",    "candid", "clear",  "clever", "crisp",   "curious", "deft",
    "eager",  "earnest", "exact",  "fair",   "fleet",  "fond",    "frank",   "fresh",
    "gentle", "glad",    "golden", "grand",  "hardy",  "honest",  "humble",  "jolly",
    "keen",   "kind",    "level",  "light",  "lively", "loyal",   "lucid",   "merry",
    "mild",   "modest",  "neat",   "nimble", "noble",  "patient", "placid",  "plain",
    "polite", "prime",   "proud",  "quick",  "quiet",  "ready",   "robust",  "serene",
    "sharp",  "silver",  "sober",  "steady", "sunny",  "swift",   "tidy",    "upbeat"};

constexpr std::array<std::string_view, 64> kSurnames = {
    "abel",    "ampere",     "archimedes",   "banach",   "bernoulli", "bohr",       "boole",
    "bose",    "brahe",      "cantor",       "cauchy",   "church",    "copernicus", "coulomb",
    "curie",   "dirac",      "einstein",     "erdos",    "euclid",    "euler",      "faraday",
    "fermat",  "fermi",      "feynman",      "fourier",  "galileo",   "galois",     "gauss",
    "germain", "goedel",     "hamilton",     "herschel", "hilbert",   "hopper",     "hypatia",
    "jacobi",  "kepler",     "kovalevskaya", "lagrange", "laplace",   "leibniz",    "lovelace",
    "maxwell", "meitner",    "mirzakhani",   "neumann",  "newton",    "noether",    "ohm",
    "pascal",  "pauli",      "planck",       "poincare", "ramanujan", "riemann",    "schroedinger",
    "shannon", "somerville", "stokes",       "tesla",    "turing",    "volta",      "weyl",
    "wu"};

bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<void> check_name(std::string_view name) {
  bool good = name.size() >= 2 && name.size() <= 255 && is_alnum(name[0]);
  for (char c : name) good = good && (is_alnum(c) || c == '_' || c == '.' || c == '-');
  if (good) return {};
  return make_error(Kind::usage, "container name " + quote(name.substr(0, 255)) +
                                     ": only [a-zA-Z0-9][a-zA-Z0-9_.-]+ is allowed");
}

std::string name_from(uint64_t random) {
  std::string_view adjective = kAdjectives[random % kAdjectives.size()];
  std::string_view surname = kSurnames[(random / kAdjectives.size()) % kSurnames.size()];
  return std::string(adjective) + "_" + std::string(surname);
}

}  // namespace berth::engine
