// SPDX-License-Identifier: Apache-2.0
// berth-scope: asks systemd for the scope of one container. berth-runtime is static and there is no
// static libsystemd, so it executes this program if it is configured to use systemd. It reads one
// scope::Request, decides nothing, and prints one scope::Answer.
#include <fmt/format.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include "base/result.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "scope/request.hpp"

namespace berth::scope {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr std::chrono::seconds kPatience{60};

struct BusCloser {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct MessageCloser {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Bus = std::unique_ptr<sd_bus, BusCloser>;
using Message = std::unique_ptr<sd_bus_message, MessageCloser>;

Result<void> check(int code, const std::string& what) {
  if (code < 0) return sys_error(-code, what);
  return {};
}

/// The error that systemd returns for a call.
struct BusError {
  sd_bus_error value = SD_BUS_ERROR_NULL;
  BusError() = default;
  BusError(BusError&&) = delete;
  ~BusError() { sd_bus_error_free(&value); }

  bool is(const char* name) const { return sd_bus_error_has_name(&value, name) != 0; }
  Kind kind() const {
    if (is("org.freedesktop.systemd1.UnitExists")) return Kind::exists;
    if (is("org.freedesktop.systemd1.NoSuchUnit")) return Kind::not_found;
    if (is(SD_BUS_ERROR_ACCESS_DENIED)) return Kind::denied;
    if (is(SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED)) return Kind::denied;
    if (is(SD_BUS_ERROR_PROPERTY_READ_ONLY)) return Kind::unsupported;
    if (is(SD_BUS_ERROR_UNKNOWN_PROPERTY)) return Kind::unsupported;
    return kind_from_errno(sd_bus_error_get_errno(&value));
  }
  Error error(const std::string& what) const {
    std::string reason = value.message != nullptr ? value.message : "no reason given";
    return make_error(kind(), what + ": " + reason);
  }
};

Result<Message> new_call(const Bus& bus, const char* method) {
  sd_bus_message* message = nullptr;
  TRY(check(
      sd_bus_message_new_method_call(bus.get(), &message, kService, kManagerPath, kManager, method),
      std::string("make a call of ") + method));
  return Message(message);
}

Result<void> append_value(sd_bus_message* call, const Property& property) {
  auto added = [&](int code) { return check(code, "add property " + quote(property.name)); };
  if (property.number) return added(sd_bus_message_append(call, "v", "t", *property.number));
  if (property.flag) return added(sd_bus_message_append(call, "v", "b", int{*property.flag}));
  if (property.text) return added(sd_bus_message_append(call, "v", "s", property.text->c_str()));
  if (property.bits) {
    TRY(added(sd_bus_message_open_container(call, 'v', "ay")));
    TRY(added(
        sd_bus_message_append_array(call, 'y', property.bits->data(), property.bits->size())));
    return added(sd_bus_message_close_container(call));
  }
  if (!property.devices) {
    return make_error(Kind::bug, "property " + quote(property.name) + " without a value");
  }
  TRY(added(sd_bus_message_open_container(call, 'v', "a(ss)")));
  TRY(added(sd_bus_message_open_container(call, 'a', "(ss)")));
  for (const auto& device : *property.devices) {
    TRY(added(sd_bus_message_append(call, "(ss)", device.node.c_str(), device.access.c_str())));
  }
  TRY(added(sd_bus_message_close_container(call)));
  return added(sd_bus_message_close_container(call));
}

/// Appends the properties as an array of (name, value).
Result<void> append_properties(const Message& message, const Request& request) {
  constexpr const char* kText = "add the properties";
  sd_bus_message* call = message.get();
  TRY(check(sd_bus_message_open_container(call, 'a', "(sv)"), kText));
  if (request.verb == "start") {
    auto pid = static_cast<uint32_t>(request.pid);
    TRY(check(sd_bus_message_append(call, "(sv)", "PIDs", "au", 1, pid), kText));
  }
  for (const auto& property : request.properties) {
    TRY(check(sd_bus_message_open_container(call, 'r', "sv"), kText));
    TRY(check(sd_bus_message_append(call, "s", property.name.c_str()), kText));
    TRY(append_value(call, property));
    TRY(check(sd_bus_message_close_container(call), kText));
  }
  return check(sd_bus_message_close_container(call), kText);
}

// ---- jobs ---------------------------------------------------------------------------------------

/// systemd's jobs that have ended so far. Our job may end before the reply that names it.
using EndedJobs = std::vector<std::pair<std::string, std::string>>;

int note_job(sd_bus_message* signal, void* ended, sd_bus_error*) {
  uint32_t id = 0;
  const char* job = nullptr;
  const char* unit = nullptr;
  const char* result = nullptr;
  int read = sd_bus_message_read(signal, "uoss", &id, &job, &unit, &result);
  if (read >= 0) static_cast<EndedJobs*>(ended)->emplace_back(job, result);
  return 0;
}

Result<void> listen_for_jobs(const Bus& bus, EndedJobs& ended) {
  return check(sd_bus_match_signal(bus.get(), nullptr, kService, kManagerPath, kManager,
                                   "JobRemoved", note_job, &ended),
               "listen for JobRemoved");
}

Result<std::string> await_job(const Bus& bus, const EndedJobs& ended, const std::string& job) {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    int handled = sd_bus_process(bus.get(), nullptr);
    TRY(check(handled, "read from the bus"));
    for (const auto& [name, result] : ended) {
      if (name == job) return result;
    }
    constexpr uint64_t kSecond = 1'000'000;
    if (handled == 0) TRY(check(sd_bus_wait(bus.get(), kSecond), "wait for the bus"));
  }
  return make_error(Kind::interrupted, "wait for systemd: timed out");
}

// ---- verbs --------------------------------------------------------------------------------------

/// Sends `message`; returns the reply, or the refusal.
Result<Message> call(const Bus& bus, const Message& message, BusError& error,
                     const std::string& what) {
  sd_bus_message* reply = nullptr;
  int code = sd_bus_call(bus.get(), message.get(), 0, &error.value, &reply);
  if (code < 0) return error.error(what);
  return Message(reply);
}

Result<std::string> await_reply(const Bus& bus, const EndedJobs& ended, const Message& reply) {
  const char* job = nullptr;
  TRY(check(sd_bus_message_read(reply.get(), "o", &job), "read the name of a job"));
  return await_job(bus, ended, job);
}

Result<std::string> control_group(const Bus& bus, const std::string& unit) {
  char* encoded = nullptr;
  TRY(check(sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit.c_str(), &encoded),
            "name unit " + quote(unit)));
  std::unique_ptr<char, decltype(&std::free)> path(encoded, &std::free);
  BusError error;
  char* text = nullptr;
  int code =
      sd_bus_get_property_string(bus.get(), kService, path.get(), "org.freedesktop.systemd1.Scope",
                                 "ControlGroup", &error.value, &text);
  std::unique_ptr<char, decltype(&std::free)> group(text, &std::free);
  if (code < 0) return error.error("ask for the control group of " + quote(unit));
  return std::string(group.get());
}

Result<Answer> start(const Bus& bus, const Request& request) {
  std::string what = "start unit " + quote(request.unit);
  EndedJobs ended;
  TRY(listen_for_jobs(bus, ended));
  Message message = TRY(new_call(bus, "StartTransientUnit"));
  TRY(check(sd_bus_message_append(message.get(), "ss", request.unit.c_str(), "fail"), what));
  TRY(append_properties(message, request));
  TRY(check(sd_bus_message_append(message.get(), "a(sa(sv))", 0), what));
  BusError error;
  Message reply = TRY(call(bus, message, error, what));
  std::string result = TRY(await_reply(bus, ended, reply));
  if (result != "done") return make_error(Kind::io, what + ": the job ended as " + quote(result));
  Answer answer;
  answer.control_group = TRY(control_group(bus, request.unit));
  // The process may have ended meanwhile, and the scope with it.
  if (answer.control_group.empty()) return make_error(Kind::interrupted, what + ": it has ended");
  return answer;
}

Result<Answer> update(const Bus& bus, const Request& request) {
  std::string what = "change unit " + quote(request.unit);
  Message message = TRY(new_call(bus, "SetUnitProperties"));
  constexpr int kUntilReboot = 1;
  TRY(check(sd_bus_message_append(message.get(), "sb", request.unit.c_str(), kUntilReboot), what));
  TRY(append_properties(message, request));
  BusError error;
  TRY(call(bus, message, error, what));
  return Answer{};
}

Result<Answer> attach(const Bus& bus, const Request& request) {
  std::string what = "move process " + std::to_string(request.pid) + " into " + quote(request.unit);
  Message message = TRY(new_call(bus, "AttachProcessesToUnit"));
  auto pid = static_cast<uint32_t>(request.pid);
  constexpr const char* kItself = "";  // the control group of the unit itself
  TRY(check(sd_bus_message_append(message.get(), "ssau", request.unit.c_str(), kItself, 1, pid),
            what));
  BusError error;
  TRY(call(bus, message, error, what));
  return Answer{};
}

/// Stops the unit. A missing unit is not an error.
Result<Answer> stop(const Bus& bus, const Request& request) {
  std::string what = "stop unit " + quote(request.unit);
  EndedJobs ended;
  TRY(listen_for_jobs(bus, ended));
  Message message = TRY(new_call(bus, "StopUnit"));
  TRY(check(sd_bus_message_append(message.get(), "ss", request.unit.c_str(), "replace"), what));
  BusError error;
  auto reply = call(bus, message, error, what);
  if (!reply.ok() && reply.error().kind == Kind::not_found) return Answer{};
  Message accepted = TRY(std::move(reply));
  std::string result = TRY(await_reply(bus, ended, accepted));
  if (result != "done") return make_error(Kind::io, what + ": the job ended as " + quote(result));
  return Answer{};
}

Result<std::string> read_input() {
  constexpr size_t kMost = size_t{4} << 20;
  std::string text;
  std::array<char, 4096> part{};
  while (size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    text.append(part.data(), count);
    if (text.size() > kMost) return make_error(Kind::usage, "read the request: it is too long");
  }
  return text;
}

/// Connects to the manager's private socket, because a user may not have a message bus.
Result<Bus> connect_to_manager(const std::string& directory) {
  std::string place = directory + "/systemd/private";
  std::string what = "connect to the user's systemd at " + quote(place);
  sd_bus* connection = nullptr;
  TRY(check(sd_bus_new(&connection), what));
  Bus bus(connection);
  // An address encodes every byte that is not a plain letter as '%' and a number.
  std::string address = "unix:path=";
  for (char c : place) {
    bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("-_/.\\", c) != nullptr;
    address += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  TRY(check(sd_bus_set_address(connection, address.c_str()), what));
  TRY(check(sd_bus_start(connection), what));
  return bus;
}

Result<Bus> connect(const Request& request) {
  if (!request.runtime_directory.empty()) {
    auto direct = connect_to_manager(request.runtime_directory);
    if (direct.ok()) return direct;
  }
  sd_bus* connection = nullptr;
  int code = request.user ? sd_bus_open_user(&connection) : sd_bus_open_system(&connection);
  Bus bus(connection);
  TRY(check(code, request.user ? "connect to the user's bus" : "connect to the system's bus"));
  return bus;
}

Result<Answer> answer_to(const Request& request) {
  Bus bus = TRY(connect(request));
  if (request.verb == "start") return start(bus, request);
  if (request.verb == "attach") return attach(bus, request);
  if (request.verb == "update") return update(bus, request);
  if (request.verb == "stop") return stop(bus, request);
  return make_error(Kind::usage,
                    "verb: expected start, attach, update or stop, got " + quote(request.verb));
}

Result<Answer> serve() {
  std::string text = TRY(read_input());
  auto request = TRY(json::read<Request>(text, "request"));
  return answer_to(request);
}

int print(const Answer& answer) {
  std::string text = json::write(answer) + "\n";
  bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 && !answer.kind ? 0 : 1;
}

int fail(Error error) {
  Answer answer;
  answer.kind = std::string(kind_name(error.kind));
  answer.what = to_line(error);
  return print(answer);
}

}  // namespace
}  // namespace berth::scope

int main() {
  try {
    auto answer = berth::scope::serve();
    return answer.ok() ? berth::scope::print(*answer)
                       : berth::scope::fail(std::move(answer).error());
  } catch (const std::exception& exception) {
    return berth::scope::fail(
        berth::make_error(berth::Kind::bug, std::string("unexpected: ") + exception.what()));
  }
}
