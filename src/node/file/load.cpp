// SPDX-License-Identifier: Apache-2.0
#include "node/file/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "node/check.hpp"
#include "policy/site/toml.hpp"
#include "sys/file/file.hpp"

namespace berth::node {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxEntries = 10'000;
constexpr size_t kMaxFleet = 100'000;
constexpr std::array<std::pair<std::string_view, Form>, 2> kEndings = {
    {{".json", Form::json}, {".toml", Form::toml}}};

/// Reads only the version: other members may have a different form in other versions.
struct VersionAlone {
  uint32_t version = kProfileVersion;
};
void fields(auto& v, VersionAlone& p) {
  v.optional("version", p.version);
}

json::Value& member_of(json::Value& value, const std::string& name) {
  if (value.object() == nullptr) value = json::Object{};
  json::Object& members = *value.get_if<json::Object>();
  auto at = std::ranges::find_if(members, [&](const auto& one) { return one.first == name; });
  return at != members.end() ? at->second : members.emplace_back(name, nullptr).second;
}

Result<json::Value> parse_toml(std::string_view text, std::string_view document) {
  std::vector<policy::TomlEntry> entries = TRY(policy::parse_toml(text, document));
  if (entries.size() > kMaxEntries) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: more than {} entries", document, kMaxEntries));
  }
  json::Value out = json::Object{};
  for (policy::TomlEntry& entry : entries) {
    json::Value* place = &out;
    for (const std::string& name : entry.path) place = &member_of(*place, name);
    *place = std::move(entry.value);
  }
  return out;
}

Result<json::Value> parse(std::string_view text, Form form, std::string_view document) {
  if (form == Form::toml) return parse_toml(text, document);
  return json::parse(text, document, {.max_bytes = kMaxBytes});
}

std::string name_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

bool is_profile_name(const std::string& name) {
  return !name.starts_with('.') && form_of(name).ok();
}

}  // namespace

Result<Form> form_of(const std::string& path) {
  for (const auto& [ending, form] : kEndings) {
    if (path.size() > ending.size() && path.ends_with(ending)) return form;
  }
  return make_error(Kind::usage,
                    fmt::format("{}: a profile's name ends in .json or .toml", quote(path)));
}

Result<Profile> read_written(std::string_view text, Form form, std::string_view document) {
  json::Value value = TRY(parse(text, form, document));
  auto version = TRY(json::from_value<VersionAlone>(value, document));
  if (version.version > kProfileVersion) {
    Profile later;
    later.version = version.version;
    TRY(check(later, document));
  }
  auto profile = TRY(json::from_value<Profile>(std::move(value), document));
  TRY(check(profile, document));
  return profile;
}

Result<Profile> read_profile(std::string_view text, Form form, std::string_view document) {
  Profile profile = TRY(read_written(text, form, document));
  fill(profile);
  return profile;
}

Result<ProfileText> read_text(const std::string& path) {
  Form form = TRY(form_of(path));
  return ProfileText{TRY(sys::read_file(sys::cwd(), path, kMaxBytes)), form};
}

Result<Profile> load_profile(const std::string& path) {
  ProfileText file = TRY(read_text(path));
  Profile profile = TRY(read_profile(file.text, file.form, path));
  profile.name = name_of(path);
  return profile;
}

Result<std::vector<Profile>> load_fleet(const std::string& directory) {
  std::vector<std::string> names = TRY(sys::list_directory(sys::cwd(), directory, kMaxFleet));
  std::erase_if(names, [](const std::string& name) { return !is_profile_name(name); });
  if (names.empty()) {
    return make_error(Kind::not_found, fmt::format("{}: no node profile in it", quote(directory)),
                      "berth node save " + directory + "/NAME.json");
  }
  std::vector<Profile> fleet;
  for (const std::string& name : names) {
    fleet.push_back(TRY(load_profile(directory + "/" + name)));
  }
  std::ranges::sort(fleet, [](const Profile& a, const Profile& b) { return a.name < b.name; });
  auto twice = std::ranges::adjacent_find(
      fleet, [](const Profile& a, const Profile& b) { return a.name == b.name; });
  if (twice != fleet.end()) {
    return make_error(Kind::exists, fmt::format("{}: two profiles are named {}", quote(directory),
                                                quote(twice->name)));
  }
  return fleet;
}

Result<void> save_profile(const Profile& profile, const std::string& path) {
  Form form = TRY(form_of(path));
  return sys::replace_file(sys::cwd(), path, write_profile(profile, form), 0644);
}

}  // namespace berth::node
