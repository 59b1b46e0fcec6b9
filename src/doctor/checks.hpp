// SPDX-License-Identifier: Apache-2.0
// The checks, grouped by subject, and their common helpers.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "doctor/finding.hpp"

namespace berth::doctor {

std::span<const Check> host_checks();
std::span<const Check> storage_checks();
std::span<const Check> driver_checks();
std::span<const Check> node_checks();
std::span<const Check> site_checks();  ///< CDI files, NVIDIA's toolkit, SELinux

inline Finding ok(std::string cause) {
  return {Status::ok, std::move(cause), {}, {}};
}
inline Finding warning(std::string cause, std::string remedy) {
  return {Status::warning, std::move(cause), std::move(remedy), {}};
}
inline Finding problem(std::string cause, std::string remedy) {
  return {Status::problem, std::move(cause), std::move(remedy), {}};
}
inline Finding not_applicable(std::string cause) {
  return {Status::not_applicable, std::move(cause), {}, {}};
}

/// `finding` with `details`, the list that its cause summarises.
inline Finding with(Finding finding, std::vector<std::string> details) {
  finding.details = std::move(details);
  return finding;
}

/// "1 node is stale", "3 nodes are stale".
std::string counted(size_t count, std::string_view one, std::string_view many);

/// Whether this machine has an NVIDIA GPU, the NVIDIA module loaded, or NVIDIA's driver files.
bool has_nvidia(const Facts& facts);

}  // namespace berth::doctor
