// SPDX-License-Identifier: Apache-2.0
#include "policy/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/text.hpp"

namespace berth::policy {
namespace {

using Strings = std::vector<std::string>;

constexpr size_t kMostShown = 8;

std::string quoted_list(const Strings& words) {
  Strings shown;
  for (const std::string& word : words) {
    if (shown.size() == kMostShown) {
      shown.emplace_back("…");
      break;
    }
    shown.push_back(quote(word));
  }
  return join(shown, ", ");
}

bool any_matches(const Strings& globs, const Strings& words) {
  return std::ranges::any_of(globs, [&](const std::string& glob) {
    return std::ranges::any_of(words, [&](const std::string& word) { return matches(glob, word); });
  });
}

std::map<std::string, std::string> variables_of(const Strings& under, const Strings& over) {
  std::map<std::string, std::string> out;
  for (const Strings* entries : {&under, &over}) {
    for (const std::string& entry : *entries) {
      size_t equals = entry.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      out[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return out;
}

bool holds(const std::string& condition, const std::map<std::string, std::string>& values) {
  size_t equals = condition.find('=');
  auto found = values.find(condition.substr(0, equals));
  if (found == values.end()) return false;
  return equals == std::string::npos || matches(condition.substr(equals + 1), found->second);
}

/// Why conditions do not match; nothing if they do.
using Why = std::optional<std::string>;

/// `what` is "the user is", put before the value. `none` is used instead if there is no value.
Why unlike(std::string_view what, std::string_view none, const Strings& globs,
           const Strings& words) {
  if (globs.empty() || any_matches(globs, words)) return std::nullopt;
  std::string has =
      words.empty() ? std::string(none) : fmt::format("{} {}", what, quoted_list(words));
  return fmt::format("{}, and the rule is for {}", has, quoted_list(globs));
}

Why lacking(std::string_view what, const Strings& conditions,
            const std::map<std::string, std::string>& values) {
  bool good = conditions.empty() || std::ranges::any_of(conditions, [&](const std::string& one) {
                return holds(one, values);
              });
  if (good) return std::nullopt;
  return fmt::format("{} has no {}", what, quoted_list(conditions));
}

Strings without_empty(std::initializer_list<std::string> words) {
  Strings out;
  for (const std::string& word : words) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

Why other_command(const Strings& globs, const std::string& command) {
  std::string last = command.substr(command.rfind('/') + 1);
  for (const std::string& glob : globs) {
    if (matches(glob, glob.find('/') == std::string::npos ? last : command)) return std::nullopt;
  }
  if (globs.empty()) return std::nullopt;
  return fmt::format("the command is {}, and the rule is for {}", quote(command),
                     quoted_list(globs));
}

Why why_not(const When& when, const Facts& facts) {
  // Shows only the first spelling, which the user typed.
  bool is_image = any_matches(when.image, facts.image);
  Strings typed(facts.image.begin(), facts.image.begin() + (facts.image.empty() ? 0 : 1));
  const Why reasons[] = {
      unlike("the user is", "the user is not known", when.user,
             without_empty({facts.user, facts.uid})),
      unlike("the groups are", "there is no group", when.group, facts.groups),
      unlike("the image is", "the image is not known", is_image ? Strings() : when.image, typed),
      unlike("the digests are", "the digest is not known", when.digest, facts.digests),
      lacking("the image", when.label, facts.labels),
      lacking("the environment", when.env, variables_of(facts.image_env, facts.user_env)),
      lacking("the image's environment", when.image_env, variables_of(facts.image_env, {})),
      lacking("the user's environment", when.user_env, variables_of({}, facts.user_env)),
      unlike("the partition is", "there is no partition", when.partition,
             without_empty({facts.partition})),
      unlike("the account is", "there is no account", when.account, without_empty({facts.account})),
      unlike("this node's features are", "this node has no features", when.feature, facts.features),
      unlike("this node's GPUs are", "this node has no GPUs", when.gpu, facts.gpu_types),
      other_command(when.command, facts.command),
  };
  for (const Why& why : reasons) {
    if (why) return why;
  }
  if (when.gpus && *when.gpus != facts.gpus) {
    return facts.gpus ? "GPUs were asked for" : "no GPU was asked for";
  }
  return std::nullopt;
}

/// The conditions with lists, by key.
std::array<std::pair<const char*, const Strings*>, 13> lists_of(const When& when) {
  return {{{"user", &when.user},
           {"group", &when.group},
           {"image", &when.image},
           {"digest", &when.digest},
           {"label", &when.label},
           {"env", &when.env},
           {"image-env", &when.image_env},
           {"user-env", &when.user_env},
           {"partition", &when.partition},
           {"account", &when.account},
           {"feature", &when.feature},
           {"gpu", &when.gpu},
           {"command", &when.command}}};
}

/// "user 'bob', gpus"
std::string conditions_of(const When& when) {
  Strings out;
  for (const auto& [name, words] : lists_of(when)) {
    if (!words->empty()) out.push_back(std::string(name) + " " + quoted_list(*words));
  }
  if (when.gpus) out.emplace_back(*when.gpus ? "gpus" : "no gpus");
  return join(out, ", ");
}

/// Whether the conditions need facts that a config.json does not contain.
bool asks_unknown(const When& when) {
  return !when.user_env.empty() || !when.digest.empty() || !when.feature.empty() ||
         !when.gpu.empty();
}

/// Why a rule does not apply. If there are several sets of conditions, the reason is that of the
/// last set.
Why why_not(const Rule& rule, const Facts& facts) {
  Why why;
  for (const When& when : rule.when) {
    why = why_not(when, facts);
    if (!why) break;
  }
  if (why) return why;
  for (const When& unless : rule.unless) {
    if (!why_not(unless, facts)) return "an exception holds (unless): " + conditions_of(unless);
    // The exception may match: skip the rule, unless it only refuses.
    if (facts.of_config && asks_unknown(unless) && !rule.refuse) {
      return "it has an exception for what is not known here";
    }
  }
  return std::nullopt;
}

void replace_all(std::string& text, std::string_view word, std::string_view with) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    text.replace(at, word.size(), with);
    at += with.size();
  }
}

/// A user name that could be more than one path component is not substituted into a path.
bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '@';
  });
}

/// Whether a home directory is safe in a mount: an empty one would turn "{home}/" into the root of
/// the machine.
bool is_home(std::string_view home) {
  bool odd = std::ranges::any_of(
      home, [](char c) { return c == ':' || c == ',' || static_cast<unsigned char>(c) < ' '; });
  return home.size() > 1 && home.starts_with('/') && !odd &&
         (std::string(home) + "/").find("/../") == std::string::npos;
}

std::string filled(std::string text, const Facts& facts) {
  replace_all(text, "{user}", is_plain(facts.user) ? facts.user : facts.uid);
  replace_all(text, "{uid}", facts.uid);
  replace_all(text, "{home}", facts.home);
  return text;
}

/// Adds the effects of one rule, and collects the keys that it sets.
class Adder {
 public:
  Adder(const PlacedRule& placed, const Facts& facts, Effects& out)
      : rule_(placed.rule), title_(title_of(placed)), facts_(facts), out_(out) {}

  std::string run();

 private:
  Given given(std::string text) const {
    return {std::move(text), title_, rule_.force, rule_.optional};
  }
  void said(std::string key) { keys_.push_back(std::move(key)); }
  void add(const char* key, const Strings& texts, std::vector<Given>& target) {
    if (texts.empty()) return;
    said(key);
    for (const std::string& text : texts) {
      if (can_fill(key, text)) target.push_back(given(filled(text, facts_)));
    }
  }
  void add(const char* key, const std::map<std::string, std::string>& values,
           std::map<std::string, Given>& target) {
    if (values.empty()) return;
    said(key);
    for (const auto& [name, value] : values) {
      if (can_fill(key, value)) target[name] = given(filled(value, facts_));
    }
  }
  /// False if the text needs the caller's home directory and this is unknown. The container is then
  /// refused, unless the rule is optional.
  bool can_fill(const char* key, const std::string& text) {
    if (text.find("{home}") == text.npos || is_home(facts_.home)) return true;
    if (!rule_.optional && !out_.refuse) {
      out_.refuse = given(std::string(key) + " " + quote(text) +
                          " needs a home, and the caller's is not known");
    }
    return false;
  }
  void override_unless_forced(const char* key, const std::optional<std::string>& text,
                              Chosen& target) {
    if (!text) return;
    said(key);
    if (!target || !target->forced || rule_.force) target = given(*text);
  }

  const Rule& rule_;
  std::string title_;
  const Facts& facts_;
  Effects& out_;
  Strings keys_;
};

std::string Adder::run() {
  add("mounts", rule_.mounts, out_.mounts);
  add("tmpfs", rule_.tmpfs, out_.tmpfs);
  add("devices", rule_.devices, out_.devices);
  add("env-default", rule_.env_default, out_.env_default);
  // A later rule that sets a variable overrides an earlier rule that unsets it, and the reverse.
  for (const auto& [name, value] : rule_.env) out_.env_unset.erase(name);
  add("env", rule_.env, out_.env);
  add("env-force", rule_.env_force, out_.env_force);
  if (!rule_.env_unset.empty()) said("env-unset");
  for (const std::string& name : rule_.env_unset) {
    out_.env.erase(name);
    out_.env_unset[name] = given("");
  }
  override_unless_forced("gpus", rule_.gpus, out_.gpus);
  if (!rule_.gpu_capabilities.empty()) {
    said("gpu-capabilities");
    out_.env["NVIDIA_DRIVER_CAPABILITIES"] = given(join(rule_.gpu_capabilities, ","));
  }
  override_unless_forced("user", rule_.user, out_.user);
  override_unless_forced("network", rule_.network, out_.network);
  override_unless_forced("memory", rule_.memory, out_.memory);
  override_unless_forced("cpus", rule_.cpus, out_.cpus);
  if (rule_.pids_limit)
    override_unless_forced("pids-limit", std::to_string(*rule_.pids_limit), out_.pids_limit);
  override_unless_forced("shm-size", rule_.shm_size, out_.shm_size);
  add("ulimits", rule_.ulimits, out_.ulimits);
  if (rule_.remove) override_unless_forced("remove", *rule_.remove ? "true" : "false", out_.remove);
  if (!rule_.hooks.empty()) said("hooks");
  for (const SiteHook& hook : rule_.hooks) out_.hooks.emplace_back(title_, hook);
  add("registries", rule_.registries, out_.registries);
  override_unless_forced("refuse", rule_.refuse, out_.refuse);
  if (rule_.warn) {
    said("warn");
    out_.warnings.push_back(given(*rule_.warn));
  }
  std::string why = keys_.empty() ? "gives nothing" : "gives " + join(keys_, ", ");
  return rule_.stop ? why + "; stops here" : why;
}

bool is_hook_stage(std::string_view text) {
  constexpr std::array<std::string_view, 6> kStages = {
      "prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"};
  return std::ranges::find(kStages, text) != kStages.end();
}

/// Collects the faults of one rule.
class Checker {
 public:
  explicit Checker(const Rule& rule) : rule_(rule) {}

  std::vector<RuleFault> run();

 private:
  void wrong(std::string key, std::string what, std::string hint = {}) {
    faults_.push_back({std::move(key), make_error(Kind::usage, std::move(what), std::move(hint))});
  }
  void check_words(const std::string& key, const Strings& words);
  void check_when(const std::string& key, const When& when);
  void check_names(const std::string& key, const std::map<std::string, std::string>& values);
  void check_hook(const SiteHook& hook);

  const Rule& rule_;
  std::vector<RuleFault> faults_;
};

void Checker::check_words(const std::string& key, const Strings& words) {
  for (const std::string& word : words) {
    if (trim(word).empty()) {
      wrong(key, "an empty entry");
    } else if (escape_controls(word) != word) {
      wrong(key, "a control character in " + quote(word));
    }
  }
}

void Checker::check_when(const std::string& key, const When& when) {
  for (const auto& [name, words] : lists_of(when)) check_words(key + "." + name, *words);
  if (when == When{}) wrong(key, "no condition, which is always true", "leave it out");
}

void Checker::check_names(const std::string& key,
                          const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    if (!is_variable_name(name)) {
      wrong(key, quote(name) + " is not the name of a variable");
    } else if (value.find('\0') != std::string::npos) {
      wrong(key, "a zero byte in the value of " + name);
    }
  }
}

void Checker::check_hook(const SiteHook& hook) {
  if (!is_hook_stage(hook.stage)) {
    wrong("hooks", "there is no stage " + quote(hook.stage),
          "createRuntime, createContainer, startContainer, poststart, poststop");
  }
  if (!hook.path.starts_with('/')) {
    wrong("hooks", "expected an absolute path, got " + quote(hook.path));
  }
  if (hook.timeout && *hook.timeout <= 0) wrong("hooks", "a timeout is at least one second");
}

std::vector<RuleFault> Checker::run() {
  for (const When& when : rule_.when) check_when("when", when);
  for (const When& unless : rule_.unless) check_when("unless", unless);
  check_words("mounts", rule_.mounts);
  check_words("tmpfs", rule_.tmpfs);
  check_words("devices", rule_.devices);
  check_words("ulimits", rule_.ulimits);
  check_words("registries", rule_.registries);
  check_names("env-default", rule_.env_default);
  check_names("env", rule_.env);
  check_names("env-force", rule_.env_force);
  for (const std::string& name : rule_.env_unset) {
    if (!is_variable_name(name)) wrong("env-unset", quote(name) + " is not the name of a variable");
  }
  const auto& known = capability_names();
  for (const std::string& word : rule_.gpu_capabilities) {
    if (word == "all" || std::ranges::find(known, word) != known.end()) continue;
    auto near = nearest(word, known);
    wrong("gpu-capabilities", "unknown capability " + quote(word),
          near ? fmt::format("did you mean '{}'?", *near) : "");
  }
  for (const SiteHook& hook : rule_.hooks) check_hook(hook);
  if (!rule_.registries.empty() && asks_image(rule_)) {
    wrong("registries",
          "decided before the image is pulled: its labels, variables, digest and command are not "
          "known",
          "conditions on user, group, image, partition");
  }
  if (rule_.is_signed) {
    wrong("signed", "signatures of images are not checked by this Berth",
          "'registries', and images by digest");
  }
  if (rule_.refuse && trim(*rule_.refuse).empty()) wrong("refuse", "an empty message");
  if (rule_.warn && trim(*rule_.warn).empty()) wrong("warn", "an empty message");
  return std::move(faults_);
}

bool asks_image(const When& when) {
  return !when.label.empty() || !when.digest.empty() || !when.env.empty() ||
         !when.image_env.empty() || !when.command.empty();
}

}  // namespace

std::string title_of(const PlacedRule& rule) {
  if (!rule.rule.name.empty()) return rule.rule.name;
  return rule.place.substr(rule.place.rfind('/') + 1);
}

bool matches(std::string_view glob, std::string_view text) {
  // On a mismatch the last star takes one more character. No earlier star has to be retried.
  size_t g = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

Needs needs_of(const std::vector<PlacedRule>& rules) {
  Needs out;
  auto names_one = [](const Strings& globs) {
    return std::ranges::any_of(globs, [](const std::string& glob) { return !parse_u64(glob); });
  };
  auto look = [&](const When& when) {
    out.user = out.user || names_one(when.user);
    out.groups = out.groups || !when.group.empty();
    out.group_names = out.group_names || names_one(when.group);
    out.node = out.node || !when.feature.empty() || !when.gpu.empty();
    out.image_names = out.image_names || !when.image.empty();
  };
  for (const PlacedRule& placed : rules) {
    const Rule& rule = placed.rule;
    for (const When& when : rule.when) look(when);
    for (const When& unless : rule.unless) look(unless);
    auto names = [&](const std::string& text) {
      out.user = out.user || text.find("{user}") != std::string::npos ||
                 text.find("{home}") != std::string::npos;
    };
    for (const auto* texts : {&rule.mounts, &rule.tmpfs, &rule.devices, &rule.ulimits}) {
      for (const std::string& text : *texts) names(text);
    }
    for (const auto* values : {&rule.env, &rule.env_default, &rule.env_force}) {
      for (const auto& [name, value] : *values) names(value);
    }
  }
  return out;
}

bool asks_image(const Rule& rule) {
  auto asks = [](const When& when) { return asks_image(when); };
  return std::ranges::any_of(rule.when, asks) || std::ranges::any_of(rule.unless, asks);
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && escape_controls(text) == text &&
         text.find_first_of(std::string_view("= \0", 3)) == std::string_view::npos;
}

Outcome evaluate(const std::vector<PlacedRule>& rules, const Facts& facts) {
  Outcome out;
  std::string stopped;
  for (const PlacedRule& placed : rules) {
    std::string title = title_of(placed);
    Verdict verdict{title, placed.place, false, {}};
    Why why = stopped.empty() ? why_not(placed.rule, facts) : "rule " + quote(stopped) + " stops";
    verdict.applied = !why;
    verdict.why = why ? std::move(*why) : Adder(placed, facts, out.effects).run();
    if (verdict.applied && placed.rule.stop) stopped = title;
    out.verdicts.push_back(std::move(verdict));
  }
  // Maximums come last, to override everything else.
  std::stable_partition(out.effects.ulimits.begin(), out.effects.ulimits.end(),
                        [](const Given& given) { return !given.forced; });
  return out;
}

std::optional<Error> refusal_of(const Effects& effects) {
  if (!effects.refuse) return std::nullopt;
  return make_error(Kind::denied,
                    "the site refuses this container: " + escape_controls(effects.refuse->text) +
                        " (rule " + quote(effects.refuse->rule) + ")");
}

std::vector<EffectLine> lines_of(const Effects& effects) {
  std::vector<EffectLine> out;
  auto add = [&](const char* key, std::string value, const Given& given, bool forced) {
    out.push_back({key, std::move(value), given.rule, forced});
  };
  auto list = [&](const char* key, const std::vector<Given>& givens) {
    for (const Given& given : givens) add(key, given.text, given, given.forced);
  };
  auto table = [&](const char* key, const std::map<std::string, Given>& givens, bool forced) {
    for (const auto& [name, given] : givens) add(key, name + "=" + given.text, given, forced);
  };
  auto value = [&](const char* key, const Chosen& chosen) {
    if (chosen) add(key, chosen->text, *chosen, chosen->forced);
  };
  list("mounts", effects.mounts);
  list("tmpfs", effects.tmpfs);
  list("devices", effects.devices);
  table("env-default", effects.env_default, false);
  table("env", effects.env, false);
  table("env-force", effects.env_force, true);
  for (const auto& [name, given] : effects.env_unset) add("env-unset", name, given, false);
  value("gpus", effects.gpus);
  value("user", effects.user);
  value("network", effects.network);
  value("memory", effects.memory);
  value("cpus", effects.cpus);
  value("pids-limit", effects.pids_limit);
  value("shm-size", effects.shm_size);
  list("ulimits", effects.ulimits);
  value("remove", effects.remove);
  for (const auto& [rule, hook] : effects.hooks) {
    out.push_back({"hooks", hook.stage + " " + hook.path, rule, true});
  }
  list("registries", effects.registries);
  value("refuse", effects.refuse);
  list("warn", effects.warnings);
  return out;
}

std::vector<RuleFault> check(const Rule& rule) {
  return Checker(rule).run();
}

const std::vector<std::string_view>& capability_names() {
  static const std::vector<std::string_view> kNames = {"compute", "utility", "graphics", "video",
                                                       "display", "ngx",     "compat32"};
  return kNames;
}

}  // namespace berth::policy
