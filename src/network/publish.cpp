// SPDX-License-Identifier: Apache-2.0
#include "network/publish.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "network/address.hpp"

namespace berth::network {
namespace {

struct Range {
  uint16_t first = 0;
  uint16_t last = 0;
  unsigned size() const { return last - first + 1U; }
};

Error refused(std::string_view text, const std::string& why) {
  return make_error(Kind::usage, "publish " + quote(text) + ": " + why,
                    "-p [ADDRESS:][HOST-PORT:]CONTAINER-PORT[/udp]");
}

std::optional<uint16_t> parse_port(std::string_view text) {
  auto number = parse_u64(text);
  if (!number || *number == 0 || *number > 65535) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

std::optional<Range> parse_range(std::string_view text) {
  auto parts = split(text, '-');
  if (parts.size() > 2) return std::nullopt;
  auto first = parse_port(parts.front());
  auto last = parse_port(parts.back());
  if (!first || !last || *last < *first) return std::nullopt;
  return Range{*first, *last};
}

Result<std::string> parse_protocol(std::string_view text, std::string_view whole) {
  std::string name = to_lower(text);
  if (name == "tcp" || name == "udp") return name;
  if (name == "sctp") {
    return make_error(Kind::unsupported, "publish " + quote(whole) + ": sctp",
                      "tcp or udp, or --network host");
  }
  return refused(whole, "Invalid proto: " + std::string(text));
}

/// The three parts around the last two colons; an IPv6 address has colons of its own, and brackets.
struct Pieces {
  std::string_view address;
  std::string_view host;
  std::string_view container;
};
Pieces cut(std::string_view text) {
  size_t last = text.rfind(':');
  if (last == text.npos) return {{}, {}, text};
  size_t second = last == 0 ? text.npos : text.rfind(':', last - 1);
  if (second == text.npos) return {{}, text.substr(0, last), text.substr(last + 1)};
  return {text.substr(0, second), text.substr(second + 1, last - second - 1),
          text.substr(last + 1)};
}

Result<std::string> parse_address(std::string_view address, std::string_view whole) {
  if (address.empty()) return std::string();
  if (parse_ipv4(address)) return std::string(address);
  bool brackets = address.size() > 2 && address.front() == '[' && address.back() == ']';
  auto six = brackets ? parse_ipv6(address.substr(1, address.size() - 2)) : std::nullopt;
  if (six) {
    auto four = mapped_ipv4(*six);
    return four ? text_of(*from_bytes(*four)) : text_of_ipv6(*six);
  }
  return refused(whole, "Invalid ip address: " + std::string(address));
}

Result<Publish> combine(std::string_view whole, const Pieces& pieces, std::string_view protocol) {
  Publish publish;
  publish.protocol = TRY(parse_protocol(protocol, whole));
  publish.host_address = TRY(parse_address(pieces.address, whole));
  if (pieces.container.empty()) return refused(whole, "No port specified");
  auto container = parse_range(pieces.container);
  if (!container) return refused(whole, "Invalid containerPort: " + std::string(pieces.container));
  publish.container_first = container->first;
  publish.count = static_cast<uint16_t>(container->size());
  // 0: choose_ports() (attach/choose_ports.hpp) takes a free one.
  if (pieces.host.empty() || pieces.host == "0") return publish;
  auto host = parse_range(pieces.host);
  if (!host) return refused(whole, "Invalid hostPort: " + std::string(pieces.host));
  if (host->size() != container->size() && container->size() != 1) {
    return refused(whole, "Invalid ranges specified for container and host Ports: " +
                              std::string(pieces.container) + " and " + std::string(pieces.host));
  }
  publish.host_first = host->first;
  publish.host_last = host->last;
  return publish;
}

/// "published=8080,target=80".
Result<Publish> parse_members(std::string_view text) {
  Pieces pieces;
  std::string_view protocol = "tcp";
  for (std::string_view part : split(text, ',')) {
    size_t equals = part.find('=');
    std::string_view name = part.substr(0, equals);
    std::string_view value = equals == part.npos ? "" : part.substr(equals + 1);
    if (name == "target") {
      pieces.container = value;
    } else if (name == "published") {
      pieces.host = value;
    } else if (name == "protocol") {
      protocol = value;
    } else {
      return refused(text, "invalid field " + quote(name));
    }
  }
  return combine(text, pieces, protocol);
}

}  // namespace

Result<Publish> parse_publish(std::string_view text) {
  if (text.find('=') != text.npos) return parse_members(text);
  size_t slash = text.find('/');
  std::string_view protocol = slash == text.npos ? "tcp" : text.substr(slash + 1);
  return combine(text, cut(text.substr(0, slash)), protocol);
}

Result<void> check_versions(const std::vector<Publish>& ports, std::string_view mode) {
  for (const Publish& port : ports) {
    if (mode == kPasta || !is_ipv6(port.host_address)) continue;
    return make_error(
        Kind::unsupported,
        "publish at [" + port.host_address + "]: network " + quote(mode) + " has only IPv4",
        "an IPv4 address, --network pasta (of ordinary users), or --network host");
  }
  return {};
}

Result<Exposed> parse_exposed(std::string_view text) {
  size_t slash = text.find('/');
  std::string protocol = to_lower(slash == text.npos ? "tcp" : text.substr(slash + 1));
  auto range = parse_range(text.substr(0, slash));
  bool known = protocol == "tcp" || protocol == "udp" || protocol == "sctp";
  if (!range || !known) {
    return make_error(Kind::usage, "invalid range format for --expose: " + quote(text),
                      "--expose PORT[-PORT][/udp]");
  }
  return Exposed{range->first, range->last, protocol};
}

std::vector<Publish> all_ports(std::vector<Publish> publish, const std::vector<Exposed>& exposed,
                               PublishAll all) {
  if (all == PublishAll::no) return publish;
  auto is_named = [](const std::vector<Publish>& list, unsigned port, const std::string& protocol) {
    return std::ranges::any_of(list, [&](const Publish& one) {
      return one.protocol == protocol && port >= one.container_first &&
             port < one.container_first + unsigned{one.count};
    });
  };
  for (const Exposed& one : exposed) {
    if (one.protocol == "sctp") continue;
    for (unsigned port = one.first; port <= one.last; ++port) {
      if (is_named(publish, port, one.protocol)) continue;
      publish.push_back({"", 0, 0, static_cast<uint16_t>(port), 1, one.protocol});
    }
  }
  return publish;
}

}  // namespace berth::network
