// SPDX-License-Identifier: Apache-2.0
#include "engine/network/leases.hpp"

#include <fcntl.h>

#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxLease = size_t{16} << 20;
constexpr size_t kMaxHolder = 65536;
constexpr std::string_view kLeaseSuffix = ".json";

/// Whether the container with `lease` still runs, in the boot `boot_id`.
bool is_current(const network::Lease& lease, const std::string& boot_id) {
  auto start = sys::process_start_time(lease.holder.pid);
  return boot_id == lease.boot_id && start.ok() && *start == lease.holder.start_time;
}

Result<std::optional<network::Lease>> read_lease(const std::string& directory,
                                                 const std::string& file,
                                                 const std::string& boot_id) {
  std::string path = directory + "/" + file;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxLease));
  if (!text) return std::optional<network::Lease>();
  auto lease = TRY(json::read<network::Lease>(*text, path));
  if (!is_current(lease, boot_id)) return std::optional<network::Lease>();
  return std::optional<network::Lease>(std::move(lease));
}

}  // namespace

std::string network_directory(const Context& context) {
  return context.paths.state + "/network";
}

Result<std::optional<network::Lease>> find_lease(const Context& context, const std::string& id) {
  std::string boot = TRY(sys::boot_id());
  return read_lease(network_directory(context), network::lease_file(id), boot);
}

std::map<std::string, network::Lease> list_leases(const Context& context) {
  std::map<std::string, network::Lease> leases;
  std::string directory = network_directory(context);
  auto opened = sys::open_if_exists(sys::cwd(), directory, O_RDONLY | O_DIRECTORY);
  auto boot = sys::boot_id();
  if (!opened.ok() || !*opened || !boot.ok()) return leases;
  auto files = sys::list_directory(**opened, ".");
  if (!files.ok()) return leases;
  for (const std::string& file : *files) {
    if (!file.ends_with(kLeaseSuffix)) continue;
    auto lease = read_lease(directory, file, *boot);
    if (lease.ok() && *lease) leases.emplace((*lease)->id, std::move(**lease));
  }
  return leases;
}

Result<std::optional<network::Holder>> find_holder(const Context& context) {
  const std::string path = network_directory(context);
  auto directory = TRY(sys::open_if_exists(sys::cwd(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (!directory) return std::optional<network::Holder>();
  auto text =
      TRY_CTX(sys::read_trusted_file_if_exists(*directory, network::kHolderFile, kMaxHolder),
              "cannot trust the record of the networks' holder in " + path);
  if (!text) return std::optional<network::Holder>();
  auto holder = json::read<network::Holder>(*text, network::kHolderFile);
  bool counts = holder.ok() && holder->boot_id == TRY(sys::boot_id()) &&
                sys::runs(holder->process.pid, holder->process.start_time);
  return counts ? std::optional(std::move(*holder)) : std::nullopt;
}

}  // namespace berth::engine
