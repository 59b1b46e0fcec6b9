// SPDX-License-Identifier: Apache-2.0
#include "hub/caller.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "node/what_if.hpp"
#include "oci/image_spec.hpp"
#include "transfer/work/base64.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostShown = 100;

bool is_text(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

/// "cpu#zen2,gpu#sm_90" → "cpu=zen2 gpu=sm_90"; a part without '#' is left unchanged, and refused
/// later.
std::string words_of(std::string_view axes) {
  std::string words;
  for (std::string_view axis : split(axes, ',')) {
    std::string word(axis);
    if (size_t sharp = word.find('#'); sharp != std::string::npos) word[sharp] = '=';
    words += (words.empty() ? "" : " ") + word;
  }
  return words;
}

}  // namespace

std::optional<Login> read_basic(std::string_view value) {
  constexpr std::string_view kScheme = "basic ";
  if (to_lower(value.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  auto text = transfer::base64_decode(trim(value.substr(kScheme.size())));
  if (!text || !is_text(*text)) return std::nullopt;
  size_t colon = text->find(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return Login{text->substr(0, colon), text->substr(colon + 1)};
}

LoginName read_login_name(const std::string& name,
                          const std::function<bool(std::string_view)>& is_account) {
  if (is_account(name)) return {name, {}, {}};
  size_t mark = name.find_first_of("+/");
  if (mark == std::string::npos) return {name, {}, {}};
  std::string rest = name.substr(mark + 1);
  if (name[mark] == '+') return {name.substr(0, mark), std::move(rest), {}};
  return {name.substr(0, mark), {}, words_of(rest)};
}

Result<Nodes> Nodes::make(const Config& config, std::vector<node::Profile> fleet) {
  Nodes nodes;
  for (node::Profile& profile : fleet) {
    std::string name = profile.name;
    nodes.profiles_[name] = std::make_shared<const node::Profile>(std::move(profile));
  }
  if (!config.usual.empty()) nodes.usual_ = TRY(nodes.named(config.usual, "default"));
  for (const LoginNode& one : config.login) {
    nodes.logins_[one.name] = TRY(nodes.named(one.profile, "login"));
  }
  for (const AddressNode& one : config.address) {
    Node node = TRY(nodes.named(one.profile, "address"));
    nodes.ranges_.push_back({TRY_CTX(parse_network(one.network), "address"), std::move(node)});
  }
  std::ranges::stable_sort(nodes.ranges_, [](const Range& a, const Range& b) {
    return a.network.bits > b.network.bits;
  });
  return nodes;
}

Result<Node> Nodes::node_of(const Caller& caller) const {
  if (!caller.header.empty()) return named(caller.header, "Berth-Node");
  if (caller.login) {
    Node node = TRY(of_login(caller));
    if (node) return node;
  }
  auto range = std::ranges::find_if(
      ranges_, [&](const Range& one) { return one.network.contains(caller.address); });
  return range != ranges_.end() ? range->node : usual_;
}

Result<Node> Nodes::of_login(const Caller& caller) const {
  auto entry = logins_.find(*caller.login);
  if (entry != logins_.end()) return entry->second;
  if (!caller.name.profile.empty()) return named(caller.name.profile, "login");
  if (!caller.name.axes.empty()) {
    // Only this name describes the node; other facts that the hub knows do not count.
    node::Profile unknown;
    unknown.architecture = oci::host_platform().architecture;
    node::Profile made = TRY_CTX(node::with(std::move(unknown), caller.name.axes), "login");
    made.name = "/" + caller.name.axes;  // no file of a fleet can have this name
    return std::make_shared<const node::Profile>(std::move(made));
  }
  auto own = profiles_.find(caller.name.account);
  return own != profiles_.end() ? own->second : nullptr;
}

Result<Node> Nodes::named(std::string_view name, std::string_view by) const {
  auto entry = profiles_.find(name);
  if (entry != profiles_.end()) return entry->second;
  std::vector<std::string_view> names;
  for (const auto& [one, profile] : profiles_) names.push_back(one);
  auto near = nearest(name.substr(0, kMostShown), names);
  return make_error(Kind::usage,
                    fmt::format("{}: no profile {}{}", by, quote(name.substr(0, kMostShown)),
                                near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

}  // namespace berth::hub
