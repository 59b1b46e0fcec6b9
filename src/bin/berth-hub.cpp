// SPDX-License-Identifier: Apache-2.0
// berth-hub: what `berth hub` becomes. Its argument is the number of an open file that holds a
// hub::Order as JSON. It writes nothing but lines: addresses and requests to standard output,
// warnings and errors to standard error.
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <exception>
#include <mutex>
#include <vector>

#include "base/text.hpp"
#include "hub/config/config.hpp"
#include "hub/hub.hpp"
#include "hub/request_log.hpp"
#include "hub/server.hpp"
#include "json/fields.hpp"
#include "sys/console.hpp"
#include "sys/file.hpp"
#include "sys/program.hpp"
#include "sys/signals.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMaxOrder = size_t{4} << 20;
constexpr size_t kMaxPem = size_t{1} << 20;

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
  if (order.config.listen.empty()) order.config.listen.emplace_back(kUsualListen);
  TRY(check(order.config));
  return order;
}

Result<ServerOptions> server_options(const Config& config) {
  ServerOptions options;
  for (const std::string& text : config.listen) options.listen.push_back(TRY(parse_endpoint(text)));
  if (!config.tls_certificate.empty()) {
    TlsOptions& tls = options.tls.emplace();
    tls.certificate = TRY(sys::read_file(sys::cwd(), config.tls_certificate, kMaxPem));
    tls.key = TRY(sys::read_file(sys::cwd(), config.tls_key, kMaxPem));
  }
  options.connections = config.limits.connections;
  options.connections_per_address = connections_per_address(config.limits);
  options.transfers = config.limits.transfers;
  return options;
}

Result<void> run(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return make_error(Kind::usage, "this is a part of berth", "berth hub --help");
  }
  Order order = TRY(read_order(words[1]));
  const LogForm form = order.config.log;
  const bool check_alone = order.check;
  ServerOptions options = TRY(server_options(order.config));
  transfer::Cancel cancel;
  ErrorStream log;
  std::unique_ptr<Hub> hub = TRY(Hub::make(std::move(order), cancel, log));
  std::unique_ptr<Server> server = TRY(Server::listen(
      std::move(options), [&hub](const Asked& asked) { return hub->answer(asked); },
      [form](const Asked& asked, const Note& note, const Ended& ended) {
        say(STDOUT_FILENO, request_line(form, asked, note, ended, std::time(nullptr)));
      }));
  for (const std::string& address : server->addresses()) {
    say(STDOUT_FILENO, "berth-hub: listening at " + address + "\n");
  }
  if (check_alone) return {};
  return server->run(cancel);
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
