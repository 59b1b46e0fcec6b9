// SPDX-License-Identifier: Apache-2.0
#include "slurm/options.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::slurm {
namespace {

constexpr std::array<std::string_view, 6> kPropagation = {"private", "rprivate", "slave",
                                                          "rslave",  "shared",   "rshared"};

Error invalid(std::string_view entry, std::string why) {
  return make_error(Kind::usage, "--container-mounts: " + quote(entry) + ": " + std::move(why),
                    "SRC:DST[:ro+rprivate]");
}

/// Whether a component of `path` is "..": then the destination would differ from what the string
/// shows.
bool climbs(std::string_view path) {
  auto parts = split(path, '/');
  return std::ranges::find(parts, "..") != parts.end();
}

Result<void> take_flag(std::string_view flag, std::string_view entry, Mount& mount) {
  bool restricts = flag == "nosuid" || flag == "nodev" || flag == "noexec";
  if (mount.kind == Mount::Kind::tmpfs || restricts) {
    mount.options.emplace_back(flag);
  } else if (flag == "ro" || flag == "rw") {
    mount.read_only = flag == "ro";
  } else if (flag == "bind" || flag == "rbind") {
    mount.recursive = flag == "rbind";
  } else if (std::ranges::find(kPropagation, flag) != kPropagation.end()) {
    mount.propagation = flag;
  } else {
    return invalid(entry, "unknown flag " + quote(flag));
  }
  return {};
}

Result<Mount> parse_mount(std::string_view entry, std::string_view working_directory) {
  auto parts = split(entry, ':');
  if (parts.size() > 3) return invalid(entry, "more than three parts");
  std::string_view source = parts[0];
  std::string_view destination = parts.size() > 1 ? parts[1] : source;
  Mount mount;
  if (source == "tmpfs") {
    mount.kind = Mount::Kind::tmpfs;
  } else if (source == "umount") {
    mount.kind = Mount::Kind::none;
  } else if (source.starts_with('.') && working_directory.empty()) {
    return invalid(entry, "the working directory has been removed");
  } else if (source.starts_with('.')) {
    mount.source = std::string(working_directory) + "/" + std::string(source);
  } else if (source.starts_with('/')) {
    mount.source = source;
  } else {
    return invalid(
        entry, "the source must be a path that begins with '/' or '.', \"tmpfs\" or \"umount\"");
  }
  bool same_place = parts.size() == 1 && source.starts_with('.');
  mount.destination = same_place ? mount.source : std::string(destination);
  if (!mount.destination.starts_with('/')) return invalid(entry, "the target is not absolute");
  if (climbs(destination) && !same_place) return invalid(entry, "the target has '..' in it");
  if (parts.size() < 3) return mount;
  for (std::string_view flag : split(parts[2], '+')) {
    if (flag.empty()) return invalid(entry, "a flag is empty");
    TRY(take_flag(flag, entry, mount));
  }
  return mount;
}

constexpr size_t kMaxName = 200;  // with a prefix this is a file name

constexpr std::array<Option, kOptions> kTable = {{
    {Key::image, "container-image", "IMAGE|PATH",
     "Image: [REGISTRY#]IMAGE[:TAG], squashfs or SIF file"},
    {Key::mounts, "container-mounts", "SRC:DST[:FLAGS],...",
     "Bind mounts; flags are separated by '+': ro+rprivate"},
    {Key::workdir, "container-workdir", "PATH", "Working directory in the container"},
    {Key::name, "container-name", "NAME[:USE]",
     "Name to keep it by; USE: auto, create, exec or no_exec"},
    {Key::save, "container-save", "PATH", "Save the container as a squashfs file on the node"},
    {Key::mount_home, "container-mount-home", nullptr, "Mount the home directory"},
    {Key::no_mount_home, "no-container-mount-home", nullptr, "Do not mount the home directory"},
    {Key::remap_root, "container-remap-root", nullptr, "Be root in the container"},
    {Key::no_remap_root, "no-container-remap-root", nullptr,
     "Be the calling user in the container"},
    {Key::entrypoint, "container-entrypoint", nullptr, "Run the image's entrypoint"},
    {Key::no_entrypoint, "no-container-entrypoint", nullptr, "Do not run the image's entrypoint"},
    {Key::entrypoint_log, "container-entrypoint-log", nullptr, "Show the output of the entrypoint"},
    {Key::writable, "container-writable", nullptr, "Make the container's files writable"},
    {Key::readonly, "container-readonly", nullptr, "Make the container's files read-only"},
    {Key::env, "container-env", "NAME,...", "Job variables that override the image's"},
    {Key::unshare, "container-unshare", "NS,...", "Namespaces not to share: net, ipc, uts"},
    {Key::environment_file, "environment", "NAME|PATH",
     "CSCS environment file, from EDF_PATH or ~/.edf by name"},
}};

const Option& option(Key key) {
  return *std::ranges::find(kTable, key, &Option::key);
}

std::string typed(Key key) {
  return std::string("--") + option(key).name;
}

std::optional<Key> opposite_of(Key key) {
  constexpr std::pair<Key, Key> kOpposites[] = {{Key::mount_home, Key::no_mount_home},
                                                {Key::remap_root, Key::no_remap_root},
                                                {Key::entrypoint, Key::no_entrypoint},
                                                {Key::writable, Key::readonly}};
  for (const auto& [one, other] : kOpposites) {
    if (key == one) return other;
    if (key == other) return one;
  }
  return std::nullopt;
}

Result<void> check_value(Key key, std::string_view text) {
  if (text.empty()) return make_error(Kind::usage, typed(key) + ": argument required");
  if (text.find('\n') != text.npos) {
    return make_error(Kind::usage, typed(key) + ": a line break in " + quote(text));
  }
  if (key == Key::name) TRY(parse_name(text));
  if (key == Key::unshare) TRY(parse_unshare(text));
  if (key == Key::mounts) TRY(parse_mounts(text, "/"));
  if (key == Key::env) {
    for (std::string_view name : split(text, ',')) {
      if (name.empty() || name.find('=') != name.npos) {
        return make_error(Kind::usage, "--container-env: invalid format: " + quote(text),
                          "names of variables, separated by commas");
      }
    }
  }
  if (key == Key::save && (text.ends_with('/') || text == "." || text == "..")) {
    return make_error(Kind::usage, "--container-save: target is a directory");
  }
  return {};
}

/// Parses the value of a variable for an option that has an opposite.
Result<bool> parse_truth(std::string_view text) {
  std::string word = to_lower(text);
  for (std::string_view yes : {"1", "true", "yes", "on", "y", "t"}) {
    if (word == yes) return true;
  }
  for (std::string_view no : {"0", "false", "no", "off", "n", "f"}) {
    if (word == no) return false;
  }
  return make_error(Kind::usage, "expected 1 or 0, got " + quote(text));
}

/// "container-mount-home" → "PYXIS_CONTAINER_MOUNT_HOME".
std::string variable_of(const Option& option) {
  std::string name = "PYXIS_";
  for (const char* at = option.name; *at != '\0'; ++at) {
    name += *at == '-' ? '_' : static_cast<char>(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
  }
  return name;
}

}  // namespace

Result<std::vector<Mount>> parse_mounts(std::string_view text, std::string_view working_directory) {
  std::vector<Mount> mounts;
  for (std::string_view entry : split(text, ',')) {
    mounts.push_back(TRY(parse_mount(entry, working_directory)));
  }
  return mounts;
}

const std::array<Option, kOptions>& options() {
  return kTable;
}

Result<void> Asked::refuse_both(Key key, Key opposite) const {
  if (!has(opposite)) return {};
  return make_error(Kind::usage,
                    "both " + typed(opposite) + " and " + typed(key) + " were specified");
}

Result<void> Asked::take(Key key, std::string_view text) {
  if (option(key).argument == nullptr) {
    if (auto opposite = opposite_of(key)) TRY(refuse_both(key, *opposite));
    said_[key] = "";
    return {};
  }
  TRY(check_value(key, text));
  auto [said, is_new] = said_.emplace(key, text);
  // Slurm gives slurmstepd only the last value, possibly twice.
  if (!is_new && said->second != text) {
    return make_error(Kind::usage, typed(key) + " specified multiple times",
                      "once, with commas where it takes several");
  }
  return {};
}

Result<void> Asked::take_variables(const Variable& variable) {
  const std::map<Key, std::string> typed_ones = said_;
  auto was_typed = [&](Key key) {
    auto opposite = opposite_of(key);
    return typed_ones.contains(key) || (opposite && typed_ones.contains(*opposite));
  };
  for (const Option& one : kTable) {
    std::string name = variable_of(one);
    if (!name.starts_with("PYXIS_CONTAINER_") || was_typed(one.key)) continue;
    auto text = variable(name);
    if (!text) continue;
    if (one.argument != nullptr) {
      TRY_CTX(take(one.key, *text), "invalid " + name);
      continue;
    }
    bool yes = TRY_CTX(parse_truth(*text), "invalid " + name);
    auto opposite = opposite_of(one.key);
    if (yes) {
      TRY_CTX(take(one.key, ""), "invalid " + name);
    } else if (opposite) {
      TRY_CTX(take(*opposite, ""), "invalid " + name);
    }
  }
  return {};
}

std::vector<std::string> Asked::without_container() const {
  std::vector<std::string> ignored;
  if (wants_container()) return ignored;
  for (const auto& [key, text] : said_) ignored.push_back(typed(key));
  return ignored;
}

std::vector<std::string> Asked::words() const {
  std::vector<std::string> words;
  for (const auto& [key, text] : said_) {
    words.push_back(typed(key) + (option(key).argument == nullptr ? "" : "=" + text));
  }
  return words;
}

const std::string* Asked::value(Key key) const {
  auto found = said_.find(key);
  return found == said_.end() ? nullptr : &found->second;
}

std::vector<std::string> Asked::environment() const {
  std::vector<std::string> names;
  if (const std::string* text = value(Key::env)) {
    for (std::string_view name : split(*text, ',')) names.emplace_back(name);
  }
  return names;
}

Result<Name> parse_name(std::string_view text) {
  Name out;
  size_t colon = text.find(':');
  out.name = text.substr(0, colon);
  if (out.name.empty()) return make_error(Kind::usage, "--container-name: empty name");
  bool legal = std::ranges::all_of(out.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
  if (!legal || out.name.size() > kMaxName) {
    return make_error(Kind::usage, "--container-name: invalid name " + quote(out.name),
                      "letters, digits, '_', '.' and '-', no more than 200");
  }
  if (colon == text.npos) return out;
  std::string_view use = text.substr(colon + 1);
  if (use == "auto") return out;
  if (use == "create") {
    out.use = NameUse::create;
  } else if (use == "exec") {
    out.use = NameUse::exec;
  } else if (use == "no_exec") {
    out.use = NameUse::no_exec;
  } else {
    return make_error(
        Kind::usage,
        "--container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\", got " +
            quote(use));
  }
  return out;
}

Result<Unshared> parse_unshare(std::string_view text) {
  Unshared out;
  for (std::string_view name : split(text, ',')) {
    if (name == "net") {
      out.net = true;
    } else if (name == "ipc") {
      out.ipc = true;
    } else if (name == "uts") {
      out.uts = true;
    } else if (name.empty()) {
      return make_error(Kind::usage, "--container-unshare: empty namespace argument");
    } else {
      return make_error(Kind::usage, "--container-unshare: unknown namespace " + quote(name),
                        "net, ipc, uts");
    }
  }
  return out;
}

}  // namespace berth::slurm
