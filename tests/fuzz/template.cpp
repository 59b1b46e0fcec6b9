// SPDX-License-Identifier: Apache-2.0
// Templates of --format: no crash, no end, and bounded output, whatever they say. What was accepted
// gives the same twice.
#include "cli/template/template.hpp"

#include <cstdint>

#include "base/assert.hpp"
#include "cli/template/go_text.hpp"
#include "cli/template/listing.hpp"

namespace {

using namespace berth;
using namespace berth::cli;

constexpr size_t kMostOutput = size_t{48} << 20;  // the limit is looked at between two pieces

constexpr std::string_view kMaps[] = {"Labels", "Sysctls"};
constexpr std::string_view kLists[] = {"Binds"};
constexpr std::string_view kAbsent[] = {"Health"};

constexpr ListField kFields[] = {{"ID", "CONTAINER ID"}, {"Names", "NAMES"}};
constexpr ListKind kKind{
    .fields = kFields, .table = "{{.ID}}\t{{.Names}}", .raw = "id: {{.ID}}\n", .labels = true};

const json::Value& document() {
  static const json::Value value = json::reparse(R"({"Id": "0123456789ab", "Size": 1982305,
    "Half": 0.5, "Args": ["-c", "true"], "State": {"Pid": 42, "Running": true, "Error": null},
    "Labels": {"a": "1", "b": "ü"}, "Mounts": [{"Type": "bind"}], "Sysctls": null, "Binds": null})");
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto made = Template::parse(text); made.ok()) {
    TemplateData given{document(), {kMaps, kLists, kAbsent, {}}};
    auto first = made->execute(given);
    if (first.ok()) {
      BERTH_ASSERT(first->size() <= kMostOutput);
      auto second = made->execute(given);
      BERTH_ASSERT(second.ok() && *second == *first);
    }
  }
  if (auto listing = Listing::make(kKind, {std::string(text), false}); listing.ok()) {
    (void)listing->text({{{"b1", "a\tb"}, {{"k", "v"}}}, {{"b2", "\x1b[2J"}, {}}}).ok();
  }
  (void)align_tabs(text);
  return 0;
}
