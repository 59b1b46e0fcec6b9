// SPDX-License-Identifier: Apache-2.0
#include "policy/site/houdini.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.hpp"
#include "json/value.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {
namespace {

using Strings = std::vector<std::string>;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr std::array<std::string_view, 5> kSections = {"default", "container", "user", "gpu",
                                                       "cuda"};

bool is_first(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_letter(char c) {
  return is_first(c) || (c >= '0' && c <= '9');
}

/// The position of "NAME=" after `at` and any blanks. Nothing if something else is there.
std::optional<size_t> name_at(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  size_t end = at;
  if (end >= text.size() || !is_first(text[end])) return std::nullopt;
  while (end < text.size() && is_letter(text[end])) ++end;
  if (end >= text.size() || text[end] != '=') return std::nullopt;
  return at;
}

/// "[user]" → "user"
std::optional<std::string> section_of(std::string_view line) {
  if (line.size() < 2 || line.front() != '[' || line.back() != ']') return std::nullopt;
  return to_lower(trim(line.substr(1, line.size() - 2)));
}

bool is_section(std::string_view name) {
  return std::ranges::find(kSections, name) != kSections.end();
}

std::string without_quotes(std::string_view value) {
  bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                value.back() == value.front();
  return std::string(quoted ? value.substr(1, value.size() - 2) : value);
}

/// {"default.mounts": "…"}; the last of duplicate keys counts.
using Keys = std::map<std::string, std::string>;

struct Ini {
  Keys keys;
  std::set<std::string> sections;
};

Result<Ini> parse(std::string_view text, std::string_view document) {
  Ini out;
  std::string section = "default";
  uint32_t number = 0;
  for (std::string_view raw : split(text, '\n')) {
    ++number;
    std::string_view line = trim(raw);
    if (line.ends_with('\r')) line = trim(line.substr(0, line.size() - 1));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (auto name = section_of(line)) {
      section = std::move(*name);
      out.sections.insert(section);
      continue;
    }
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return make_error(Kind::corrupt,
                        fmt::format("{}:{}: expected [SECTION] or KEY=VALUE", document, number));
    }
    std::string key = to_lower(trim(line.substr(0, equals)));
    out.keys[section + "." + key] = without_quotes(trim(line.substr(equals + 1)));
  }
  return out;
}

Strings houdini_words(std::string_view list) {
  Strings out;
  for (std::string_view word : split(list, ',')) {
    if (!trim(word).empty()) out.emplace_back(trim(word));
  }
  return out;
}

std::string list(const Strings& words) {
  Strings quoted_words;
  for (const std::string& word : words) quoted_words.push_back(toml_string(word));
  return "[" + join(quoted_words, ", ") + "]";
}

std::string table(const std::vector<std::pair<std::string, std::string>>& values) {
  // Duplicate names would be invalid TOML; the last one counts.
  std::map<std::string, std::string> once;
  for (const auto& [name, value] : values) once[name] = value;
  Strings parts;
  for (const auto& [name, value] : once) parts.push_back(name + " = " + toml_string(value));
  return "{ " + join(parts, ", ") + " }";
}

/// As Go's strconv.ParseBool.
bool is_true(const std::string& value) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
  return std::ranges::find(kTrue, value) != kTrue.end();
}

/// Conditions for the label "houdini" without a value or with a true one.
Strings label_conditions(const std::string& name) {
  return {name + "=true", name + "="};
}

class Houdini {
 public:
  Houdini(Ini ini, std::string_view document)
      : keys_(std::move(ini.keys)), sections_(std::move(ini.sections)), document_(document) {}

  std::string run();

 private:
  std::optional<std::string> take(const std::string& key);
  std::string take_or(const std::string& key, const std::string& usual) {
    return take(key).value_or(usual);
  }
  bool take_flag(const std::string& key) { return is_true(take(key).value_or("")); }
  void line(const std::string& text) { lines_.push_back(text); }
  void comment(const std::string& text) { line("# " + escape_controls(text)); }
  void reason(const std::string& key, const std::string& why);

  void read_triggers();
  void begin_rule(const std::string& name, const std::vector<std::string>& triggers);
  void end_rule(const Strings& exceptions = {}, bool force = false);
  void add_environment(const std::string& key, const std::string& force_key);
  void add_removal();
  void add_user();
  void add_default();
  void add_gpus();
  void warn_of_rest();

  Keys keys_;
  const std::set<std::string> sections_;
  std::string_view document_;
  Strings lines_;
  std::set<std::string> variables_;  ///< variables that have a value
  Strings triggers_;      ///< sets of conditions, one of which has to match; empty: always
  Strings gpu_triggers_;  ///< of the section [gpu]
  bool always_ = false;
};

std::optional<std::string> Houdini::take(const std::string& key) {
  auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  std::string value = std::move(found->second);
  keys_.erase(found);
  return value;
}

void Houdini::reason(const std::string& key, const std::string& why) {
  if (take(key)) comment(key + ": " + why);
}

void Houdini::read_triggers() {
  bool named = keys_.contains("default.force-houdini") || keys_.contains("default.trigger-label") ||
               keys_.contains("default.trigger-env");
  always_ = take_flag("default.force-houdini") || !named;
  std::string label = take_or("default.trigger-label", "houdini");
  std::string env = take_or("default.trigger-env", "HOUDINI_ENABLED");
  std::string gpu_env = take_or("gpu.trigger-env", "HOUDINI_GPU_ENABLED");
  std::string gpu_label = take_or("gpu.trigger-label", "houdini-gpu-enabled");
  auto set = [](const std::string& key, const Strings& values) {
    return key + " = " + list(values);
  };
  gpu_triggers_ = {set("env", {gpu_env + "=true", gpu_env + "=1"}),
                   set("env", {"HOUDINI_GPU_REQUESTED"}), set("label", label_conditions(gpu_label)),
                   set("env", {"NVIDIA_VISIBLE_DEVICES"})};
  if (always_) {
    comment(named ? "force-houdini: the rules below are for every container."
                  : "No trigger is named: the rules below are for every container.");
    return;
  }
  triggers_ = {set("env", {env + "=true", env + "=1"}), set("label", label_conditions(label))};
  triggers_.insert(triggers_.end(), gpu_triggers_.begin(), gpu_triggers_.end());
}

void Houdini::begin_rule(const std::string& name, const Strings& triggers) {
  line("");
  line("[[rule]]");
  line("name = " + toml_string(name));
  if (triggers.empty()) return;
  line("when = [");
  for (const std::string& trigger : triggers) line("  { " + trigger + " },");
  line("]");
}

void Houdini::end_rule(const Strings& exceptions, bool force) {
  if (!exceptions.empty()) {
    line("unless = [");
    for (const std::string& exception : exceptions) line("  { " + exception + " },");
    line("]");
  }
  if (force) line("force = true");
}

void Houdini::add_environment(const std::string& key, const std::string& force_key) {
  bool force = take_flag(force_key);
  auto text = take(key);
  if (!text) return;
  auto values = split_environment(*text);
  if (values.empty()) return comment(key + ": no NAME=VALUE in " + quote(*text));
  // [gpu] does not replace a value from [default], unless it is forced.
  if (!force)
    std::erase_if(values, [&](const auto& one) { return variables_.contains(one.first); });
  for (const auto& one : values) variables_.insert(one.first);
  if (values.empty()) return;
  bool selects = std::ranges::any_of(
      values, [](const auto& one) { return one.first == "NVIDIA_VISIBLE_DEVICES"; });
  if (selects) {
    comment("NVIDIA_VISIBLE_DEVICES is a variable like others, but where policy.toml says:");
    comment("gpu.environment = \"grant\". 'gpus = \"all\"' gives GPUs by itself.");
  }
  line((force ? "env-force = " : "env = ") + table(values));
}

void Houdini::add_removal() {
  bool named = keys_.contains("container.remove") || keys_.contains("container.remove-label");
  if (!named) return;
  std::string label = take_or("container.remove-label", "houdini.container.remove");
  bool remove = take_flag("container.remove");
  if (remove) {
    begin_rule("houdini: remove", triggers_);
    line("remove = true");
    end_rule({"label = " + list({label})});
  }
  Strings with_label;
  std::string asks = "label = " + list(label_conditions(label));
  if (triggers_.empty()) with_label.push_back(asks);
  for (const std::string& trigger : triggers_) {
    // Conditions with one key are alternatives, so two labels cannot be in one set.
    if (!trigger.starts_with("label")) with_label.push_back(trigger + ", " + asks);
  }
  if (!triggers_.empty()) {
    comment("container.remove-label: not looked at where another label is the only trigger");
  }
  begin_rule("houdini: remove by label", with_label);
  line("remove = true");
}

void Houdini::add_user() {
  std::string mode = take_or("user.mode", "");
  auto value = take("user.default");
  std::string variable = take_or("user.key", "HOUDINI_USER");
  std::string keep_label = take_or("user.keep-user-label", "houdini.user.keep");
  Strings keep_env = {"HOUDINI_USER_KEEP=true", "HOUDINI_KEEP_USER=true"};
  if (auto named = take("user.keep-user-env")) keep_env = {*named + "=true"};
  reason("user.set-home-env",
         "not translated: HOME is what the container's passwd file says, or '-e HOME'; "
         "'env = { HOME = \"{home}\" }' makes it the caller's");
  if (mode.empty() && !value) return;
  if (mode.empty()) mode = "default";
  bool by_env = mode == "env";
  bool known = by_env || mode == "static" || mode == "default";
  if (!known) return comment("user.mode: there is no mode " + quote(mode));
  if (!by_env && !value) return comment("user.mode: " + quote(mode) + " without user.default");
  if (mode != "static") {
    comment("user.mode: a name is looked up in the image, and was by dockerd on its host");
  }
  const Strings exceptions = {"label = " + list(label_conditions(keep_label)),
                              "env = " + list(keep_env)};
  if (value) {
    begin_rule("houdini: user", triggers_);
    line("user = " + toml_string(*value));
    end_rule(exceptions, true);
  }
  if (!by_env) return;
  std::string said = "user-env = " + list({variable + "=?*"});
  Strings with_variable;
  for (const std::string& trigger : triggers_) with_variable.push_back(trigger + ", " + said);
  if (triggers_.empty()) with_variable.push_back(said);
  begin_rule("houdini: user by variable", with_variable);
  line("user = " + toml_string("env:" + variable));
  end_rule(exceptions, true);
}

void Houdini::add_default() {
  auto mounts = take("default.mounts");
  auto devices = take("default.devices");
  bool any = mounts || keys_.contains("default.environment");
  if (any) {
    begin_rule("houdini: default", triggers_);
    if (mounts) {
      line("mounts = " + list(houdini_words(*mounts)));
      line("optional = true");
    }
  }
  add_environment("default.environment", "default.force-environment");
  if (!devices) return;
  begin_rule("houdini: devices", triggers_);
  line("devices = " + list(houdini_words(*devices)));
  line("optional = true");
}

void Houdini::add_gpus() {
  if (!sections_.contains("gpu") && !sections_.contains("cuda")) return;
  line("");
  reason("gpu.force", "declared by Houdini and read by nobody");
  for (const char* key : {"gpu.cuda-libpath", "cuda.libpath"}) {
    if (auto paths = take(key)) {
      comment(std::string(key) + ": Berth finds the driver's libraries by itself; where it does " +
              "not, in policy.toml: gpu.library-directories = " + list(houdini_words(*paths)));
    }
  }
  for (const char* key : {"gpu.cuda-files", "cuda.files"}) {
    if (auto files = take(key)) {
      comment(std::string(key) + ": the files of a capability are found by name and version; " +
              "others, in policy.toml: gpu.files; it was " + quote(*files));
    }
  }
  comment("NVIDIA_VISIBLE_DEVICES names GPUs where policy.toml says: gpu.environment = \"grant\"");
  auto mounts = take("gpu.mounts");
  bool any = mounts || keys_.contains("gpu.environment");
  if (any) begin_rule("houdini: GPU", gpu_triggers_);
  if (mounts) {
    line("mounts = " + list(houdini_words(*mounts)));
    line("optional = true");
  }
  add_environment("gpu.environment", "gpu.force-environment");
  begin_rule("houdini: GPUs", {gpu_triggers_[0], gpu_triggers_[2]});
  line("gpus = \"all\"");
  begin_rule("houdini: so many GPUs", {gpu_triggers_[1]});
  line("gpus = \"env:HOUDINI_GPU_REQUESTED\"");
}

void Houdini::warn_of_rest() {
  line("");
  for (const auto& [key, value] : keys_) comment(key + ": not a key that is known to Berth");
}

std::string Houdini::run() {
  comment("Made of " + std::string(document_) + ", for policy.d.");
  reason("default.debug", "berth --debug");
  std::string privileged =
      take_or("container.privileged-trigger-env", "HOUDINI_CONTAINER_PRIVILEGED");
  comment("container.privileged-trigger-env: not translated: a variable (" + privileged +
          ") makes no container privileged; berth run --privileged");
  read_triggers();
  add_removal();
  add_user();
  add_default();
  add_gpus();
  warn_of_rest();
  while (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  return join(lines_, "\n") + "\n";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> split_environment(std::string_view text) {
  auto separates = [&](size_t at, char separator) {
    return text[at] == separator && name_at(text, at + 1);
  };
  char separator = ',';
  for (char one : {';', '|'}) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (separates(i, one)) separator = one;
    }
  }
  Strings parts;
  auto begin = name_at(text, 0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (!separates(i, separator)) continue;
    if (begin) parts.emplace_back(text.substr(*begin, i - *begin));
    begin = name_at(text, i + 1);
  }
  if (begin) parts.emplace_back(text.substr(*begin));
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& part : parts) {
    size_t equals = part.find('=');
    out.emplace_back(part.substr(0, equals), std::string(trim(part.substr(equals + 1))));
  }
  return out;
}

bool is_houdini(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    auto section = section_of(trim(line));
    if (section && is_section(*section)) return true;
  }
  return false;
}

Result<std::string> import_houdini(std::string_view text, std::string_view document) {
  if (text.size() > kMaxBytes) {
    return make_error(Kind::corrupt, fmt::format("{}: longer than 1 MiB", document));
  }
  // An INI file may have any bytes, TOML only UTF-8.
  json::Value clean = json::reparse(json::dump(json::Value(text)));
  Ini ini = TRY(parse(*clean.string(), document));
  return Houdini(std::move(ini), document).run();
}

}  // namespace berth::policy
