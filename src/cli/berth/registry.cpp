// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "cli/berth/flag_values.hpp"
#include "cli/core/table.hpp"
#include "cli/template/listing.hpp"
#include "engine/image/images.hpp"
#include "engine/image/registry_search.hpp"
#include "engine/pull/pull.hpp"
#include "engine/system/hub.hpp"

namespace berth::cli {
namespace {

// ---- pull ---------------------------------------------------------------------------------------

struct PullOptions {
  image::PullRequest request;
  bool no_scan = false;
  std::string memory_budget;
};

FlagTable pull_flags(PullOptions& o) {
  FlagTable table{
      {"quiet", 'q', "", "Print only the image reference", &o.request.quiet},
      {"platform", 0, "OS/ARCH", "Platform to use instead of this machine's",
       read_platform(o.request.platform)},
      {"force", 0, "", "Pull the image even if it cannot run on this machine", &o.request.force},
      {"strict", 0, "", "Fail if any check does not pass, such as an idle GPU", &o.request.strict},
  };
  table.push_back(
      {"no-scan", 0, "", "Do not scan the files for what they require of a machine", &o.no_scan});
  table.push_back({"keep-blobs", 0, "", "Also keep the compressed layers (BERTH_KEEP_BLOBS)",
                   &o.request.keep_blobs});
  table.push_back({"memory-budget", 0, "SIZE",
                   "Memory for layers in transfer, 512m (BERTH_MEMORY_BUDGET)", &o.memory_budget});
  add_registry_flags(table, o.request.access);
  return table;
}

Result<int> run_pull(Session& session, const PullOptions& o, Arguments arguments) {
  image::PullRequest request = o.request;
  request.reference = arguments[0];
  request.scan = !o.no_scan;
  if (!o.memory_budget.empty()) {
    request.memory_budget = TRY(engine::parse_memory_budget("--memory-budget", o.memory_budget));
  }
  TransferDisplay display(session, Stream::out, Direction::pull, request.quiet);
  engine::Pulled pulled =
      TRY(engine::pull(session.context, {.request = std::move(request)}, display.progress()));
  display.finish();
  if (o.request.quiet) {
    print(session, pulled.reference + "\n");
    return 0;
  }
  print(session,
        "Digest: " + pulled.digest + "\nStatus: " +
            (pulled.downloaded ? "Downloaded newer image for " : "Image is up to date for ") +
            engine::familiar(pulled.reference) + "\n" + pulled.reference + "\n");
  return 0;
}

constexpr std::string_view kOneTag = "pull takes one tag";
/// Of docker, podman and enroot.
constexpr Elsewhere kPullElsewhere[] = {
    {"a", "berth pull NAME:TAG for each tag of berth search --list-tags NAME", kOneTag},
    {"all-tags", "berth pull NAME:TAG for each tag of berth search --list-tags NAME", kOneTag},
    {"disable-content-trust", "leave it out", "signatures are not read"},
    {"tls-verify", "--insecure-registry HOST"},
};

// ---- push ---------------------------------------------------------------------------------------

struct PushOptions {
  image::PushRequest request;
  bool all_tags = false;
};

FlagTable push_flags(PushOptions& o) {
  FlagTable table{{"all-tags", 'a', "", "Push all tags of the repository", &o.all_tags},
                  {"quiet", 'q', "", "Print only the image reference", &o.request.quiet}};
  add_registry_flags(table, o.request.access);
  return table;
}

/// "latest" of "host:5000/a/b:latest"; a reference by digest has no tag.
std::string tag_of(std::string_view reference) {
  std::string_view name = reference.substr(0, reference.find('@'));
  size_t colon = name.rfind(':');
  if (colon == std::string_view::npos || name.find('/', colon) != std::string_view::npos) return "";
  return std::string(name.substr(colon + 1));
}

Result<void> push(Session& session, const PushOptions& o, const std::string& reference) {
  image::PushRequest request = o.request;
  request.reference = reference;
  image::TransferResult pushed =
      TRY(transfer_shown(session, request, Stream::out, Direction::push, request.quiet));
  if (request.quiet) {
    print(session, pushed.reference + "\n");
    return {};
  }
  std::string tag = tag_of(pushed.reference);
  print(session, (tag.empty() ? "" : tag + ": ") + "digest: " + pushed.digest +
                     " size: " + std::to_string(pushed.size) + "\n");
  return {};
}

Result<int> run_push(Session& session, const PushOptions& o, Arguments arguments) {
  std::vector<std::string> references = {arguments[0]};
  if (o.all_tags) references = TRY(engine::tags_of(session.context, arguments[0]));
  for (const std::string& reference : references) TRY(push(session, o, reference));
  return 0;
}

/// Of docker.
constexpr Elsewhere kPushElsewhere[] = {
    {"disable-content-trust", "leave it out", "signatures are not made"},
};

// ---- search -------------------------------------------------------------------------------------

constexpr uint64_t kUsualResults = 25;
constexpr uint64_t kMostResults = 10'000;
constexpr size_t kDescriptionWidth = 45;  // docker's

struct SearchOptions {
  engine::SearchWish wish;
  std::vector<engine::Filter> filters;
  std::string format;
  std::optional<uint64_t> limit;
  bool list_tags = false;
  bool no_trunc = false;
};

/// Of podman: "is-official" alone means "is-official=true".
ReadValue read_search_filter(std::vector<engine::Filter>& target) {
  return [&target](std::string_view text) -> Result<void> {
    std::string whole(text);
    if (whole == "is-official" || whole == "is-automated") whole += "=true";
    target.push_back(TRY(engine::parse_filter(whole)));
    return {};
  };
}

FlagTable search_flags(SearchOptions& o) {
  FlagTable table{
      {"filter", 'f', "KEY=VALUE", "Filter by stars=N, is-official=BOOL or is-automated=BOOL",
       read_search_filter(o.filters)},
      template_flag(o.format),
      {"limit", 0, "N", "Show at most N (25)", &o.limit},
      {"list-tags", 0, "", "List the tags of the given repository", &o.list_tags},
      {"no-trunc", 0, "", "Do not truncate descriptions", &o.no_trunc},
  };
  add_registry_flags(table, o.wish.access);
  return table;
}

constexpr ListField kFoundFields[] = {
    {"Description", "DESCRIPTION"}, {"IsAutomated", "AUTOMATED"},
    {"IsOfficial", "OFFICIAL"},     {"Name", "NAME"},
    {"StarCount", "STARS"},
};
constexpr ListKind kFound{
    .fields = kFoundFields,
    .table = "{{.Name}}\t{{.Description}}\t{{.StarCount}}\t{{.IsOfficial}}",
};
constexpr ListField kTagFields[] = {{"Name", "NAME"}, {"Tag", "TAG"}};
constexpr ListKind kTags{.fields = kTagFields, .table = "{{.Name}}\t{{.Tag}}"};

bool prints_json(std::string format) {
  format.erase(std::remove(format.begin(), format.end(), ' '), format.end());
  return format == "json" || format.find("{{json.}}") != format.npos;
}

/// docker uses marks in a table or a template, and "true" and "false" in JSON.
std::string mark_text(bool mark, bool json) {
  if (json) return mark ? "true" : "false";
  return mark ? "[OK]" : "";
}

Result<int> search_tags(Session& session, const engine::SearchWish& wish,
                        const std::string& format) {
  Listing listing = TRY(Listing::make(kTags, {.text = format}));
  WorkDisplay display(session, "", false);
  engine::TagList list = TRY(engine::list_tags(session.context, wish, display.progress()));
  display.finish();
  std::vector<ListRow> rows;
  for (const std::string& tag : list.tags) rows.push_back({{list.name, tag}});
  print(session, TRY(listing.text(rows)));
  return 0;
}

Result<int> run_search(Session& session, const SearchOptions& o, Arguments arguments) {
  engine::SearchWish wish = o.wish;
  wish.term = arguments[0];
  wish.filters = engine::Filters(o.filters);
  const uint64_t limit = o.limit.value_or(kUsualResults);
  if (limit == 0 || limit > kMostResults) {
    return make_error(Kind::usage, "--limit: expected a number from 1 to " +
                                       std::to_string(kMostResults) + ", got " +
                                       std::to_string(limit));
  }
  wish.limit = static_cast<uint32_t>(limit);
  if (o.list_tags) return search_tags(session, wish, o.format);
  Listing listing = TRY(Listing::make(kFound, {.text = o.format}));
  WorkDisplay display(session, "", false);
  auto found = TRY(engine::search_registry(session.context, wish, display.progress()));
  display.finish();
  const bool json = prints_json(o.format);
  std::vector<ListRow> rows;
  for (const image::FoundRepository& one : found) {
    std::string description =
        o.no_trunc ? one.description : truncate(one.description, kDescriptionWidth);
    rows.push_back({{std::move(description), mark_text(one.automated, json),
                     mark_text(one.official, json), one.name, std::to_string(one.stars)}});
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

/// Of podman, udocker and older dockers.
constexpr Elsewhere kSearchElsewhere[] = {
    {"a", "--limit N", "the output has no pauses"},
    {"all", "--limit N", "the output has no pauses"},
    {"automated", "--filter is-automated=true"},
    {"compatible", "leave it out", "stars are always listed"},
    {"s", "--filter stars=N"},
    {"stars", "--filter stars=N"},
    {"tls-verify", "--insecure-registry HOST"},
};

// ---- login --------------------------------------------------------------------------------------

struct LoginOptions {
  std::optional<std::string> username;
  std::optional<std::string> password;
  bool password_stdin = false;
  image::RegistryAccess access;
};

FlagTable login_flags(LoginOptions& o) {
  FlagTable table{
      {"username", 'u', "NAME", "Log in as NAME", &o.username},
      {"password", 'p', "PASSWORD", "Visible to all users of the machine: use --password-stdin",
       &o.password},
      {"password-stdin", 0, "", "Read the password from stdin", &o.password_stdin},
  };
  add_registry_flags(table, o.access);
  return table;
}

/// A password on a pipe ends with the newline that echo(1) adds.
std::string without_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Result<std::string> password(Session& session, const LoginOptions& o) {
  if (o.password) {
    session.report.warn(
        "--password: every user of the machine can read the command line; try: --password-stdin");
    return *o.password;
  }
  if (o.password_stdin) return without_newline(TRY(session.terminal.read_input()));
  if (!session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no terminal to ask for the password",
                      "berth login --username NAME --password-stdin");
  }
  return session.terminal.ask_secret("Password: ");
}

Result<std::string> username(Session& session, const LoginOptions& o) {
  if (o.username) return *o.username;
  if (o.password_stdin || !session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no terminal to ask for the user's name",
                      "berth login --username NAME --password-stdin");
  }
  return session.terminal.ask("Username: ");
}

Result<int> run_login(Session& session, const LoginOptions& o, Arguments arguments) {
  if (o.password && o.password_stdin) {
    return make_error(Kind::usage, "'--password' and '--password-stdin' cannot be used together");
  }
  image::LoginRequest request;
  request.registry = arguments.empty() ? "" : arguments[0];
  request.username = TRY(username(session, o));
  request.password = TRY(password(session, o));
  request.access = o.access;
  if (request.username.empty()) return make_error(Kind::usage, "the user's name is empty");
  if (request.password.empty()) return make_error(Kind::usage, "the password is empty");
  image::TransferResult result =
      TRY(transfer_shown(session, std::move(request), Stream::err, Direction::pull, false));
  print(session, result.status + "\n");
  return 0;
}

// ---- logout -------------------------------------------------------------------------------------

Result<int> run_logout(Session& session, const NoOptions&, Arguments arguments) {
  image::LogoutRequest request;
  request.registry = arguments.empty() ? "" : arguments[0];
  image::TransferResult result =
      TRY(transfer_shown(session, std::move(request), Stream::err, Direction::pull, false));
  print(session, result.status + "\n");
  return 0;
}

// ---- hub ----------------------------------------------------------------------------------------

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

const Verb pull_verb{
    .text = {.name = "pull",
             .arguments = "IMAGE",
             .summary = "Download an image from a registry",
             .example = "berth pull debian:12",
             .complete = Complete::image},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kPullElsewhere,
    .arguments_elsewhere = pull_elsewhere,
    .command = [] { return make_command(pull_flags, run_pull); },
};
const Verb push_verb{
    .text = {.name = "push",
             .arguments = "IMAGE",
             .summary = "Upload an image to a registry",
             .example = "berth push localhost:5000/tools:1",
             .complete = Complete::image},
    .arity = {1, 1},
    .elsewhere = kPushElsewhere,
    .arguments_elsewhere = push_elsewhere,
    .command = [] { return make_command(push_flags, run_push); },
};
const Verb search_verb{
    .text = {.name = "search",
             .arguments = "[REGISTRY/]TEXT",
             .summary = "Search a registry for images (Docker Hub by default)",
             .example = "berth search --filter is-official=true pytorch"},
    .arity = {1, 1},
    .elsewhere = kSearchElsewhere,
    .command = [] { return make_command(search_flags, run_search); },
};
const Verb login_verb{
    .text = {.name = "login",
             .arguments = "[REGISTRY]",
             .summary = "Log in to a registry",
             .example = "berth login --username me --password-stdin registry.example.org <token"},
    .arity = {0, 1},
    .store = Store::none,
    .command = [] { return make_command(login_flags, run_login); },
};
const Verb logout_verb{
    .text = {.name = "logout",
             .arguments = "[REGISTRY]",
             .summary = "Log out of a registry",
             .example = "berth logout registry.example.org"},
    .arity = {0, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_logout); },
};
const Verb hub_verb{
    .text = {.name = "hub",
             .summary = "Serve a registry's images, giving each node the variant that fits it",
             .example = "berth hub --upstream registry.example.org --repository 'team/*' "
                        "--fleet nodes/"},
    .store = Store::none,
    .command = [] { return make_command(hub_flags, run_hub); },
};

}  // namespace berth::cli
