// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/process/stream.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/ignore_patterns.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

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

  // Lengths before texts: no two lists of fields have the same bytes.
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
