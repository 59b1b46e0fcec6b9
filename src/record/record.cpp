// SPDX-License-Identifier: Apache-2.0
#include "record/record.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"

namespace berth::record {
namespace {

void read_line(std::string_view line, Lines& lines) {
  if (line.starts_with(R"({"started_ns")")) {
    auto start = json::read<Start>(line, kFile);
    if (!start.ok()) return;
    lines.start = std::move(*start);
    lines.exit.reset();
    lines.paused = false;
  } else if (line.starts_with(R"({"exit_code")")) {
    auto exit = json::read<Exit>(line, kFile);
    if (exit.ok()) lines.exit = std::move(*exit);
    lines.paused = false;
  } else if (line.starts_with(R"({"name")")) {
    auto name = json::read<Name>(line, kFile);
    if (name.ok()) lines.record->name = std::move(name->name);
  } else if (line.starts_with(R"({"paused")")) {
    auto pause = json::read<Pause>(line, kFile);
    if (pause.ok()) lines.paused = pause->paused;
  }
}

}  // namespace

Result<Lines> read(const sys::Fd& file) {
  constexpr size_t kMaxRecord = size_t{4} << 20;
  Lines read;
  auto text = sys::read_all(file, kFile, kMaxRecord);
  if (!text.ok() && text.error().kind == Kind::corrupt) read.damage = text.error();
  if (read.damage) return read;
  std::string whole = TRY(std::move(text));
  auto lines = split(whole, '\n');
  auto container = json::read<Container>(lines[0], kFile);
  if (!container.ok()) {
    read.damage = std::move(container).error();
    return read;
  }
  read.record = std::move(*container);
  for (size_t i = 1; i < lines.size(); ++i) read_line(lines[i], read);
  return read;
}

Result<void> append(const sys::Fd& directory, const std::string& line) {
  sys::Fd file = TRY(sys::open_at(directory, kFile, O_WRONLY | O_APPEND | O_NOFOLLOW));
  TRY(sys::write_all(file, "\n" + line, kFile));
  return sys::close_checked(std::move(file), kFile);
}

}  // namespace berth::record
