// SPDX-License-Identifier: Apache-2.0
#include "hub/request_log.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/time.hpp"
#include "json/fields.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostShown = 512;

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
template <class V>
void fields(V& v, Line& l) {
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

/// One word, whatever is in it.
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
  line.user = note.user.substr(0, kMostShown);
  line.node = note.node.substr(0, kMostShown);
  line.method = asked.method.substr(0, kMostShown);
  line.path = asked.target.substr(0, std::min(asked.target.find('?'), kMostShown));
  line.status = ended.status;
  line.bytes = ended.bytes;
  line.seconds = static_cast<double>(ended.time.count() / 1000) / 1000;
  line.whole = ended.whole;
  line.digest = note.digest;
  line.error = note.error;
  if (line.error.empty() && !ended.whole) line.error = "the client did not take all of it";
  if (form == LogForm::json) return json::write(line) + "\n";
  return fmt::format("{} {} {} {} {} {} {} {} {:.3f} {} {}\n", line.time, word(line.address),
                     word(line.user), word(line.node), word(line.method), word(line.path),
                     line.status, line.bytes, line.seconds, word(line.digest),
                     line.error.empty() ? "-" : escape_controls(line.error));
}

}  // namespace berth::hub
