// SPDX-License-Identifier: Apache-2.0
// Tars that nobody would think of, the same for the same seed.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "unit/transfer/tar/tar_builder.hpp"

namespace berth::transfer {

class RandomLayer {
 public:
  explicit RandomLayer(unsigned seed) : random_(seed) {}

  /// Few names, so that entries meet; links anywhere, whiteouts, names that go up.
  std::string hostile(int entries) {
    for (int i = 0; i < entries; ++i) hostile_entry();
    return tar_.finish();
  }

  /// What an honest layer may have, with sizes around those of blocks, and a directory of
  /// `most` entries.
  std::string honest(int directories, size_t most) {
    for (int i = 0; i < directories; ++i) {
      std::string path =
          i == 0 ? "top/" : directories_[below(directories_.size())] + name(40) + "/";
      if (below(4) != 0) describe({.name = path, .type = '5', .mode = 0700 + below(0100)}, "");
      directories_.push_back(path);
      fill(path, i == 1 ? most : i == 2 ? 100 : below(4));
    }
    return tar_.finish();
  }

 private:
  unsigned below(size_t limit) { return static_cast<unsigned>(random_() % limit); }

  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  std::string bytes(size_t size) {
    std::string text(size, '\0');
    for (char& byte : text) byte = static_cast<char>(random_());
    return text;
  }

  /// Its length is any at all; its bytes are any that a name may have. None is given twice.
  std::string name(size_t usual) {
    while (true) {
      size_t length = below(10) == 0 ? 1 + below(250) : 1 + below(usual);
      std::string text;
      while (text.size() < length) {
        char byte = static_cast<char>(random_());
        if (byte != '\0' && byte != '/') text += byte;
      }
      if (!text.starts_with('.') && names_.insert(text).second) return text;
    }
  }

  /// With what a plain header has no room for.
  void describe(TarBuilder::Header header, const std::string& content,
                std::vector<std::pair<std::string, std::string>> records = {}) {
    header.uid = below(3) == 0 ? below(2'000'000) : 0;
    header.gid = below(3) == 0 ? below(2'000'000) : 0;
    header.mtime = static_cast<long>(below(1'700'000'000));
    std::string time = std::to_string(header.mtime) + "." + std::to_string(1 + below(999'999'999));
    records.emplace_back("mtime", time);
    if (header.name.size() > 99) records.emplace_back("path", header.name);
    if (header.link.size() > 99) records.emplace_back("linkpath", header.link);
    if (header.name.size() > 99) header.name.resize(99);
    if (header.link.size() > 99) header.link.resize(99);
    tar_.pax(records).add(header, content);
  }

  void fill(const std::string& directory, size_t count) {
    static const std::vector<size_t> kSizes = {0,    1,    31,   100,  4000,  4031,   4032,
                                               4033, 4095, 4096, 4097, 12288, 200'000};
    for (size_t i = 0; i < count; ++i) {
      std::string path = directory + name(30);
      std::vector<std::pair<std::string, std::string>> records;
      if (below(8) == 0) {
        records.emplace_back("SCHILY.xattr.user." + name(20), bytes(below(300)));
      }
      switch (below(12)) {
        case 0:
          describe({.name = path, .type = '2', .link = bytes_for_link()}, "");
          break;
        case 1:
          if (files_.empty()) break;
          describe({.name = path, .type = '1', .link = one_of(files_)}, "");
          break;
        case 2:
          describe({.name = path,
                    .type = one_of<char>({'3', '4', '6'}),
                    .mode = below(01000),
                    .major = 1 + below(0xfff),
                    .minor = below(0x1fffff) / 2},
                   "");
          break;
        case 3:
          describe({.name = directory + ".wh." + name(30)}, "");
          break;
        default:
          // Many of the large directory's are small.
          describe({.name = path, .mode = below(010000)},
                   bytes(count > 1000 && below(50) != 0 ? below(64) : one_of(kSizes)), records);
          files_.push_back(path);
      }
    }
    if (below(5) == 0) describe({.name = directory + ".wh..wh..opq"}, "");
  }

  std::string bytes_for_link() {
    size_t length = below(20) == 0 ? 4000 + below(96) : 1 + below(100);
    return std::string(length, 'x');
  }

  std::string hostile_path() {
    static const std::vector<std::string> kNames = {"a", "b", "c", "d", "e", "f", "+", "."};
    std::string path;
    for (unsigned parts = 1 + below(3); parts > 0; --parts) {
      if (!path.empty()) path += '/';
      path += below(400) == 0 ? ".." : one_of(kNames);
    }
    return path;
  }

  std::string hostile_target() {
    static const std::vector<std::string> kTargets = {"a",     "b",      "a/b", "../a", "../../b",
                                                      "/a",    "c/../d", "./d", ".",    "..",
                                                      "a//b/", "+/.",    "c",   "d/a",  "../c/./d"};
    return one_of(kTargets);
  }

  void hostile_entry() {
    std::string path = hostile_path();
    std::string above = path.find('/') == path.npos ? "" : path.substr(0, path.rfind('/') + 1);
    switch (below(14)) {
      case 0:
      case 1:
      case 2:
        return describe({.name = path, .type = '5', .mode = 0755}, "");
      case 3:
      case 4:
        return describe({.name = path, .type = '2', .link = hostile_target()}, "");
      case 5:
        if (below(3) == 0) files_.push_back(hostile_path());
        if (files_.empty()) return;
        return describe({.name = path, .type = '1', .link = one_of(files_)}, "");
      case 6:
        return describe({.name = above + ".wh." + one_of<std::string>({"a", "b", "c", "d"})}, "");
      case 7:
        return describe({.name = above + ".wh..wh..opq"}, "");
      case 8:
        return describe({.name = path, .type = one_of<char>({'3', '6'}), .minor = 1}, "");
      case 9:
        if (below(10) != 0) return;
        return describe(
            {.name = above + one_of<std::string>({".wh.", ".wh...", ".wh.a/b", ".wh..wh.plnk/x"})},
            "");
      default:
        files_.push_back(path);
        return describe({.name = path, .mode = below(010000)}, bytes(below(50)));
    }
  }

  std::mt19937 random_;
  TarBuilder tar_;
  std::vector<std::string> directories_;
  std::vector<std::string> files_;
  std::set<std::string> names_;
};

}  // namespace berth::transfer
