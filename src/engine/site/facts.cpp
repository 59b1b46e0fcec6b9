// SPDX-License-Identifier: Apache-2.0
#include "engine/site/facts.hpp"

#include <fcntl.h>

#include <algorithm>
#include <initializer_list>

#include "engine/image/store.hpp"
#include "engine/node/node.hpp"
#include "engine/node/slurm_features.hpp"
#include "image/reference.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

using Strings = std::vector<std::string>;

/// The value of the first of these variables that is not empty; empty: there is none.
std::string first_of(const Environment& environment,
                     std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (auto value = environment.get_filled(name)) return std::string(*value);
  }
  return {};
}

void add_spellings(const image::Reference& reference, Strings& out) {
  const std::string name = reference.registry() + "/" + reference.repository();
  const std::string place = reference.place();
  const std::string which = reference.canonical().substr(name.size());
  for (const std::string& spelling : {name + which, name, place + which, place,
                                      reference.familiar(), reference.familiar_name()}) {
    if (std::ranges::find(out, spelling) == out.end()) out.push_back(spelling);
  }
}

/// The path with links and ".." resolved, since they could bypass a rule; a missing path stays
/// unchanged.
std::string resolved_path(const std::string& path) {
  auto opened = sys::open_at(sys::cwd(), path, O_PATH);
  if (!opened.ok()) return path;
  auto whole = sys::read_link(sys::cwd(), sys::fd_path(*opened));
  return whole.ok() ? *whole : path;
}

/// All names by which rules know the image. `needed`: some rule asks for them; otherwise the other
/// names of an image in the store, for which all records are read, are left out.
Result<Strings> spellings_of(const Context& context, const RunRequest& request,
                             const image::Image* image, bool needed) {
  if (!is_of_store(request)) return Strings{resolved_path(request.rootfs.value_or(request.image))};
  Strings out = {request.image};
  auto reference = image::Reference::parse(request.image);
  if (reference.ok()) add_spellings(*reference, out);
  if (image == nullptr) return out;
  // A start by name has read only the record of that name.
  std::optional<image::Image> whole;
  if (needed && !image->id.empty()) {
    image::Store store = TRY(open_store(context));
    whole = TRY(store.find_image(image->id.text()));
    if (whole) image = &*whole;
  }
  for (const image::Reference& other : image->references) add_spellings(other, out);
  for (const image::Reference& source : image->sources) add_spellings(source, out);
  return out;
}

std::string first_word(const RunRequest& request, const oci::ContainerDefaults& image) {
  auto command = make_command(image.entrypoint, image.cmd, request.entrypoint, request.command);
  return command.ok() ? command->front() : std::string();
}

/// The error for a rule that cannot be decided: ignoring the rule would bypass it.
Error cannot_decide(Error error, const char* what) {
  return std::move(error)
      .with_context(
          std::string(
              "cannot decide which rules of the site apply, because some depend on the caller's ") +
          what)
      .with_hint("numbers in 'when', which need no name service");
}

Result<void> add_caller(const Context& context, policy::Needs needs, policy::Facts& facts) {
  const Caller& caller = context.caller;
  facts.uid = std::to_string(caller.uid);
  if (needs.user) {
    auto account = sys::find_account(facts.uid);
    if (!account.ok()) return cannot_decide(std::move(account).error(), "name");
    if (*account) {
      facts.user = std::move((*account)->name);
      facts.home = std::move((*account)->home);
    }
  }
  if (needs.groups && !caller.groups_known) {
    return cannot_decide(
        make_error(Kind::denied, "see them in a user namespace", "the same command outside of it"),
        "groups");
  }
  std::vector<gid_t> groups(caller.groups.begin(), caller.groups.end());
  if (needs.group_names) {
    auto names = sys::group_names(groups);
    if (!names.ok()) return cannot_decide(std::move(names).error(), "groups");
    facts.groups = std::move(*names);
  }
  for (gid_t group : groups) facts.groups.push_back(std::to_string(group));
  return {};
}

/// Replaces the caller by `user`, without groups.
Result<void> suppose_user(const std::string& user, policy::Facts& facts) {
  bool number = parse_u64(user).has_value();
  facts.user = number ? "" : user;
  facts.uid = number ? user : "";
  facts.home.clear();
  facts.groups.clear();
  auto account = TRY(sys::find_account(user));
  if (!account) return {};
  facts.user = std::move(account->name);
  facts.uid = std::move(account->uid);
  facts.home = std::move(account->home);
  return {};
}

}  // namespace

Strings typed_variables(const RunRequest& request) {
  Environment inherited(request.inherited);
  Strings out;
  for (const std::string& entry : request.environment) {
    if (entry.find('=') != std::string::npos) {
      out.push_back(entry);
    } else if (auto value = inherited.get(entry)) {
      out.push_back(entry + "=" + std::string(*value));
    }
  }
  return out;
}

bool asks_gpus(const RunRequest& request) {
  if (request.gpus) return *request.gpus != "none";
  return std::ranges::any_of(request.devices, [](const std::string& name) {
    return name.find("/gpu=") != std::string::npos;
  });
}

namespace {

/// If the image is not in the store, `image` is null, and its facts are empty. Looks up other facts
/// only if `needs` names them.
Result<policy::Facts> facts_of(const Context& context, const RunRequest& request,
                               const image::Image* image, policy::Needs needs) {
  policy::Facts facts;
  TRY(add_caller(context, needs, facts));
  facts.image = TRY(spellings_of(context, request, image, needs.image_names));
  oci::ContainerDefaults defaults;
  if (image != nullptr) {
    defaults = image->config.config;
    for (const Digest* digest : {&image->manifest_digest, &image->target, &image->id}) {
      if (!digest->empty()) facts.digests.push_back(digest->text());
    }
  }
  facts.labels = defaults.labels;
  for (const auto& [name, value] : request.labels) facts.labels[name] = value;
  facts.image_env = defaults.env;
  facts.user_env = typed_variables(request);
  facts.partition =
      first_of(context.environment, {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"});
  facts.account = first_of(context.environment, {"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT"});
  facts.gpus = asks_gpus(request);
  facts.command = first_word(request, defaults);
  if (!needs.node) return facts;
  node::Profile node =
      TRY_CTX(this_node(context), "cannot look at this node for the rules of the site");
  facts.features = slurm_features(node);
  for (const SlurmGres& gres : slurm_gres(node)) facts.gpu_types.push_back(gres.type);
  return facts;
}

}  // namespace

Result<policy::Outcome> judge_request(const Context& context,
                                      const std::vector<policy::PlacedRule>& rules,
                                      const RunRequest& request, const image::Image* image,
                                      const SupposedFacts& supposed) {
  policy::Needs needs = policy::needs_of(rules);
  if (!supposed.features.empty()) needs.node = false;
  needs.user = needs.user && !supposed.user;
  if (supposed.user || !supposed.groups.empty()) needs.groups = needs.group_names = false;
  policy::Facts facts = TRY(facts_of(context, request, image, needs));
  if (supposed.user) TRY(suppose_user(*supposed.user, facts));
  if (!supposed.groups.empty()) facts.groups = supposed.groups;
  if (!supposed.features.empty()) facts.features = supposed.features;
  if (supposed.partition) facts.partition = *supposed.partition;
  return policy::evaluate(rules, facts);
}

}  // namespace berth::engine
