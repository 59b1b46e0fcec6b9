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
      {"config",
       0,
       "FILE",
       "Configuration file (hub.toml in --config-dir)",
       &r.config,
       {},
       Complete::file},
      {"listen", 0, "ADDRESS:PORT", "Address and port to listen on (127.0.0.1:5050)",
       &r.flags.listen},
      {"upstream", 0, "REGISTRY", "Registry to serve images from", &r.flags.upstream},
      {"repository", 0, "NAME", "Repository to serve: NAME, NAME/* or * (repeatable)",
       &r.flags.repositories},
      {"fleet",
       0,
       "DIR",
       "Directory of saved node profiles",
       &r.flags.fleet,
       {},
       Complete::directory},
      {"default", 0, "PROFILE", "Profile for clients whose node is not known", &r.flags.usual},
      {"htpasswd",
       0,
       "FILE",
       "Users who may log in, with bcrypt password hashes",
       &r.flags.htpasswd,
       {},
       Complete::file},
      {"tls-cert",
       0,
       "FILE",
       "TLS certificate, followed by its chain (PEM)",
       &r.flags.tls_certificate,
       {},
       Complete::file},
      {"tls-key",
       0,
       "FILE",
       "Private key of the certificate (PEM)",
       &r.flags.tls_key,
       {},
       Complete::file},
      {"blobs",
       0,
       "WAY",
       "pass: send blobs through the hub; redirect: to the registry",
       &r.flags.blobs,
       {"pass", "redirect"}},
      {"log", 0, "FORM", "Format of the request log: text or json", &r.flags.log, {"text", "json"}},
      {"check", 0, "", "Check the configuration, print errors, and exit", &r.check},
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
             .summary = "Serve a registry's images, giving each node the variant that fits it",
             .example = "berth hub --upstream registry.example.org --repository 'team/*' "
                        "--fleet nodes/"},
    .arity = {0, 0},
    .store = Store::none,
    .command = [] { return make_command(hub_flags, run_hub); },
};

}  // namespace berth::cli
