// SPDX-License-Identifier: Apache-2.0
#include "engine/build/image.hpp"

#include <fcntl.h>

#include "bake/containerfile.hpp"
#include "base/text.hpp"
#include "engine/build/bases.hpp"
#include "engine/context/paths.hpp"
#include "engine/image/images.hpp"
#include "image/reference.hpp"
#include "json/value.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxBuildFile = size_t{1} << 20;
constexpr size_t kMaxIndex = size_t{4} << 20;

/// Replaces the name of a layout's only image, or removes it.
Result<void> name_image(const std::string& layout, const std::string& name) {
  std::string path = layout + "/index.json";
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxIndex));
  if (!text) return {};  // a docker-archive, which already has its name
  json::Value index = TRY(json::parse(*text, "index.json"));
  auto* object = index.get_if<json::Object>();
  if (object == nullptr) return make_error(Kind::corrupt, "index.json: expected an object");
  for (auto& [member, value] : *object) {
    auto* entries = member == "manifests" ? value.get_if<json::Array>() : nullptr;
    if (entries == nullptr) continue;
    if (entries->size() != 1) {
      return make_error(Kind::corrupt,
                        "index.json: expected one image, got " + std::to_string(entries->size()));
    }
    json::Object annotations;
    if (!name.empty()) annotations.emplace_back("org.opencontainers.image.ref.name", name);
    entries->front().set("annotations", json::Value(std::move(annotations)));
  }
  return sys::replace_file(sys::cwd(), path, json::dump(index), 0600);
}

Result<void> set_sources(const BuildRequest& request, const std::string& work, BuildJob& job) {
  job.context = request.context;
  if (job.context.empty()) {
    job.context = work + "/nothing";
    TRY(sys::make_directories(sys::cwd(), job.context, 0700));
  }
  // Check first that the context is a directory: otherwise the error would name a missing file in
  // it.
  TRY(sys::open_at(sys::cwd(), job.context, O_RDONLY | O_DIRECTORY));
  job.file = request.file;
  if (request.text) {
    job.file = work + "/Containerfile";
    TRY(sys::write_file(sys::cwd(), job.file, *request.text, 0600));
  }
  if (job.file.empty()) job.file = TRY(find_containerfile(job.context));
  job.ignore_file = TRY(find_ignore_file(job.context, job.builder));
  return {};
}

Result<BuildJob> job_of(const BuildRequest& request, const std::string& work) {
  BuildJob job;
  TRY(set_sources(request, work, job));
  job.extras = request.extras;
  job.target = request.target;
  job.platform = request.platform;
  job.args = request.args;
  job.labels = request.labels;
  job.no_cache = request.no_cache;
  job.quiet = request.quiet;
  return job;
}

Result<image::TransferResult> build(const Context& context, const BuildRequest& request,
                                    const Progress& progress) {
  for (const std::string& tag : request.tags) {
    image::Reference name = TRY(image::Reference::parse(tag));
    if (name.digest())
      return make_error(Kind::usage, quote(tag) + ": a digest cannot be used as a name");
  }
  BuildPlace place = TRY(BuildPlace::open(context));
  BuildJob job = TRY(job_of(request, place.work()));
  std::string text = TRY(sys::read_file(sys::cwd(), job.file, kMaxBuildFile));
  auto images = TRY_CTX(bake::base_images(text, job.args),
                        "cannot read " + (request.text ? "standard input" : quote(job.file)));
  // Handles signals from here on, so that an interrupted build leaves no partial base images.
  BuildRunner runner = TRY(BuildRunner::make(context));
  BaseImages bases(context, request.access, request.pull ? BaseFrom::registry : BaseFrom::store);
  job.bases = TRY(bases.fetch(place, images, request.platform, progress));
  job.out = place.work() + "/image";
  std::vector<BuildStep> steps = TRY(build_steps(context, place, job));
  TRY(runner.start(0, std::move(steps), ""));
  BuildRunner::Ended ended = TRY(runner.wait());
  if (ended.error) return *ended.error;
  image::TransferResult built =
      TRY(load_built(context, job.out, request.tags.empty() ? "" : request.tags.front(),
                     job.extras.docker_types ? MediaTypes::docker : MediaTypes::oci));
  for (size_t i = 1; i < request.tags.size(); ++i) {
    TRY(tag_image(context, built.image_id, request.tags[i]));
  }
  if (!request.id_file.empty()) {
    TRY(sys::write_file(sys::cwd(), request.id_file, built.image_id));
  }
  return built;
}

constexpr const char* kAgent = "SSH_AUTH_SOCK";
constexpr const char* kSecretForm = "id=NAME,src=FILE or id=NAME,env=VARIABLE";

Result<std::string> existing(std::string_view path, const std::string& here) {
  std::string absolute = TRY(absolute_path(std::string(path), here));
  if (!TRY(sys::stat_entry(sys::cwd(), absolute))) {
    return make_error(Kind::not_found, "find " + quote(absolute) + ": no such file");
  }
  return absolute;
}

}  // namespace

Result<image::TransferResult> build_image(const Context& context, const BuildRequest& request,
                                          const Progress& progress) {
  return TRY_CTX(build(context, request, progress),
                 "cannot build " + quote(request.context.empty() ? "-" : request.context));
}

Result<image::TransferResult> load_built(const Context& context, const std::string& path,
                                         const std::string& name, MediaTypes types) {
  std::string canonical;
  if (!name.empty()) {
    image::Reference reference = TRY(image::Reference::parse(name));
    canonical = reference.canonical();
  }
  auto status = TRY(sys::stat_entry(sys::cwd(), path));
  if (!status) {
    return make_error(Kind::not_found, "load what was built: the build command wrote no image",
                      "the command has to write an OCI layout to {out}");
  }
  if (S_ISDIR(status->st_mode)) {
    TRY(lay_out(context, path, types));
    TRY(share_layers(context, path));
    TRY(name_image(path, canonical));
  }
  image::LoadRequest load;
  load.input = path;
  load.quiet = true;
  return transfer(context, std::move(load), {});
}

Result<BuildStep> command_step(const Context& context, const CommandJob& job) {
  BuildStep step;
  for (const std::string& word : job.words) {
    constexpr std::string_view kOut = "{out}";
    std::string filled = word;
    for (size_t at = filled.find(kOut); at != std::string::npos;
         at = filled.find(kOut, at + job.out.size())) {
      filled.replace(at, kOut.size(), job.out);
    }
    step.arguments.push_back(std::move(filled));
  }
  step.program = step.arguments.front();
  if (step.program.find('/') == std::string::npos) {
    step.program = find_in_path(context, step.program);
  } else if (!step.program.starts_with('/')) {
    step.program = job.directory + "/" + step.program;
  }
  if (step.program.empty()) {
    return make_error(Kind::not_found, "find " + quote(job.words.front()) + " in PATH");
  }
  step.working_directory = job.directory;
  step.environment.push_back("BERTH_OUT=" + job.out);
  for (const auto& [name, value] : job.variables) step.environment.push_back(name + "=" + value);
  return step;
}

Result<std::string> secret_text(std::string_view text, const std::string& here,
                                const Environment& environment) {
  std::string id, source, variable, type;
  for (std::string_view member : split(text, ',')) {
    size_t equal = member.find('=');
    std::string name = to_lower(member.substr(0, equal));
    std::string value(equal == member.npos ? "" : member.substr(equal + 1));
    if (name == "id") {
      id = value;
    } else if (name == "src" || name == "source") {
      source = value;
    } else if (name == "env") {
      variable = value;
    } else if (name == "type" && (value == "file" || value == "env")) {
      type = value;
    } else {
      return make_error(Kind::usage, "secret " + quote(text) + ": cannot read " + quote(member),
                        kSecretForm);
    }
  }
  if (id.empty()) return make_error(Kind::usage, "secret " + quote(text) + ": no id", kSecretForm);
  if (type == "env" && variable.empty()) variable = source.empty() ? id : source;
  bool named = !source.empty() || !variable.empty();
  if (!named && type.empty() && environment.get(id)) variable = id;
  if (!variable.empty()) {
    if (environment.get(variable)) return "id=" + id + ",type=env,env=" + variable;
    return make_error(Kind::not_found,
                      "secret " + quote(id) + ": there is no variable " + quote(variable));
  }
  std::string path = TRY_CTX(existing(source.empty() ? id : source, here), "secret " + quote(id));
  return "id=" + id + ",src=" + path;
}

Result<std::string> ssh_text(std::string_view text, const std::string& here,
                             const Environment& environment) {
  size_t equal = text.find('=');
  std::string id(text.substr(0, equal));
  if (equal == text.npos) {
    if (environment.get_filled(kAgent)) return id;
    return make_error(Kind::usage,
                      "ssh " + quote(text) + ": SSH_AUTH_SOCK is not set to an agent's socket",
                      "eval $(ssh-agent), or ssh " + id + "=KEYFILE");
  }
  std::string found;
  for (std::string_view path : split(text.substr(equal + 1), ',')) {
    found += (found.empty() ? "" : ",") + TRY_CTX(existing(path, here), "ssh " + quote(id));
  }
  return id + "=" + found;
}

}  // namespace berth::engine
