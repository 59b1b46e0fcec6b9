// SPDX-License-Identifier: Apache-2.0
#include "logs/json_file.hpp"

#include <algorithm>
#include <cstring>

#include "json/text.hpp"
#include "json/value.hpp"
#include "logs/time.hpp"

namespace berth::logs {
namespace {

constexpr std::string_view kStart = "{\"log\":\"";

/// The number of bytes examined at once.
constexpr size_t kLanes = 16;
using Lanes __attribute__((vector_size(kLanes))) = signed char;
using Halves __attribute__((vector_size(kLanes))) = uint64_t;

/// Copies kLanes bytes. Returns whether none of them needs an escape: all are ASCII, and none is a
/// control character, '"' or '\'.
bool copy_lanes(char* to, const char* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, kLanes);
  std::memcpy(to, &lanes, kLanes);
  // Bytes of UTF-8 sequences are negative.
  auto other = (lanes < 0x20) | (lanes == '"') | (lanes == '\\');
  auto halves = reinterpret_cast<const Halves&>(other);
  return (halves[0] | halves[1]) == 0;
}

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 &&
         c != '"' && c != '\\';
}

char* put(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

/// Copies the leading bytes that need no quoting and returns their number.
size_t copy_plain(char* to, std::string_view text) {
  size_t done = 0;
  while (text.size() - done >= kLanes && copy_lanes(to + done, text.data() + done)) done += kLanes;
  while (done < text.size() && is_plain(text[done])) {
    to[done] = text[done];
    ++done;
  }
  return done;
}

/// The number of leading bytes to escape together: all bytes before the next ASCII byte, so that no
/// UTF-8 sequence is cut, or one ASCII byte.
size_t other_bytes(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && static_cast<unsigned char>(text[size]) >= 0x80) ++size;
  return std::max<size_t>(size, 1);
}

/// Parses {"log":"…","stream":"stdout","time":"2026-11-20T12:00:00.000000007Z"} if only the newline
/// at the end is escaped, as in nearly every line.
std::optional<Entry> parse_plain_entry(std::string_view line) {
  constexpr std::string_view kOut = "\",\"stream\":\"stdout\",\"time\":\"";
  constexpr std::string_view kErr = "\",\"stream\":\"stderr\",\"time\":\"";
  constexpr size_t kTime = 30;
  constexpr std::string_view kEnd = "\"}";
  constexpr size_t kTail = kOut.size() + kTime + kEnd.size();
  if (!line.starts_with(kStart) || line.size() < kStart.size() + kTail) return std::nullopt;
  std::string_view tail = line.substr(line.size() - kTail);
  bool out = tail.starts_with(kOut);
  if (!tail.ends_with(kEnd) || (!out && !tail.starts_with(kErr))) return std::nullopt;
  auto time_ns = parse_time_text(tail.substr(kOut.size(), kTime));
  std::string_view text = line.substr(kStart.size(), line.size() - kStart.size() - kTail);
  bool newline = text.ends_with("\\n");
  if (newline) text.remove_suffix(2);
  // Needs the full parser: a quote could end the text, and the backslash before the "n" could
  // itself be escaped.
  if (!time_ns || text.find_first_of("\"\\") != std::string_view::npos) return std::nullopt;
  if (json::find_foreign_byte(text) != std::string_view::npos) return std::nullopt;
  Entry entry{out ? Stream::out : Stream::error, *time_ns, {}};
  entry.text.reserve(text.size() + 1);
  entry.text = text;
  if (newline) entry.text += '\n';
  return entry;
}

}  // namespace

JsonTail::JsonTail(Stream stream, int64_t time_ns) {
  char* to = text_;
  to = put(to, "\",\"stream\":\"");
  to = put(to, stream == Stream::error ? "stderr" : "stdout");
  to = put(to, "\",\"time\":\"");
  to = put(to, time_text(time_ns));
  to = put(to, "\"}\n");
  size_ = static_cast<size_t>(to - text_);
}

char* write_json_entry(char* to, std::string_view piece, const JsonTail& tail) {
  to = put(to, kStart);
  bool line = piece.ends_with('\n');
  std::string quoted;
  std::string_view rest = line ? piece.substr(0, piece.size() - 1) : piece;
  while (true) {
    size_t plain = copy_plain(to, rest);
    to += plain;
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    size_t run = other_bytes(rest);
    if (run == 1 && (rest[0] == '"' || rest[0] == '\\')) {
      *to++ = '\\';
      *to++ = rest[0];
    } else {
      quoted.clear();
      json::append_string(quoted, rest.substr(0, run));
      to = put(to, std::string_view(quoted).substr(1, quoted.size() - 2));
    }
    rest.remove_prefix(run);
  }
  if (line) to = put(to, "\\n");
  return put(to, tail.text());
}

PlainLine write_plain_line(char* to, std::string_view bytes, const JsonTail& tail) {
  to = put(to, kStart);
  size_t plain = copy_plain(to, bytes);
  if (plain == bytes.size() || bytes[plain] != '\n') return {};
  to = put(to + plain, "\\n");
  return {put(to, tail.text()), plain + 1};
}

std::optional<Entry> parse_json_entry(std::string_view line) {
  if (auto entry = parse_plain_entry(line)) return entry;
  auto value = json::parse(line, kLogFile);
  if (!value.ok()) return std::nullopt;
  auto text = [&](std::string_view name) -> const std::string* {
    const json::Value* member = value->find(name);
    return member != nullptr ? member->string() : nullptr;
  };
  const std::string* log = text("log");
  const std::string* stream = text("stream");
  const std::string* time = text("time");
  if (log == nullptr || stream == nullptr || time == nullptr) return std::nullopt;
  auto time_ns = parse_time_text(*time);
  if (!time_ns) return std::nullopt;
  return Entry{*stream == "stderr" ? Stream::error : Stream::out, *time_ns, *log};
}

}  // namespace berth::logs
