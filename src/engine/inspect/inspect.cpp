// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/inspect.hpp"

#include <algorithm>

#include "engine/container/health.hpp"
#include "engine/container/list.hpp"
#include "engine/image/store.hpp"
#include "engine/inspect/container_document.hpp"
#include "engine/network/leases.hpp"
#include "engine/state/directory.hpp"
#include "oci/config.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// Adds facts from the configuration of the last start; none if it was never started.
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
  std::reverse(facts.layers.begin(), facts.layers.end());
  if (facts.size) facts.size = container_size(facts.directory, (*image)->size);
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
  facts.files = container_files(context.paths, c.id, c.remove ? Lifetime::removed : Lifetime::kept);
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

}  // namespace berth::engine
