// SPDX-License-Identifier: Apache-2.0
#include "hub/htpasswd.hpp"

#include <crypt.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include <mutex>
#include <semaphore>
#include <set>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostAccounts = 100'000;
constexpr size_t kMostName = 255;
constexpr size_t kMostPassword = 1024;
constexpr size_t kMostKnownUsers = 4096;
constexpr uint64_t kMostCost = 14;  // a second or so
constexpr size_t kHashSize = 60;
constexpr ptrdiff_t kAtOnce = 2;
/// A bcrypt hash of an unknown password, with the default cost of htpasswd.
constexpr const char* kNobody = "$2y$05$rhCb5GifURF0XCMYM0OUsOXEca8tQKjfcliBXKxR6LWrKt6Fl2jmO";

/// Checks that a hash is "$2y$05$" and 53 characters. The errors do not name the account.
Result<void> check_hash(std::string_view hash) {
  bool bcrypt = hash.starts_with("$2y$") || hash.starts_with("$2b$") || hash.starts_with("$2a$");
  if (!bcrypt) {
    return make_error(Kind::usage, "the hash is not a bcrypt hash", "htpasswd -B FILE NAME");
  }
  constexpr std::string_view kDigits =
      "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  auto cost = hash.size() == kHashSize ? parse_u64(hash.substr(4, 2)) : std::nullopt;
  bool whole = cost && hash[6] == '$' && *cost >= 4 &&
               hash.substr(7).find_first_not_of(kDigits) == std::string_view::npos;
  if (!whole) return make_error(Kind::corrupt, "the hash is truncated");
  if (*cost > kMostCost) {
    return make_error(Kind::usage,
                      fmt::format("a cost of {} makes every login slow; at most {} is allowed",
                                  *cost, kMostCost));
  }
  return {};
}

bool matches(const std::string& password, const std::string& hash) {
  auto data = std::make_unique<crypt_data>();
  const char* made = crypt_r(password.c_str(), hash.c_str(), data.get());
  bool same = made != nullptr && hash.size() == std::string_view(made).size() &&
              CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(data.get(), sizeof(*data));
  return same;
}

}  // namespace

/// Verified pairs of account and password, hashed with a key of this process.
struct Htpasswd::Known {
  const std::string key = sys::random_hex(32);
  std::mutex mutex;
  std::set<std::string> pairs;
  std::counting_semaphore<kAtOnce> slots{kAtOnce};

  std::string name_of(const std::string& account, const std::string& password) const {
    return transfer::sha256_of(fmt::format("{}:{}:{}{}", key, account.size(), account, password))
        .hex();
  }
  bool has(const std::string& name) {
    std::lock_guard lock(mutex);
    return pairs.contains(name);
  }
  void add(const std::string& name) {
    std::lock_guard lock(mutex);
    if (pairs.size() >= kMostKnownUsers) pairs.clear();
    pairs.insert(name);
  }
};

Htpasswd::Htpasswd() : known_(std::make_unique<Known>()) {}
Htpasswd::~Htpasswd() = default;
Htpasswd::Htpasswd(Htpasswd&&) noexcept = default;
Htpasswd& Htpasswd::operator=(Htpasswd&&) noexcept = default;

Result<Htpasswd> Htpasswd::parse(std::string_view text, std::string_view document) {
  Htpasswd file;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string place = fmt::format("{}:{}: ", document, number);
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon > kMostName) {
      return make_error(Kind::corrupt, place + "expected NAME:HASH");
    }
    std::string_view hash = line.substr(colon + 1);
    auto checked = check_hash(hash);
    if (!checked.ok()) {
      Error error = std::move(checked).error();
      error.what = place + error.what;
      return error;
    }
    std::string name(line.substr(0, colon));
    if (!file.hashes_.emplace(name, hash).second) {
      return make_error(Kind::usage, place + quote(name) + " is given twice");
    }
    if (file.hashes_.size() > kMostAccounts) {
      return make_error(Kind::usage, fmt::format("{}more than {} accounts", place, kMostAccounts));
    }
  }
  if (file.hashes_.empty()) {
    return make_error(Kind::usage, fmt::format("{}: it has no account", document));
  }
  return file;
}

bool Htpasswd::has(std::string_view account) const {
  return hashes_.find(account) != hashes_.end();
}

bool Htpasswd::verify(const std::string& account, const std::string& password) const {
  bool sound = account.size() <= kMostName && password.size() <= kMostPassword &&
               password.find('\0') == std::string::npos;
  if (!sound) return false;
  std::string name = known_->name_of(account, password);
  if (known_->has(name)) return true;
  auto hash = hashes_.find(account);
  known_->slots.acquire();
  bool right = matches(password, hash != hashes_.end() ? hash->second : kNobody);
  known_->slots.release();
  if (!right || hash == hashes_.end()) return false;
  known_->add(name);
  return true;
}

}  // namespace berth::hub
