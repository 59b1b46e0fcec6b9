// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

constexpr size_t kMostKeys = 256;
constexpr size_t kLongestWord = 256;

template <class T>
Result<std::string> text_of(const T& record) {
  std::string text = json::write(record);
  if (text.size() > kRecordSize) {
    return make_error(Kind::usage,
                      fmt::format("write down {} GPUs of container {}: no room in "
                                  "{} bytes",
                                  record.keys.size(), quote(record.container), kRecordSize));
  }
  text.resize(kRecordSize, ' ');
  return text;
}

// Our own records have no other characters.
bool is_word(std::string_view text) {
  auto plain = [](char c) { return c >= ' ' && c <= '~'; };
  return text.size() <= kLongestWord && std::ranges::all_of(text, plain);
}

template <class T>
Result<T> parse(std::string_view text, const char* name) {
  if (text.size() > kRecordSize) {
    return make_error(Kind::corrupt, fmt::format("{}: more than {} bytes", name, kRecordSize));
  }
  T record = TRY(json::read<T>(trim(text), name));
  bool fine = is_word(record.container) && is_word(record.name) && is_word(record.group) &&
              !record.group.empty() && record.keys.size() <= kMostKeys;
  for (const std::string& key : record.keys) fine = fine && is_word(key) && !key.empty();
  if (!fine) return make_error(Kind::corrupt, fmt::format("{}: not written by Berth", name));
  return record;
}

}  // namespace

Result<std::string> record_text(const Lease& lease) {
  return text_of(lease);
}

Result<std::string> record_text(const Ticket& ticket) {
  return text_of(ticket);
}

Result<Lease> parse_lease(std::string_view text) {
  Lease lease = TRY(parse<Lease>(text, "lease"));
  bool fine = is_word(lease.engine) && is_word(lease.life.boot) && lease.life.pid >= 0 &&
              lease.life.cgroup.size() <= kRecordSize &&
              (!lease.mps || (is_word(lease.mps->share) && !lease.mps->share.empty()));
  if (!fine) return make_error(Kind::corrupt, "lease: not written by Berth");
  return lease;
}

Result<Ticket> parse_ticket(std::string_view text) {
  return parse<Ticket>(text, "ticket");
}

std::string user_text(uid_t user) {
  constexpr uid_t kUnmappedUid = 65534;  // of all users without an id in this user namespace
  bool own = user == sys::effective_uid() && !sys::in_initial_user_namespace();
  if (own) return "this user";
  if (user == 0) return "root";
  return user == kUnmappedUid ? "another user" : fmt::format("user {}", user);
}

std::string holder_text(const std::string& name, const std::string& container, uid_t user) {
  std::string who = name.empty() ? container.substr(0, 12) : name;
  return fmt::format("container {} of {}", quote(who), user_text(user));
}

}  // namespace berth::gpu
