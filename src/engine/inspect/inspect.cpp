// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/inspect.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/container/health_settings.hpp"
#include "engine/container/list.hpp"
#include "engine/image/store.hpp"
#include "engine/inspect/container_document.hpp"
#include "engine/network/leases.hpp"
#include "engine/state/directory.hpp"
#include "json/value.hpp"
#include "oci/config.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// Adds facts from the config.json of the last start; adds none if the container was never started.
void add_spec(ContainerFacts& facts) {
  auto text = sys::read_file_if_exists(
      sys::cwd(), facts.files + "/" + std::string(kBundleDirectory) + "/config.json");
  if (!text.ok() || !*text) return;
  auto spec = oci::parse_spec(**text);
  if (!spec.ok()) return;
  facts.masked_paths = spec->linux_.masked_paths;
  facts.readonly_paths = spec->linux_.readonly_paths;
}

void add_image(const Context& context, ContainerFacts& facts) {
  auto store = open_store(context);
  if (!store.ok() || facts.image_id.empty()) return;
  auto image = store->find_image(facts.image_id);
  if (!image.ok() || !*image) return;
  facts.image_config = (*image)->config;
  facts.layers = (*image)->layer_directories();
  std::ranges::reverse(facts.layers);
  if (facts.size) facts.size = container_size(facts.directory, (*image)->size);
}

json::Value strings(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return json::Value(std::move(array));
}

json::Value inspect_value(const image::Image& image) {
  std::vector<std::string> tags;
  std::vector<std::string> digests;
  for (const image::Reference& reference : image.references) {
    if (!reference.tag().empty()) tags.push_back(reference.familiar());
    if (!image.target.empty()) {
      std::string digest = reference.familiar_name() + "@" + image.target.text();
      if (digests.empty() || digests.back() != digest)
        digests.push_back(digest);  // the names are sorted
    }
  }
  json::Array layers;
  for (const Digest& diff_id : image.config.rootfs.diff_ids) layers.emplace_back(diff_id.text());
  json::Object root_fs = {{"Type", json::Value("layers")},
                          {"Layers", json::Value(std::move(layers))}};
  const std::string comment =
      image.config.history.empty() ? "" : image.config.history.back().comment;
  const std::vector<std::string> directories = image.layer_directories();
  std::string top = directories.empty() ? "" : directories.back();
  std::string lower = join({directories.rbegin() + (top.empty() ? 0 : 1), directories.rend()}, ":");
  json::Object data;
  if (!lower.empty()) data.emplace_back("LowerDir", lower);
  data.emplace_back("UpperDir", top);
  json::Object members = {
      {"Id", image.id.text()},
      {"RepoTags", strings(tags)},
      {"RepoDigests", strings(digests)},
      {"Parent", ""},
      {"Comment", comment},
      {"Created", image.config.created},
      {"Container", ""},
      {"DockerVersion", ""},
      {"Author", image.config.author},
      {"Config", config_document(image.config.config)},
      {"Architecture", image.config.architecture},
  };
  if (!image.config.variant.empty()) members.emplace_back("Variant", image.config.variant);
  json::Object more = {
      {"Os", image.config.os},
      {"Size", image.size},
      {"VirtualSize", image.size},
      {"GraphDriver", json::Object{{"Data", std::move(data)}, {"Name", "overlay"}}},
      {"RootFS", std::move(root_fs)},
      {"Metadata", json::Object{{"LastTagTime", image.pulled_at}}},
  };
  members.insert(members.end(), more.begin(), more.end());
  return json::Value(std::move(members));
}

}  // namespace

Result<std::string> inspect_container(const Context& context, std::string_view reference,
                                      Sizes sizes) {
  ContainerSummary c = TRY(get_container(context, reference));
  ContainerFacts facts;
  facts.id = c.id;
  facts.name = c.name;
  facts.image = c.image;
  facts.image_id = c.image_id;
  facts.command = c.command;
  facts.state = container_state_name(c.state);
  facts.created = c.created_ns;
  facts.started = c.started_ns;
  facts.finished = c.finished_ns;
  facts.exit_code = c.exit_code;
  facts.pid = c.pid;
  facts.oom_killed = c.oom_killed;
  facts.error = c.error;
  facts.restarts = c.restarts;
  if (is_alive(c.state) && c.watched) facts.health = read_health(context.paths, c.id);
  facts.remove = c.remove;
  facts.directory = container_path(context.paths, c.id);
  facts.root = context.paths.root;
  facts.files = files_of(context, c);
  if (auto request = saved_request(context, c)) facts.request = std::move(*request);
  if (sizes == Sizes::yes) facts.size = container_size(facts.directory, 0);
  add_image(context, facts);
  add_spec(facts);
  if (is_alive(c.state)) facts.lease = TRY(find_lease(context, c.id));
  facts.ports = ports_of(facts.request,
                         facts.image_config ? facts.image_config->config : oci::ContainerDefaults{},
                         facts.lease ? &*facts.lease : nullptr);
  return json::dump(container_document(facts));
}

Result<std::string> inspect_image(const Context& context, std::string_view reference) {
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(get_image(store, reference));
  return json::dump(inspect_value(image));
}

}  // namespace berth::engine
