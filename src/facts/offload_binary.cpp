// SPDX-License-Identifier: Apache-2.0
#include "facts/offload_binary.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "facts/window.hpp"

namespace berth::facts {
namespace {

constexpr std::string_view kBinaryMagic = "\x10\xff\x10\xad";
constexpr size_t kBinaryHeader = 32, kEntry = 40, kString = 16;
constexpr size_t kMaxTarget = 64;        // "gfx90a:sramecc+:xnack-"
constexpr uint64_t kMaxStrings = 16;     // there are two: "arch" and "triple"
constexpr uint64_t kMaxBinaries = 1024;  // one for each target of a program
constexpr uint64_t kObject = 1, kBitcode = 2, kCubinImage = 3, kPtxImage = 5;  // kinds of images

Error corrupt_binary(std::string_view what) {
  return make_error(Kind::corrupt, "offload binary: " + std::string(what));
}

/// One of them, and where it is.
class Binary {
 public:
  Binary(Window& file, uint64_t at, uint64_t size) : file_(file), at_(at), size_(size) {}

  Result<std::string> bytes(uint64_t offset, size_t length) {
    if (offset > size_ || length > size_ - offset) return corrupt_binary("table");
    std::string_view found = TRY(file_.need(at_ + offset, length, "offload binary: table"));
    return std::string(found);
  }
  /// A name that ends with a zero.
  Result<std::string> text(uint64_t offset) {
    if (offset >= size_) return corrupt_binary("name");
    size_t most = static_cast<size_t>(std::min<uint64_t>(size_ - offset, kMaxTarget));
    std::string found = TRY(bytes(offset, most));
    size_t end = found.find('\0');
    if (end == std::string::npos) return corrupt_binary("name");
    return found.substr(0, end);
  }

 private:
  Window& file_;
  uint64_t at_, size_;
};

/// The value of "arch"; empty if there is none.
Result<std::string> arch_of(Binary& binary, uint64_t strings_at, uint64_t count) {
  if (count > kMaxStrings) return corrupt_binary("too many names");
  for (uint64_t i = 0; i < count; ++i) {
    std::string row = TRY(binary.bytes(strings_at + i * kString, kString));
    std::string key = TRY(binary.text(number_at(row, 0, 8)));
    if (key == "arch") return binary.text(number_at(row, 8, 8));
  }
  return std::string();
}

/// "gfx90a:xnack+", or "sm_90a" with the kind of image.
void add_target(std::string_view arch, uint64_t kind, FoundCode& found) {
  constexpr std::string_view kNvidia = "sm_";
  if (arch.starts_with("gfx") && (kind == kObject || kind == kBitcode)) {
    found.code.insert({GpuCode::Kind::gfx, std::string(arch), ""});
  } else if (arch.starts_with(kNvidia)) {
    auto code = kind == kObject || kind == kCubinImage ? GpuCode::Kind::sass
                : kind == kPtxImage                    ? GpuCode::Kind::ptx
                                                       : GpuCode::Kind::ir;
    found.code.insert({code, std::string(arch.substr(kNvidia.size())), ""});
  }
}

}  // namespace

Result<void> read_offload_binaries(const scan::ReadAt& read_at, uint64_t offset, uint64_t size,
                                   FoundCode& found) {
  if (size > UINT64_MAX - offset) return corrupt_binary("section outside of the file");
  Window file(read_at);
  uint64_t count = 0;
  for (uint64_t at = 0; size - at >= kBinaryHeader;) {
    if (++count > kMaxBinaries) return corrupt_binary("too many of them");
    std::string_view header = TRY(file.need(offset + at, kBinaryHeader, "offload binary: header"));
    if (!header.starts_with(kBinaryMagic)) return corrupt_binary("no header here");
    uint64_t version = number_at(header, 4, 4), length = number_at(header, 8, 8);
    uint64_t entry_at = number_at(header, 16, 8);
    if (version != 1) {
      return make_error(Kind::unsupported,
                        "offload binary: version " + std::to_string(version) + " is not known");
    }
    if (length < kBinaryHeader + kEntry || length > size - at) {
      return corrupt_binary("it is longer than its section");
    }
    Binary binary(file, offset + at, length);
    std::string entry = TRY(binary.bytes(entry_at, kEntry));
    std::string arch = TRY(arch_of(binary, number_at(entry, 8, 8), number_at(entry, 16, 8)));
    if (number_at(entry, 32, 8) != 0) add_target(arch, number_at(entry, 0, 2), found);
    ++found.members;
    uint64_t aligned = (length + 7) / 8 * 8;
    if (aligned > size - at) break;
    at += aligned;
  }
  return {};
}

}  // namespace berth::facts
