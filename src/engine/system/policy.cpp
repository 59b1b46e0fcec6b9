// SPDX-License-Identifier: Apache-2.0
#include "engine/system/policy.hpp"

#include <sys/stat.h>

#include "base/text.hpp"
#include "engine/image/file.hpp"
#include "engine/image/rootfs.hpp"
#include "engine/image/store.hpp"
#include "engine/request/environment.hpp"
#include "engine/site/effects.hpp"
#include "engine/site/rules.hpp"
#include "json/fields.hpp"
#include "policy/policy.hpp"
#include "policy/site/houdini.hpp"
#include "policy/site/site.hpp"
#include "policy/site/toolkit.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxPolicyBytes = size_t{1} << 20;
constexpr size_t kMostFiles = 1000;

std::string source_path(const Context& context) {
  return context.paths.config + "/" + policy::kSourceName;
}

Error no_policy(const std::string& path) {
  return make_error(Kind::not_found, "there is no " + quote(path),
                    "berth policy import, or write one");
}

void add_keys(const std::string& prefix, const json::Value& value, const policy::Compiled& compiled,
              std::vector<PolicyKey>& out) {
  if (const json::Object* object = value.object()) {
    for (const auto& [name, member] : *object) {
      add_keys(prefix.empty() ? name : prefix + "." + name, member, compiled, out);
    }
    return;
  }
  auto line = compiled.lines.find(prefix);
  std::string from = "default";
  if (line != compiled.lines.end()) {
    from = compiled.source + ":" + std::to_string(line->second);
  }
  out.push_back({prefix, json::dump(value), std::move(from)});
}

/// A policy file that administrators write.
struct PolicySource {
  std::string path;
  policy::SiteKeys keys = policy::SiteKeys::all;
};

/// The existing policy files, in order.
Result<std::vector<PolicySource>> sources_of(const Context& context) {
  std::vector<PolicySource> out;
  std::string path = source_path(context);
  if (TRY(sys::stat_entry(sys::cwd(), path))) out.push_back({path, policy::SiteKeys::all});
  std::string below = context.paths.config + "/" + policy::kRuleDirectory;
  auto directory = TRY(sys::open_trusted_directory_if_exists(below));
  if (!directory) return out;
  for (const std::string& name : TRY(sys::list_directory(*directory, ".", kMostFiles))) {
    bool counts = name.ends_with(".toml") && !name.starts_with('.');
    if (counts) out.push_back({below + "/" + name, policy::SiteKeys::rules});
  }
  return out;
}

/// Adds the faults in those values of rules that have the syntax of flags.
void add_text_faults(std::string_view document, policy::SiteFile& file) {
  for (const policy::ReadRule& rule : file.rules) {
    for (policy::RuleFault& fault : check_texts(rule.placed.rule)) {
      file.faults.push_back(policy::fault_at(rule, document, fault.key, std::move(fault.error)));
    }
  }
}

Result<policy::SiteFile> read_source(const std::string& text, const PolicySource& source) {
  policy::SiteFile file = TRY(policy::read_site(text, source.path, source.keys));
  if (file.faults.empty()) add_text_faults(source.path, file);
  return file;
}

Result<policy::SiteFile> read_trusted_source(const PolicySource& source) {
  auto text = TRY(sys::read_trusted_file_if_exists(source.path, kMaxPolicyBytes));
  if (!text) return make_error(Kind::not_found, "there is no " + quote(source.path));
  return read_source(*text, source);
}

/// The merged content of all files; a file that cannot be read is a fault of the result.
policy::SiteFile read_sources(const Context& context, const std::vector<PolicySource>& sources) {
  policy::SiteFile all;
  all.compiled.format = policy::kFormat;
  all.compiled.source = context.paths.config + "/" + policy::kRuleDirectory;
  for (const PolicySource& source : sources) {
    auto file = read_trusted_source(source);
    if (!file.ok()) {
      all.faults.push_back(std::move(file).error());
      continue;
    }
    if (source.keys == policy::SiteKeys::all) {
      all.compiled.source = source.path;
      all.compiled.lines = std::move(file->compiled.lines);
      all.compiled.policy = std::move(file->compiled.policy);
    }
    for (policy::PlacedRule& rule : file->compiled.rules) {
      all.compiled.rules.push_back(std::move(rule));
    }
    for (Error& fault : file->faults) all.faults.push_back(std::move(fault));
  }
  return all;
}

std::optional<std::string> why_stale(const Context& context, const policy::Compiled& compiled) {
  auto sources = sources_of(context);
  if (!sources.ok()) return "it cannot be read: " + to_line(sources.error());
  if (sources->empty()) {
    if (compiled.source.empty()) return std::nullopt;
    return "it is gone, and what was applied is still in force";
  }
  policy::SiteFile now = read_sources(context, *sources);
  if (!now.faults.empty()) return "it has faults: " + to_line(now.faults.front());
  bool same = now.compiled.policy == compiled.policy && now.compiled.rules == compiled.rules;
  if (same) return std::nullopt;
  return compiled.source.empty() ? "it was never applied" : "it was changed since it was applied";
}

/// The image of the request; nothing if it is not in the store, or the store cannot be read.
std::optional<image::Image> known_image(const Context& context, const RunRequest& request) {
  auto found = [&]() -> Result<std::optional<image::Image>> {
    if (request.rootfs) return std::optional(no_image());
    if (request.image_file) {
      std::string path = TRY(find_image_file(request.image));
      return std::optional(TRY(describe_image_file(path)));
    }
    image::Store store = TRY(open_store(context));
    return find_present_image(store, request.image);
  }();
  return found.ok() ? std::move(*found) : std::nullopt;
}

}  // namespace

Result<PolicyInForce> show_policy(const Context& context) {
  PolicyInForce out;
  out.compiled = TRY(policy::read_compiled(context.paths.config));
  add_keys("", json::to_value(out.compiled.policy), out.compiled, out.keys);
  out.stale = why_stale(context, out.compiled);
  return out;
}

Result<std::vector<Error>> check_policy(const Context& context,
                                        const std::vector<std::string>& files) {
  if (files.empty()) {
    std::vector<PolicySource> sources = TRY(sources_of(context));
    if (sources.empty()) return no_policy(source_path(context));
    return std::move(read_sources(context, sources).faults);
  }
  std::vector<Error> faults;
  for (const std::string& path : files) {
    auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxPolicyBytes));
    if (!text) return no_policy(path);
    auto file = read_source(*text, {path, policy::SiteKeys::all});
    if (!file.ok()) {
      faults.push_back(std::move(file).error());
      continue;
    }
    for (Error& fault : file->faults) faults.push_back(std::move(fault));
  }
  return faults;
}

Result<std::string> apply_policy(const Context& context) {
  std::vector<PolicySource> sources = TRY(sources_of(context));
  if (sources.empty()) return no_policy(source_path(context));
  policy::SiteFile file = read_sources(context, sources);
  if (!file.faults.empty()) return std::move(file.faults.front());
  std::string text = json::write(file.compiled, 2) + "\n";
  if (text.size() > kMaxPolicyBytes) {
    return make_error(Kind::usage, "the rules are longer than 1 MiB as JSON");
  }
  std::string target = context.paths.config + "/" + policy::kCompiledName;
  sys::set_umask(022);
  TRY_CTX(sys::replace_file(sys::cwd(), target, text, 0644, sys::Sync::yes),
          "cannot apply the policy");
  return target;
}

Result<std::string> import_policy(const std::string& file, PolicyForm form) {
  std::string text = TRY(sys::read_file(sys::cwd(), file, kMaxPolicyBytes));
  bool houdini =
      form == PolicyForm::houdini || (form == PolicyForm::any && policy::is_houdini(text));
  return houdini ? policy::import_houdini(text, file) : policy::import_toolkit(text, file);
}

Result<PolicyAnswer> try_policy(const Context& context, const PolicyTrial& trial) {
  policy::Compiled compiled = TRY(policy::read_compiled(context.paths.config));
  RunRequest request;
  request.image = trial.image;
  request.image_file = is_image_path(trial.image);
  auto entry = sys::stat_entry(sys::cwd(), trial.image);
  bool directory = entry.ok() && *entry && S_ISDIR((*entry)->st_mode);
  if (request.image_file && directory) request.rootfs = trial.image;
  request.command = trial.command;
  request.gpus = trial.gpus;
  request.environment = trial.environment;
  request.inherited = inherited_variables(request.environment, context.environment);
  std::optional<image::Image> image = known_image(context, request);
  const image::Image* known = image ? &*image : nullptr;
  policy::Outcome outcome =
      TRY(judge_request(context, compiled.rules, request, known, trial.supposed));
  PolicyAnswer answer{std::move(outcome), known != nullptr, std::nullopt};
  auto allowed = check_origin(answer.outcome.effects.registries, request, known);
  answer.refusal = policy::refusal_of(answer.outcome.effects);
  if (!allowed.ok()) answer.refusal = std::move(allowed).error();
  return answer;
}

}  // namespace berth::engine
