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
      file_flag("config", 0, "Configuration file (hub.toml in --config-dir)", &r.config),
      {"listen", 0, "ADDRESS:PORT", "Address and port to listen on (127.0.0.1:5050)",
       &r.flags.listen},
      {"upstream", 0, "REGISTRY", "Registry to serve images from", &r.flags.upstream},
      {"repository", 0, "NAME", "Repository to serve: NAME, NAME/* or * (repeatable)",
       &r.flags.repositories},
      directory_flag("fleet", 0, "Directory of saved node profiles", &r.flags.fleet),
      {"default", 0, "PROFILE", "Profile for clients whose node is not known", &r.flags.usual},
      file_flag("htpasswd", 0, "Users who may log in, with bcrypt password hashes",
                &r.flags.htpasswd),
      file_flag("tls-cert", 0, "TLS certificate, followed by its chain (PEM)",
                &r.flags.tls_certificate),
      file_flag("tls-key", 0, "Private key of the certificate (PEM)", &r.flags.tls_key),
      choice_flag("blobs", "WAY", "pass: send blobs through the hub; redirect: to the registry",
                  &r.flags.blobs, {"pass", "redirect"}),
      choice_flag("log", "FORM", "Format of the request log: text or json", &r.flags.log,
                  {"text", "json"}),
      {"check", 0, "", "Check the configuration, print errors, and exit", &r.check},
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
             .summary = "Serve a registry's images, giving each node the variant that fits it",
             .example = "berth hub --upstream registry.example.org --repository 'team/*' "
                        "--fleet nodes/"},
    .store = Store::none,
    .command = [] { return make_command(hub_flags, run_hub); },
};

}  // namespace berth::cli
