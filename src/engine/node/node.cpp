// SPDX-License-Identifier: Apache-2.0
#include "engine/node/node.hpp"

#include "bake/nfd_document.hpp"
#include "engine/gpu/list.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "node/file/load.hpp"
#include "node/gather/gather.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {

Result<node::Profile> this_node(const Context& context) {
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  auto root = TRY(gpu::DriverRoot::open(inventory.driver_root));
  return node::gather(root, inventory);
}

Result<node::Profile> node_of(const Context& context, const std::optional<std::string>& file) {
  if (!file) return this_node(context);
  return node::load_profile(*file);
}

Result<void> save_node(const Context& context, const std::string& file) {
  TRY(node::form_of(file));  // before the machine is probed
  return node::save_profile(TRY(this_node(context)), file);
}

Result<std::vector<node::Difference>> compare_node(const Context& context,
                                                   const std::string& file) {
  node::ProfileText profile = TRY(node::read_text(file));
  node::Profile written = TRY(node::read_written(profile.text, profile.form, file));
  return node::differences(written, TRY(this_node(context)));
}

Result<bake::NfdRules> rules_of_file(const Context& context, const std::string& path,
                                     const std::optional<std::string>& tag) {
  std::string text = TRY(sys::read_file(sys::cwd(), path, bake::nfd::kMostBytes));
  bake::NfdRules rules = TRY(bake::read_nfd(text, path, tag));
  for (const std::string& line : bake::remarks_of(rules, path)) context.log.warn(line);
  return rules;
}

}  // namespace berth::engine
