// SPDX-License-Identifier: Apache-2.0
#include "kube/agent/agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "gpu/cdi/generate.hpp"
#include "gpu/inventory/cache.hpp"
#include "gpu/inventory/state_directory.hpp"
#include "json/fields.hpp"
#include "kube/plugin/cards.hpp"
#include "oci/cdi.hpp"
#include "policy/policy.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::kube {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kDefaultConfig = "/etc/berth/node.toml";
constexpr size_t kLongestConfig = size_t{1} << 20;
constexpr auto kLook = 500ms;         ///< so that the names of a GPU agree within a second
constexpr auto kInventoryLook = 5s;   ///< whether the driver or the GPUs have changed
constexpr auto kKubeletLook = 2s;     ///< the kubelet's list of pods
constexpr auto kGrace = 10s;          ///< until a pod that was given devices is in that list
constexpr auto kBerthPatience = 60s;  ///< for `berth gpu list`, which asks NVML
constexpr size_t kLongestAnswer = size_t{1} << 20;

/// Says a message again only if another one came between.
class Once {
 public:
  explicit Once(Log& log) : log_(log) {}
  void warn(const std::string& text) {
    if (text != last_) log_.warn(text);
    last_ = text;
  }
  void clear() { last_.clear(); }

 private:
  Log& log_;
  std::string last_;
};

class Agent {
 public:
  Agent(AgentOptions options, policy::Gpu policy, gpu::Ledger ledger, Log& log)
      : options_(std::move(options)),
        policy_(std::move(policy)),
        log_(log),
        cards_(std::move(ledger), log) {}

  Result<void> read_config();
  Result<void> run(const sys::Fd& stop);

 private:
  Result<gpu::Inventory> find_inventory();
  void look_at_machine();
  void write_cdi_files(const gpu::Inventory& inventory);
  void look_at_kubelet();
  void look_at_pods();
  Result<void> serve(const std::string& resource);
  std::string plugin_directory() const { return options_.kubelet_dir + "/device-plugins"; }

  AgentOptions options_;
  policy::Gpu policy_;
  Log& log_;
  Cards cards_;
  Wake wake_;
  std::optional<std::vector<Resource>> configured_;
  std::map<std::string, std::unique_ptr<PluginServer>> servers_;
  std::string kubelet_;      ///< the identity of the kubelet's socket that knows the resources
  std::string fingerprint_;  ///< of the inventory that the resources are made of
  Once inventory_words_{log_}, kubelet_words_{log_}, pods_words_{log_}, ledger_words_{log_};
  Clock::time_point next_inventory_{}, next_pods_{};
};

Result<void> Agent::read_config() {
  std::string path = options_.config.empty() ? kDefaultConfig : options_.config;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kLongestConfig));
  if (!text && options_.config.empty()) return {};
  if (!text) return make_error(Kind::not_found, quote(path) + ": no such file");
  configured_ = TRY(parse_resources(*text, path));
  return {};
}

// Reading drivers means parsing ELF files and asking NVML, which `berth` does in a process of its
// own.
Result<gpu::Inventory> Agent::find_inventory() {
  auto root = TRY(gpu::DriverRoot::open(options_.driver_root));
  auto read = [&]() -> Result<std::optional<gpu::Inventory>> {
    auto directory = TRY(sys::open_trusted_directory_if_exists(options_.state_dir + "/gpu"));
    if (!directory) return std::optional<gpu::Inventory>();
    return gpu::find_cached(*directory, root, {policy_.library_directories, policy_.files});
  };
  if (auto cached = TRY(read())) return std::move(*cached);
  sys::SpawnOptions berth;
  berth.program = TRY(sys::program_directory()) + "/berth";
  berth.args = {"berth",
                "--config-dir",
                options_.config_dir,
                "--state",
                options_.state_dir,
                "--driver-root",
                options_.driver_root,
                "gpu",
                "list",
                "--quiet"};
  berth.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  berth.working_directory = "/";
  auto output = TRY(sys::run_command(std::move(berth), "", kBerthPatience, kLongestAnswer));
  if (output.status.shell_code() != 0) {
    return make_error(Kind::io, "run 'berth gpu list': " + escape_controls(trim(output.err)));
  }
  if (auto cached = TRY(read())) return std::move(*cached);
  return make_error(Kind::io, "no inventory of this node's GPUs in " + quote(options_.state_dir),
                    "berth gpu list");
}

void Agent::look_at_machine() {
  if (Clock::now() < next_inventory_) return;
  next_inventory_ = Clock::now() + kInventoryLook;
  auto found = find_inventory();
  if (!found.ok()) {
    return inventory_words_.warn("cannot look for GPUs: " + to_line(found.error()) +
                                 "; trying again");
  }
  inventory_words_.clear();
  std::string text = json::write(*found);
  if (text == fingerprint_) return;
  fingerprint_ = std::move(text);
  write_cdi_files(*found);
  std::vector<Resource> resources = configured_ ? *configured_ : default_resources(*found);
  log_.debug(fmt::format("{} GPUs, {} resources", found->gpus.size(), resources.size()));
  cards_.set(std::move(*found), std::move(resources));
  wake_.change();
  kubelet_.clear();  // there may be new names
}

// For runtimes that read CDI files: containerd 1.7 and later, CRI-O.
void Agent::write_cdi_files(const gpu::Inventory& inventory) {
  if (!options_.how.cdi_devices) return;
  auto program = sys::program_directory();
  if (!program.ok()) return;
  for (gpu::Vendor vendor : {gpu::Vendor::nvidia, gpu::Vendor::amd}) {
    gpu::cdi::GenerateOptions wanted;
    wanted.vendor = vendor;
    wanted.kind = "berth.dev/gpu";
    wanted.namings = {gpu::cdi::Naming::uuid};
    wanted.hook_program = *program + "/berth-cdi-hook";
    std::string path = fmt::format("{}/berth.dev-{}.json", options_.cdi_dir, enum_text(vendor));
    auto made = gpu::cdi::generate(inventory, wanted);
    if (!made.ok()) {
      ignore(sys::remove_entry(sys::cwd(), path));  // of GPUs that are gone
      if (made.error().kind != Kind::not_found) log_.warn("no CDI file: " + to_line(made.error()));
      continue;
    }
    auto written = [&]() -> Result<void> {
      TRY(sys::make_directories(sys::cwd(), options_.cdi_dir, 0755));
      return sys::replace_file(sys::cwd(), path,
                               json::dump(oci::cdi::to_document(made->spec)) + "\n", 0644);
    }();
    if (!written.ok()) log_.warn("no CDI file: " + to_line(written.error()));
  }
}

Result<void> Agent::serve(const std::string& resource) {
  auto& server = servers_[resource];
  const std::string socket = socket_name(resource);
  bool there = server && TRY(sys::stat_entry(sys::cwd(), plugin_directory() + "/" + socket));
  if (!there) {
    server.reset();
    server = TRY(PluginServer::start(plugin_directory(), socket, resource, options_.how, cards_,
                                     wake_, log_));
  }
  return server->register_at(plugin_directory() + "/kubelet.sock");
}

// A kubelet that starts removes all sockets in the directory and forgets all plugins.
void Agent::look_at_kubelet() {
  auto status = sys::stat_entry(sys::cwd(), plugin_directory() + "/kubelet.sock");
  if (!status.ok() || !*status) {
    kubelet_.clear();
    return kubelet_words_.warn("no kubelet at " + quote(plugin_directory() + "/kubelet.sock") +
                               "; waiting for it");
  }
  const struct stat& socket = **status;
  std::string now = fmt::format("{}:{}:{}.{}", socket.st_dev, socket.st_ino, socket.st_ctim.tv_sec,
                                socket.st_ctim.tv_nsec);
  bool sockets_are_there = std::ranges::all_of(servers_, [&](const auto& one) {
    auto found = sys::stat_entry(sys::cwd(), plugin_directory() + "/" + socket_name(one.first));
    return found.ok() && found->has_value();
  });
  if (now == kubelet_ && sockets_are_there) return;
  const std::vector<std::string> names = cards_.resources();
  std::erase_if(servers_, [&](const auto& one) {
    return std::ranges::find(names, one.first) == names.end();
  });
  for (const std::string& resource : names) {
    auto served = serve(resource);
    if (served.ok()) continue;
    kubelet_.clear();
    return kubelet_words_.warn(to_line(served.error()) + "; trying again");
  }
  kubelet_words_.clear();
  kubelet_ = now;
  log_.debug("the kubelet knows " + join(names, ", "));
}

void Agent::look_at_pods() {
  if (Clock::now() < next_pods_ && !cards_.has_unnamed()) return;
  next_pods_ = Clock::now() + kKubeletLook;
  auto pods = list_pod_devices(options_.kubelet_dir + "/pod-resources/kubelet.sock");
  if (!pods.ok()) {
    // What was given stays given until the kubelet says that its pod is gone.
    if (cards_.has_given()) pods_words_.warn(to_line(pods.error()) + "; trying again");
    return;
  }
  pods_words_.clear();
  cards_.compare(*pods, kGrace);
}

Result<void> Agent::run(const sys::Fd& stop) {
  while (true) {
    look_at_machine();
    if (!fingerprint_.empty()) look_at_pods();
    auto changed = cards_.look();
    if (!changed.ok()) {
      ledger_words_.warn("cannot read the ledger: " + to_line(changed.error()) + "; trying again");
    } else if (*changed) {
      wake_.change();
    }
    if (!fingerprint_.empty()) look_at_kubelet();
    std::vector<pollfd> entries{{stop.get(), POLLIN, 0}};
    if (TRY(sys::poll(entries, kLook)) > 0) return {};
  }
}

}  // namespace

Result<void> run_agent(AgentOptions options, const sys::Fd& stop, Log& log) {
  if (options.state_dir.empty()) options.state_dir = gpu::default_state_directory();
  auto compiled =
      TRY_CTX(policy::read_compiled(options.config_dir), "cannot read the site's policy");
  policy::Gpu policy = std::move(compiled.policy.gpu);
  if (options.driver_root.empty())
    options.driver_root = policy.driver_root.empty() ? "/" : policy.driver_root;
  const std::string place =
      policy.ledger.empty() ? std::string(gpu::kMachineLedger) : policy.ledger;
  gpu::Ledger ledger = TRY(gpu::Ledger::open(place, options.state_dir));
  Agent agent(std::move(options), std::move(policy), std::move(ledger), log);
  TRY(agent.read_config());
  return agent.run(stop);
}

}  // namespace berth::kube
