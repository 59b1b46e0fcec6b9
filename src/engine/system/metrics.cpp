// SPDX-License-Identifier: Apache-2.0
#include "engine/system/metrics.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/signals.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  std::array<char, 64> text{};
  auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

/// One metric. The format requires that all lines of a metric are adjacent.
class Family {
 public:
  Family(std::string_view name, std::string_view type, std::string_view help)
      : name_(name), type_(type), help_(help) {}

  void add(const Labels& labels, double value) {
    std::vector<std::string> words;
    for (const auto& [key, text] : labels) {
      words.push_back(std::string(key) + "=\"" + escaped(escape_controls(text)) + "\"");
    }
    std::string series = words.empty() ? "" : "{" + join(words, ",") + "}";
    if (!known_.insert(series).second) return;  // a user may write two leases for a container
    lines_ += "berth_" + std::string(name_) + series + " " + number(value) + "\n";
  }
  template <class T>
  void add(const Labels& labels, const std::optional<T>& value, double divisor = 1) {
    if (value) add(labels, static_cast<double>(*value) / divisor);
  }

  std::string text() const {
    if (lines_.empty()) return {};
    const std::string name = "berth_" + std::string(name_);
    return "# HELP " + name + " " + std::string(help_) + "\n# TYPE " + name + " " +
           std::string(type_) + "\n" + lines_;
  }

 private:
  std::string_view name_, type_, help_;
  std::set<std::string> known_;
  std::string lines_;
};

template <size_t N>
std::string text_of(const std::array<Family, N>& families) {
  std::string text;
  for (const Family& one : families) text += one.text();
  return text;
}

std::string states_text(const std::vector<ContainerSummary>& containers) {
  std::map<std::string, int> counts;
  for (const ContainerSummary& one : containers)
    ++counts[std::string(container_state_name(one.state))];
  Family family("containers", "gauge", "Containers of this store by state.");
  for (const auto& [state, count] : counts) family.add({{"state", state}}, count);
  return family.text();
}

std::string containers_text(const Measured& measured) {
  constexpr double kPerSecond = 1e9;
  std::array families = {
      Family("container_cpu_seconds_total", "counter", "Processor time of all its processes."),
      Family("container_memory_bytes", "gauge", "Memory in use."),
      Family("container_memory_limit_bytes", "gauge", "Its limit, at most the machine's memory."),
      Family("container_network_receive_bytes_total", "counter", "Of all devices but lo."),
      Family("container_network_transmit_bytes_total", "counter", "Of all devices but lo."),
      Family("container_disk_read_bytes_total", "counter", "Read from disks."),
      Family("container_disk_written_bytes_total", "counter", "Written to disks."),
      Family("container_processes", "gauge", "Processes and threads."),
  };
  for (const auto& [container, use] : measured.running) {
    const Labels labels = {
        {"id", container.id}, {"name", container.name}, {"image", container.image}};
    auto* family = families.begin();
    (family++)->add(labels, use.cpu_ns, kPerSecond);
    (family++)->add(labels, use.memory_bytes);
    (family++)->add(labels, use.memory_limit_bytes);
    (family++)->add(labels, use.received_bytes);
    (family++)->add(labels, use.sent_bytes);
    (family++)->add(labels, use.read_bytes);
    (family++)->add(labels, use.written_bytes);
    (family++)->add(labels, use.processes);
  }
  return text_of(families);
}

/// GPU memory by container, if known.
std::map<std::string, uint64_t> memory_by_container(const std::vector<GpuProcess>& processes) {
  std::map<std::string, uint64_t> sums;
  for (const GpuProcess& one : processes) {
    if (one.lease && one.used_bytes) sums[one.lease->container] += *one.used_bytes;
  }
  return sums;
}

std::string gpus_text(const GpuTop& top) {
  constexpr double kPercent = 100, kMilli = 1000;
  std::array families = {
      Family("gpu_info", "gauge", "GPUs, and slices of them."),
      Family("gpu_busy_ratio", "gauge", "Part of the time in which something ran."),
      Family("gpu_memory_used_bytes", "gauge", "Memory in use by all."),
      Family("gpu_memory_total_bytes", "gauge", "Memory that there is."),
      Family("gpu_temperature_celsius", "gauge", "Of the chip."),
      Family("gpu_power_watts", "gauge", "Drawn at this moment."),
      Family("gpu_processes", "gauge", "Processes that have it open."),
      Family("gpu_lease", "gauge", "Who has it."),
      Family("container_gpu_memory_bytes", "gauge", "Memory of its processes on a GPU."),
      Family("gpu_waiting", "gauge", "Containers that wait for GPUs."),
  };
  for (const GpuState& gpu : top.gpus) {
    const Labels labels = {{"gpu", gpu.index}};
    std::optional<uint64_t> used, total;
    if (gpu.memory) {
      used = gpu.memory->used;
      total = gpu.memory->total;
    }
    auto* family = families.begin();
    (family++)->add({{"gpu", gpu.index}, {"id", gpu.id}, {"model", gpu.model}}, 1);
    (family++)->add(labels, gpu.busy_percent, kPercent);
    (family++)->add(labels, used);
    (family++)->add(labels, total);
    (family++)->add(labels, gpu.celsius);
    (family++)->add(labels, gpu.milliwatts, kMilli);
    std::optional<size_t> count;
    if (gpu.processes) count = gpu.processes->size();
    (family++)->add(labels, count);
    for (const gpu::KnownLease& one : gpu.leases) {
      family->add({{"gpu", gpu.index},
                   {"id", one.lease.container},
                   {"name", container_of(one.lease)},
                   {"engine", one.lease.engine},
                   {"user", std::to_string(one.user)},
                   {"exclusive", one.lease.exclusive ? "true" : "false"}},
                  1);
    }
    ++family;
    if (!gpu.processes) continue;
    for (const auto& [id, bytes] : memory_by_container(*gpu.processes)) {
      family->add({{"gpu", gpu.index}, {"id", id}}, static_cast<double>(bytes));
    }
  }
  if (!top.gpus.empty()) families.back().add({}, top.waiting);
  return text_of(families);
}

constexpr std::chrono::milliseconds kMetricsPatience{5000};
constexpr size_t kMaxHead = size_t{8} << 10;

/// The listening socket. The destructor removes its file, unless another process has replaced the
/// file.
class Socket {
 public:
  static Result<Socket> listen(const std::string& path);
  Socket(Socket&& other) noexcept
      : listener_(std::move(other.listener_)),
        path_(std::exchange(other.path_, {})),
        inode_(other.inode_) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (!path_.empty()) ignore(remove_socket(path_, inode_));
  }
  const sys::Fd& listener() const { return listener_; }

 private:
  Socket(sys::Fd listener, std::string path, ino_t inode)
      : listener_(std::move(listener)), path_(std::move(path)), inode_(inode) {}
  static Result<ino_t> inode_of(const std::string& path);
  static Result<void> remove_socket(const std::string& path, ino_t inode);

  sys::Fd listener_;
  std::string path_;
  ino_t inode_ = 0;
};

/// The inode of the socket at `path`; 0: there is none.  Errors: exists (not a socket).
Result<ino_t> Socket::inode_of(const std::string& path) {
  std::optional<struct stat> status = TRY(sys::stat_entry(sys::cwd(), path));
  if (!status) return ino_t{0};
  if (S_ISSOCK(status->st_mode)) return status->st_ino;
  return make_error(Kind::exists, "create socket " + quote(path) + ": there is a file",
                    "another path, or --output");
}

Result<void> Socket::remove_socket(const std::string& path, ino_t inode) {
  if (TRY(inode_of(path)) != inode) return {};  // another process has replaced the file
  return sys::remove_entry(sys::cwd(), path);
}

Result<Socket> Socket::listen(const std::string& path) {
  auto listener = sys::listen_unix(path);
  if (!listener.ok() && listener.error().sys_errno == EADDRINUSE) {
    ino_t there = TRY(inode_of(path));
    // A socket without a listener was left by a killed process.
    auto answered = sys::connect_unix(path, sys::SocketType::stream);
    if (answered.ok() || answered.error().sys_errno != ECONNREFUSED)
      return std::move(listener).error();
    TRY(remove_socket(path, there));
    listener = sys::listen_unix(path);
  }
  if (!listener.ok()) return std::move(listener).error();
  ino_t inode = TRY(inode_of(path));
  return Socket(*std::move(listener), path, inode);
}

std::string reply(std::string_view status, std::string_view type, const std::string& body) {
  return "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

/// Reads the header of a request, and returns the first line; empty if the header does not arrive
/// in time, or after a signal.
Result<std::string> read_request(const sys::Fd& connection, const sys::Fd& signals) {
  const std::chrono::steady_clock::time_point end =
      std::chrono::steady_clock::now() + kMetricsPatience;
  std::string head;
  std::array<char, 1024> part{};
  while (head.find("\r\n\r\n") == std::string::npos && head.size() < kMaxHead) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    std::vector<pollfd> entries = {{connection.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    int ready = left.count() > 0 ? TRY(sys::poll(entries, left)) : 0;
    if (ready == 0 || entries[1].revents != 0) return std::string();
    size_t count = TRY(sys::read_some(connection, part, "a request"));
    if (count == 0) return std::string();
    head.append(part.data(), count);
  }
  return head.substr(0, head.find("\r\n"));
}

Result<void> answer(const Context& context, const sys::Fd& connection, const sys::Fd& signals) {
  constexpr std::string_view kPlain = "text/plain";
  std::string request = TRY(read_request(connection, signals));
  if (request.empty()) return {};
  auto words = split(request, ' ');
  std::string text;
  if (words.size() != 3 || words[0] != "GET") {
    text = reply("405 Method Not Allowed\r\nAllow: GET", kPlain, "");
  } else if (words[1].substr(0, words[1].find('?')) != "/metrics") {
    text = reply("404 Not Found", kPlain, "only /metrics\n");
  } else {
    auto measured = measure_all(context);
    text = measured.ok()
               ? reply("200 OK", kMetricsType, metrics_text(*measured))
               : reply("500 Internal Server Error", kPlain, to_line(measured.error()) + "\n");
  }
  return sys::send_all(connection, text, kMetricsPatience);
}

}  // namespace

Result<Measured> measure_all(const Context& context) {
  Measured measured;
  measured.containers = TRY(list_containers(context, Which::all));
  for (const ContainerSummary& one : measured.containers) {
    if (is_alive(one.state)) measured.running.emplace_back(one, measure_container(context, one));
  }
  auto gpus = gpu_top(context);
  if (gpus.ok()) {
    measured.gpus = *std::move(gpus);
  } else {
    context.log.warn("cannot read the use of GPUs: " + to_line(gpus.error()) + ", ignoring");
  }
  return measured;
}

std::string metrics_text(const Measured& measured) {
  return states_text(measured.containers) + containers_text(measured) + gpus_text(measured.gpus);
}

Result<void> write_metrics(const Context& context, const std::string& path) {
  Measured measured = TRY(measure_all(context));
  return sys::replace_file(sys::cwd(), path, metrics_text(measured), 0644);
}

Result<void> serve_metrics(const Context& context, const std::string& path) {
  Socket socket = TRY(Socket::listen(path));  // up to here a signal ends this process as usual
  sys::SignalMask before;
  sys::Fd signals = TRY(sys::receive_signals({SIGINT, SIGTERM, SIGHUP}));
  while (true) {
    std::vector<pollfd> entries = {{signals.get(), POLLIN, 0},
                                   {socket.listener().get(), POLLIN, 0}};
    TRY(sys::poll(entries, std::nullopt));
    std::optional<sys::ReceivedSignal> signal = TRY(sys::read_signal(signals));
    if (signal) return {};
    if (entries[1].revents == 0) continue;
    sys::Fd connection = TRY(sys::accept_connection(socket.listener()));
    auto answered = answer(context, connection, signals);
    if (!answered.ok()) context.log.warn(to_line(answered.error()) + ", ignoring");
  }
}

}  // namespace berth::engine
