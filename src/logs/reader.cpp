// SPDX-License-Identifier: Apache-2.0
#include "logs/reader.hpp"

#include <fcntl.h>

#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::logs {
namespace {

constexpr size_t kStep = size_t{256} << 10;  // more than a frame that Berth writes
/// A rotation takes microseconds, unless the writer is killed in the middle of it.
constexpr int kTries = 50;
constexpr std::chrono::milliseconds kPause{2};

/// The numbers of the existing files, the oldest first; `log` is 0.
Result<std::vector<uint64_t>> find_files(const sys::Fd& directory) {
  const std::string prefix = std::string(kLogFile) + ".";
  std::vector<uint64_t> found;
  for (const std::string& name : TRY(sys::list_directory(directory, "."))) {
    if (name == kLogFile) found.push_back(0);
    if (!name.starts_with(prefix)) continue;
    auto number = parse_u64(std::string_view(name).substr(prefix.size()));
    if (number && *number > 0) found.push_back(*number);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::string name_of(uint64_t number) {
  return number == 0 ? kLogFile : std::string(kLogFile) + "." + std::to_string(number);
}

}  // namespace

Result<Reader> Reader::open(sys::Fd directory) {
  Reader reader;
  reader.directory_ = std::move(directory);
  // Finds the end first, so that output that arrives later is not included.
  auto current = reader.open_named(kLogFile);
  if (!current.ok() && current.error().kind != Kind::not_found) return std::move(current).error();
  if (current.ok()) {
    auto status = TRY(sys::stat_fd(current->fd, kLogFile));
    reader.end_ = End{current->inode, static_cast<uint64_t>(status.st_size)};
  }
  std::vector<File> files = TRY(reader.open_all());
  if (files.empty()) return make_error(Kind::not_found, "there is no log");
  TRY(reader.open_file(std::move(files.front()), 0));
  return reader;
}

Result<Reader::File> Reader::open_named(const std::string& name) const {
  File file;
  file.fd = TRY(sys::open_at(directory_, name, O_RDONLY | O_NOFOLLOW));
  file.inode = TRY(sys::stat_fd(file.fd, name)).st_ino;
  return file;
}

// Opens the oldest file first. A file that is renamed meanwhile may be found twice or not at all;
// then all files are opened again.
Result<std::vector<Reader::File>> Reader::open_all() const {
  for (int tries = 0;; ++tries) {
    std::vector<File> files;
    std::vector<uint64_t> numbers = TRY(find_files(directory_));
    bool same = true;
    for (uint64_t number : numbers) {
      auto file = open_named(name_of(number));
      same = same && file.ok();
      if (file.ok()) files.push_back(std::move(*file));
    }
    for (size_t i = 0; same && i < numbers.size(); ++i) {
      auto now = TRY(sys::stat_entry(directory_, name_of(numbers[i])));
      same = now && now->st_ino == files[i].inode;
    }
    if (same || tries == kTries) return files;
    std::this_thread::sleep_for(kPause);
  }
}

Result<void> Reader::open_file(File file, uint64_t offset) {
  file_ = std::move(file);
  offset_ = offset;
  buffer_.clear();
  file_ended_ = false;
  decoder_.begin_file(TRY(sys::read_at(file_.fd, 0, kFileHeader, kLogFile)));
  if (offset > 0) decoder_.skip_to_entry();
  return {};
}

// Always reads from the first unconsumed byte, because on a full disk the writer removes a partial
// entry again.
Result<bool> Reader::read_more() {
  uint64_t size = kStep;
  if (end_ && end_->inode == file_.inode) {
    size = std::min(size, end_->size - std::min(offset_, end_->size));
  }
  while (true) {
    buffer_.resize(size);
    size_t count = TRY(sys::read_at(file_.fd, offset_, buffer_.data(), size, kLogFile));
    buffer_.resize(count);
    // The file was still empty when it was opened.
    if (offset_ == 0 && count >= kFileHeader) decoder_.begin_file(buffer_);
    size_t taken = decoder_.feed(buffer_);
    offset_ += taken;
    if (taken > 0) return true;
    if (count < size || size != kStep || count == 0) return false;
    size = 8 * kStep;  // the entry of a writer other than Berth may be long
  }
}

Result<std::optional<Entry>> Reader::next() {
  while (true) {
    if (auto entry = decoder_.take()) return entry;
    if (TRY(read_more())) continue;
    if (!TRY(next_file())) return std::optional<Entry>();
  }
}

// Continues with the next file; call at the end of the file. False if no file follows.
Result<bool> Reader::next_file() {
  if (end_ && end_->inode == file_.inode) return false;
  auto now = TRY(sys::stat_entry(directory_, kLogFile));
  if (now && now->st_ino == file_.inode) return false;
  // The last entries may have been written after we reached the end of the file and before it was
  // replaced.
  if (!std::exchange(file_ended_, true)) return true;
  auto file = TRY(successor());
  if (!file) return false;
  TRY(open_file(std::move(*file), 0));
  return true;
}

Result<std::optional<Reader::File>> Reader::successor() const {
  for (int tries = 0;; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(kPause);
    std::vector<uint64_t> numbers = TRY(find_files(directory_));
    std::optional<size_t> ours;
    auto look = [&]() -> Result<void> {
      ours.reset();
      for (size_t i = 0; i < numbers.size(); ++i) {
        auto status = TRY(sys::stat_entry(directory_, name_of(numbers[i])));
        if (status && status->st_ino == file_.inode) ours = i;
      }
      return {};
    };
    TRY(look());
    // Rotated twice since the directory was listed: the next file has a name that was not listed
    // either.
    if (!ours && tries < kTries && TRY(sys::stat_fd(file_.fd, kLogFile)).st_nlink > 0) continue;
    std::optional<size_t> before = ours;
    size_t next = ours ? *ours + 1 : 0;
    bool gap = ours && next < numbers.size() && numbers[next] + 1 != numbers[*ours];
    if (next >= numbers.size() || gap) {
      if (tries < kTries) continue;  // the writer is about to fill the gap
      if (next >= numbers.size()) return std::optional<File>();
    }
    auto file = open_named(name_of(numbers[next]));
    if (!file.ok()) continue;
    TRY(look());
    if (ours != before) continue;
    return std::optional<File>(std::move(*file));
  }
}

Result<bool> Reader::begin_near_end(uint64_t window) {
  std::vector<File> files = TRY(open_all());
  if (files.empty()) return make_error(Kind::not_found, "there is no log");
  decoder_ = Decoder();
  for (size_t i = files.size(); i-- > 0;) {
    auto size = static_cast<uint64_t>(TRY(sys::stat_fd(files[i].fd, kLogFile)).st_size);
    if (end_ && end_->inode == files[i].inode) size = end_->size;
    if (size > window) {
      TRY(open_file(std::move(files[i]), size - window));
      return false;
    }
    window -= size;
  }
  TRY(open_file(std::move(files.front()), 0));
  return true;
}

Result<std::deque<Entry>> Reader::tail(uint64_t count) {
  for (uint64_t window = kStep;; window *= 8) {
    bool all = TRY(begin_near_end(window));
    std::deque<Entry> kept;
    // An entry whose beginning was not read may be the end of a longer entry, so it does not count.
    uint64_t unsure = 0;
    std::deque<bool> sure;
    while (auto entry = TRY(next())) {
      sure.push_back(decoder_.was_whole());
      unsure += sure.back() ? 0 : 1;
      kept.push_back(std::move(*entry));
      if (kept.size() <= count) continue;
      unsure -= sure.front() ? 0 : 1;
      sure.pop_front();
      kept.pop_front();
    }
    if (all || (unsure == 0 && kept.size() == count)) return kept;
  }
}

std::vector<Entry> Reader::rest() {
  decoder_.finish();
  std::vector<Entry> entries;
  while (auto entry = decoder_.take()) entries.push_back(std::move(*entry));
  return entries;
}

}  // namespace berth::logs
