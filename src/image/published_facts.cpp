// SPDX-License-Identifier: Apache-2.0
#include "image/published_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "match/declared.hpp"

namespace berth::image {
namespace {

constexpr size_t kMaxText = 4096;
constexpr uint32_t kMaxLevel = 4;
constexpr std::string_view kName = "published facts";

Error not_such(std::string what) {
  return make_error(Kind::corrupt, "read the " + std::string(kName) + ": " + std::move(what));
}

/// Whether a string is safe to show to users in a sentence, and to compare with local facts.
bool is_plain(std::string_view text) {
  return text.size() <= kMaxText &&
         std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

bool has_plain_texts(const json::Value& value) {
  if (const std::string* text = value.string()) return is_plain(*text);
  if (const json::Array* array = value.array()) {
    return std::ranges::all_of(*array, has_plain_texts);
  }
  const json::Object* object = value.object();
  return object == nullptr || std::ranges::all_of(*object, [](const auto& member) {
           return is_plain(member.first) && has_plain_texts(member.second);
         });
}

bool is_version(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool is_code(const facts::GpuCode& code) {
  auto read =
      match::parse_gpu_code(code.kind == facts::GpuCode::Kind::gfx ? code.arch : "sm_" + code.arch);
  return read && read->arch == code.arch && is_version(code.isa);
}

Result<void> check_found(const facts::ImageFacts& found) {
  for (const facts::CpuNeed& need : found.cpu) {
    if (need.isa.level > kMaxLevel) return not_such("x86-64-v" + std::to_string(need.isa.level));
  }
  for (const auto* sets : {&found.gpu_code, &found.linker_code}) {
    for (const facts::GpuCodeSet& set : *sets) {
      if (set.code.empty()) return not_such("a set of GPU code without any");
      if (!is_version(set.cuda)) return not_such("version " + quote(set.cuda));
      for (const facts::GpuCode& code : set.code) {
        if (!is_code(code)) return not_such("GPU code for " + quote(code.arch));
      }
    }
  }
  std::vector<std::string> versions = found.cuda_runtimes;
  for (const std::string* one :
       {&found.glibc, &found.libstdcxx, &found.user_driver, &found.compat, &found.compat_cuda}) {
    versions.push_back(*one);
  }
  for (const std::string& version : versions) {
    if (!is_version(version)) return not_such("version " + quote(version));
  }
  return {};
}

Result<void> check_runs(std::vector<match::RunRecord>& runs) {
  if (runs.size() > match::kMaxRuns) return not_such("more than 64 runs of an image");
  std::vector<match::RunRecord> sorted;
  for (match::RunRecord& run : runs) {
    auto checked = match::check(run);
    if (!checked.ok()) return not_such(std::move(checked).error().what);
    match::add_run(sorted, std::move(run));
  }
  runs = std::move(sorted);
  return {};
}

}  // namespace

const PublishedImage* PublishedFacts::of(const Digest& image) const {
  auto found = std::ranges::find(images, image, &PublishedImage::image);
  return found == images.end() ? nullptr : &*found;
}

oci::ContainerDefaults declaring_part(const oci::ContainerDefaults& config) {
  oci::ContainerDefaults part;
  for (const std::string& variable : config.env) {
    if (match::declares(variable.substr(0, variable.find('=')))) part.env.push_back(variable);
  }
  for (const auto& [name, value] : config.labels) {
    if (match::declares(name)) part.labels.emplace(name, value);
  }
  return part;
}

Result<PublishedFacts> parse_published_facts(std::string_view text) {
  json::Limits limits;
  limits.max_depth = 16;
  limits.max_values = 1'000'000;
  json::Value value = TRY(json::parse(text, kName, limits));
  if (!has_plain_texts(value)) return not_such("a text that is too long or has control characters");
  PublishedFacts facts =
      TRY(json::from_value<PublishedFacts>(std::move(value), std::string(kName)));
  if (facts.version != 1) {
    return make_error(Kind::unsupported,
                      fmt::format("read the {}: version {} is of a later version of Berth", kName,
                                  facts.version));
  }
  if (facts.images.size() > oci::kMaxIndexEntries) return not_such("more than 1024 images");
  for (PublishedImage& image : facts.images) {
    if (image.found) TRY(check_found(*image.found));
    if (image.found && image.found->version != facts::kVersion) image.found.reset();
    TRY(check_runs(image.runs));
  }
  return facts;
}

std::string to_json(const PublishedFacts& facts) {
  return json::write(facts);
}

}  // namespace berth::image
