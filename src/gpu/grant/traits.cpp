// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/traits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

using Op = Factor::Op;

/// The position where the name in `field` ends.
size_t end_of_name(std::string_view field) {
  return std::min(field.find_first_of("!<>="), field.size());
}

// Only letters and digits, so that rtx6000 and "rtx-6000" match "RTX 6000 Ada".
std::string plain(std::string_view text) {
  std::string out;
  for (char c : to_lower(text)) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter) out += c;
  }
  return out;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  auto value = parse_decimal(text.substr(0, digits));
  std::string unit = to_lower(text.substr(digits));
  if (!unit.empty() && unit.back() == 'b') unit.pop_back();
  bool binary = unit.size() == 2 && unit[1] == 'i';
  if (binary) unit.pop_back();
  constexpr std::string_view kUnits = "kmgt";
  size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
  if (!value || power == std::string_view::npos) return std::nullopt;
  double bytes = *value;
  for (size_t i = 0; i <= power; ++i) bytes *= binary ? 1024 : 1000;
  return bytes < 9e18 ? std::optional<uint64_t>(static_cast<uint64_t>(bytes)) : std::nullopt;
}

Error bad(const Trait& trait, const std::string& expected) {
  return make_error(Kind::usage,
                    fmt::format("expected {}, got {}", expected,
                                quote(trait.name + enum_text(trait.op) + trait.value)));
}

Result<void> check(Trait& trait) {
  const bool equal = trait.op == Op::equal || trait.op == Op::not_equal;
  if (trait.name == "model" || trait.name == "profile") {
    if (equal && !plain(trait.value).empty()) return {};
    return bad(trait, trait.name == "model" ? "model=NAME" : "profile=NAME, such as 1g.10gb");
  }
  if (trait.name == "cc") {
    if (compare_versions(trait.value, "0")) return {};
    return bad(trait, "a compute capability, such as cc>=9.0");
  }
  if (trait.name == "numa") {
    auto node = parse_u64(trait.value);
    if (!equal || !node) return bad(trait, "a NUMA node, such as numa=0");
    trait.number = *node;
    return {};
  }
  // A GPU that is sold as an 80 GB model has slightly more bytes, so equality would never hold.
  auto bytes = parse_size(trait.value);
  if (equal || !bytes) return bad(trait, "memory>=SIZE, such as memory>=40G");
  trait.number = *bytes;
  return {};
}

int order_of(uint64_t left, uint64_t right) {
  return left < right ? -1 : left > right ? 1 : 0;
}

std::optional<uint64_t> memory_of(const Selected& one) {
  return one.slice != nullptr ? one.slice->memory_bytes : one.gpu->memory_bytes;
}

}  // namespace

const std::vector<std::string_view>& trait_names() {
  static const std::vector<std::string_view> kNames = {"model", "memory", "cc", "numa", "profile"};
  return kNames;
}

bool is_trait(std::string_view field) {
  size_t end = end_of_name(field);
  std::string_view name = field.substr(0, end);
  if (end == field.size()) return false;
  return std::ranges::find(trait_names(), name) != trait_names().end() || field[end] != '=';
}

Result<Trait> parse_trait(std::string_view field) {
  Trait trait;
  std::string_view rest = field.substr(end_of_name(field));
  trait.name = field.substr(0, end_of_name(field));
  if (std::ranges::find(trait_names(), trait.name) == trait_names().end()) {
    auto near = nearest(trait.name, trait_names());
    return make_error(Kind::usage, fmt::format("GPUs have no property {}", quote(trait.name)),
                      near ? fmt::format("did you mean '{}'?", *near)
                           : std::string("properties are model, memory, cc, numa and profile"));
  }
  auto op = take_operator(rest);
  if (!op) return make_error(Kind::usage, "expected a comparison, got " + quote(field));
  trait.op = *op;
  trait.value = rest;
  TRY(check(trait));
  return trait;
}

bool has_trait(const Selected& one, const Trait& trait) {
  const Gpu& gpu = *one.gpu;
  if (trait.name == "model") {
    bool found = plain(gpu.model).find(plain(trait.value)) != std::string::npos;
    return !gpu.model.empty() && found == (trait.op == Op::equal);
  }
  if (trait.name == "profile") {
    if (one.slice == nullptr || one.slice->profile.empty()) return false;
    return (one.slice->profile == trait.value) == (trait.op == Op::equal);
  }
  if (trait.name == "cc") {
    if (!gpu.compute_capability) return false;
    auto order = compare_versions(*gpu.compute_capability, trait.value);
    return order && holds(trait.op, *order);
  }
  if (trait.name == "numa") {
    if (!gpu.numa_node || *gpu.numa_node < 0) return false;
    return holds(trait.op, order_of(static_cast<uint64_t>(*gpu.numa_node), trait.number));
  }
  auto bytes = memory_of(one);
  return bytes && holds(trait.op, order_of(*bytes, trait.number));
}

std::string to_text(const Trait& trait) {
  return trait.name + enum_text(trait.op) + trait.value;
}

}  // namespace berth::gpu
