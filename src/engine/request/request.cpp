// SPDX-License-Identifier: Apache-2.0
#include "engine/request/request.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

template <class T, size_t N>
using Words = std::array<std::pair<T, std::string_view>, N>;

constexpr Words<Relabel, 3> kRelabels{
    {{Relabel::none, "none"}, {Relabel::shared, "shared"}, {Relabel::own, "own"}}};
constexpr Words<Network, 6> kNetworks{{{Network::none, "none"},
                                       {Network::host, "host"},
                                       {Network::container, "container"},
                                       {Network::bridge, "bridge"},
                                       {Network::pasta, "pasta"},
                                       {Network::slirp4netns, "slirp4netns"}}};
constexpr Words<Restart, 4> kRestarts{{{Restart::no, "no"},
                                       {Restart::on_failure, "on-failure"},
                                       {Restart::always, "always"},
                                       {Restart::unless_stopped, "unless-stopped"}}};
constexpr Words<LogDriver, 3> kLogDrivers{
    {{LogDriver::json_file, "json-file"}, {LogDriver::local, "local"}, {LogDriver::none, "none"}}};
constexpr Words<RootfsDriver, 3> kRootfsDrivers{{{RootfsDriver::overlay, "overlay"},
                                                 {RootfsDriver::fuse_overlayfs, "fuse-overlayfs"},
                                                 {RootfsDriver::copy, "copy"}}};
constexpr Words<MpiMode, 3> kMpiModes{
    {{MpiMode::image, "image"}, {MpiMode::automatic, "auto"}, {MpiMode::host, "host"}}};
using ModeKind = NamespaceMode::Kind;
constexpr Words<ModeKind, 6> kNamespaceModes{{{ModeKind::usual, ""},
                                              {ModeKind::own, "private"},
                                              {ModeKind::host, "host"},
                                              {ModeKind::none, "none"},
                                              {ModeKind::shareable, "shareable"},
                                              {ModeKind::keep_id, "keep-id"}}};
constexpr std::string_view kContainerPrefix = "container:";

template <class T, size_t N>
std::string word_of(const T& value, const Words<T, N>& words) {
  for (const auto& [one, word] : words) {
    if (one == value) return std::string(word);
  }
  return "";
}

template <class T, size_t N>
Result<T> value_of(std::string_view text, const Words<T, N>& words) {
  std::string known;
  for (const auto& [value, word] : words) {
    if (word == text) return value;
    if (word.empty()) continue;
    known += (known.empty() ? "'" : " or '") + std::string(word) + "'";
  }
  return make_error(Kind::usage, "expected " + known + ", got " + quote(text));
}

}  // namespace

std::string to_json_text(const Relabel& relabel) {
  return word_of(relabel, kRelabels);
}
Result<Relabel> from_json_text(std::string_view text, std::type_identity<Relabel>) {
  return value_of(text, kRelabels);
}
std::string to_json_text(const Network& network) {
  return word_of(network, kNetworks);
}
Result<Network> from_json_text(std::string_view text, std::type_identity<Network>) {
  return value_of(text, kNetworks);
}
std::string to_json_text(const Restart& restart) {
  return word_of(restart, kRestarts);
}
Result<Restart> from_json_text(std::string_view text, std::type_identity<Restart>) {
  return value_of(text, kRestarts);
}
std::string to_json_text(const LogDriver& driver) {
  return word_of(driver, kLogDrivers);
}
Result<LogDriver> from_json_text(std::string_view text, std::type_identity<LogDriver>) {
  return value_of(text, kLogDrivers);
}

std::string to_json_text(const RootfsDriver& driver) {
  return word_of(driver, kRootfsDrivers);
}
Result<RootfsDriver> from_json_text(std::string_view text, std::type_identity<RootfsDriver>) {
  auto driver = value_of(text, kRootfsDrivers);
  if (driver.ok()) return driver;
  return make_error(Kind::usage, "expected overlay, fuse-overlayfs or copy, got " + quote(text));
}
std::string to_json_text(MpiMode mode) {
  return word_of(mode, kMpiModes);
}
Result<MpiMode> from_json_text(std::string_view text, std::type_identity<MpiMode>) {
  auto mode = value_of(text, kMpiModes);
  if (mode.ok()) return mode;
  return make_error(Kind::usage, "expected 'auto', 'host', 'image' or 'none', got " + quote(text));
}

std::string to_json_text(const NamespaceMode& mode) {
  if (mode.kind == ModeKind::container) return std::string(kContainerPrefix) + mode.container;
  std::string ids;
  if (mode.uid) ids += ",uid=" + std::to_string(*mode.uid);
  if (mode.gid) ids += ",gid=" + std::to_string(*mode.gid);
  if (!ids.empty()) ids[0] = ':';
  return word_of(mode.kind, kNamespaceModes) + ids;
}

namespace {

/// "uid=N,gid=N"
Result<NamespaceMode> parse_kept_ids(std::string_view text) {
  constexpr uint64_t kMostId = (uint64_t{1} << 31) - 1;
  NamespaceMode mode;
  mode.kind = ModeKind::keep_id;
  for (std::string_view word : split(text, ',')) {
    auto id = parse_u64(word.substr(std::min<size_t>(word.size(), 4)));
    bool uid = word.starts_with("uid=");
    if (!id || *id > kMostId || (!uid && !word.starts_with("gid="))) {
      return make_error(Kind::usage,
                        "keep-id: expected uid=NUMBER or gid=NUMBER, got " + quote(word));
    }
    (uid ? mode.uid : mode.gid) = static_cast<uint32_t>(*id);
  }
  return mode;
}

}  // namespace

Result<NamespaceMode> from_json_text(std::string_view text, std::type_identity<NamespaceMode>) {
  NamespaceMode mode;
  constexpr std::string_view kKeepIdPrefix = "keep-id:";
  if (text.starts_with(kKeepIdPrefix)) return parse_kept_ids(text.substr(kKeepIdPrefix.size()));
  if (text.starts_with(kContainerPrefix) && text.size() > kContainerPrefix.size()) {
    mode.kind = ModeKind::container;
    mode.container = text.substr(kContainerPrefix.size());
    return mode;
  }
  mode.kind = TRY(value_of(text, kNamespaceModes));
  return mode;
}

bool is_attached(const RunCall& call, std::string_view stream) {
  return call.attach.empty() || std::ranges::find(call.attach, stream) != call.attach.end();
}

Result<std::vector<std::string>> make_command(const std::vector<std::string>& image_entrypoint,
                                              const std::vector<std::string>& image_command,
                                              const std::optional<std::string>& entrypoint,
                                              const std::vector<std::string>& command) {
  std::vector<std::string> args;
  if (!entrypoint) {
    args = image_entrypoint;
  } else if (!entrypoint->empty()) {
    args.push_back(*entrypoint);
  }
  // The arguments of the image belong to the entrypoint of the image.
  const auto& tail = command.empty() && !entrypoint ? image_command : command;
  // `ch-run IMAGE -- COMMAND`: drops the "--" if there is no entrypoint. An entrypoint may expect
  // the "--".
  bool marked = args.empty() && tail.size() > 1 && tail.front() == "--";
  args.insert(args.end(), tail.begin() + (marked ? 1 : 0), tail.end());
  if (args.empty()) {
    return make_error(Kind::usage, "the image has no command and none was given",
                      "a command after the image, e.g. /bin/sh");
  }
  if (args[0].empty()) return make_error(Kind::usage, "the command is an empty string");
  return args;
}

std::string joined_container(const RunRequest& request) {
  if (request.network == Network::container) return request.network_container;
  for (const auto* mode : {&request.pid, &request.ipc, &request.uts, &request.cgroupns}) {
    if (mode->kind == ModeKind::container) return mode->container;
  }
  return "";
}

bool keeps_groups(const RunRequest& request) {
  const auto& groups = request.group_add;
  return std::ranges::find(groups, "keep-groups") != groups.end();
}

Result<RunRequest> parse_run_request(std::string_view text) {
  auto request = json::read<RunRequest>(text, kRequestFile, {.unique_names = true});
  // An invalid value is a usage error in a flag, but means a damaged file here.
  if (!request.ok()) {
    Error error = std::move(request).error();
    error.kind = Kind::corrupt;
    return error;
  }
  return request;
}

}  // namespace berth::engine
