// SPDX-License-Identifier: Apache-2.0
// berth-hub: what `berth hub` becomes. Its argument is the number of an open file that holds a
// hub::Order as JSON; or --for-job ADDRESS:PORT, with an image::JobOrder on standard input, when
// `berth slurm step` starts it. It writes nothing but lines: addresses and requests to standard
// output, warnings and errors to standard error.
#include <malloc.h>
#include <unistd.h>

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
#include "hub/reload.hpp"
#include "hub/request_log.hpp"
#include "hub/server.hpp"
#include "image/job_order.hpp"
#include "json/fields.hpp"
#include "sys/console.hpp"
#include "sys/file.hpp"
#include "sys/program.hpp"
#include "sys/pty.hpp"
#include "sys/signals.hpp"
#include "sys/thread.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMaxOrder = size_t{4} << 20;
constexpr size_t kMaxPem = size_t{1} << 20;
constexpr size_t kJobConnections = 1024;

void say(int stream, const std::string& line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  ignore(sys::write_stream(stream, line));  // nobody reads it: there is no place to say so
}

class ErrorStream final : public Log {
 public:
  void warn(const std::string& text) override {
    say(STDERR_FILENO, "berth-hub: warning: " + escape_controls(text) + "\n");
  }
  void debug(const std::string&) override {}
};

Result<Order> read_order(const std::string& number) {
  auto descriptor = parse_u64(number);
  if (!descriptor || *descriptor > 1'000'000) {
    return make_error(Kind::usage, "read the order: expected the number of an open file",
                      "berth hub, which starts this program");
  }
  sys::Fd file(static_cast<int>(*descriptor));
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

/// The hub that answers, which another one replaces when the configuration is read again. Who was
/// answered by the old one is so to the end.
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

  /// One call at a time.
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

/// Ends this program when nobody asks any more.
void watch_idle(const std::stop_token& stop, const JobFront& front, std::chrono::seconds most) {
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (front.idle() < most) continue;
    std::raise(SIGTERM);
    return;
  }
}

/// For the nodes of one job: listens, says where, and is then told on its standard input whom it
/// serves and what. Who calls before that waits.
Result<void> serve_job(const std::string& address) {
  ServerOptions options;
  options.listen.push_back(TRY(parse_endpoint(address)));
  options.connections = options.connections_per_address = kJobConnections;
  options.grace = std::chrono::seconds(1);
  transfer::Cancel cancel;
  ErrorStream log;
  std::unique_ptr<JobFront> front;
  std::unique_ptr<Server> server = TRY(Server::listen(
      std::move(options), [&](const Asked& asked) { return front->answer(asked); },
      [](const Asked&, const Note&, const Ended&) {}));
  for (const std::string& where : server->addresses()) {
    say(STDOUT_FILENO, "berth-hub: listening at " + where + "\n");
  }
  sys::Fd in(STDIN_FILENO);
  std::string text = TRY(sys::read_all(in, "the order", kMaxOrder));
  image::JobOrder order = TRY(image::parse_job_order(text));
  const std::chrono::seconds idle(order.idle_seconds);
  front = TRY(JobFront::make(std::move(order), cancel, log));
  auto watcher =
      sys::start_thread([&](const std::stop_token& stop) { watch_idle(stop, *front, idle); });
  Result<void> served = server->run(cancel, [] {});
  cancel.request();
  return served;
}

Result<void> run(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return make_error(Kind::usage, "this is a part of berth", "berth hub --help");
  }
  if (words.size() == 3 && words[1] == "--for-job") return serve_job(words[2]);
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
    // Beside the hub that runs with this configuration its addresses are taken.
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
    // Of a terminal that is no more the same signal means that nobody is there.
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
  using namespace berth;
  // Dozens of threads that seldom allocate: an arena for each would be most of the memory.
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
