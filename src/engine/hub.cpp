// SPDX-License-Identifier: Apache-2.0
#include "engine/hub.hpp"

#include "engine/match.hpp"
#include "engine/published_facts.hpp"
#include "hub/config/config.hpp"
#include "json/fields.hpp"
#include "sys/file.hpp"
#include "sys/program.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxConfig = size_t{1} << 20;

Result<hub::Config> read_file(const Context& context, const HubRequest& request) {
  if (request.config) {
    std::string text = TRY(sys::read_file(sys::cwd(), *request.config, kMaxConfig));
    return hub::read_config(text, *request.config);
  }
  const std::string usual = context.paths.config + "/hub.toml";
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), usual, kMaxConfig));
  if (!text) return hub::Config{};
  return hub::read_config(*text, usual);
}

void replace(std::string& value, const std::optional<std::string>& given) {
  if (given) value = *given;
}

Result<void> add_flags(hub::Config& config, const HubRequest& request) {
  if (!request.listen.empty()) config.listen = request.listen;
  if (request.upstream) {
    config.upstream.push_back({"", *request.upstream, request.repositories});
  } else if (!request.repositories.empty()) {
    return make_error(Kind::usage, "'--repository' says what is served of an '--upstream'",
                      "--upstream REGISTRY");
  }
  replace(config.fleet, request.fleet);
  replace(config.usual, request.usual);
  replace(config.htpasswd, request.htpasswd);
  replace(config.tls_certificate, request.tls_certificate);
  replace(config.tls_key, request.tls_key);
  if (request.blobs) {
    config.blobs = TRY(hub::from_json_text(*request.blobs, std::type_identity<hub::Blobs>()));
  }
  if (request.log) {
    config.log = TRY(hub::from_json_text(*request.log, std::type_identity<hub::LogForm>()));
  }
  replace(config.access.tls_ca, request.access.tls_ca);
  auto& insecure = config.access.insecure_registries;
  insecure.insert(insecure.end(), request.access.insecure_registries.begin(),
                  request.access.insecure_registries.end());
  return {};
}

Result<hub::Order> make_order(const Context& context, const HubRequest& request) {
  hub::Order order;
  order.config = TRY(read_file(context, request));
  TRY(add_flags(order.config, request));
  TRY(hub::check(order.config));
  if (!order.config.user_land) order.config.user_land = TRY(usual_user_land(context));
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
  auto file = write_order(context, request);
  if (!file.ok()) return std::move(file).error();
  std::vector<std::string> args = {"berth-hub", std::to_string(file->get())};
  return sys::execute(context.paths.libexec + "/berth-hub", args, context.environment.entries());
}

}  // namespace berth::engine
