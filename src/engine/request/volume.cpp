// SPDX-License-Identifier: Apache-2.0
#include "engine/request/volume.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "plan/mount_options.hpp"

namespace berth::engine {
namespace {

constexpr std::array<std::string_view, 6> kPropagations = {"rprivate", "private", "rshared",
                                                           "shared",   "rslave",  "slave"};

bool is_propagation(std::string_view word) {
  return std::ranges::find(kPropagations, word) != kPropagations.end();
}

Result<std::string> parse_destination(std::string_view text, std::string_view flag) {
  if (!text.starts_with('/')) {
    return make_error(Kind::usage,
                      std::string(flag) + " " + quote(text) + ": the path is not absolute");
  }
  // Normalized, because destinations are compared with each other.
  std::string clean = std::filesystem::path(text).lexically_normal();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  if (clean == "/") {
    return make_error(Kind::usage, std::string(flag) + " " + quote(text) +
                                       ": the container's root cannot be mounted over");
  }
  return clean;
}

/// Parses a destination. As with docker, only the host's /proc may be mounted over /proc, because
/// programs trust it. `source`: empty if there is none.
Result<std::string> parse_place(std::string_view text, std::string_view flag,
                                std::string_view source) {
  std::string destination = TRY(parse_destination(text, flag));
  if (destination != "/proc" || source == "/proc") return destination;
  return make_error(Kind::usage, std::string(flag) + " " + quote(text) +
                                     ": cannot cover /proc, where the kernel's files are");
}

bool is_here(std::string_view source) {
  return source == "." || source == ".." || source.starts_with("./") || source.starts_with("../");
}

Result<void> take_option(std::string_view option, std::string_view text, Volume& volume) {
  if (option == "ro") {
    volume.read_only = true;
  } else if (option == "nocopy") {
    volume.no_copy = true;
  } else if (option == "z" || option == "Z") {
    volume.relabel = option == "z" ? Relabel::shared : Relabel::own;
  } else if (is_propagation(option)) {
    volume.propagation = option;
  } else if (option != "rw") {
    return make_error(Kind::usage, "volume " + quote(text) + ": unknown option " + quote(option),
                      "ro, rw or a propagation such as rslave");
  }
  return {};
}

// ---- --mount ------------------------------------------------------------------------------------

Error wrong_volume(std::string_view text, const std::string& why) {
  return make_error(Kind::usage, "mount " + quote(text) + ": " + why);
}

/// The fields of one CSV record. A value in quotes may contain commas.
Result<std::vector<std::string>> split_record(std::string_view text) {
  std::vector<std::string> words(1);
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' && inside && i + 1 < text.size() && text[i + 1] == '"') {
      words.back() += c;
      ++i;
    } else if (c == '"' && (inside || words.back().empty())) {
      inside = !inside;
    } else if (c == ',' && !inside) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (inside) return wrong_volume(text, "a quote is not closed");
  return words;
}

class MountParser {
 public:
  explicit MountParser(std::string_view text) : text_(text) {}
  Result<AnyMount> parse();

 private:
  Result<void> take(const std::string& word);
  Result<void> take_pair(const std::string& key, const std::string& value);
  Result<bool> flag(const std::string& key, const std::string& value) const;
  Result<void> check_kind() const;
  Result<Volume> bind();
  Result<Volume> volume();
  Tmpfs tmpfs();
  Result<ImageMount> image();

  std::string_view text_;
  std::string type_ = "volume";
  std::string source_;
  std::string target_;
  Volume mount_;
  std::vector<std::string> tmpfs_options_;
  bool for_bind_ = false;
  bool for_volume_ = false;
  bool writable_ = false;
};

Result<bool> MountParser::flag(const std::string& key, const std::string& value) const {
  if (value.empty() || value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return wrong_volume(text_, "invalid value for " + key + ": " + escape_controls(value));
}

Result<void> MountParser::take_pair(const std::string& key, const std::string& value) {
  if (key == "type") {
    type_ = to_lower(value);
  } else if (key == "source" || key == "src") {
    source_ = value;
  } else if (key == "target" || key == "dst" || key == "destination") {
    target_ = value;
  } else if (key == "readonly" || key == "ro") {
    mount_.read_only = TRY(flag(key, value));
    writable_ = !mount_.read_only;
  } else if (key == "bind-propagation") {
    for_bind_ = true;
    if (!is_propagation(value))
      return wrong_volume(text_, "invalid propagation " + berth::quote(value));
    mount_.propagation = value;
  } else if (key == "bind-nonrecursive") {
    for_bind_ = true;
    mount_.non_recursive = TRY(flag(key, value));
  } else if (key == "volume-nocopy") {
    for_volume_ = true;
    mount_.no_copy = TRY(flag(key, value));
  } else if (key == "volume-label") {
    for_volume_ = true;
    size_t equals = value.find('=');
    mount_.labels[value.substr(0, equals)] =
        equals == std::string::npos ? "" : value.substr(equals + 1);
  } else if (key == "volume-driver" && (value.empty() || value == "local")) {
    for_volume_ = true;
  } else if (key == "volume-driver" || key == "volume-opt") {
    return wrong_volume(text_, key + " is not supported: the only driver is local");
  } else if (key == "tmpfs-size") {
    auto bytes = parse_bytes(value);
    if (!bytes)
      return wrong_volume(text_, "invalid value for " + key + ": " + escape_controls(value));
    tmpfs_options_.push_back("size=" + std::to_string(*bytes));
  } else if (key == "tmpfs-mode") {
    bool octal = !value.empty() && value.find_first_not_of("01234567") == std::string::npos;
    if (!octal)
      return wrong_volume(text_, "invalid value for " + key + ": " + escape_controls(value));
    tmpfs_options_.push_back("mode=" + value);
  } else if (key != "consistency") {  // only has an effect with Docker on other systems
    return wrong_volume(text_, "unexpected key '" + escape_controls(key) + "'");
  }
  return {};
}

Result<void> MountParser::take(const std::string& word) {
  static constexpr std::array<std::string_view, 4> kAlone = {"readonly", "ro", "volume-nocopy",
                                                             "bind-nonrecursive"};
  size_t equals = word.find('=');
  std::string key = to_lower(word.substr(0, equals));
  if (equals != std::string::npos) return take_pair(key, word.substr(equals + 1));
  if (std::ranges::find(kAlone, key) != kAlone.end()) return take_pair(key, "");
  return wrong_volume(text_,
                      "invalid field '" + escape_controls(word) + "' must be a key=value pair");
}

Result<void> MountParser::check_kind() const {
  auto mixed = [&](const char* options) {
    return wrong_volume(
        text_, std::string("cannot mix '") + options + "' options with mount type '" + type_ + "'");
  };
  if (type_ != "bind" && type_ != "volume" && type_ != "tmpfs" && type_ != "image") {
    return wrong_volume(text_, "mount type unknown: " + berth::quote(type_));
  }
  if (target_.empty()) return wrong_volume(text_, "target is required");
  if (for_bind_ && type_ != "bind") return mixed("bind-*");
  if (for_volume_ && type_ != "volume") return mixed("volume-*");
  if (!tmpfs_options_.empty() && type_ != "tmpfs") return mixed("tmpfs-*");
  return {};
}

Result<Volume> MountParser::bind() {
  if (!source_.starts_with('/')) {
    return wrong_volume(text_, "invalid mount config for type \"bind\": " +
                                   (source_.empty() ? std::string("field Source must not be empty")
                                                    : "invalid mount path: '" + source_ +
                                                          "' mount path must be absolute"));
  }
  mount_.source = source_;
  mount_.must_exist = true;
  return mount_;
}

Result<Volume> MountParser::volume() {
  mount_.anonymous = source_.empty();
  if (!source_.empty()) TRY(check_volume_name(source_));
  mount_.name = source_;
  return mount_;
}

Tmpfs MountParser::tmpfs() {
  if (mount_.read_only) tmpfs_options_.emplace_back("ro");
  return Tmpfs{mount_.destination, tmpfs_options_};
}

Result<ImageMount> MountParser::image() {
  if (source_.empty()) return wrong_volume(text_, "an image needs a source");
  if (writable_) return wrong_volume(text_, "an image is read-only");
  return ImageMount{source_, mount_.destination};
}

Result<AnyMount> MountParser::parse() {
  for (const std::string& word : TRY(split_record(text_))) TRY(take(word));
  TRY(check_kind());
  mount_.destination = TRY(parse_place(target_, "mount", source_));
  if (type_ == "tmpfs") {
    if (!source_.empty()) return wrong_volume(text_, "a tmpfs has no source");
    return AnyMount(tmpfs());
  }
  if (type_ == "image") return AnyMount(TRY(image()));
  Volume made = type_ == "bind" ? TRY(bind()) : TRY(volume());
  return AnyMount(std::move(made));
}

/// Whether mount(8) or the kernel's tmpfs knows the option. tmpfs(5)
bool is_tmpfs_option(std::string_view option) {
  static constexpr std::array<std::string_view, 20> kKnown = {
      "size",     "nr_blocks",       "nr_inodes", "mode",    "uid",      "gid",      "huge",
      "mpol",     "inode32",         "inode64",   "noswap",  "quota",    "usrquota", "grpquota",
      "casefold", "strict_encoding", "sync",      "dirsync", "lazytime", "mand"};
  if (plan::parse_mount_options({std::string(option)}).data.empty()) return true;
  std::string_view key = option.substr(0, option.find('='));
  return std::ranges::find(kKnown, key) != kKnown.end();
}

/// Whether the kernel can parse the value. Checked here because the mount would fail only after the
/// container is created. tmpfs(5)
bool has_tmpfs_value(std::string_view option) {
  size_t equals = option.find('=');
  if (equals == option.npos) return true;
  std::string_view key = option.substr(0, equals), value = option.substr(equals + 1);
  if (key == "size" || key == "nr_blocks" || key == "nr_inodes") {
    // A number with one unit letter, as memparse() accepts, or a percentage of the memory.
    std::string_view last = key == "size" ? "kKmMgGtTpPeE%" : "kKmMgGtTpPeE";
    if (!value.empty() && last.find(value.back()) != last.npos) value.remove_suffix(1);
    return parse_u64(value).has_value();
  }
  if (key == "uid" || key == "gid") return parse_u64(value).has_value();
  constexpr size_t kMostDigits = 5;
  return key != "mode" || (!value.empty() && value.size() <= kMostDigits &&
                           value.find_first_not_of("01234567") == value.npos);
}

}  // namespace

Result<void> check_volume_name(std::string_view name) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  bool good = name.size() >= 2 && name.size() <= 255 && plain(name[0]) &&
              std::ranges::all_of(
                  name, [&](char c) { return plain(c) || c == '_' || c == '.' || c == '-'; });
  if (good) return {};
  if (name.size() == 1 && plain(name[0])) {
    return make_error(Kind::usage,
                      "volume name is too short, names should be at least two alphanumeric "
                      "characters");
  }
  return make_error(Kind::usage,
                    quote(name) +
                        " includes invalid characters for a local volume name, only "
                        "\"[a-zA-Z0-9][a-zA-Z0-9_.-]\" are allowed. If you intended to pass a host "
                        "directory, use absolute path");
}

Result<Volume> parse_volume(std::string_view text, std::string_view working_directory) {
  auto parts = split(text, ':');
  bool alone = parts.size() == 1 && text.starts_with('/');
  bool pair = (parts.size() == 2 || parts.size() == 3) && !parts[0].empty() && !parts[1].empty();
  if (!alone && !pair) {
    return make_error(Kind::usage, "volume " + quote(text) + ": expected [SOURCE:]DESTINATION[:ro]",
                      "-v /data:/data:ro");
  }
  Volume volume;
  if (alone) {
    volume.anonymous = true;
    volume.destination = TRY(parse_place(text, "volume", ""));
    return volume;
  }
  if (is_here(parts[0])) {
    volume.source = TRY(absolute_path(parts[0], working_directory));
  } else if (parts[0].starts_with('/')) {
    volume.source = parts[0];
  } else {
    TRY_CTX(check_volume_name(parts[0]), "volume " + quote(text));
    volume.name = parts[0];
  }
  volume.destination = TRY(parse_place(parts[1], "volume", volume.source));
  if (parts.size() < 3) return volume;
  size_t accesses = 0;
  for (std::string_view option : split(parts[2], ',')) {
    TRY(take_option(option, text, volume));
    if (option == "ro" || option == "rw") ++accesses;
  }
  if (accesses > 1) {
    return make_error(Kind::usage,
                      "volume " + quote(text) + ": invalid mode, either ro or rw is expected");
  }
  return volume;
}

Result<Tmpfs> parse_tmpfs(std::string_view text) {
  size_t colon = text.find(':');
  Tmpfs tmpfs;
  tmpfs.destination = TRY(parse_place(text.substr(0, colon), "tmpfs", ""));
  if (colon == std::string_view::npos) return tmpfs;
  for (std::string_view option : split(text.substr(colon + 1), ',')) {
    if (option.empty()) {
      return make_error(Kind::usage, "tmpfs " + quote(text) + ": an option is empty");
    }
    if (!is_tmpfs_option(option)) {
      return make_error(Kind::usage, "tmpfs " + quote(text) + ": unknown option " + quote(option),
                        "size=BYTES, mode=OCTAL, uid, gid, nr_inodes, or an option of mount(8)");
    }
    if (!has_tmpfs_value(option)) {
      return make_error(Kind::usage, "tmpfs " + quote(text) + ": bad value in " + quote(option),
                        "size=64m, mode=1777, uid=0 or nr_inodes=10k");
    }
    tmpfs.options.emplace_back(option);
  }
  return tmpfs;
}

Result<AnyMount> parse_mount(std::string_view text) {
  return MountParser(text).parse();
}

std::string cannot_mount(const ImageMount& mount) {
  return "cannot mount image " + quote(mount.source) + " at " + quote(mount.destination);
}

}  // namespace berth::engine
