// SPDX-License-Identifier: Apache-2.0
#include "hub/request_log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "json/fields.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostLogged = 512;

struct Line {
  std::string time;
  std::string address;
  std::string user;
  std::string node;
  std::string method;
  std::string path;
  unsigned status = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  bool whole = true;
  std::string digest;
  std::string error;
};
void fields(auto& v, Line& l) {
  v.always("time", l.time);
  v.always("address", l.address);
  v.always("user", l.user);
  v.always("node", l.node);
  v.always("method", l.method);
  v.always("path", l.path);
  v.always("status", l.status);
  v.always("bytes", l.bytes);
  v.always("seconds", l.seconds);
  v.always("whole", l.whole);
  v.always("digest", l.digest);
  v.always("error", l.error);
}

/// The length of the UTF-8 sequence at the front of `text`, which is not empty; 0: invalid. Source:
/// RFC 3629 section 4
size_t sequence(std::string_view text) {
  auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
  }
  bool too_long = (first == 0xE0 && at(1) < 0xA0) || (first == 0xF0 && at(1) < 0x90);
  bool no_character = (first == 0xED && at(1) > 0x9F) || (first == 0xF4 && at(1) > 0x8F);
  return too_long || no_character ? 0 : size;
}

/// Invalid UTF-8 becomes \xNN: with one such byte many programs could not read the log at all.
std::string utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t size = sequence(text);
    if (size == 0) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    out += text.substr(0, size);
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

/// Turns any text into one word.
std::string word(std::string_view text) {
  if (text.empty()) return "-";
  std::string safe = escape_controls(text);
  for (char& c : safe) {
    if (c == ' ') c = '_';
  }
  return safe;
}

}  // namespace

std::string request_line(LogForm form, const Asked& asked, const Note& note, const Ended& ended,
                         int64_t seconds) {
  Line line;
  line.time = format_time(seconds);
  line.address = asked.address_text;
  line.user = utf8(note.user.substr(0, kMostLogged));
  line.node = utf8(note.node.substr(0, kMostLogged));
  line.method = utf8(asked.method.substr(0, kMostLogged));
  line.path = utf8(asked.target.substr(0, std::min(asked.target.find('?'), kMostLogged)));
  line.status = ended.status;
  line.bytes = ended.bytes;
  line.seconds = static_cast<double>(ended.time.count() / 1000) / 1000;
  line.whole = ended.whole;
  line.digest = note.digest;
  line.error = utf8(note.error);
  if (line.error.empty() && !ended.whole) line.error = "the client did not take all of it";
  if (form == LogForm::json) return json::write(line) + "\n";
  return fmt::format("{} {} {} {} {} {} {} {} {:.3f} {} {}\n", line.time, word(line.address),
                     word(line.user), word(line.node), word(line.method), word(line.path),
                     line.status, line.bytes, line.seconds, word(line.digest),
                     line.error.empty() ? "-" : escape_controls(line.error));
}

}  // namespace berth::hub
