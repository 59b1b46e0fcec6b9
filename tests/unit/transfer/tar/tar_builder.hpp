// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace berth::transfer {

/// Makes tar archives member by member, well-formed or not.
class TarBuilder {
 public:
  struct Header {
    std::string name = {};
    char type = '0';
    std::string link = {};
    unsigned mode = 0644;
    unsigned uid = 0;
    unsigned gid = 0;
    long mtime = 1'700'000'000;
    unsigned major = 0;
    unsigned minor = 0;
    std::string size_field = {};  ///< instead of the true one
  };

  TarBuilder& add(const Header& header, const std::string& content = "") {
    std::string record(512, '\0');
    auto put = [&](size_t offset, size_t width, const std::string& text) {
      text.copy(record.data() + offset, width);
    };
    auto octal = [](unsigned long value, int digits) {
      char text[32];
      std::snprintf(text, sizeof text, "%0*lo", digits, value);
      return std::string(text);
    };
    put(0, 100, header.name);
    put(100, 8, octal(header.mode, 7));
    put(108, 8, octal(header.uid, 7));
    put(116, 8, octal(header.gid, 7));
    put(124, 12, header.size_field.empty() ? octal(content.size(), 11) : header.size_field);
    put(136, 12, octal(static_cast<unsigned long>(header.mtime), 11));
    put(148, 8, "        ");
    record[156] = header.type;
    put(157, 100, header.link);
    put(257, 8,
        std::string("ustar\0"
                    "00",
                    8));
    put(329, 8, octal(header.major, 7));
    put(337, 8, octal(header.minor, 7));
    unsigned sum = 0;
    for (char c : record) sum += static_cast<unsigned char>(c);
    put(148, 7, octal(sum, 6) + std::string(1, '\0'));
    bytes_ += record + content;
    bytes_.resize((bytes_.size() + 511) / 512 * 512, '\0');
    return *this;
  }

  TarBuilder& file(const std::string& name, const std::string& content = "x",
                   unsigned mode = 0644) {
    return add({.name = name, .mode = mode}, content);
  }
  TarBuilder& directory(const std::string& name, unsigned mode = 0755) {
    return add({.name = name, .type = '5', .mode = mode});
  }
  TarBuilder& symlink(const std::string& name, const std::string& target) {
    return add({.name = name, .type = '2', .link = target, .mode = 0777});
  }
  TarBuilder& hard_link(const std::string& name, const std::string& target) {
    return add({.name = name, .type = '1', .link = target});
  }
  /// An extended header for the next member.
  TarBuilder& pax(const std::vector<std::pair<std::string, std::string>>& records) {
    std::string text;
    for (const auto& [key, value] : records) {
      std::string body = " " + key + "=" + value + "\n";
      size_t length = body.size() + std::to_string(body.size()).size();
      if (std::to_string(length).size() + body.size() != length) {
        length = std::to_string(length).size() + body.size();
      }
      text += std::to_string(length) + body;
    }
    return add({.name = "pax", .type = 'x'}, text);
  }
  TarBuilder& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }

  /// With the two zero blocks.
  std::string finish() const { return bytes_ + std::string(1024, '\0'); }
  const std::string& unfinished() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace berth::transfer
