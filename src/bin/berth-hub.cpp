// SPDX-License-Identifier: Apache-2.0
// berth-hub: executed by `berth hub`. Its argument is the number of a descriptor for a file that
// holds a hub::Order as JSON. For the nodes of a job the arguments are --for-job and the numbers of
// three descriptors: a listening socket, a file with the key of the nodes, and a file from which it
// reads an image::JobOrder. It prints only lines: addresses and requests on standard output,
// warnings and errors on standard error.
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "base/text.hpp"
#include "hub/config/config.hpp"
#include "hub/hub.hpp"
#include "hub/job_front.hpp"
#include "hub/request_log.hpp"
#include "hub/server.hpp"
#include "image/registry_access.hpp"
#include "json/fields.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/console.hpp"
#include "sys/process/program.hpp"
#include "sys/process/pty.hpp"
#include "sys/process/signals.hpp"
#include "sys/thread/thread.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMaxOrder = size_t{4} << 20;
constexpr size_t kMaxPem = size_t{1} << 20;
constexpr size_t kJobConnections = 1024;

void say(int stream, const std::string& line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  ignore(sys::write_stream(stream, line));  // without a reader an error cannot be reported
}

class ErrorStream final : public Log {
 public:
  void warn(const std::string& text) override {
    say(STDERR_FILENO, "berth-hub: warning: " + escape_controls(text) + "\n");
  }
  void debug(const std::string&) override {}
};

Result<sys::Fd> given_file(const std::string& number) {
  auto descriptor = parse_u64(number);
  if (!descriptor || *descriptor > 1'000'000) {
    return make_error(Kind::usage, "read the order: expected the number of an open file",
                      "berth hub, which starts this program");
  }
  return sys::Fd(static_cast<int>(*descriptor));
}

Result<Order> read_order(const std::string& number) {
  sys::Fd file = TRY(given_file(number));
  std::string text = TRY(sys::read_all(file, "the order", kMaxOrder));
  auto order = TRY(json::read<Order>(text, "order"));
  TRY(check(order.config));
  return order;
}

Result<std::optional<TlsOptions>> read_tls(const Config& config) {
  if (config.tls_certificate.empty()) return std::optional<TlsOptions>();
  TlsOptions tls;
  tls.certificate = TRY(sys::read_file(sys::cwd(), config.tls_certificate, kMaxPem));
  tls.key = TRY(sys::read_file(sys::cwd(), config.tls_key, kMaxPem));
  return std::optional(std::move(tls));
}

Result<ServerOptions> server_options(const Config& config) {
  ServerOptions options;
  for (const std::string& text : config.listen) options.listen.push_back(TRY(parse_endpoint(text)));
  options.tls = TRY(read_tls(config));
  options.connections = config.limits.connections;
  options.connections_per_address = connections_per_address(config.limits);
  options.transfers = config.limits.transfers;
  return options;
}

/// Holds the active hub. When the configuration is read again, a new hub replaces it; the old hub
/// finishes its running answers.
class Counter {
 public:
  Counter(Order order, const transfer::Cancel& cancel, Log& log)
      : order_(std::move(order)), cancel_(cancel), log_(log) {}

  Result<void> open() {
    set(TRY(Hub::make(order_, cancel_, log_)));
    return {};
  }

  Answer answer(const Asked& asked) {
    std::shared_ptr<Hub> hub = get();
    Answer answer = hub->answer(asked);
    if (!answer.stream) return answer;
    answer.stream = [hub, stream = std::move(answer.stream)](Output& output, Note& note) {
      return stream(output, note);
    };
    return answer;
  }

  /// Not to be called by two threads at once.
  void read_again(Server& server) {
    std::string fault;
    try {
      Result<void> done = replace(server);
      if (done.ok()) return say(STDOUT_FILENO, "berth-hub: the configuration was read again\n");
      fault = to_line(done.error());
    } catch (const std::exception& exception) {
      fault = exception.what();
    }
    log_.warn("cannot read the configuration again: " + fault + "; using the old one instead");
  }

 private:
  Result<void> replace(Server& server) {
    Renewed renewed = TRY(hub::read_again(order_));
    std::shared_ptr<Hub> hub = TRY(Hub::make(renewed.order, cancel_, log_));
    auto tls = TRY(read_tls(renewed.order.config));
    if (tls) TRY(server.renew_tls(*tls));
    if (!renewed.fixed.empty()) {
      log_.warn(join(renewed.fixed, ", ") +
                ": changed; using the old values until a restart instead");
    }
    set(std::move(hub));
    order_ = std::move(renewed.order);
    return {};
  }

  std::shared_ptr<Hub> get() {
    std::lock_guard lock(mutex_);
    return hub_;
  }
  void set(std::shared_ptr<Hub> hub) {
    std::lock_guard lock(mutex_);
    hub_.swap(hub);
  }

  Order order_;
  const transfer::Cancel& cancel_;
  Log& log_;
  std::mutex mutex_;
  std::shared_ptr<Hub> hub_;
};

/// Serves the nodes of one job, which have the key. Requests wait until the order, which names
/// nodes and image, has been read. SIGHUP asks the server to end when there are no requests any
/// more.
class JobServer {
 public:
  Result<void> serve(sys::Fd listener, std::string key, sys::Fd order) {
    order_ = std::move(order);
    ServerOptions options;
    options.listener = std::move(listener);
    options.tls = TlsOptions{.shared_key = std::move(key)};
    options.connections = options.connections_per_address = kJobConnections;
    options.grace = std::chrono::seconds(1);
    std::unique_ptr<Server> server = TRY(Server::listen(
        std::move(options), [this](const Asked& asked) { return answer(asked); },
        [](const Asked&, const Note&, const Ended&) {}));
    auto worker = sys::start_thread([this](const std::stop_token& stop) { work(stop); });
    if (!worker) return make_error(Kind::busy, "start a thread: the limit of processes is reached");
    Result<void> served = server->run(cancel_, [this] { leaving_ = true; });
    cancel_.request();
    worker.reset();
    return fault_ ? Result<void>(std::move(*fault_)) : std::move(served);
  }

 private:
  Answer answer(const Asked& asked) {
    constexpr std::chrono::seconds kForOrder{2};
    std::unique_lock lock(mutex_);
    if (!told_.wait_for(lock, kForOrder, [this] { return front_ != nullptr; })) {
      Answer later;
      later.reply = wait_a_moment();
      return later;
    }
    lock.unlock();
    return front_->answer(asked);  // front_ is set once and stays
  }

  /// Ends this program if the order is invalid, or when there are no requests any more.
  void work(const std::stop_token& stop) {
    auto opened = open(stop);
    if (!opened.ok()) {
      fault_ = std::move(opened).error();
    } else {
      while (!stop.stop_requested() && front_->idle() < (leaving_ ? kPause : idle_)) {
        std::this_thread::sleep_for(kLook);
      }
    }
    if (!stop.stop_requested()) std::raise(SIGTERM);
  }

  Result<void> open(const std::stop_token& stop) {
    std::vector<pollfd> entries{{order_.get(), POLLIN, 0}};
    while (TRY(sys::poll(entries, kLook)) == 0) {
      if (stop.stop_requested()) return {};
    }
    std::string text = TRY(sys::read_all(order_, "the order", kMaxOrder));
    order_.reset();
    image::JobOrder order = TRY(image::parse_job_order(text));
    idle_ = std::chrono::seconds(order.idle_seconds);
    auto front = TRY(JobFront::make(std::move(order), cancel_, log_));
    std::lock_guard lock(mutex_);
    front_ = std::move(front);
    told_.notify_all();
    return {};
  }

  static constexpr std::chrono::milliseconds kLook{200};
  /// The longest pause between two requests of a node that has not finished.
  static constexpr std::chrono::milliseconds kPause{2000};
  sys::Fd order_;
  transfer::Cancel cancel_;
  ErrorStream log_;
  std::optional<Error> fault_;  // of work()
  std::chrono::milliseconds idle_{0};
  std::atomic<bool> leaving_ = false;
  std::mutex mutex_;
  std::condition_variable told_;
  std::unique_ptr<JobFront> front_;  // set once
};

Result<void> serve_job(const std::vector<std::string>& numbers) {
  constexpr size_t kMaxKey = 256;
  sys::Fd listener = TRY(given_file(numbers[0]));
  sys::Fd secret = TRY(given_file(numbers[1]));
  sys::Fd order = TRY(given_file(numbers[2]));
  std::string key = TRY(sys::read_all(secret, "the key", kMaxKey));
  return JobServer().serve(std::move(listener), std::move(key), std::move(order));
}

Result<void> run(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return make_error(Kind::usage, "this is a part of berth", "berth hub --help");
  }
  if (words.size() == 5 && words[1] == "--for-job")
    return serve_job({words.begin() + 2, words.end()});
  Order order = TRY(read_order(words[1]));
  const LogForm form = order.config.log;
  const bool check_alone = order.check;
  ServerOptions options = TRY(server_options(order.config));
  transfer::Cancel cancel;
  ErrorStream log;
  Counter counter(std::move(order), cancel, log);
  TRY(counter.open());
  if (check_alone) {
    TRY(Server::check(options));
    // Does not listen: a running hub with this configuration uses the addresses.
    say(STDOUT_FILENO, "berth-hub: the configuration can be served\n");
    return {};
  }
  std::unique_ptr<Server> server = TRY(Server::listen(
      std::move(options), [&counter](const Asked& asked) { return counter.answer(asked); },
      [form](const Asked& asked, const Note& note, const Ended& ended) {
        say(STDOUT_FILENO, request_line(form, asked, note, ended, std::time(nullptr)));
      }));
  for (const std::string& address : server->addresses()) {
    say(STDOUT_FILENO, "berth-hub: listening at " + address + "\n");
  }
  const bool has_terminal = sys::is_terminal(STDERR_FILENO);
  return server->run(cancel, [&] {
    // If the terminal is gone, SIGHUP means that the user has closed it.
    if (has_terminal && !sys::is_terminal(STDERR_FILENO)) {
      std::raise(SIGTERM);
      return;
    }
    counter.read_again(*server);
  });
}

}  // namespace
}  // namespace berth::hub

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-hub")) return EXIT_FAILURE;
  using namespace berth;
  // Dozens of threads seldom allocate. An arena for each of them would take most of the memory.
  mallopt(M_ARENA_MAX, 2);
  sys::IgnoredSignal broken_pipe(SIGPIPE);
  try {
    Result<void> done = hub::run({argv, argv + argc});
    if (done.ok()) return EXIT_SUCCESS;
    hub::say(STDERR_FILENO, "berth-hub: " + to_line(done.error()) + "\n");
  } catch (const std::exception& exception) {
    hub::say(STDERR_FILENO, std::string("berth-hub: unexpected: ") + exception.what() + "\n");
  }
  return EXIT_FAILURE;
}
