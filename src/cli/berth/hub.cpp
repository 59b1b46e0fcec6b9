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
      {"config", 0, "FILE", "Instead of hub.toml in --config-dir", &r.config, {}, Complete::file},
      {"listen", 0, "ADDRESS:PORT", "Where clients call; 127.0.0.1:5050 unless told",
       &r.flags.listen},
      {"upstream", 0, "REGISTRY", "The registry behind the hub", &r.flags.upstream},
      {"repository", 0, "NAME", "What is served of it: NAME, NAME/* or *", &r.flags.repositories},
      {"fleet", 0, "DIR", "Saved profiles of nodes", &r.flags.fleet, {}, Complete::directory},
      {"default", 0, "PROFILE", "For callers that nothing else is known of", &r.flags.usual},
      {"htpasswd",
       0,
       "FILE",
       "Who may log in, with bcrypt's hashes",
       &r.flags.htpasswd,
       {},
       Complete::file},
      {"tls-cert",
       0,
       "FILE",
       "Certificate, then those above it",
       &r.flags.tls_certificate,
       {},
       Complete::file},
      {"tls-key", 0, "FILE", "Its key", &r.flags.tls_key, {}, Complete::file},
      {"blobs",
       0,
       "WAY",
       "pass: through the hub; redirect: from the registry",
       &r.flags.blobs,
       {"pass", "redirect"}},
      {"log", 0, "FORM", "One line for each request: text or json", &r.flags.log, {"text", "json"}},
      {"check", 0, "", "Read everything, say what is wrong, and end", &r.check},
  };
  add_registry_flags(table, r.access);
  return table;
}

Result<int> run_hub(Session& session, const HubOptions& o, std::vector<std::string>) {
  return engine::become_hub(session.context, o.request);
}

}  // namespace

extern const Verb hub_verb;
const Verb hub_verb{
    .text = {.name = "hub",
             .arguments = "",
             .summary = "Serve a registry's images to other engines, to each node its variant",
             .example = "berth hub --upstream registry.example.org --repository 'team/*' "
                        "--fleet nodes/"},
    .arity = {0, 0},
    .store = Store::none,
    .command = [] { return make_command(hub_flags, run_hub); },
};

}  // namespace berth::cli
