// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/show/gpu_terms.hpp"
#include "cli/core/table.hpp"
#include "cli/template/listing.hpp"
#include "engine/gpu/lease.hpp"
#include "engine/gpu/list.hpp"
#include "json/fields.hpp"
#include "json/value.hpp"

namespace berth::cli {
namespace {

struct GpuListOptions {
  bool refresh = false;
  bool quiet = false;
  std::string format = "table";
};

FlagTable gpu_list_flags(GpuListOptions& o) {
  return {
      {"refresh", 0, "", "Query the driver instead of the cache", &o.refresh},
      {"quiet", 'q', "", "Show only UUIDs, or PCI addresses", &o.quiet},
      {"format", 0, "FORMAT", "Output format: table, json or a template such as '{{.Index}}'",
       &o.format},
  };
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string paths_of(const std::vector<gpu::Node>& nodes) {
  std::vector<std::string> paths;
  for (const gpu::Node& node : nodes) paths.push_back(node.path);
  return join(paths, " ");
}

std::string node_names(const gpu::Gpu& gpu) {
  std::vector<gpu::Node> nodes{gpu.node};
  for (const gpu::Node& node : gpu.drm_nodes) {
    if (node.path != gpu.node.path) nodes.push_back(node);
  }
  return paths_of(nodes);
}

// The peers of a GPU: "1 2 3 5" → "1-3,5"; "all" if they are all other GPUs of its vendor.
std::string peers(const gpu::Gpu& gpu, const gpu::Inventory& inventory) {
  const auto& list = gpu.nvlink_peers;
  auto others = std::ranges::count_if(
      inventory.gpus, [&](const gpu::Gpu& one) { return one.vendor == gpu.vendor; });
  if (list.empty()) return "-";
  if (list.size() > 1 && list.size() + 1 == static_cast<size_t>(others)) return "all";
  std::string out;
  for (size_t i = 0, last = 0; i < list.size(); i = last + 1) {
    last = i;
    while (last + 1 < list.size() && list[last + 1] == list[last] + 1) ++last;
    if (!out.empty()) out += ",";
    out += std::to_string(list[i]);
    if (last > i) out += "-" + std::to_string(list[last]);
  }
  return out;
}

// Numbers boards in the order of their GPUs: the driver's names mean nothing to people.
std::string board(const gpu::Gpu& gpu, const gpu::Inventory& inventory) {
  if (gpu.board.empty()) return "-";
  std::vector<std::string> boards;
  for (const gpu::Gpu& one : inventory.gpus) {
    std::string name = std::to_string(static_cast<int>(one.vendor)) + one.board;
    if (one.board.empty() || std::ranges::find(boards, name) != boards.end()) continue;
    boards.push_back(name);
    if (one.vendor == gpu.vendor && one.board == gpu.board) break;
  }
  return std::to_string(boards.size());
}

struct Column {
  std::string_view title;
  bool wanted = true;  ///< false: the column is useless on this machine
  std::vector<std::string> cells = {};
};

/// The fields of templates: one for each column of GpuListing, in the order of the columns.
constexpr ListField kGpuFields[] = {
    {"Index", "INDEX"},    {"UUID", "UUID"},       {"PCIAddress", "PCI ADDRESS"},
    {"Model", "MODEL"},    {"Compute", "COMPUTE"}, {"Memory", "MEMORY"},
    {"HeldBy", "HELD BY"}, {"Driver", "DRIVER"},   {"CUDA", "CUDA"},
    {"NUMA", "NUMA"},      {"NVLink", "NVLINK"},   {"Board", "BOARD"},
    {"Nodes", "NODES"},
};
constexpr ListKind kGpus{.fields = kGpuFields, .table = "{{.Index}}\t{{.UUID}}\t{{.Model}}"};

/// The holders of a GPU or slice: "web, train (exclusive)".
std::string holders_of(const gpu::Selected& one, const gpu::Holders& holders) {
  std::vector<std::string> names;
  for (const gpu::KnownLease& known : holders.leases) {
    const gpu::Lease& lease = known.lease;
    bool has = std::ranges::any_of(
        lease.keys, [&](const std::string& key) { return gpu::overlaps(key, gpu::key_of(one)); });
    if (!has) continue;
    std::string name = lease.name.empty() ? lease.container.substr(0, 12) : lease.name;
    names.push_back(escape_controls(name) + terms_of(lease));
  }
  constexpr size_t kMost = 2;
  if (names.size() <= kMost) return names.empty() ? "-" : join(names, ", ");
  return std::to_string(names.size()) + " containers";
}

/// The index, "0" or "0:1", of each key that this machine has; for any other key the key itself.
json::Array indices_of(const std::vector<std::string>& keys, const gpu::Inventory& inventory) {
  json::Array out;
  for (const std::string& key : keys) {
    std::string name = key;
    auto take = [&](const gpu::Selected& one) {
      if (gpu::key_of(one) == key) name = gpu::index_of(one);
    };
    for (const gpu::Gpu& gpu : inventory.gpus) {
      take({&gpu});
      for (const gpu::MigDevice& slice : gpu.mig) take({&gpu, &slice});
      for (const gpu::Partition& part : gpu.partitions) take({&gpu, nullptr, &part});
    }
    out.emplace_back(std::move(name));
  }
  return out;
}

// The columns of the table; a narrow terminal loses the last ones first.
class GpuListing {
 public:
  GpuListing(const gpu::Inventory& inventory, const gpu::Holders& holders)
      : inventory_(inventory), holders_(holders) {
    for (const gpu::Gpu& gpu : inventory.gpus) {
      add(gpu);
      for (const gpu::MigDevice& slice : gpu.mig) add(gpu, slice);
      for (const gpu::Partition& partition : gpu.partitions) add(gpu, partition);
    }
    for (Column* column : {&numa_, &nvlink_, &board_, &held_})
      column->wanted = says_something(*column);
  }

  /// The table, at most `columns` wide; 0: unlimited.
  std::string text(size_t columns) {
    if (columns != 0 && width() > columns) shorten_uuids();
    for (Column* column :
         {&nodes_, &driver_, &cuda_, &board_, &nvlink_, &numa_, &compute_, &pci_}) {
      if (columns != 0 && width() > columns) column->wanted = false;
    }
    std::vector<std::string_view> titles;
    for (const Column* column : shown()) titles.push_back(column->title);
    Table table(titles);
    for (size_t row = 0; row < index_.cells.size(); ++row) {
      std::vector<std::string> cells;
      for (const Column* column : shown()) cells.push_back(column->cells[row]);
      table.add(std::move(cells));
    }
    return table.text();
  }

  /// Rows with the fields of kGpus.
  std::vector<ListRow> rows() {
    std::vector<ListRow> rows(index_.cells.size());
    for (const Column* column : all()) {
      for (size_t row = 0; row < rows.size(); ++row) {
        rows[row].values.push_back(column->cells[row]);
      }
    }
    return rows;
  }

 private:
  void add(const gpu::Gpu& gpu);
  void add(const gpu::Gpu& gpu, const gpu::MigDevice& slice);
  void add(const gpu::Gpu& gpu, const gpu::Partition& partition);
  void add_row(std::vector<std::string> cells) {
    size_t i = 0;
    for (Column* column : all()) column->cells.push_back(std::move(cells[i++]));
  }
  std::vector<Column*> all() {
    return {&index_,  &uuid_, &pci_,  &model_,  &compute_, &memory_, &held_,
            &driver_, &cuda_, &numa_, &nvlink_, &board_,   &nodes_};
  }
  std::vector<const Column*> shown() {
    std::vector<const Column*> out;
    for (Column* column : all()) {
      if (column->wanted) out.push_back(column);
    }
    return out;
  }
  static bool says_something(const Column& column) {
    return std::ranges::any_of(
        column.cells, [](const std::string& cell) { return !cell.empty() && cell != "-"; });
  }
  size_t width() {
    constexpr size_t kGap = 3;
    size_t total = 0;
    for (const Column* column : shown()) {
      size_t widest = text_width(column->title);
      for (const std::string& cell : column->cells) widest = std::max(widest, text_width(cell));
      total += widest + kGap;
    }
    return total - kGap;
  }
  /// Shortens the UUIDs to prefixes, which --gpus device= accepts too. They are in practice unique.
  void shorten_uuids() {
    constexpr size_t kShort = 12;  // "GPU-1b2c3d4e"
    for (std::string& cell : uuid_.cells) cell = cell.substr(0, kShort);
  }

  const gpu::Inventory& inventory_;
  const gpu::Holders& holders_;
  Column index_{"INDEX"}, uuid_{"UUID"}, pci_{"PCI ADDRESS"}, model_{"MODEL"}, compute_{"COMPUTE"},
      memory_{"MEMORY"}, held_{"HELD BY"}, driver_{"DRIVER"}, cuda_{"CUDA"}, numa_{"NUMA"},
      nvlink_{"NVLINK"}, board_{"BOARD"}, nodes_{"NODES"};
};

void GpuListing::add(const gpu::Gpu& gpu) {
  bool nvidia = gpu.vendor == gpu::Vendor::nvidia;
  add_row({std::to_string(gpu.index), or_dash(gpu.uuid), gpu.pci_address, or_dash(gpu.model),
           gpu.compute_capability.value_or(gpu.architecture.value_or("-")),
           gpu.memory_bytes ? human_bytes(*gpu.memory_bytes) : "-", holders_of({&gpu}, holders_),
           nvidia ? or_dash(inventory_.driver.module_version) : gpu.kernel_driver,
           nvidia ? or_dash(inventory_.driver.cuda_version) : "-",
           gpu.numa_node ? std::to_string(*gpu.numa_node) : "-", peers(gpu, inventory_),
           board(gpu, inventory_), node_names(gpu)});
}

void GpuListing::add(const gpu::Gpu& gpu, const gpu::MigDevice& slice) {
  add_row({std::to_string(gpu.index) + ":" + std::to_string(slice.index), or_dash(slice.uuid),
           gpu.pci_address, slice.profile.empty() ? "MIG" : "MIG " + slice.profile, "",
           slice.memory_bytes ? human_bytes(*slice.memory_bytes) : "-",
           holders_of({&gpu, &slice}, holders_), "", "", "", "", "", paths_of(slice.nodes)});
}

void GpuListing::add(const gpu::Gpu& gpu, const gpu::Partition& partition) {
  add_row({std::to_string(gpu.index) + ":" + std::to_string(partition.index), "-", gpu.pci_address,
           gpu.compute_partition + " partition", "", "-",
           holders_of({&gpu, nullptr, &partition}, holders_), "", "", "", "", "",
           paths_of(partition.nodes)});
}

json::Value to_json(const gpu::DriverFile& file) {
  return json::Object{{"path", file.host_path},
                      {"container_path", file.container_path},
                      {"soname", file.soname},
                      {"capabilities", json_strings(file.capabilities)}};
}

template <class T>
json::Array array_of(const std::vector<T>& values) {
  json::Array out;
  for (const T& value : values) out.push_back(json::to_value(value));
  return out;
}

json::Array files_of(const std::vector<gpu::DriverFile>& files) {
  json::Array out;
  for (const gpu::DriverFile& file : files) out.push_back(to_json(file));
  return out;
}

json::Value to_json(const gpu::DeviceGroup& group) {
  return json::Object{{"name", group.name},
                      {"nodes", array_of(group.nodes)},
                      {"files", files_of(group.files)},
                      {"major", group.major ? json::Value(int64_t{*group.major}) : json::Value()}};
}

// The problems of the inventory, for people.
std::vector<std::string> problems_of(const gpu::Inventory& inventory) {
  std::vector<std::string> out = inventory.problems;
  for (const std::string& line : gpu::lines_of(inventory.unusable)) {
    out.push_back(line + ", ignoring it; try: install the driver again");
  }
  return out;
}

json::Value to_json(const std::optional<gpu::MpsUse>& mps) {
  if (!mps) return json::Value();
  json::Value cores, memory;
  if (mps->cores_percent) cores = int64_t{*mps->cores_percent};
  if (mps->memory_bytes) memory = static_cast<int64_t>(*mps->memory_bytes);
  return json::Object{{"cores_percent", std::move(cores)}, {"memory_bytes", std::move(memory)}};
}

json::Value to_json(const gpu::KnownLease& known, const gpu::Inventory& inventory) {
  const gpu::Lease& lease = known.lease;
  return json::Object{{"container", lease.container},
                      {"name", lease.name},
                      {"user", int64_t{known.user}},
                      {"engine", lease.engine},
                      {"group", lease.group},
                      {"gpus", indices_of(lease.keys, inventory)},
                      {"keys", json_strings(lease.keys)},
                      {"exclusive", lease.exclusive},
                      {"mps", to_json(lease.mps)},
                      {"since_ns", lease.since},
                      {"pid", lease.life.pid}};
}

json::Value to_json(const gpu::KnownTicket& known, const gpu::Inventory& inventory) {
  const gpu::Ticket& ticket = known.ticket;
  return json::Object{{"container", ticket.container},
                      {"name", ticket.name},
                      {"user", int64_t{known.user}},
                      {"count", static_cast<int64_t>(ticket.count)},
                      {"of", indices_of(ticket.keys, inventory)},
                      {"exclusive", ticket.exclusive},
                      {"since_ns", ticket.since}};
}

json::Value to_json(const gpu::Inventory& inventory, const gpu::Holders& holders) {
  json::Array leases, queue;
  for (const gpu::KnownLease& one : holders.leases) leases.push_back(to_json(one, inventory));
  for (const gpu::KnownTicket& one : holders.queue) queue.push_back(to_json(one, inventory));
  json::Array groups;
  for (const gpu::DeviceGroup& group : inventory.groups) groups.push_back(to_json(group));
  return json::Object{{"synthetic", inventory.synthetic},
                      {"driver_root", inventory.driver_root},
                      {"driver", json::to_value(inventory.driver)},
                      {"nvml", inventory.nvml},
                      {"gpus", array_of(inventory.gpus)},
                      {"left_out", int64_t{inventory.left_out}},
                      {"control_nodes", array_of(inventory.control_nodes)},
                      {"mig_control_nodes", array_of(inventory.mig_control_nodes)},
                      {"amd_control_nodes", array_of(inventory.amd_control_nodes)},
                      {"groups", std::move(groups)},
                      {"leases", std::move(leases)},
                      {"queue", std::move(queue)},
                      {"files", files_of(inventory.files)},
                      {"problems", json_strings(problems_of(inventory))}};
}

Result<int> run_gpu_list(Session& session, const GpuListOptions& o, Arguments) {
  std::optional<Listing> listing;
  if (o.format != "table" && o.format != "json") {
    listing = TRY(Listing::make(kGpus, {.text = o.format}));
  }
  gpu::Inventory inventory = TRY(engine::list_gpus(
      session.context, o.refresh ? gpu::Refresh::always : gpu::Refresh::if_stale));
  // GPUs can be listed without a ledger.
  gpu::Holders holders;
  if (!o.quiet) {
    auto found = engine::list_gpu_holders(session.context);
    if (found.ok()) holders = std::move(*found);
    if (!found.ok()) session.report.warn(to_line(found.error()) + ", ignoring");
  }
  if (o.format == "json") {
    print_json(session, to_json(inventory, holders));
    return 0;
  }
  for (const std::string& problem : problems_of(inventory)) session.report.warn(problem);
  std::string note = "synthetic: read from " + quote(inventory.driver_root) + ", made for tests\n";
  if (listing) {
    if (inventory.synthetic) session.terminal.write(Stream::err, note);
    print(session, TRY(listing->text(GpuListing(inventory, holders).rows())));
    return 0;
  }
  if (o.quiet) {
    if (inventory.synthetic) session.terminal.write(Stream::err, note);
    for (const gpu::Gpu& gpu : inventory.gpus) {
      print(session, (gpu.uuid.empty() ? gpu.pci_address : gpu.uuid) + "\n");
    }
    return 0;
  }
  // Output for a program is not truncated.
  print(session, GpuListing(inventory, holders).text(columns_of(session)));
  if (inventory.synthetic) print(session, note);
  return 0;
}

}  // namespace

const Verb gpu_list_verb{
    .text = {.name = "gpu list",
             .summary = "List the GPUs of this machine",
             .example = "berth gpu list --format json"},
    .command = [] { return make_command(gpu_list_flags, run_gpu_list); },
};

}  // namespace berth::cli
