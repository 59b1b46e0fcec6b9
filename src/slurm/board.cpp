// SPDX-License-Identifier: Apache-2.0
#include "slurm/board.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::slurm {
namespace {

/// Whether two strings are equal. The time does not depend on where they differ; the lengths are
/// not secret.
bool same_secret(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

constexpr uint32_t kMaxArity = 64;
constexpr size_t kMaxAddress = 64;
constexpr size_t kMaxFrom = 32;

bool is_secret(std::string_view text) {
  return text.size() == kSecretDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The number in `text`, if it is at most `most`.
std::optional<uint32_t> number_in(std::string_view text, uint64_t most) {
  auto number = parse_u64(text);
  if (!number || *number > most) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

Error no_message(std::string_view line) {
  return make_error(Kind::corrupt, "read a message of the step's board: " + quote(line));
}

}  // namespace

uint32_t parent_of(uint32_t node, uint32_t arity) {
  return node == 0 ? 0 : (node - 1) / arity;
}

bool has_children(uint32_t node, uint32_t nodes, uint32_t arity) {
  return uint64_t{node} * arity + 1 < nodes;
}

std::string to_text(const Invitation& invitation) {
  return "2:" + std::to_string(invitation.port) + ":" + std::to_string(invitation.arity) + ":" +
         invitation.door + ":" + invitation.key;
}

Result<Invitation> parse_invitation(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() == 5 && parts[0] == "2") {
    auto port = number_in(parts[1], 65535);
    auto arity = number_in(parts[2], kMaxArity);
    bool secrets = is_secret(parts[3]) && is_secret(parts[4]);
    if (port && *port > 0 && arity && *arity > 0 && secrets) {
      return Invitation{static_cast<uint16_t>(*port), *arity, std::string(parts[3]),
                        std::string(parts[4])};
    }
  }
  // The message must not quote the text, which contains a secret.
  return make_error(Kind::corrupt,
                    std::string("read ") + kBoardVariable + ": it has another format",
                    "srun with the spank_berth.so of this release");
}

bool is_address(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || text.size() > kMaxAddress) return false;
  auto port = number_in(text.substr(colon + 1), 65535);
  if (!port || *port == 0) return false;
  std::string_view host = text.substr(0, colon);
  if (host.front() != '[') return host.find_first_not_of("0123456789.") == host.npos;
  if (host.size() < 4 || host.back() != ']') return false;
  host = host.substr(1, host.size() - 2);
  return host.find_first_not_of("0123456789abcdef:.") == host.npos;
}

std::string to_line(const Hello& hello) {
  return "join " + hello.door + " " + std::to_string(hello.node) + " " +
         std::to_string(hello.nodes) + " " + (hello.address.empty() ? "-" : hello.address) + "\n";
}

Result<Hello> parse_hello(std::string_view line) {
  std::vector<std::string_view> words = split(line, ' ');
  if (words.size() != 5 || words[0] != "join" || !is_secret(words[1])) return no_message("join");
  auto nodes = number_in(words[3], kMaxNodes);
  auto node = number_in(words[2], kMaxNodes);
  if (!nodes || !node || *node >= *nodes) return no_message("join");
  if (words[4] != "-" && !is_address(words[4])) return no_message("join");
  return Hello{std::string(words[1]), *node, *nodes, words[4] == "-" ? "" : std::string(words[4])};
}

std::string to_line(const Directions& directions) {
  if (directions.later) return "later\n";
  std::string line = "from";
  for (const std::string& address : directions.from) line += " " + address;
  return line + "\n";
}

Result<Directions> parse_directions(std::string_view line) {
  if (line == "later") return Directions{true, {}};
  std::vector<std::string_view> words = split(line, ' ');
  if (words.front() != "from" || words.size() > kMaxFrom + 1) return no_message(line);
  Directions directions;
  for (size_t i = 1; i < words.size(); ++i) {
    if (!is_address(words[i])) return no_message(line);
    directions.from.emplace_back(words[i]);
  }
  return directions;
}

Result<void> Board::arrive(int guest, std::string_view line, Time now) {
  Hello hello = TRY(parse_hello(line));
  if (!same_secret(hello.door, door_)) {
    return make_error(Kind::denied, "join the step's board: this address belongs to another step");
  }
  auto [place, is_new] = places_.try_emplace(hello.node, hello.address);
  if (!is_new && place->second != hello.address) {
    return make_error(Kind::denied, "join the step's board: this node is at another address");
  }
  waiting_[guest] = {hello.node, now};
  return {};
}

/// The answer for a guest; nothing as long as a nearer node may still arrive.
std::optional<Directions> Board::directions_of(const Waiting& one, Time now) const {
  Directions directions;
  bool may_come = false;  // an ancestor nearer than the first that can be asked
  for (uint32_t node = one.node; node != 0;) {
    node = parent_of(node, arity_);
    auto place = places_.find(node);
    if (place != places_.end() && !place->second.empty() && directions.from.size() < kMaxFrom) {
      directions.from.push_back(place->second);
    }
    if (place == places_.end() && directions.from.empty()) may_come = true;
  }
  Time patience = directions.from.empty() ? kForAnybody : kForParent;
  if (may_come && now - one.since < patience) return std::nullopt;
  return directions;
}

std::vector<Board::Answer> Board::answers(Time now) {
  std::vector<Answer> out;
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    auto directions = directions_of(one->second, now);
    if (directions) out.push_back({one->first, std::move(*directions)});
    one = directions ? waiting_.erase(one) : std::next(one);
  }
  return out;
}

std::optional<int> Board::oldest() const {
  auto first = std::ranges::min_element(
      waiting_, [](auto& one, auto& other) { return one.second.since < other.second.since; });
  if (first == waiting_.end()) return std::nullopt;
  return first->first;
}

std::optional<Board::Time> Board::next() const {
  std::optional<Time> soonest;
  for (const auto& [guest, one] : waiting_) {
    for (Time patience : {kForParent, kForAnybody}) {
      Time when = one.since + patience;
      // A deadline that gives no answer is skipped.
      if (!directions_of(one, when)) continue;
      if (!soonest || when < *soonest) soonest = when;
      break;
    }
  }
  return soonest;
}

}  // namespace berth::slurm
