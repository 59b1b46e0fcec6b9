// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/content_digest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <optional>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/process/stream.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxPatterns = 10'000;

struct Class {
  std::string_view rest;
  bool holds = false;
};
/// The rest of a pattern behind a '[' class, and whether `c` is in the class; nothing if the class
/// does not end.
std::optional<Class> match_class(std::string_view pattern, char c) {
  bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool holds = false;
  for (bool first = true;; first = false) {
    if (pattern.empty()) return std::nullopt;
    if (pattern[0] == ']' && !first) return Class{pattern.substr(1), holds != negated};
    auto take = [&]() -> std::optional<char> {
      if (pattern.starts_with('\\')) pattern.remove_prefix(1);
      if (pattern.empty()) return std::nullopt;
      char taken = pattern[0];
      pattern.remove_prefix(1);
      return taken;
    };
    auto low = take();
    if (!low) return std::nullopt;
    auto high = low;
    if (pattern.starts_with('-')) {
      pattern.remove_prefix(1);
      high = take();
      if (!high) return std::nullopt;
    }
    holds = holds || (*low <= c && c <= *high);
  }
}

/// Matches one name with one part of a pattern. Needs constant space, and at most the product of
/// both lengths in time, as only the last star is tried again.
bool match_name(std::string_view pattern, std::string_view name) {
  std::optional<std::string_view> star;  // the pattern behind the last '*'
  std::string_view from;                 // the rest of the name that it was last tried on
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = pattern;
      from = name;
      continue;
    }
    if (pattern.empty() && name.empty()) return true;
    std::string_view rest = pattern;
    bool same = false;
    if (!pattern.empty() && !name.empty()) {
      rest.remove_prefix(1);
      if (pattern[0] == '[') {
        auto found = match_class(rest, name[0]);
        same = found && found->holds;
        if (found) rest = found->rest;
      } else if (pattern[0] == '\\' && !rest.empty()) {
        same = rest[0] == name[0];
        rest.remove_prefix(1);
      } else {
        same = pattern[0] == '?' || pattern[0] == name[0];
      }
    }
    if (same) {
      pattern = rest;
      name.remove_prefix(1);
      continue;
    }
    if (!star || from.empty()) return false;
    from.remove_prefix(1);
    name = from;
    pattern = *star;
  }
}

/// Whether the pattern matches the path or a directory above it. As in match_name(), only the last
/// "**" is tried again.
bool match_path(const std::vector<std::string>& parts, const std::vector<std::string_view>& names) {
  std::optional<size_t> stars;  // the part behind the last "**"
  size_t part = 0, name = 0, from = 0;
  while (part < parts.size()) {
    if (parts[part] == "**") {
      if (part + 1 == parts.size()) return name < names.size();
      stars = ++part;
      from = name;
    } else if (name < names.size() && match_name(parts[part], names[name])) {
      ++part;
      ++name;
    } else {
      if (!stars || from >= names.size()) return false;
      name = ++from;
      part = *stars;
    }
  }
  return true;
}

bool has_whole_classes(std::string_view part) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\') {
      ++i;
    } else if (part[i] == '[') {
      auto found = match_class(part.substr(i + 1), 'a');
      if (!found) return false;
      i = part.size() - found->rest.size() - 1;
    }
  }
  return true;
}

constexpr uint64_t kMaxDigestEntries = 1'000'000;
constexpr int kMaxDigestDepth = 400;
constexpr size_t kMaxIgnoreFile = size_t{1} << 20;

class ContextHash {
 public:
  ContextHash(const IgnorePatterns& ignore, const Cancel& cancel)
      : ignore_(ignore), cancel_(cancel) {}

  Result<Digest> run(const std::string& directory) {
    sys::Fd top = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
    TRY(add_directory(top, "", 0));
    return hash_.finish();
  }

 private:
  Result<void> add_directory(const sys::Fd& directory, const std::string& path, int depth) {
    if (depth > kMaxDigestDepth) {
      return make_error(Kind::unsupported, fmt::format("{}: deeper than {} directories",
                                                       quote(path), kMaxDigestDepth));
    }
    for (const std::string& name : TRY(sys::list_directory(directory, "."))) {
      TRY(cancel_.check());
      TRY(add_entry(directory, name, path.empty() ? name : path + "/" + name, depth));
    }
    return {};
  }

  Result<void> add_entry(const sys::Fd& directory, const std::string& name, const std::string& path,
                         int depth) {
    bool ignored = ignore_.ignores(path);
    if (ignored && !ignore_.has_exceptions()) return {};
    auto status = TRY(sys::stat_entry(directory, name));
    if (!status) return {};
    if (++entries_ > kMaxDigestEntries) {
      return make_error(Kind::unsupported, fmt::format("more than {} files", kMaxDigestEntries),
                        "a .containerignore file that leaves out what the build does not need");
    }
    bool is_directory = S_ISDIR(status->st_mode);
    if (!ignored) add_head(path, *status);
    if (is_directory) {
      sys::Fd below = TRY(sys::open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      return add_directory(below, path, depth + 1);
    }
    if (ignored) return {};
    if (S_ISLNK(status->st_mode)) add_field(TRY(sys::read_link(directory, name)));
    if (S_ISREG(status->st_mode)) return add_content(directory, name, path);
    return {};
  }

  void add_head(const std::string& path, const struct stat& status) {
    add_field(path);
    add_field(octal(status.st_mode));
    add_field(std::to_string(status.st_mode & S_IFMT));
  }

  // The length precedes each string, so that no two lists of fields have the same bytes.
  void add_field(std::string_view text) {
    hash_.update(fmt::format("{}:", text.size()));
    hash_.update(text);
  }

  Result<void> add_content(const sys::Fd& directory, const std::string& name,
                           const std::string& path) {
    auto file = TRY(sys::find_regular(directory, name));
    if (!file) return make_error(Kind::busy, "read " + quote(path) + ": it changes");
    Sha256 content;
    while (true) {
      TRY(cancel_.check());
      size_t count = TRY(sys::read_some(*file, buffer_, path));
      if (count == 0) break;
      content.update({buffer_.data(), count});
    }
    add_field(content.finish().text());
    return {};
  }

  const IgnorePatterns& ignore_;
  const Cancel& cancel_;
  Sha256 hash_;
  uint64_t entries_ = 0;
  std::array<char, 65536> buffer_;
};

Result<Digest> context_digest(const image::BuildContext& context, const Cancel& cancel) {
  IgnorePatterns ignore;
  if (!context.ignore_file.empty()) {
    std::string text = TRY(sys::read_file(sys::cwd(), context.ignore_file, kMaxIgnoreFile));
    ignore = TRY_CTX(IgnorePatterns::parse(text), "cannot read " + quote(context.ignore_file));
  }
  return ContextHash(ignore, cancel).run(context.directory);
}

}  // namespace

Result<IgnorePatterns> IgnorePatterns::parse(std::string_view text) {
  IgnorePatterns ignore;
  uint32_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.starts_with('#')) continue;
    line = trim(line);
    if (line.empty()) continue;
    Pattern pattern;
    pattern.exception = line.starts_with('!');
    if (pattern.exception) line = trim(line.substr(1));
    for (std::string_view part : split(line, '/')) {
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        if (!pattern.parts.empty()) pattern.parts.pop_back();
        continue;
      }
      if (!has_whole_classes(part)) {
        return make_error(Kind::usage, fmt::format("line {}: '[' without its ']'", number));
      }
      pattern.parts.emplace_back(part);
    }
    if (pattern.parts.empty()) continue;
    if (ignore.patterns_.size() == kMaxPatterns) {
      return make_error(Kind::usage, fmt::format("more than {} patterns", kMaxPatterns));
    }
    ignore.has_exceptions_ = ignore.has_exceptions_ || pattern.exception;
    ignore.patterns_.push_back(std::move(pattern));
  }
  return ignore;
}

bool IgnorePatterns::ignores(std::string_view path) const {
  std::vector<std::string_view> names = split(path, '/');
  bool ignored = false;
  for (const Pattern& pattern : patterns_) {
    if (pattern.exception != ignored) continue;  // the pattern would change nothing
    if (match_path(pattern.parts, names)) ignored = !pattern.exception;
  }
  return ignored;
}

Result<image::TransferResult> digest(const image::DigestRequest& request, Cancel& cancel) {
  image::TransferResult result;
  for (const image::BuildContext& context : request.contexts) {
    result.digests.push_back(TRY_CTX(context_digest(context, cancel),
                                     "cannot read the build context " + quote(context.directory)));
  }
  for (const std::string& text : request.texts) result.digests.push_back(sha256_of(text));
  return result;
}

}  // namespace berth::transfer
