// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "runtime/state/bundle.hpp"

namespace berth::cli::oci {
namespace {

struct SpecOptions {
  std::string bundle = ".";
  bool rootless = false;
};

FlagTable spec_flags(SpecOptions& o) {
  return {directory_flag("bundle", 'b', "Directory to write it to", &o.bundle),
          {"rootless", 0, "", "For a rootless container", &o.rootless}};
}

Result<int> run_spec(Session&, const SpecOptions& options, const Arguments&) {
  auto kind = options.rootless ? runtime::SpecKind::rootless : runtime::SpecKind::root;
  TRY_CTX(runtime::write_default_spec(options.bundle, kind), "cannot write the configuration");
  return 0;
}

}  // namespace

const Verb spec_verb{
    .text = {.name = "spec",
             .summary = "Write a default config.json",
             .example = "berth-runtime spec --bundle /srv/web"},
    .command = [] { return make_command(spec_flags, run_spec); },
};

}  // namespace berth::cli::oci
