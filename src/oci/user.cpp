// SPDX-License-Identifier: Apache-2.0
#include "oci/user.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::oci {
namespace {

constexpr uint64_t kMaxId = (uint64_t{1} << 31) - 1;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<uint32_t> parse_id(std::string_view text) {
  auto id = parse_u64(text);
  if (!is_number(text) || !id || *id > kMaxId) return std::nullopt;
  return static_cast<uint32_t>(*id);
}

/// The first `N` fields of a colon-separated line; nothing when there are fewer.
template <size_t N>
std::optional<std::array<std::string_view, N>> columns(std::string_view line) {
  auto parts = split(line, ':');
  if (parts.size() < N) return std::nullopt;
  std::array<std::string_view, N> out;
  std::copy_n(parts.begin(), N, out.begin());
  return out;
}

struct Account {
  std::string_view name;
  uint32_t uid;
  uint32_t gid;
  std::string_view home;
};

std::optional<Account> find_account(std::string_view wish, std::string_view passwd) {
  auto wanted = parse_id(wish);
  for (std::string_view line : split(passwd, '\n')) {
    auto fields = columns<6>(line);
    if (!fields) continue;
    auto uid = parse_id((*fields)[2]);
    auto gid = parse_id((*fields)[3]);
    if (!uid || !gid) continue;
    // A number is never a name: otherwise an image could give uid 0 to an account called "1000".
    bool match = wanted ? *uid == *wanted : (*fields)[0] == wish;
    if (match) return Account{(*fields)[0], *uid, *gid, (*fields)[5]};
  }
  return std::nullopt;
}

std::optional<uint32_t> find_group(std::string_view name, std::string_view group) {
  for (std::string_view line : split(group, '\n')) {
    auto fields = columns<3>(line);
    if (fields && (*fields)[0] == name) return parse_id((*fields)[2]);
  }
  return std::nullopt;
}

std::vector<uint32_t> groups_of(std::string_view name, std::string_view group) {
  std::vector<uint32_t> gids;
  for (std::string_view line : split(group, '\n')) {
    auto fields = columns<4>(line);
    if (!fields) continue;
    auto members = split((*fields)[3], ',');
    auto gid = parse_id((*fields)[2]);
    if (gid && std::ranges::find(members, name) != members.end()) {
      gids.push_back(*gid);
    }
  }
  return gids;
}

// The primary group is also a supplementary group: otherwise a set-group-id program could drop it
// and escape restrictions on that group (CVE-2022-36109).
std::vector<uint32_t> with_primary(uint32_t gid, std::vector<uint32_t> groups) {
  std::erase(groups, gid);
  groups.insert(groups.begin(), gid);
  return groups;
}

Error out_of_range(std::string_view wish) {
  return make_error(Kind::usage, "user " + quote(wish) + ": ids end at 2147483647");
}

}  // namespace

Result<ContainerUser> resolve_user(std::string_view wish, std::string_view passwd,
                                   std::string_view group) {
  size_t colon = wish.find(':');
  std::string_view user_part = wish.substr(0, colon);
  std::optional<std::string_view> group_part;
  if (colon != std::string_view::npos) group_part = wish.substr(colon + 1);
  if (group_part && (group_part->empty() || group_part->find(':') != std::string_view::npos)) {
    return make_error(Kind::usage, "user " + quote(wish) + ": expected USER or USER:GROUP");
  }
  if (is_number(user_part) && !parse_id(user_part)) return out_of_range(wish);

  ContainerUser user;
  auto account = find_account(user_part.empty() ? "0" : user_part, passwd);
  if (account) {
    user.uid = account->uid;
    user.gid = account->gid;
    if (account->home.starts_with('/')) user.home = account->home;
  } else if (auto uid = parse_id(user_part)) {
    user.uid = *uid;
  } else if (!user_part.empty()) {
    return make_error(Kind::not_found,
                      "user " + quote(user_part) + " is not in the container's /etc/passwd",
                      "a numeric id");
  }
  if (user.uid == 0 && user.home == "/") user.home = "/root";
  if (!group_part) {
    user.additional_gids =
        with_primary(user.gid, account ? groups_of(account->name, group) : std::vector<uint32_t>());
    return user;
  }
  if (is_number(*group_part)) {
    auto gid = parse_id(*group_part);
    if (!gid) return out_of_range(wish);
    user.gid = *gid;
  } else if (auto gid = find_group(*group_part, group)) {
    user.gid = *gid;
  } else {
    return make_error(Kind::not_found,
                      "group " + quote(*group_part) + " is not in the container's /etc/group",
                      "a numeric id");
  }
  user.additional_gids = {user.gid};
  return user;
}

Result<void> add_groups(const std::vector<std::string>& wishes, std::string_view group,
                        ContainerUser& user) {
  for (const std::string& wish : wishes) {
    auto gid = is_number(wish) ? parse_id(wish) : find_group(wish, group);
    if (!gid && is_number(wish)) {
      return make_error(Kind::usage, "group " + quote(wish) + ": ids end at 2147483647");
    }
    if (!gid) return make_error(Kind::not_found, "Unable to find group " + escape_controls(wish));
    auto& gids = user.additional_gids;
    if (std::ranges::find(gids, *gid) == gids.end()) gids.push_back(*gid);
  }
  return {};
}

}  // namespace berth::oci
