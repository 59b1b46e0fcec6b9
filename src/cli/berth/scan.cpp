// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/show/scan_text.hpp"
#include "cli/core/table.hpp"
#include "engine/decide/published_facts.hpp"
#include "engine/image/facts.hpp"
#include "engine/node/node.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

struct ScanOptions {
  std::string format;
  bool attach = false;
  std::optional<std::string> nfd, tag;
  engine::AttachFactsRequest request;
};

FlagTable scan_flags(ScanOptions& o) {
  FlagTable table{
      {"format", 'f', "FORMAT", "Output format: json or a template such as '{{.glibc}}'",
       &o.format},
      {"attach", 0, "", "Attach the result to the image in its registry", &o.attach},
      {"verified",
       0,
       "CONTAINER",
       "With --attach: add how this container of the image ended",
       &o.request.container,
       {},
       Complete::container},
      file_flag("sign-key", 0, "With --attach: sign it with this private key (PEM)",
                &o.request.sign_key),
  };
  table.push_back(
      file_flag("nfd", 0, "Show the requirements in this NFD image compatibility file", &o.nfd));
  table.push_back({"tag", 0, "TAG", "With --nfd: use the rules with this tag", &o.tag});
  add_registry_flags(table, o.request.access);
  return table;
}

Result<int> attach(Session& session, engine::AttachFactsRequest request,
                   const std::string& format) {
  if (!format.empty() && format != "json") {
    return make_error(Kind::usage, "--attach prints text or JSON, and takes no template");
  }
  image::TransferResult result = TRY(engine::attach_facts(session.context, request));
  if (format == "json") {
    json::Object out;
    out.emplace_back("image", result.reference);
    out.emplace_back("digest", result.digest);
    out.emplace_back("status", result.status);
    print_json(session, std::move(out));
  } else if (result.status == "attached") {
    print(session, "attached to " + result.reference + ": " + result.digest + "\n");
  } else {
    print(session, result.reference + " has them already\n");
  }
  return 0;
}

Result<int> show_rules(Session& session, const ScanOptions& o) {
  auto format = TRY(DocumentFormat::make_if_given(o.format));
  bake::NfdRules rules = TRY(engine::rules_of_file(session.context, *o.nfd, o.tag));
  Table table({"AXIS", "VALUE"});
  for (const auto& [axis, value] : rules.words) table.add({axis, value});
  return print_document(session, format, json::to_value(rules), table.text());
}

Result<int> run_scan(Session& session, const ScanOptions& o, Arguments arguments) {
  if (arguments.empty() != o.nfd.has_value()) {
    return make_error(Kind::usage, "expected an image, or --nfd FILE");
  }
  if (o.tag && !o.nfd) return make_error(Kind::usage, "--tag needs --nfd");
  if (o.nfd && o.attach) return make_error(Kind::usage, "--attach needs an image");
  if (o.attach) {
    engine::AttachFactsRequest request = o.request;
    request.reference = arguments[0];
    request.berth_version = berth_version();
    return attach(session, std::move(request), o.format);
  }
  if (o.request.sign_key) {
    return make_error(Kind::usage, "--sign-key needs --attach");
  }
  if (o.request.container) return make_error(Kind::usage, "--verified needs --attach");
  if (o.nfd) return show_rules(session, o);
  auto format = TRY(DocumentFormat::make_if_given(o.format));
  facts::ImageFacts facts = TRY(engine::facts_of_image_named(session.context, arguments[0]));
  return print_document(session, format, json::to_value(facts), scan_text(facts));
}

}  // namespace

const Verb scan_verb{
    .text = {.name = "scan",
             .arguments = "IMAGE | --nfd FILE",
             .summary = "Show what an image requires of a machine: CPU, libc, GPU code, driver",
             .example = "berth scan pytorch/pytorch",
             .complete = Complete::image},
    .arity = {0, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(scan_flags, run_scan); },
};

}  // namespace berth::cli
