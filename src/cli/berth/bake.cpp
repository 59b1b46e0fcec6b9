// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/show/bake_text.hpp"
#include "engine/build/bake_request.hpp"
#include "engine/context/paths.hpp"

namespace berth::cli {
namespace {

struct BakeOptions {
  engine::BakeRequest request;
  std::optional<std::string> fleet;
  std::optional<uint64_t> jobs;
  bool no_publish = false;
  std::string format;
};

ReadValue read_jobs(std::optional<uint64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    target = parse_u64(text);
    if (target && *target >= 1 && *target <= 64) return {};
    return make_error(Kind::usage, "expected a number from 1 to 64");
  };
}

FlagTable bake_flags(BakeOptions& o) {
  FlagTable table{
      {"cell", 0, "NAME", "Build and publish only this cell, for --merge (repeatable)",
       &o.request.cells},
      {"merge", 0, "", "Build nothing; publish the index of cells built with --cell",
       &o.request.merge},
      {"dry-run", 0, "", "Show the cells and which of them would be built", &o.request.dry_run},
      directory_flag("fleet", 0, "Show which cell each saved profile in DIR would get", &o.fleet),
      {"jobs", 'j', "N", "Number of builds to run in parallel (1)", read_jobs(o.jobs)},
      file_flag("sign-key", 0, "Sign the index and images, as cosign does, with this PEM key",
                &o.request.sign_key),
      {"no-publish", 0, "", "Leave the images in the store; do not push to a registry",
       &o.no_publish},
      {"no-cache", 0, "", "Do not use the build cache", &o.request.rebuild},
      format_flag(o.format),
  };
  add_registry_flags(table, o.request.access);
  return table;
}

Result<engine::BakeRequest> request_of(const Session& session, const BakeOptions& o,
                                       const std::string& file) {
  engine::BakeRequest request = o.request;
  request.file = TRY(engine::absolute_path(file, session.working_directory));
  request.publish = !o.no_publish;
  request.jobs = o.jobs.value_or(1);
  if (o.fleet) request.dry_run = true;
  if (request.merge && !request.cells.empty()) {
    return make_error(Kind::usage, "--merge and --cell cannot be used together");
  }
  if (request.merge && o.no_publish) {
    return make_error(Kind::usage, "--merge and --no-publish cannot be used together");
  }
  return request;
}

Result<int> run_bake(Session& session, const BakeOptions& o, Arguments arguments) {
  engine::BakeRequest request = TRY(request_of(session, o, arguments[0]));
  bool json = o.format == "json";
  // A dry run builds nothing, and prints one table at the end.
  bool live = !request.dry_run || json;
  BakeDisplay display(session, live, json);
  engine::BakeReport report = TRY(engine::bake(session.context, request, display.progress()));
  display.finish();
  if (o.fleet) {
    auto takes = TRY(engine::bake_fleet(session.context, report, *o.fleet));
    return print_fleet(session, report, takes, json);
  }
  if (request.dry_run && !json) print(session, bake_table(report));
  print_end(session, report, request, json);
  return bake_status(report, request);
}

}  // namespace

const Verb bake_verb{
    .text = {.name = "bake",
             .arguments = "FILE",
             .summary = "Build the variants of an image, check them, and publish one index",
             .example = "berth bake --jobs 2 bake.toml",
             .complete = Complete::file},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .command = [] { return make_command(bake_flags, run_bake); },
};

}  // namespace berth::cli
