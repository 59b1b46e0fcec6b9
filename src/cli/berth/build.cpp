// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "engine/absolute_path.hpp"
#include "engine/build_image.hpp"

namespace berth::cli {
namespace {

struct BuildOptions {
  engine::BuildRequest request;
  std::vector<std::string> args, labels;
  std::string file;
  std::optional<std::string> id_file;
  std::string format;
  bool force_rm = false, rm = true;
};

FlagTable build_flags(BuildOptions& o) {
  FlagTable table{
      {"tag",
       't',
       "NAME",
       "Name of the image; may be given several times",
       &o.request.tags,
       {},
       Complete::image},
      {"file",
       'f',
       "FILE",
       "The Containerfile (DIR/Containerfile, else DIR/Dockerfile)",
       &o.file,
       {},
       Complete::file},
      {"build-arg", 0, "K=V", "A build argument; a name alone takes the variable's value", &o.args},
      {"label", 0, "K=V", "A label of the image", &o.labels},
      {"target", 0, "STAGE", "Build up to this stage", &o.request.target},
      {"platform", 0, "OS/ARCH", "For another platform than this machine's", &o.request.platform},
      {"pull", 0, "", "Ask the registry for base images even if they are here", &o.request.pull},
      {"no-cache", 0, "", "Take nothing from earlier builds", &o.request.no_cache},
      {"quiet", 'q', "", "Print the image's id alone", &o.request.quiet},
      {"iidfile", 0, "FILE", "Write the image's id to FILE", &o.id_file, {}, Complete::file},
      {"rm", 0, "", "No meaning here: nothing is left", &o.rm},
      {"force-rm", 0, "", "No meaning here: nothing is left", &o.force_rm},
      format_flag(o.format),
  };
  add_registry_flags(table, o.request.access);
  return table;
}

/// "K=V" each; a name alone is an argument of the caller's environment, or not given at all.
std::map<std::string, std::string> pairs_of(const std::vector<std::string>& texts,
                                            const engine::Environment* environment) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    size_t equal = text.find('=');
    std::string name = text.substr(0, equal);
    if (equal != std::string::npos) {
      pairs[name] = text.substr(equal + 1);
    } else if (environment == nullptr) {
      pairs[name] = "";
    } else if (auto value = environment->get(name)) {
      pairs[name] = *value;
    }
  }
  return pairs;
}

Result<int> run_build(Session& session, const BuildOptions& o, std::vector<std::string> arguments) {
  engine::BuildRequest request = o.request;
  const std::string& here = session.working_directory;
  request.context = TRY(engine::absolute_path(arguments[0], here));
  request.args = pairs_of(o.args, &session.context.environment);
  request.labels = pairs_of(o.labels, nullptr);
  if (!o.file.empty()) request.file = TRY(engine::absolute_path(o.file, here));
  if (o.id_file) request.id_file = TRY(engine::absolute_path(*o.id_file, here));
  bool json = o.format == "json";
  request.quiet = request.quiet || json;
  TransferDisplay display(session, Stream::err, Direction::pull, request.quiet);
  image::TransferResult built =
      TRY(engine::build_image(session.context, request, display.progress()));
  display.finish();
  if (json) {
    print_json(session, json::Object{{"id", built.image_id},
                                     {"digest", built.digest},
                                     {"tags", json_strings(request.tags)}});
    return 0;
  }
  if (request.quiet) {
    print(session, built.image_id + "\n");
    return 0;
  }
  print(session, "Successfully built " + built.image_id.substr(7, 12) + "\n");
  for (const std::string& tag : request.tags) print(session, "Successfully tagged " + tag + "\n");
  return 0;
}

constexpr std::string_view kCallersLimits = "a build has the limits of its caller";
constexpr std::string_view kScope = "ulimit, or systemd-run --user --scope -p MemoryMax=4G";
constexpr Elsewhere kBuildElsewhere[] = {
    {"add-host", "a line in its /etc/hosts", "RUN sees the hosts of this machine"},
    {"cpuset-cpus", "taskset -c LIST berth build", kCallersLimits},
    {"m", kScope, kCallersLimits},
    {"memory", kScope, kCallersLimits},
    {"memory-swap", kScope, kCallersLimits},
    {"push", "berth build -t NAME DIR, then berth push NAME"},
};

}  // namespace

extern const Verb build_verb;
const Verb build_verb{
    .text = {.name = "build",
             .arguments = "DIR",
             .summary = "Build an image from a Containerfile, with buildah",
             .example = "berth build -t app:1.0 .",
             .complete = Complete::directory},
    .arity = {1, 1},
    .needs = engine::Needs::user_namespace,
    .elsewhere = kBuildElsewhere,
    .command = [] { return make_command(build_flags, run_build); },
};

}  // namespace berth::cli
