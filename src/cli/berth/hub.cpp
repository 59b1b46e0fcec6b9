// SPDX-License-Identifier: Apache-2.0
#include "engine/system/hub.hpp"

#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct HubOptions {
  engine::HubRequest request;
};

FlagTable hub_flags(HubOptions& o) {
  engine::HubRequest& r = o.request;
  FlagTable table{
      file_flag("config", 0, "Instead of hub.toml in --config-dir", &r.config),
      {"listen", 0, "ADDRESS:PORT", "Where clients call; 127.0.0.1:5050 unless told",
       &r.flags.listen},
      {"upstream", 0, "REGISTRY", "The registry behind the hub", &r.flags.upstream},
      {"repository", 0, "NAME", "What is served of it: NAME, NAME/* or *", &r.flags.repositories},
      directory_flag("fleet", 0, "Saved profiles of nodes", &r.flags.fleet),
      {"default", 0, "PROFILE", "For callers that nothing else is known of", &r.flags.usual},
      file_flag("htpasswd", 0, "Who may log in, with bcrypt's hashes", &r.flags.htpasswd),
      file_flag("tls-cert", 0, "Certificate, then those above it", &r.flags.tls_certificate),
      file_flag("tls-key", 0, "Its key", &r.flags.tls_key),
      choice_flag("blobs", "WAY", "pass: through the hub; redirect: from the registry",
                  &r.flags.blobs, {"pass", "redirect"}),
      choice_flag("log", "FORM", "One line for each request: text or json", &r.flags.log,
                  {"text", "json"}),
      {"check", 0, "", "Read everything, say what is wrong, and end", &r.check},
  };
  add_registry_flags(table, r.access);
  return table;
}

Result<int> run_hub(Session& session, const HubOptions& o, Arguments) {
  return engine::become_hub(session.context, o.request);
}

}  // namespace

const Verb hub_verb{
    .text = {.name = "hub",
             .summary = "Serve a registry's images to other engines, to each node its variant",
             .example = "berth hub --upstream registry.example.org --repository 'team/*' "
                        "--fleet nodes/"},
    .store = Store::none,
    .command = [] { return make_command(hub_flags, run_hub); },
};

}  // namespace berth::cli
