// SPDX-License-Identifier: Apache-2.0
// The site's rules: they give the containers of a user, group, image, partition, … mounts,
// variables, devices and limits. Administrators write <config-dir>/policy.d/*.toml, with the keys
// in the tables below; `berth policy apply` compiles them into policy.json. All pure.
// docs/policy.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace berth::policy {

/// One set of conditions. All keys that are present have to match; a list matches if one of its
/// entries does. Entries are globs, see matches(). Entries for variables and labels are "NAME",
/// which has to exist, or "NAME=GLOB".
struct When {
  std::vector<std::string> user = {};   ///< name or number of the caller
  std::vector<std::string> group = {};  ///< any of the caller's groups, name or number
  std::vector<std::string> image =
      {};  ///< as typed, canonical, or canonical without tag and digest
  std::vector<std::string> digest = {};  ///< of the image's manifest, its target or its id
  std::vector<std::string> label = {};   ///< of the image
  std::vector<std::string> env = {};     ///< of the container: the request overrides the image
  std::vector<std::string> image_env = {};
  std::vector<std::string> user_env = {};
  std::vector<std::string> partition = {};  ///< of the batch job
  std::vector<std::string> account = {};    ///< of the batch job
  std::vector<std::string> feature = {};    ///< words of `berth slurm features` for this node
  std::vector<std::string> gpu = {};        ///< types of this node's GPUs: "h100"
  std::optional<bool> gpus = {};            ///< whether GPUs are requested
  /// The first word of the command; a glob without a slash is compared with its base name.
  std::vector<std::string> command = {};
  bool operator==(const When&) const = default;
};

/// A program that the runtime starts for a container. runtime-spec config.md "POSIX-platform Hooks"
struct SiteHook {
  std::string stage;  ///< "createRuntime", "createContainer", "startContainer", "poststart", …
  std::string path;   ///< absolute
  std::vector<std::string> args;   ///< argv, including argv[0]; empty: only the path
  std::vector<std::string> env;    ///< "K=V"; its whole environment
  std::optional<int64_t> timeout;  ///< seconds
  bool operator==(const SiteHook&) const = default;
};

/// The conditions and effects of a rule. Effects have the form of the values of `berth run`'s
/// flags. "{user}", "{uid}" and "{home}" in `mounts` and in values of variables stand for those of
/// the caller.
struct Rule {
  std::string name;          ///< for people; empty: the place is shown
  std::vector<When> when;    ///< any of these; empty: always
  std::vector<When> unless;  ///< none of these
  bool stop = false;         ///< if this rule applies, later rules are skipped
  /// This rule overrides flags: mounts, user, network, gpus; limits are maximums. If two rules give
  /// the same value, the later one wins, except that a forced rule wins over a rule that is not
  /// forced.
  bool force = false;
  /// Mounts and devices that this machine lacks are skipped; otherwise they are errors.
  bool optional = false;

  std::vector<std::string> mounts;                 ///< as -v: "/scratch:/scratch:ro"
  std::vector<std::string> tmpfs;                  ///< as --tmpfs
  std::vector<std::string> devices;                ///< as --device: paths and CDI names
  std::map<std::string, std::string> env_default;  ///< if neither image nor user sets the variable
  std::map<std::string, std::string> env;          ///< overrides the image, not the user
  std::map<std::string, std::string> env_force;    ///< overrides everything
  std::vector<std::string> env_unset;              ///< removed from the variables of the image
  std::optional<std::string> gpus;                 ///< as --gpus
  std::vector<std::string> gpu_capabilities;       ///< value of NVIDIA_DRIVER_CAPABILITIES
  std::optional<std::string> user;                 ///< "caller", "image", or as --user
  std::optional<std::string> network;              ///< as --network, but not of another container
  std::optional<std::string> memory;               ///< as --memory
  std::optional<std::string> cpus;                 ///< as --cpus
  std::optional<int64_t> pids_limit;
  std::optional<std::string> shm_size;
  std::vector<std::string> ulimits;  ///< as --ulimit
  std::optional<bool> remove;        ///< as --rm
  std::vector<SiteHook> hooks;
  /// Only images that match one of these globs are allowed: "docker.io/library/*".
  std::vector<std::string> registries;
  std::optional<bool> is_signed;
  std::optional<std::string> refuse;  ///< the container is refused, with this reason
  std::optional<std::string> warn;
  bool operator==(const Rule&) const = default;
};

/// One of the rules in force.
struct PlacedRule {
  std::string place;  ///< "/etc/berth/policy.d/10-scratch.toml:3"
  Rule rule;
  bool operator==(const PlacedRule&) const = default;
};

/// The display name of a rule: its name, else "10-scratch.toml:3".
std::string title_of(const PlacedRule& rule);

/// The facts about a new container that rules may test. Unknown facts are empty.
struct Facts {
  std::string user;  ///< name; empty: unknown
  std::string uid;
  std::string home;                 ///< home directory of the user
  std::vector<std::string> groups;  ///< names and numbers
  std::vector<std::string> image;   ///< the name in all forms that rules may use
  std::vector<std::string> digests;
  std::map<std::string, std::string> labels;
  std::vector<std::string> image_env;  ///< "K=V"; the last of equal names counts
  std::vector<std::string> user_env;
  std::string partition;
  std::string account;
  std::vector<std::string> features;
  std::vector<std::string> gpu_types;
  bool gpus = false;
  std::string command;
  /// The facts come from a config.json of another engine: settings of the user, digests, features
  /// and types of GPUs are unknown.
  bool of_config = false;
};

/// The facts that rules need and that are costly to find out.
struct Needs {
  bool groups = false;
  bool group_names = false;
  bool node = false;  ///< features or types of GPUs
  bool user = false;  ///< the user's name or home
  bool image_names = false;
};
Needs needs_of(const std::vector<PlacedRule>& rules);

/// Whether conditions need facts of a stored image: labels, variables, digests, and the command,
/// which may be the image's.
bool asks_image(const Rule& rule);

/// A value from a rule, with the name of the rule.
struct Given {
  std::string text;
  std::string rule;  ///< title of the rule
  bool forced = false;
  bool optional = false;
  bool operator==(const Given&) const = default;
};

/// A single value. The last rule wins, except that only a forced value replaces a forced value.
using Chosen = std::optional<Given>;

/// The combined effects of all rules that apply. Lists are in the order of the rules, except that
/// forced ulimits come last.
struct Effects {
  std::vector<Given> mounts, tmpfs, devices, ulimits;
  std::map<std::string, Given> env_default, env, env_force, env_unset;
  Chosen gpus, user, network, memory, cpus, pids_limit, shm_size, remove;
  std::vector<std::pair<std::string, SiteHook>> hooks;  ///< with the title of the rule
  std::vector<Given> registries;
  Chosen refuse;
  std::vector<Given> warnings;
};

/// The outcome of one rule.
struct Verdict {
  std::string rule;  ///< title of the rule
  std::string place;
  bool applied = false;
  std::string why;  ///< "gives mounts, env"; "user 'bob' is none of 'alice'"
  bool operator==(const Verdict&) const = default;
};

struct Outcome {
  Effects effects;
  std::vector<Verdict> verdicts;  ///< of every rule, in order
};

/// Decides which rules apply, and combines their effects.
Outcome evaluate(const std::vector<PlacedRule>& rules, const Facts& facts);

/// An error with the reason, if a rule refuses the container.
std::optional<Error> refusal_of(const Effects& effects);

/// Whether `text` matches `glob`: '*' stands for any number of characters, including '/'; '?' for
/// any one character; every other character for itself. Time and memory are bounded by the product
/// of the lengths.
bool matches(std::string_view glob, std::string_view text);

/// A fault that types cannot express, and its key: "when.user". Values of flags are checked when
/// they are applied (engine/site/effects.hpp).
struct RuleFault {
  std::string key;
  Error error;  ///< usage; its text does not begin with the key
};
std::vector<RuleFault> check(const Rule& rule);

/// Whether `text` is a valid name of a variable.
bool is_variable_name(std::string_view text);

/// One effect in one line, for people and programs.
struct EffectLine {
  std::string key;    ///< "mounts", "env"
  std::string value;  ///< "/scratch:/scratch", "A=1"
  std::string rule;
  bool forced = false;
};
std::vector<EffectLine> lines_of(const Effects& effects);

void fields(auto& v, Verdict& d) {
  v.required("rule", d.rule);
  v.required("place", d.place);
  v.required("applied", d.applied);
  v.required("why", d.why);
  v.strict();
}

void fields(auto& v, When& w) {
  v.optional("user", w.user);
  v.optional("group", w.group);
  v.optional("image", w.image);
  v.optional("digest", w.digest);
  v.optional("label", w.label);
  v.optional("env", w.env);
  v.optional("image-env", w.image_env);
  v.optional("user-env", w.user_env);
  v.optional("partition", w.partition);
  v.optional("account", w.account);
  v.optional("feature", w.feature);
  v.optional("gpu", w.gpu);
  v.optional("gpus", w.gpus);
  v.optional("command", w.command);
  v.strict();
}

void fields(auto& v, SiteHook& h) {
  v.required("stage", h.stage);
  v.required("path", h.path);
  v.optional("args", h.args);
  v.optional("env", h.env);
  v.optional("timeout", h.timeout);
  v.strict();
}

void fields(auto& v, Rule& r) {
  v.optional("name", r.name);
  v.optional("when", r.when);
  v.optional("unless", r.unless);
  v.optional("stop", r.stop);
  v.optional("force", r.force);
  v.optional("optional", r.optional);
  v.optional("mounts", r.mounts);
  v.optional("tmpfs", r.tmpfs);
  v.optional("devices", r.devices);
  v.optional("env-default", r.env_default);
  v.optional("env", r.env);
  v.optional("env-force", r.env_force);
  v.optional("env-unset", r.env_unset);
  v.optional("gpus", r.gpus);
  v.optional("gpu-capabilities", r.gpu_capabilities);
  v.optional("user", r.user);
  v.optional("network", r.network);
  v.optional("memory", r.memory);
  v.optional("cpus", r.cpus);
  v.optional("pids-limit", r.pids_limit);
  v.optional("shm-size", r.shm_size);
  v.optional("ulimits", r.ulimits);
  v.optional("remove", r.remove);
  v.optional("hooks", r.hooks);
  v.optional("registries", r.registries);
  v.optional("signed", r.is_signed);
  v.optional("refuse", r.refuse);
  v.optional("warn", r.warn);
  v.strict();
}

void fields(auto& v, PlacedRule& p) {
  v.required("place", p.place);
  v.required("rule", p.rule);
  v.strict();
}

/// The driver capabilities that libraries and programs of the driver can belong to.
const std::vector<std::string_view>& capability_names();

}  // namespace berth::policy
