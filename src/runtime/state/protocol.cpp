// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/protocol.hpp"

#include <algorithm>
#include <array>

#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/stream.hpp"

namespace berth::runtime {
namespace {

template <size_t N>
void copy_text(char (&out)[N], std::string_view text) {
  size_t length = std::min(text.size(), N - 1);
  std::copy_n(text.begin(), length, out);
  out[length] = '\0';
}

}  // namespace

ChildReport to_report(const Error& error, Stage stage) {
  ChildReport report;
  report.stage = stage;
  report.kind = error.kind;
  report.sys_errno = error.sys_errno;
  std::string text;
  for (auto context = error.context.rbegin(); context != error.context.rend(); ++context) {
    text += *context + ": ";
  }
  copy_text(report.text, text + error.what);
  copy_text(report.hint, error.hint);
  return report;
}

Error to_error(const ChildReport& report) {
  Error error;
  error.kind = report.kind;
  error.sys_errno = report.sys_errno;
  error.what = report.text;
  error.hint = report.hint;
  return error;
}

Result<void> Channel::send(Message message, std::string_view text, int64_t number,
                           const sys::Fd& passed) const {
  ChildReport report;
  report.message = message;
  report.number = number;
  copy_text(report.text, text);
  return sys::send_message(fd_, &report, sizeof report, passed);
}

Result<void> Channel::send(const ChildReport& report) const {
  return sys::send_message(fd_, &report, sizeof report, {});
}

Result<std::optional<Channel::Incoming>> Channel::receive() const {
  Incoming incoming;
  sys::Received received = TRY(sys::receive_message(fd_, &incoming.report, sizeof incoming.report));
  if (received.size == 0) return std::optional<Incoming>();
  if (received.size != sizeof incoming.report) {
    return make_error(Kind::bug,
                      "receive a message of " + std::to_string(received.size) + " bytes");
  }
  incoming.passed = std::move(received.passed);
  return std::optional<Incoming>(std::move(incoming));
}

Result<void> Channel::offer_listener(int listener) const {
  ChildReport report;
  report.message = Message::listener;
  report.number = listener;
  std::string_view bytes(reinterpret_cast<const char*>(&report), sizeof report);
  TRY(sys::write_all(fd_, bytes, "the runtime"));
  std::array<char, sizeof report> answer;
  size_t count = TRY(sys::read_some(fd_, answer, "the runtime"));
  if (count != 0) return {};
  return make_error(Kind::interrupted, "hand over the seccomp listener: the runtime has ended");
}

Result<void> Channel::acknowledge_listener() const {
  return send(Message::listener);
}

Result<ChildReport> Channel::expect(Message wanted) const {
  return TRY(expect_passed(wanted)).report;
}

Result<Channel::Incoming> Channel::expect_passed(Message wanted) const {
  std::optional<Incoming> incoming = TRY(receive());
  if (!incoming) return make_error(Kind::interrupted, "wait for the other side: it has ended");
  if (incoming->report.message != wanted) {
    return make_error(Kind::bug, "receive an unexpected message");
  }
  return std::move(*incoming);
}

}  // namespace berth::runtime
