// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/members.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/process/stream.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxMembers = 10'000;
constexpr int kMaxMemberLinks = 8;
constexpr std::string_view kDescriptor = "/dev/fd/";

/// "./a/../b" → "b": names of members are compared as strings.
std::string normal_name(std::string_view name) {
  std::vector<std::string> parts;
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return join(parts, "/");
}

}  // namespace

bool is_descriptor(const std::string& path) {
  return path.starts_with(kDescriptor);
}

std::string input_name(const std::string& path) {
  return is_descriptor(path) ? "standard input" : quote(path);
}

Result<sys::Fd> open_input(const std::string& path) {
  if (path.starts_with(kDescriptor)) {
    auto number = parse_u64(std::string_view(path).substr(kDescriptor.size()));
    if (!number || *number > 1'000'000) {
      return make_error(Kind::usage, "open " + quote(path) + ": expected a descriptor's number");
    }
    sys::Fd inherited(static_cast<int>(*number));
    auto copy = sys::duplicate(inherited);
    inherited.release();
    return copy;
  }
  return sys::open_at(sys::cwd(), path, O_RDONLY | O_NOCTTY);
}

Result<ArchiveMembers> ArchiveMembers::open(const std::string& input, image::Delivery& delivery,
                                            const Cancel& cancel) {
  ArchiveMembers members;
  sys::Fd fd = TRY(open_input(input));
  members.staged_ = TRY(delivery.stage_layer());
  struct stat status = TRY(sys::stat_fd(fd, input));
  if (S_ISDIR(status.st_mode)) {
    members.directory_ = std::move(fd);
  } else {
    TRY(members.spool(fd, cancel));
  }
  return members;
}

Result<ArchiveMembers::File> ArchiveMembers::copy(
    const std::string& name, const std::function<Result<std::string_view>()>& more) {
  File file;
  file.staged = "fs/" + std::to_string(files_.size());
  sys::Fd out = TRY(sys::open_at(staged_.fd(), file.staged, O_WRONLY | O_CREAT | O_EXCL, 0600));
  Sha256 sha;
  while (true) {
    std::string_view part = TRY(more());
    if (part.empty()) break;
    sha.update(part);
    file.size += part.size();
    TRY(sys::write_all(out, part, name));
  }
  file.digest = sha.finish();
  TRY(sys::close_checked(std::move(out), name));
  files_[name] = file;
  return file;
}

Result<void> ArchiveMembers::spool(const sys::Fd& input, const Cancel& cancel) {
  ArchiveReader reader = TRY(ArchiveReader::open(input));
  while (true) {
    auto member = TRY(reader.next());
    if (!member) return {};
    std::string name = normal_name(member->name);
    if (files_.size() + links_.size() >= kMaxMembers) {
      return make_error(Kind::corrupt, "read the archive: more than 10000 members");
    }
    if (member->type == ArchiveReader::Member::Type::link) {
      bool relative = member->target.starts_with("./");
      size_t slash = name.rfind('/');
      std::string base = relative && slash != name.npos ? name.substr(0, slash + 1) : "";
      links_[name] = normal_name(base + member->target);
    }
    if (member->type != ArchiveReader::Member::Type::file || files_.contains(name)) continue;
    auto more = [&]() -> Result<std::string_view> {
      auto go_on = cancel.check();
      if (!go_on.ok()) return std::move(go_on).error();
      return reader.content();
    };
    TRY(copy(name, more));
  }
}

Result<std::optional<ArchiveMembers::File>> ArchiveMembers::find(const std::string& name) {
  std::string wanted = normal_name(name);
  for (int hops = 0; hops <= kMaxMemberLinks; ++hops) {
    auto file = files_.find(wanted);
    if (file != files_.end()) return std::optional<File>(file->second);
    auto link = links_.find(wanted);
    if (link == links_.end()) break;
    wanted = link->second;
  }
  if (!directory_) return std::optional<File>();
  auto fd = TRY(sys::find_regular_in_root(*directory_, wanted));
  if (!fd) return std::optional<File>();
  std::string buffer(size_t{1} << 20, '\0');
  auto more = [&]() -> Result<std::string_view> {
    size_t count = TRY(sys::read_some(*fd, buffer, wanted));
    return std::string_view(buffer.data(), count);
  };
  return std::optional<File>(TRY(copy(wanted, more)));
}

Result<std::string> ArchiveMembers::read(const File& file, size_t max_bytes) {
  return sys::read_file(staged_.fd(), file.staged, max_bytes);
}

}  // namespace berth::transfer
