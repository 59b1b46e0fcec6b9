// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/base64.hpp"

#include <openssl/evp.h>

#include "base/text.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kMaxText = size_t{4} << 20;

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                               reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string padded(trim(text));
  if (padded.size() > kMaxText) return std::nullopt;
  while (padded.size() % 4 != 0) padded += '=';
  std::string bytes(padded.size() / 4 * 3 + 1, '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<const unsigned char*>(padded.data()),
                               static_cast<int>(padded.size()));
  if (length < 0) return std::nullopt;
  size_t padding = padded.ends_with("==") ? 2 : padded.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<size_t>(length) - padding);
  return bytes;
}

}  // namespace berth::transfer
