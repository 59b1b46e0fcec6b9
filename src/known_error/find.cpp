// SPDX-License-Identifier: Apache-2.0
#include "known_error/find.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "json/value.hpp"
#include "known_error/pattern.hpp"

namespace berth::known_error {
namespace {

constexpr size_t kMaxShown = 300;

/// Forms of CUDA errors that contain only the number of the error.
constexpr std::array<std::string_view, 12> kByNumber = {
    "cudasuccess ({n} vs. 0)",  "cuda error {n}",
    "cuda error: {n}",          "cuda error #{n}",
    "cuda error code {n}",      "cuda error code: {n}",
    "cuda runtime error ({n})", "cuda failure {n}",
    "cuda failure: {n}",        "cuda failed with error {n}",
    "cuinit{*}error {n}",       "cuda{*}failed with error #{n}",
};

/// Whether a line is only a note, not the reason for the end: its log level says so, or it is a
/// warning.
bool is_mild(const Line& line) {
  constexpr std::array<std::string_view, 10> kMarks = {
      "warning",      "warn:",     " w tensorflow/", " i tensorflow/", " w external/",
      " i external/", "nccl info", "[e:onnxruntime", "[w:onnxruntime", "[info]"};
  // glog: a letter for the level, followed by the date: "W0000 00:00:1753232013".
  bool noted = line.text.size() > 5 && (line.text[0] == 'W' || line.text[0] == 'I') &&
               std::all_of(line.text.begin() + 1, line.text.begin() + 5,
                           [](char c) { return c >= '0' && c <= '9'; });
  return noted || line.lower.starts_with("w tensorflow/") ||
         line.lower.starts_with("i tensorflow/") ||
         std::ranges::any_of(kMarks, [&](std::string_view mark) {
           return line.lower.find(mark) != std::string::npos;
         });
}

/// "11040" → "11.4", the format of cudaDriverGetVersion().
std::string cuda_version(std::string_view number) {
  auto value = parse_u64(number);
  if (!value || *value < 1000) return std::string(number);
  return std::to_string(*value / 1000) + "." + std::to_string(*value % 1000 / 10);
}

/// Replaces "{1}" by a capture, and "{1c}" by a capture that is a CUDA version as one number.
std::string fill(std::string_view words, const Captures& captures) {
  std::string out;
  while (!words.empty()) {
    size_t hole = words.find('{');
    out += words.substr(0, hole);
    if (hole == std::string_view::npos) break;
    std::string_view capture = captures[static_cast<size_t>(words[hole + 1] - '1')];
    bool version = words[hole + 2] == 'c';
    out += version ? cuda_version(capture) : std::string(capture);
    words.remove_prefix(hole + (version ? 4 : 3));
  }
  return out;
}

/// "2.9" is lower than "2.34".
bool is_lower(std::string_view version, std::string_view other) {
  auto numbers = [](std::string_view text) {
    std::vector<uint64_t> all;
    for (std::string_view part : split(text, '.')) all.push_back(parse_u64(part).value_or(0));
    return all;
  };
  return numbers(version) < numbers(other);
}

struct Hit {
  const Row* row;
  Captures captures;
};

std::optional<Hit> hit_by_number(const Line& line) {
  for (std::string_view pattern : kByNumber) {
    auto captures = match(pattern, line);
    auto number = captures ? parse_u64((*captures)[0]) : std::nullopt;
    if (!number || *number == 0) continue;
    for (const Row& row : rows()) {
      if (row.cuda == *number || row.old_cuda == *number) return Hit{&row, *captures};
    }
  }
  return std::nullopt;
}

std::optional<Hit> hit_of(const Line& line) {
  for (const Row& row : rows()) {
    for (std::string_view pattern : row.patterns) {
      auto captures = match(pattern, line);
      if (captures) return Hit{&row, *captures};
    }
  }
  return hit_by_number(line);
}

/// The text of the entry in a line of docker's json-file.
std::string unwrapped(std::string_view line) {
  if (!line.starts_with("{\"log\":\"")) return std::string(line);
  auto parsed = json::parse(line, "log");
  const json::Value* text = parsed.ok() ? parsed->find("log") : nullptr;
  return text != nullptr && text->string() != nullptr ? *text->string() : std::string(line);
}

/// The end of `log`. If something was cut off, the end begins with a whole line.
std::string_view end_of(std::string_view log) {
  if (log.size() <= kMaxLog) return log;
  std::string_view cut = log.substr(log.size() - kMaxLog);
  size_t newline = cut.find('\n');
  return newline == std::string_view::npos ? cut : cut.substr(newline + 1);
}

/// The lines of a log in the form that patterns match.
struct Lines {
  struct Place {
    size_t number = 0;  ///< from 1; the same for all parts of an overwritten line
    size_t begin = 0;   ///< in `lower`
  };
  std::vector<Line> lines;
  std::vector<Place> places;
  std::string lower;  ///< all lines, separated by newlines
};

Lines lines_of(std::string_view log) {
  Lines all;
  size_t number = 0;
  for (std::string_view raw : split(end_of(log), '\n')) {
    ++number;
    std::string text = unwrapped(raw);
    // Progress bars overwrite their line.
    for (std::string_view part : split(text, '\r')) {
      Line line = line_of(part);
      if (line.text.empty()) continue;
      all.places.push_back({number, all.lower.size()});
      all.lower += line.lower;
      all.lower += '\n';
      all.lines.push_back(std::move(line));
    }
  }
  return all;
}

/// The lines that contain the anchor of any pattern. Nearly all of a log contain none, and are
/// skipped.
std::vector<bool> candidates(const Lines& all) {
  std::vector<bool> marked(all.lines.size());
  auto mark = [&](std::string_view pattern) {
    std::string_view wanted = anchor(pattern);
    size_t at = 0;
    while ((at = all.lower.find(wanted, at)) != std::string::npos) {
      auto next = std::ranges::upper_bound(all.places, at, {}, &Lines::Place::begin);
      marked[static_cast<size_t>(next - all.places.begin()) - 1] = true;
      if (next == all.places.end()) break;
      at = next->begin;
    }
  };
  for (const Row& row : rows()) {
    for (std::string_view pattern : row.patterns) mark(pattern);
  }
  for (std::string_view pattern : kByNumber) mark(pattern);
  return marked;
}

/// The known errors found so far, by id.
class Collection {
 public:
  void add(const Hit& hit, const Line& line, size_t number) {
    Level level = is_mild(line) ? Level::sign : hit.row->level;
    auto [at, is_new] = known_.try_emplace(hit.row->id);
    Known& known = at->second;
    if (is_new || says_more(hit, known)) {
      known.row = hit.row;
      known.version = std::string(hit.captures[0]);
      known.found.why = fill(hit.row->why, hit.captures);
      known.found.remedy = fill(hit.row->remedy, hit.captures);
      known.found.text = line.text.substr(0, kMaxShown);
      known.found.line = number;
    }
    known.found.id = hit.row->id;
    known.found.level = is_new ? level : std::min(level, known.found.level);
  }

  std::vector<Found> take() {
    std::vector<Found> all;
    for (auto& [id, known] : known_) all.push_back(std::move(known.found));
    std::ranges::stable_sort(all, [](const Found& a, const Found& b) {
      return a.level != b.level ? a.level < b.level : a.line > b.line;
    });
    return all;
  }

 private:
  struct Known {
    const Row* row = nullptr;
    std::string version;  ///< the first capture
    Found found;
  };
  /// Whether a hit replaces a known one. The earliest row is the most specific; of equal rows the
  /// newest line counts. But a loader names all missing versions of glibc, of which the highest
  /// counts.
  static bool says_more(const Hit& hit, const Known& known) {
    if (hit.row != known.row) return hit.row < known.row;
    return !hit.row->id.ends_with("glibc") || !is_lower(hit.captures[0], known.version);
  }

  std::map<std::string_view, Known> known_;
};

}  // namespace

std::vector<Found> find(std::string_view log) {
  Lines all = lines_of(log);
  std::vector<bool> marked = candidates(all);
  Collection collection;
  for (size_t at = 0; at < all.lines.size(); ++at) {
    auto hit = marked[at] ? hit_of(all.lines[at]) : std::nullopt;
    if (hit) collection.add(*hit, all.lines[at], all.places[at].number);
  }
  return collection.take();
}

std::string to_line(const Found& found) {
  return "why: " + escape_controls(found.why) + "; try: " + escape_controls(found.remedy);
}

void Tail::add(std::string_view bytes) {
  if (bytes.size() >= kMaxLog) {
    bytes_ = bytes.substr(bytes.size() - kMaxLog);
    return;
  }
  // Moves the kept bytes only after as many new bytes have been added.
  if (bytes_.size() + bytes.size() > 2 * kMaxLog) bytes_.erase(0, bytes_.size() - kMaxLog);
  bytes_ += bytes;
}

std::string_view Tail::text() const {
  std::string_view all = bytes_;
  return all.size() <= kMaxLog ? all : all.substr(all.size() - kMaxLog);
}

}  // namespace berth::known_error
