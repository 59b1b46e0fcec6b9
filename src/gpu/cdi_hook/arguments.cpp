// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi_hook/arguments.hpp"

#include "base/text.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr std::string_view kSeparator = "::";

std::vector<std::string_view> split_texts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(kSeparator); at != std::string_view::npos;
       at = text.find(kSeparator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + kSeparator.size());
  }
  parts.push_back(text);
  return parts;
}

std::optional<oci::LoaderLine> loader_line_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 3 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  auto flags = parse_i64(parts[2]);
  if (!flags || !std::in_range<int32_t>(*flags)) return std::nullopt;
  return oci::LoaderLine{std::string(parts[0]), std::string(parts[1]),
                         static_cast<int32_t>(*flags)};
}

}  // namespace

std::optional<oci::Link> link_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 2 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  return oci::Link{std::string(parts[1]), std::string(parts[0])};
}

std::vector<std::string> to_words(const HookRequest& request) {
  std::vector<std::string> words;
  for (const oci::Link& link : request.links) {
    words.insert(words.end(), {"--link", link.target + std::string(kSeparator) + link.path});
  }
  for (const oci::LoaderLine& line : request.loader_entries) {
    words.insert(words.end(),
                 {"--loader-entry", line.soname + std::string(kSeparator) + line.path +
                                        std::string(kSeparator) + std::to_string(line.flags)});
  }
  if (request.freeze_device_nodes) words.emplace_back("--freeze-device-nodes");
  return words;
}

Result<HookRequest> parse_words(const std::vector<std::string>& words) {
  HookRequest request;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--freeze-device-nodes") {
      request.freeze_device_nodes = true;
      continue;
    }
    bool is_link = words[i] == "--link";
    if (!is_link && words[i] != "--loader-entry") {
      return make_error(Kind::usage, "unknown flag " + quote(words[i]));
    }
    if (++i == words.size()) return make_error(Kind::usage, words[i - 1] + " needs a value");
    auto link = is_link ? link_of(words[i]) : std::nullopt;
    auto line = is_link ? std::nullopt : loader_line_of(words[i]);
    if (link) request.links.push_back(std::move(*link));
    if (line) request.loader_entries.push_back(std::move(*line));
    if (!link && !line) {
      return make_error(Kind::usage, words[i - 1] + ": cannot read " + quote(words[i]));
    }
  }
  return request;
}

}  // namespace berth::gpu::cdi
