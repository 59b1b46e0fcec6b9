// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "oci/runtime_spec.hpp"
#include "plan/steps.hpp"

namespace berth::plan {

/// The types of linux.namespaces, as the spec spells them.
std::span<const std::string_view> namespace_types();

/// Decides how `spec` becomes a running container.
/// Errors: usage (a config that contradicts itself, with the member's name), unsupported (a feature
/// that this version does not have). Source: runtime-spec config.md, config-linux.md, runtime.md.
Result<Plan> make(const oci::Spec& spec, const Container& container, const HostFacts& facts);

/// Decides how `spec.process` becomes one more process of a running container with the config
/// `spec`. Of `container` only `of_engine` is used. Errors: as make().
Result<Plan> make_exec(const oci::Spec& spec, const Container& container, const HostFacts& facts);

/// A step in words, for people and programs.
struct Description {
  std::string name;  ///< "mount_filesystem"
  std::string text;  ///< one line: "mount proc at '/proc' (nosuid,nodev,noexec)"
  std::vector<std::pair<std::string, std::string>> members;
};
Description describe(const Step& step);

}  // namespace berth::plan
