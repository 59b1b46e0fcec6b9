// SPDX-License-Identifier: Apache-2.0
#include "engine/system/hub.hpp"

#include "engine/node/match.hpp"
#include "hub/config/config.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {
namespace {

/// Reads the configuration file, and adds its content and name to `order`.
Result<void> read_file(const Context& context, const HubRequest& request, hub::Order& order) {
  const std::string path = request.config.value_or(context.paths.config + "/hub.toml");
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, hub::kMaxConfig));
  if (!text && !request.config) return {};
  if (!text) text = TRY(sys::read_file(sys::cwd(), path, hub::kMaxConfig));  // returns the error
  order.config = TRY(hub::read_config(*text, path));
  order.file = path;
  return {};
}

Result<hub::Order> make_order(const Context& context, const HubRequest& request) {
  hub::Order order;
  TRY(read_file(context, request, order));
  order.flags = request.flags;
  order.flags.tls_ca = request.access.tls_ca;
  order.flags.insecure_registries = request.access.insecure_registries;
  TRY(hub::add_flags(order.config, order.flags));
  TRY(hub::check(order.config));
  order.user_land = TRY(usual_user_land(context));
  if (!order.config.user_land) order.config.user_land = order.user_land;
  image::FactsTrust trust = TRY(facts_trust(context));
  order.fetch_facts = trust.fetch;
  order.signed_only = trust.signed_only;
  order.keys = std::move(trust.keys);
  order.check = request.check;
  return order;
}

Result<sys::Fd> write_order(const Context& context, const HubRequest& request) {
  hub::Order order = TRY(make_order(context, request));
  sys::Fd file = TRY(sys::memory_file("berth-hub-order", json::write(order)));
  TRY(sys::set_inheritable(file));
  return file;
}

}  // namespace

Error become_hub(const Context& context, const HubRequest& request) {
  auto program = sys::own_program(context.paths.libexec, "berth-hub", "BERTH_HUB");
  if (!program.ok()) return std::move(program).error();
  auto file = write_order(context, request);
  if (!file.ok()) return std::move(file).error();
  std::vector<std::string> args = {"berth-hub", std::to_string(file->get())};
  return sys::execute(*program, args, context.environment.without_loader());
}

}  // namespace berth::engine
