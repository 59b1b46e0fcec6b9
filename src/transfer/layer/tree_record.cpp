// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/tree_record.hpp"

#include <fcntl.h>
#include <isa-l/crc64.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/file/tree.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kTreeTitle = "berth-tree 1";
constexpr std::string_view kLeftOut = "left-out ";
constexpr std::string_view kExtentsTitle = "berth-extents 1";
constexpr size_t kChunk = size_t{1} << 20;
constexpr size_t kMostTexts = 20;
constexpr size_t kMaxNames = 100'000'000;  // of a directory; unpacking has its own limit
/// A layer of a few bytes may have a hole of a terabyte, which would take too long to read.
constexpr uint64_t kMostHoles = uint64_t{256} << 20;
constexpr int kMaxRecordDepth = 4096;  // more than any limit of unpacking
constexpr int kRecordRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
constexpr int kRecordEnter = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
using AskStop = std::function<bool()>;

Result<uint64_t> checksum_of(const sys::Fd& file, uint64_t offset, uint64_t length,
                             const std::string& name, const AskStop& stop) {
  thread_local std::string buffer(kChunk, '\0');
  uint64_t sum = 0;
  while (length > 0) {
    if (stop && stop()) return make_error(Kind::interrupted, "stopped");
    size_t wanted = std::min<uint64_t>(length, kChunk);
    size_t count = TRY(sys::read_at(file, offset, buffer.data(), wanted, name));
    if (count == 0) break;
    sum = checksum(sum, std::string_view(buffer).substr(0, count));
    offset += count;
    length -= count;
  }
  return sum;
}

/// Whether an image can set the attribute; those of security modules belong to the machine.
bool is_recorded(std::string_view key) {
  return key.starts_with("user.") || key.starts_with("trusted.") || key == "security.capability" ||
         key.starts_with("system.posix_acl_");
}

Result<uint64_t> attributes_of(const sys::Fd& fd) {
  uint64_t sum = 0;
  auto keys = TRY(sys::list_attributes(fd));
  std::ranges::sort(keys);
  for (const auto& key : keys) {
    if (!is_recorded(key)) continue;
    auto value = TRY(sys::read_attribute(fd, key));
    if (value) sum = checksum(sum, key + '=' + *value + '\n');
  }
  return sum;
}

/// Walks a tree: each directory before its content, in order of names.
class Walk {
 public:
  using Visit = std::function<Result<void>(const std::string& path, TreeEntry entry)>;
  /// Whether to read a file if the checksum of its content is unknown.
  using Wants = std::function<Result<bool>(const std::string& path)>;
  Walk(const WrittenFiles* written, Wants wants, Visit visit, AskStop stop)
      : written_(written),
        wants_(std::move(wants)),
        visit_(std::move(visit)),
        stop_(std::move(stop)) {}

  Result<void> directory(const sys::Fd& here, const std::string& path, int depth) {
    if (depth > kMaxRecordDepth) return make_error(Kind::corrupt, "the tree is too deep");
    TreeEntry entry = entry_of(TRY(sys::stat_fd(here, path)));
    entry.attributes = TRY(attributes_of(here));
    TRY(visit_(path, std::move(entry)));
    for (const auto& name : TRY(sys::list_directory(here, ".", kMaxNames))) {
      if (stop_ && stop_()) return make_error(Kind::interrupted, "stopped");
      auto status = TRY(sys::stat_entry(here, name));
      if (!status) continue;
      std::string below = path.empty() ? name : path + "/" + name;
      if (S_ISDIR(status->st_mode)) {
        sys::Fd fd = TRY(sys::open_at(here, name, kRecordEnter));
        TRY(directory(fd, below, depth + 1));
      } else {
        TRY(other(here, name, below, *status));
      }
    }
    return {};
  }

 private:
  static TreeEntry entry_of(const struct stat& status) {
    TreeEntry entry;
    entry.mode = status.st_mode;
    entry.uid = status.st_uid;
    entry.gid = status.st_gid;
    if (S_ISREG(status.st_mode)) entry.size = static_cast<uint64_t>(status.st_size);
    entry.seconds = status.st_mtim.tv_sec;
    entry.nanoseconds = static_cast<uint32_t>(status.st_mtim.tv_nsec);
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) entry.device = status.st_rdev;
    return entry;
  }

  Result<void> other(const sys::Fd& here, const std::string& name, const std::string& path,
                     const struct stat& status) {
    TreeEntry entry = entry_of(status);
    if (S_ISLNK(status.st_mode)) entry.link = TRY(sys::read_link(here, name));
    if (S_ISREG(status.st_mode)) {
      if (status.st_nlink > 1)
        entry.link = first_names_.try_emplace(status.st_ino, path).first->second;
      if (entry.link == path) entry.link.clear();
      if (entry.link.empty()) TRY(look_into(here, name, path, status, entry));
    }
    return visit_(path, std::move(entry));
  }

  Result<void> look_into(const sys::Fd& here, const std::string& name, const std::string& path,
                         const struct stat& status, TreeEntry& entry) {
    const WrittenFile* known = nullptr;
    if (written_ != nullptr) {
      auto found = written_->find(status.st_ino);
      if (found != written_->end()) known = &found->second;
    }
    if (known != nullptr) entry.content = known->content;
    if (entry.content && !known->attributes) return {};
    sys::Fd file = TRY(sys::open_at(here, name, kRecordRead));
    bool holes = known != nullptr && entry.size > kMostHoles;
    if (!entry.content && !holes && TRY(wants_(path))) {
      entry.content = TRY(checksum_of(file, 0, entry.size, name, stop_));
    }
    entry.attributes = TRY(attributes_of(file));
    return {};
  }

  const WrittenFiles* written_;
  Wants wants_;
  Visit visit_;
  AskStop stop_;
  std::map<uint64_t, std::string> first_names_;  ///< of inodes with several names
};

/// Writes blanks, control characters and '%' as %XX, so that they do not split a line or a word.
std::string encode(std::string_view text) {
  std::string encoded;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte != 0x7f && c != '%') {
      encoded += c;
    } else {
      encoded += "%" + to_hex(std::string_view(&c, 1));
    }
  }
  return encoded;
}

std::string decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    bool escaped =
        text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc();
    decoded += escaped ? static_cast<char>(value) : text[i];
    if (escaped) i += 2;
  }
  return decoded;
}

template <class Number>
void put_number(std::string& line, Number value, int base) {
  char digits[32];
  auto end = std::to_chars(digits, digits + sizeof digits, value, base).ptr;
  line.append(digits, end);
  line += ' ';
}

void put_entry(std::string& line, const std::string& path, const TreeEntry& entry) {
  put_number(line, entry.mode, 8);
  put_number(line, entry.uid, 10);
  put_number(line, entry.gid, 10);
  put_number(line, entry.size, 10);
  put_number(line, entry.seconds, 10);
  put_number(line, entry.nanoseconds, 10);
  put_number(line, entry.device, 10);
  if (entry.content) put_number(line, *entry.content, 16);
  if (!entry.content) line += "- ";
  put_number(line, entry.attributes, 16);
  line += "/" + encode(path) + " =" + encode(entry.link) + "\n";
}

template <class Number>
bool take_number(std::string_view word, Number& value, int base) {
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return error == std::errc() && end == word.data() + word.size();
}

std::optional<TreeEntry> parse_entry(const std::vector<std::string_view>& words) {
  TreeEntry entry;
  uint64_t content = 0;
  bool has_content = words[7] != "-";
  bool good = take_number(words[0], entry.mode, 8) && take_number(words[1], entry.uid, 10) &&
              take_number(words[2], entry.gid, 10) && take_number(words[3], entry.size, 10) &&
              take_number(words[4], entry.seconds, 10) &&
              take_number(words[5], entry.nanoseconds, 10) &&
              take_number(words[6], entry.device, 10) &&
              (!has_content || take_number(words[7], content, 16)) &&
              take_number(words[8], entry.attributes, 16);
  if (!good) return std::nullopt;
  if (has_content) entry.content = content;
  entry.link = decode(words[10].substr(1));
  return entry;
}

Error no_record() {
  return make_error(Kind::corrupt, "its record 'tree' is damaged");
}

void put_left_out(std::string& line, const LeftOutDevice& device) {
  line += kLeftOut;
  put_number(line, device.mode, 8);
  put_number(line, device.number, 10);
  line += "/" + encode(device.path) + "\n";
}

std::optional<LeftOutDevice> parse_left_out(std::string_view line) {
  auto words = split(line.substr(kLeftOut.size()), ' ');
  LeftOutDevice device;
  bool good = words.size() == 3 && take_number(words[0], device.mode, 8) &&
              take_number(words[1], device.number, 10) && words[2].starts_with('/');
  if (!good) return std::nullopt;
  device.path = decode(words[2].substr(1));
  return device;
}

/// The lines of a record, one after the other.
class Lines {
 public:
  explicit Lines(const sys::Fd& file) : file_(file) {}

  /// The next line without its end; nothing after the last one. Valid until the next call.
  /// Errors: corrupt (longer than any line that record_tree() writes, or truncated), io.
  Result<std::optional<std::string_view>> next() {
    while (true) {
      size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        std::string_view line = std::string_view(buffer_).substr(at_, end - at_);
        at_ = end + 1;
        return std::optional(line);
      }
      buffer_.erase(0, at_);
      at_ = 0;
      if (buffer_.size() > kMaxLine) return no_record();
      size_t kept = buffer_.size();
      buffer_.resize(kept + kPiece);
      size_t count = TRY(sys::read_at(file_, offset_, &buffer_[kept], kPiece, kTreeFile));
      buffer_.resize(kept + count);
      offset_ += count;
      if (count > 0) continue;
      if (!buffer_.empty()) return no_record();
      return std::optional<std::string_view>();
    }
  }

 private:
  static constexpr size_t kPiece = size_t{256} << 10;
  static constexpr size_t kMaxLine = size_t{64} << 10;  // two paths, all escaped
  const sys::Fd& file_;
  uint64_t offset_ = 0;
  std::string buffer_;
  size_t at_ = 0;  // offset in the buffer
};

/// The last line has the number of entries, so a truncated record is found.
Result<void> check_end(std::string_view line, uint64_t count, Lines& lines) {
  if (line != "end " + std::to_string(count) || TRY(lines.next())) return no_record();
  return {};
}

/// The entries of a record, in the order of a walk.
class Record {
 public:
  static Result<Record> open(const sys::Fd& file) {
    Record record(file);
    auto title = TRY(record.lines_.next());
    if (!title || *title != kTreeTitle) return no_record();
    TRY(record.next());
    return record;
  }

  bool ended() const { return ended_; }
  const std::string& path() const { return path_; }  ///< of the present entry
  TreeEntry& entry() { return entry_; }
  /// Complete after the last entry.
  std::vector<LeftOutDevice>& left_out() { return left_out_; }

  Result<void> next() {
    while (true) {
      auto line = TRY(lines_.next());
      if (!line) return no_record();
      if (line->starts_with("end ")) {
        ended_ = true;
        return check_end(*line, count_, lines_);
      }
      if (!line->starts_with(kLeftOut)) return take_entry(*line);
      auto device = parse_left_out(*line);
      if (!device) return no_record();
      left_out_.push_back(std::move(*device));
    }
  }

 private:
  explicit Record(const sys::Fd& file) : lines_(file) {}

  Result<void> take_entry(std::string_view line) {
    auto words = split(line, ' ');
    if (words.size() != 11 || !words[9].starts_with('/') || !words[10].starts_with('=')) {
      return no_record();
    }
    auto entry = parse_entry(words);
    if (!entry) return no_record();
    entry_ = std::move(*entry);
    path_ = decode(words[9].substr(1));
    ++count_;
    return {};
  }

  Lines lines_;
  std::string path_;
  TreeEntry entry_;
  std::vector<LeftOutDevice> left_out_;
  uint64_t count_ = 0;
  bool ended_ = false;
};

/// Whether a walk visits `one` first: a directory comes before its content.
bool comes_before(std::string_view one, std::string_view other) {
  auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return std::ranges::lexicographical_compare(one, other, {}, rank, rank);
}

std::string kind_of(uint32_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISREG(mode)) return "a file";
  if (S_ISLNK(mode)) return "a symbolic link";
  return S_ISFIFO(mode) ? "a fifo" : "a device";
}

/// The difference between `now` and `was`; empty: none.
std::string difference(const TreeEntry& was, const TreeEntry& now, Depth depth,
                       DirectoryTimes times) {
  if ((was.mode & S_IFMT) != (now.mode & S_IFMT)) {
    return "is " + kind_of(now.mode) + " and was " + kind_of(was.mode);
  }
  if (was.size != now.size) {
    return "has " + std::to_string(now.size) + " bytes and had " + std::to_string(was.size);
  }
  if (was.link != now.link || was.device != now.device) return "leads elsewhere than it did";
  if (was.content && was.content != now.content) return "has other content";
  if (was.mode != now.mode) {
    std::string texts[2];
    put_number(texts[0], now.mode & 07777, 8);
    put_number(texts[1], was.mode & 07777, 8);
    return "has mode " + texts[0] + "and had " + std::string(trim(texts[1]));
  }
  bool owners = depth == Depth::all;
  if (owners && (was.uid != now.uid || was.gid != now.gid)) return "has another owner";
  if (owners && was.attributes != now.attributes) return "has other attributes";
  if (S_ISDIR(was.mode) && times == DirectoryTimes::any) return "";
  if (was.seconds != now.seconds || was.nanoseconds != now.nanoseconds) {
    return "was changed later";
  }
  return "";
}

void add_difference(TreeDifferences& differences, const std::string& path,
                    const std::string& text) {
  ++differences.count;
  if (differences.texts.size() < kMostTexts) {
    differences.texts.push_back(quote(path.empty() ? "/" : path) + " " + text);
  }
}

}  // namespace

Result<void> record_tree(const sys::Fd& tree, const WrittenFiles& written,
                         const std::vector<LeftOutDevice>& left_out, const sys::Fd& directory) {
  constexpr size_t kFlush = size_t{256} << 10;
  sys::Fd file =
      TRY(sys::open_at(directory, kTreeFile, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  std::string text = std::string(kTreeTitle) + "\n";
  uint64_t count = 0;
  Walk walk(
      &written, [](const std::string&) { return true; },
      [&](const std::string& path, const TreeEntry& entry) -> Result<void> {
        put_entry(text, path, entry);
        ++count;
        if (text.size() < kFlush) return {};
        TRY(sys::write_all(file, text, kTreeFile));
        text.clear();
        return {};
      },
      {});
  TRY(walk.directory(tree, "", 0));
  for (const LeftOutDevice& device : left_out) put_left_out(text, device);
  text += "end " + std::to_string(count) + "\n";
  TRY(sys::write_all(file, text, kTreeFile));
  return sys::close_checked(std::move(file), kTreeFile);
}

Result<TreeEntries> read_tree_record(const sys::Fd& record) {
  TreeEntries entries;
  Record from = TRY(Record::open(record));
  for (; !from.ended(); TRY(from.next())) {
    if (!entries.emplace(from.path(), std::move(from.entry())).second) return no_record();
  }
  return entries;
}

Result<TreeDifferences> compare_tree(const sys::Fd& tree, const sys::Fd& record, Depth depth,
                                     const std::function<bool()>& stop, DirectoryTimes times) {
  TreeDifferences differences;
  Record was = TRY(Record::open(record));
  // Record and walk have the same order, so entries of the record before `path` are missing in the
  // tree.
  auto find = [&](const std::string& path) -> Result<bool> {
    for (; !was.ended() && comes_before(was.path(), path); TRY(was.next())) {
      add_difference(differences, was.path(), "is missing");
    }
    return !was.ended() && was.path() == path;
  };
  auto wants = [&](const std::string& path) -> Result<bool> {
    return TRY(find(path)) && was.entry().content;
  };
  auto compare = [&](const std::string& path, const TreeEntry& now) -> Result<void> {
    if (S_ISREG(now.mode)) ++differences.files;
    if (now.content) differences.bytes += now.size;
    if (!TRY(find(path))) {
      add_difference(differences, path, "is not of the layer");
      return {};
    }
    std::string changed = difference(was.entry(), now, depth, times);
    if (!changed.empty()) add_difference(differences, path, changed);
    return was.next();
  };
  Walk walk(nullptr, wants, compare, stop);
  TRY(walk.directory(tree, "", 0));
  for (; !was.ended(); TRY(was.next())) add_difference(differences, was.path(), "is missing");
  differences.left_out = std::move(was.left_out());
  return differences;
}

void ExtentRecord::add(uint64_t offset, std::string_view bytes) {
  auto next = extents_.upper_bound(offset);
  if (next != extents_.begin()) {
    auto& [start, last] = *std::prev(next);
    if (start + last.length == offset) {
      last.content = checksum(last.content, bytes);
      last.length += bytes.size();
      return;
    }
  }
  extents_[offset] = {bytes.size(), checksum(0, bytes)};
}

Result<void> ExtentRecord::write(const sys::Fd& image, const sys::Fd& directory) {
  auto size = static_cast<uint64_t>(TRY(sys::stat_fd(image, "image")).st_size);
  std::string text = std::string(kExtentsTitle) + "\n";
  uint64_t at = 0;
  uint64_t count = 0;
  auto put = [&](uint64_t offset, uint64_t length, std::optional<uint64_t> content) {
    put_number(text, offset, 10);
    put_number(text, length, 10);
    if (content) put_number(text, *content, 16);
    if (!content) text += "- ";
    text.back() = '\n';
    ++count;
  };
  auto put_gap = [&](uint64_t end) -> Result<void> {
    if (end <= at) return {};
    std::optional<uint64_t> content;
    if (end - at <= kMostHoles) content = TRY(checksum_of(image, at, end - at, "image", {}));
    put(at, end - at, content);
    return {};
  };
  for (const auto& [offset, extent] : extents_) {
    TRY(put_gap(offset));
    put(offset, extent.length, extent.content);
    at = offset + extent.length;
  }
  TRY(put_gap(size));
  text += "end " + std::to_string(count) + "\n";
  return sys::write_file(directory, kTreeFile, text, 0600);
}

Result<TreeDifferences> compare_extents(const sys::Fd& image, const sys::Fd& record,
                                        const std::function<bool()>& stop) {
  TreeDifferences differences;
  Lines lines(record);
  auto line = TRY(lines.next());
  if (!line || *line != kExtentsTitle) return no_record();
  uint64_t end = 0;
  uint64_t count = 0;
  while (true) {
    line = TRY(lines.next());
    if (!line) return no_record();
    if (line->starts_with("end ")) break;
    auto words = split(*line, ' ');
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t content = 0;
    bool good = words.size() == 3 && take_number(words[0], offset, 10) &&
                take_number(words[1], length, 10) &&
                (words[2] == "-" || take_number(words[2], content, 16));
    if (!good) return no_record();
    ++count;
    end = std::max(end, offset + length);
    if (words[2] == "-") continue;
    if (TRY(checksum_of(image, offset, length, "image", stop)) != content) {
      add_difference(differences, "fs.erofs",
                     "has other content from byte " + std::to_string(offset) + " on");
    }
    differences.bytes += length;
  }
  TRY(check_end(*line, count, lines));
  auto size = static_cast<uint64_t>(TRY(sys::stat_fd(image, "image")).st_size);
  if (size != end) {
    add_difference(differences, "fs.erofs",
                   "has " + std::to_string(size) + " bytes and had " + std::to_string(end));
  }
  differences.files = 1;
  return differences;
}

uint64_t checksum(uint64_t before, std::string_view bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): ISA-L's type of bytes
  return crc64_ecma_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size());
}

}  // namespace berth::transfer
