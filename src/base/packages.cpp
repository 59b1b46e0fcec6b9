// SPDX-License-Identifier: Apache-2.0
#include "base/packages.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"

namespace berth {
namespace {

/// Systems with the same package manager and the same package names.
struct Family {
  std::string_view ids;  ///< each with a blank on both sides
  std::string_view command;
};
constexpr std::array<Family, 4> kFamilies{{
    {" debian ubuntu ", "apt install "},
    {" fedora rhel centos ", "dnf install "},
    {" suse opensuse sles opensuse-leap opensuse-tumbleweed ", "zypper install "},
    {" arch ", "pacman -S "},
}};

/// Packages with different names, in the order of the families.
constexpr std::array<std::array<std::string_view, 4>, 2> kOtherNames{{
    {"uidmap", "shadow-utils", "shadow", "shadow"},
    {"docker.io", "moby-engine", "docker", "docker"},
}};

std::optional<size_t> family_of(std::string_view ids) {
  for (std::string_view id : split_blank(ids)) {
    std::string word = " " + std::string(id) + " ";
    for (size_t i = 0; i < kFamilies.size(); ++i) {
      if (kFamilies[i].ids.find(word) != std::string_view::npos) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string install_command(std::string_view package, std::string_view os_release) {
  std::string ids, alike;
  for (std::string_view line : split(os_release, '\n')) {
    bool is_id = line.starts_with("ID=");
    if (!is_id && !line.starts_with("ID_LIKE=")) continue;
    std::string value(trim(line.substr(line.find('=') + 1)));
    std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
    (is_id ? ids : alike) = value;
  }
  auto family = family_of(ids + " " + alike);
  if (!family) return "install the package " + std::string(package);
  auto other = std::ranges::find_if(kOtherNames,
                                    [&](const auto& names) { return names.front() == package; });
  std::string name(other == kOtherNames.end() ? package : (*other)[*family]);
  return std::string(kFamilies[*family].command) + name;
}

}  // namespace berth
