// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "policy/policy.hpp"

namespace berth::gpu {
namespace {

constexpr const char* kExamples = "--gpus all, --gpus 2, --gpus device=0,1";

Error usage(std::string_view text, const std::string& what, std::string hint = {}) {
  std::string shown = trim(text).empty() ? quote(text) : escape_controls(text);
  return make_error(Kind::usage, fmt::format("--gpus {}: {}", shown, what), std::move(hint));
}

// Parses one record of CSV as Go's encoding/csv does: a field that starts with a quote also ends
// with one, and a doubled quote inside means one quote.
Result<std::vector<std::string>> split_csv(std::string_view text) {
  std::vector<std::string> fields(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      fields.emplace_back();
    } else if (text[i] == '"' && fields.back().empty()) {
      for (++i;; ++i) {
        if (i >= text.size()) return usage(text, "a quote is not closed");
        if (text[i] != '"') {
          fields.back() += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          fields.back() += text[i++];
        } else {
          break;
        }
      }
      if (i + 1 < text.size() && text[i + 1] != ',') {
        return usage(text, "text after a closing quote");
      }
    } else {
      fields.back() += text[i];
    }
  }
  return fields;
}

// Users of docker quote twice: '"device=0,1"'. Quotes around the whole value have no effect here,
// because a list may continue after a comma anyway.
std::string_view without_outer_quotes(std::string_view text) {
  bool outer = text.size() > 2 && text.find('"', 1) == text.size() - 1 && text[0] == '"';
  return outer ? text.substr(1, text.size() - 2) : text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Request> parse() {
    for (const std::string& field : TRY(split_csv(without_outer_quotes(text_)))) TRY(take(field));
    TRY(check());
    return std::move(request_);
  }

 private:
  Result<void> take(const std::string& field);
  Result<void> take_key(const std::string& key, const std::string& value);
  Result<void> take_bare(const std::string& word);
  Result<void> take_count(const std::string& value);
  Result<void> take_devices(const std::string& value);
  Result<void> take_capabilities(const std::string& value);
  Result<void> take_driver(const std::string& value);
  Result<void> take_from(const std::string& name);
  Result<void> take_trait(const std::string& field);
  Result<void> check();

  std::string_view text_;
  Request request_;
  std::set<std::string> seen_;
  std::string last_key_;
};

Result<void> Parser::take(const std::string& field) {
  constexpr std::string_view kFrom = "from:";
  if (field.starts_with(kFrom)) return take_from(field.substr(kFrom.size()));
  if (is_trait(field)) return take_trait(field);
  size_t equals = field.find('=');
  if (equals == std::string::npos) return take_bare(field);
  return take_key(field.substr(0, equals), field.substr(equals + 1));
}

Result<void> Parser::take_key(const std::string& key, const std::string& value) {
  static const std::vector<std::string_view> kKeys = {"device", "count", "capabilities", "driver",
                                                      "options"};
  if (std::ranges::find(kKeys, key) == kKeys.end()) {
    std::vector<std::string_view> known = kKeys;
    known.insert(known.end(), trait_names().begin(), trait_names().end());
    auto near = nearest(key, known);
    return usage(text_, fmt::format("unknown key {}", quote(key)),
                 near ? fmt::format("did you mean '{}'?", *near)
                      : "keys are device, count, capabilities, model, memory, cc, numa, profile");
  }
  if (!seen_.insert(key).second) return usage(text_, fmt::format("'{}' is given twice", key));
  last_key_ = key;
  if (key == "count") return take_count(value);
  if (key == "device") return take_devices(value);
  if (key == "capabilities") return take_capabilities(value);
  if (key == "driver" && !value.empty()) return take_driver(value);
  if (key == "options") return usage(text_, "options are not supported", "leave 'options=' out");
  return {};
}

// For docker, a field without "=" is the count. Here, if it follows a list, it continues the list.
Result<void> Parser::take_bare(const std::string& word) {
  if (last_key_ == "device") return take_devices(word);
  if (last_key_ == "capabilities") return take_capabilities(word);
  if (!seen_.insert("count").second) {
    bool counts = word == "all" || word == "none" || parse_i64(word).has_value();
    if (!counts) return usage(text_, "unknown word " + quote(word), kExamples);
    bool list = text_.find_first_not_of("0123456789,") == std::string_view::npos;
    return usage(text_, "the count is given twice",
                 list ? fmt::format("--gpus device={}", text_) : std::string());
  }
  return take_count(word);
}

Result<void> Parser::take_count(const std::string& value) {
  if (value == "all") {
    request_.want = Request::Want::all;
    return {};
  }
  if (value == "none" || value == "0") {
    request_.want = Request::Want::none;
    return {};
  }
  if (value == "-1") {  // docker's own spelling of all
    request_.want = Request::Want::all;
    return {};
  }
  if (parse_decimal(value) && value.find('.') != std::string::npos) {
    return usage(text_, "GPUs are given whole, or as a MIG slice that exists",
                 "--gpus 1,profile=1g.10gb for a MIG slice");
  }
  auto count = parse_u64(value);
  if (!count || *count > UINT32_MAX) {
    return usage(text_,
                 fmt::format("expected all, none, a number or device=…, got {}", quote(value)),
                 value.starts_with("GPU-") || value.starts_with("MIG-")
                     ? fmt::format("did you mean 'device={}'?", escape_controls(value))
                     : kExamples);
  }
  request_.want = Request::Want::count;
  request_.count = static_cast<uint32_t>(*count);
  return {};
}

Result<void> Parser::take_devices(const std::string& value) {
  request_.want = Request::Want::devices;
  for (std::string_view id : split(value, ',')) {
    if (trim(id).empty()) return usage(text_, "an empty device");
    std::string name(trim(id));
    auto& devices = request_.devices;
    if (std::ranges::find(devices, name) == devices.end()) devices.push_back(name);
  }
  return {};
}

Result<void> Parser::take_capabilities(const std::string& value) {
  for (std::string_view word : split(value, ',')) {
    word = trim(word);
    if (word == "gpu") continue;  // docker's name of the device class
    const auto& known = known_capabilities();
    if (word != "all" && std::ranges::find(known, word) == known.end()) {
      auto near = nearest(word, known);
      return usage(
          text_, fmt::format("unknown capability {}", quote(word)),
          near ? fmt::format("did you mean '{}'?", *near)
               : "capabilities are compute, utility, graphics, video, display, ngx, compat32");
    }
    request_.capabilities.emplace_back(word);
  }
  return {};
}

Result<void> Parser::take_driver(const std::string& value) {
  auto vendor = parse_enum<Vendor>(value);
  if (!vendor.ok()) {
    return usage(text_, fmt::format("no driver {}", quote(value)),
                 "drivers are nvidia, amd and intel");
  }
  request_.vendor = *vendor;
  return {};
}

Result<void> Parser::take_from(const std::string& name) {
  if (!seen_.insert("from").second) return usage(text_, "'from:' is given twice");
  if (name.empty()) return usage(text_, "no container after 'from:'", "--gpus from:NAME");
  last_key_ = "from";
  request_.want = Request::Want::container;
  request_.from = name;
  return {};
}

Result<void> Parser::take_trait(const std::string& field) {
  auto trait = parse_trait(field);
  if (!trait.ok()) return usage(text_, trait.error().what, trait.error().hint);
  last_key_ = trait->name;
  request_.traits.push_back(std::move(*trait));
  return {};
}

Result<void> Parser::check() {
  if (seen_.contains("from")) {
    bool alone = !seen_.contains("device") && !seen_.contains("count") && request_.traits.empty();
    return alone ? Result<void>() : usage(text_, "'from:' cannot be combined with other GPUs");
  }
  bool devices = seen_.contains("device");
  if (devices && seen_.contains("count")) return usage(text_, "give a count or devices, not both");
  if (devices && request_.devices.empty()) return usage(text_, "an empty device");
  if (devices && !request_.traits.empty()) {
    return usage(text_, "a device given by name cannot have conditions",
                 "--gpus 1,model=… for any such");
  }
  // As in docker, capabilities without devices or a count request one GPU.
  if (!devices && !seen_.contains("count")) {
    request_.want = Request::Want::count;
    request_.count = 1;
  }
  if (request_.devices.size() == 1 &&
      (request_.devices[0] == "all" || request_.devices[0] == "none")) {
    request_.want = request_.devices[0] == "all" ? Request::Want::all : Request::Want::none;
    request_.devices.clear();
  }
  return {};
}

}  // namespace

const std::vector<std::string_view>& known_capabilities() {
  return policy::capability_names();
}

Result<Request> parse_request(std::string_view text) {
  if (trim(text).empty()) return usage(text, "empty", kExamples);
  return Parser(text).parse();
}

}  // namespace berth::gpu
