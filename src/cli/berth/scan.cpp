// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/scan_text.hpp"
#include "engine/image_facts.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

struct Options {
  std::string format;
};

FlagTable flags(Options& o) {
  return {{"format", 'f', "FORMAT", "json, or a template such as '{{.glibc}}'", &o.format}};
}

Result<int> run(Session& session, const Options& o, std::vector<std::string> arguments) {
  std::optional<DocumentFormat> format;
  if (!o.format.empty()) format = TRY(DocumentFormat::make(o.format));
  facts::ImageFacts facts = TRY(engine::facts_of_image_named(session.context, arguments[0]));
  if (!format) {
    print(session, scan_text(facts));
  } else if (format->is_json()) {
    print_json(session, json::to_value(facts));
  } else {
    print(session, TRY(format->text(json::to_value(facts))) + "\n");
  }
  return 0;
}

}  // namespace

extern const Verb scan_verb;
const Verb scan_verb{
    .text = {.name = "scan",
             .arguments = "IMAGE",
             .summary = "Show what an image asks of a machine: processor, libc, GPU code, driver",
             .example = "berth scan pytorch/pytorch",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(flags, run); },
};

}  // namespace berth::cli
