// SPDX-License-Identifier: Apache-2.0
#include "engine/policy.hpp"

#include "base/text.hpp"
#include "json/fields.hpp"
#include "policy/file.hpp"
#include "policy/site/site.hpp"
#include "policy/site/toolkit.hpp"
#include "sys/file.hpp"
#include "sys/trusted_file.hpp"
#include "sys/umask.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

std::string source_path(const Context& context) {
  return context.paths.config + "/" + policy::kSourceName;
}

Error no_policy(const std::string& path) {
  return make_error(Kind::not_found, "there is no " + quoted(path),
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

std::optional<std::string> why_stale(const Context& context, const policy::Compiled& compiled) {
  std::string path = source_path(context);
  auto text = sys::read_file_if_exists(sys::cwd(), path, kMaxBytes);
  if (!text.ok()) return "it cannot be read: " + to_line(text.error());
  if (!*text) {
    if (compiled.source.empty()) return std::nullopt;
    return "it is gone, and what was applied is still in force";
  }
  auto now = policy::compile(**text, path);
  if (!now.ok()) return "it has faults: " + to_line(now.error());
  if (now->policy == compiled.policy) return std::nullopt;
  return compiled.source.empty() ? "it was never applied" : "it was changed since it was applied";
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
                                        const std::optional<std::string>& file) {
  std::string path = file.value_or(source_path(context));
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxBytes));
  if (!text) return no_policy(path);
  policy::SiteFile site = TRY(policy::read_site(*text, path));
  return std::move(site.faults);
}

Result<std::string> apply_policy(const Context& context) {
  std::string path = source_path(context);
  auto text = TRY(sys::read_trusted_file_if_exists(path, kMaxBytes));
  if (!text) return no_policy(path);
  policy::Compiled compiled = TRY(policy::compile(*text, path));
  std::string target = context.paths.config + "/" + policy::kCompiledName;
  sys::set_umask(022);
  TRY_CTX(
      sys::replace_file(sys::cwd(), target, json::write(compiled, 2) + "\n", 0644, sys::Sync::yes),
      "cannot apply the policy");
  return target;
}

Result<std::string> import_policy(const std::string& file) {
  std::string text = TRY(sys::read_file(sys::cwd(), file, kMaxBytes));
  return policy::import_toolkit(text, file);
}

}  // namespace berth::engine
