// SPDX-License-Identifier: Apache-2.0
// The content of the ledger's files. They are not trusted: any user of the machine can have written
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

/// The identity of a process until the next boot, and its cgroup.
struct Life {
  int64_t pid = 0;          ///< 0: none yet
  uint64_t start_time = 0;  ///< field 22 of /proc/PID/stat
  uint64_t pid_space = 0;   ///< inode of the pid namespace of `pid`
  std::string boot{};       ///< the boot id
  std::string cgroup{};  ///< below the unified hierarchy's mount point; empty: no cgroup of its own

  bool operator==(const Life&) const = default;
};

/// The MPS daemon through which a container's programs compute: gpu/mps.
struct MpsUse {
  std::string share;                       ///< its name
  std::optional<uint32_t> cores_percent;   ///< of each GPU's multiprocessors, for each program
  std::optional<uint64_t> memory_bytes{};  ///< of each GPU, for each program

  bool operator==(const MpsUse&) const = default;
};

/// The engine of leases that berth-mps itself holds.
inline constexpr const char* kMpsEngine = "berth-mps";

/// The engine of leases that berth-node holds for what the kubelet has given to pods, and how their
/// groups begin. The container that gets the GPUs then takes a lease of its own beside it.
inline constexpr const char* kKubeletEngine = "berth-node";
inline constexpr std::string_view kKubeletGroup = "kubelet:";
/// Continues kKubeletGroup for devices of which each is a share of a GPU.
inline constexpr std::string_view kKubeletShares = "kubelet:shares:";

/// The lease of a container's GPUs.
struct Lease {
  std::string container;          ///< its id
  std::string name;               ///< for people; may be empty
  std::string engine;             ///< "berth", or "berth-runtime" for other engines' containers
  std::string group;              ///< the id of the first container of the group
  std::vector<std::string> keys;  ///< key_of() in gpu/inventory
  bool exclusive = false;
  int64_t since = 0;  ///< ns since 1970
  Life life{};
  std::optional<MpsUse> mps{};

  bool operator==(const Lease&) const = default;
};

/// A file that berth writes next to a container's configuration, for the program that starts the
/// container.
struct LeaseNote {
  std::string ledger;  ///< the directory
  std::string file;    ///< its name in the ledger
  Lease lease;         ///< taken again if the file is gone
};
inline constexpr const char* kLeaseNote = "gpu-lease.json";  ///< in the bundle

/// A request in the queue: `count` of `keys`.
struct Ticket {
  std::string container;
  std::string name;
  std::string group;
  std::vector<std::string> keys;
  uint64_t count = 0;
  bool exclusive = false;
  int64_t since = 0;

  bool operator==(const Ticket&) const = default;
};

/// The size of every file: JSON, padded with blanks. Thus one write(2) replaces the content.
inline constexpr size_t kRecordSize = 4096;

/// Errors: usage (more than kRecordSize, because of too many GPUs or a long name).
Result<std::string> record_text(const Lease& lease);
Result<std::string> record_text(const Ticket& ticket);

/// Errors: corrupt (invalid JSON, more than kRecordSize, more keys than a machine has, control
/// characters in names).
Result<Lease> parse_lease(std::string_view text);
Result<Ticket> parse_ticket(std::string_view text);

/// "root", "user 1000", "this user": for people.
std::string user_text(uid_t user);
/// "container 'web' of user 1000".
std::string holder_text(const std::string& name, const std::string& container, uid_t user);

void fields(auto& v, Life& l) {
  v.required("pid", l.pid);
  v.required("start_time", l.start_time);
  v.required("pid_space", l.pid_space);
  v.required("boot", l.boot);
  v.optional("cgroup", l.cgroup);
}

void fields(auto& v, MpsUse& m) {
  v.required("share", m.share);
  v.optional("cores_percent", m.cores_percent);
  v.optional("memory_bytes", m.memory_bytes);
}

void fields(auto& v, Lease& l) {
  v.required("container", l.container);
  v.optional("name", l.name);
  v.required("engine", l.engine);
  v.required("group", l.group);
  v.required("keys", l.keys);
  v.required("exclusive", l.exclusive);
  v.required("since", l.since);
  v.required("life", l.life);
  v.optional("mps", l.mps);
}

void fields(auto& v, LeaseNote& n) {
  v.required("ledger", n.ledger);
  v.required("file", n.file);
  v.required("lease", n.lease);
}

void fields(auto& v, Ticket& t) {
  v.required("container", t.container);
  v.optional("name", t.name);
  v.required("group", t.group);
  v.required("keys", t.keys);
  v.required("count", t.count);
  v.required("exclusive", t.exclusive);
  v.required("since", t.since);
}

/// The pid namespace and the boot of this process: a pid means nothing without them.
struct Here {
  std::string boot;
  uint64_t pid_space = 0;
};
/// Errors: io (no /proc).
Result<Here> look_around();

/// The Life of process `pid`. Errors: not_found (it has ended).
Result<Life> life_of(pid_t pid, std::string cgroup, const Here& here);

/// Whether a process of the container is left that may have a GPU open: its first process, which
/// ends last in a pid namespace, or another process in its cgroup. In doubt (a process that we may
/// not see, or of another pid namespace) it counts as alive. pidfd_open(2)
bool is_alive(const Life& life, const Here& here);

// The names of the ledger's files, and the function that makes them. Only for this folder.

inline constexpr std::string_view kLeasePrefix = "lease-";
inline constexpr std::string_view kTicketPrefix = "wait-";  ///< followed by its number
/// Tickets are numbered by counting, so a higher number is invalid.
inline constexpr uint64_t kHighestNumber = uint64_t{1} << 53;
/// Prefix of a file before it gets its final name; a process that finds one while holding the
/// ledger's lock may remove it.
inline constexpr std::string_view kNewPrefix = "new-";

/// Makes a file of the ledger and takes a shared lock on it: the record counts while any process
/// holds such a lock. It appears atomically. Errors: exists, io.
Result<sys::Fd> make_record(const sys::Fd& directory, const std::string& name,
                            const std::string& text);

int64_t nanoseconds_since_1970();

}  // namespace berth::gpu
