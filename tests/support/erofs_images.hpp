// SPDX-License-Identifier: Apache-2.0
// Images that our writer makes, for the tests of whoever writes and reads them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "erofs/writer.hpp"
#include "sys/file/file.hpp"

namespace berth::erofs {

/// Content in parts of `piece` bytes.
inline Writer::Content in_parts(std::string_view content, size_t piece) {
  return [=]() mutable -> Result<Writer::Part> {
    std::string_view part = content.substr(0, piece);
    content.remove_prefix(part.size());
    return Writer::Part{0, part};
  };
}

inline void put(Directory& directory, const std::string& name, std::shared_ptr<Node> node) {
  directory.children[name] = std::move(node);
}

inline Directory& put_directory(Directory& parent, const std::string& name) {
  auto made = std::make_shared<Directory>();
  made->parent = &parent;
  made->name = name;
  made->facts.mode = 0750;
  Directory& directory = *made;
  put(parent, name, std::move(made));
  return directory;
}

inline std::string bytes_of(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 >> 3);
  return bytes;
}

/// An image with something of everything. Its content comes in parts of `piece` bytes.
inline std::string image_with_all(size_t piece) {
  sys::Fd file = *sys::memory_file("image", "");
  Writer writer(file, {{1, 2, 3}, 1'700'000'000});
  Directory root;
  root.facts.mode = 0755;
  EXPECT_TRUE(root.attributes.add("trusted.overlay.opaque", "y").ok());
  Facts facts{0644, 70'000, 80'000, -5, 999'999'999};
  Directory& many = put_directory(root, "many");
  for (size_t size : {0, 1, 31, 4031, 4032, 4033, 4095, 4096, 4097, 8192, 300'000, 3'000'000}) {
    std::string content = bytes_of(size);
    auto made = writer.add_file(facts, {}, size, in_parts(content, piece));
    put(many, "size" + std::to_string(size), made->node);
    if (size == 4096) put(root, "again", made->node);
  }
  for (size_t size : {1, 4000, 60'000}) {
    Attributes attributes;
    EXPECT_TRUE(attributes.add("user.a", std::string(size, 'v')).ok());
    EXPECT_TRUE(attributes.add("security.capability", std::string(20, 'c')).ok());
    auto made = writer.add_file(facts, attributes, 3, in_parts("abc", piece));
    put(many, "attributes" + std::to_string(size), made->node);
  }
  put(root, "link", *writer.add_symlink(facts, "many/size1"));
  auto long_link = *writer.add_symlink(facts, std::string(4095, 't'));
  EXPECT_EQ(*writer.read_link(*long_link), std::string(4095, 't'));
  put(root, "long", long_link);
  put(root, "null", *writer.add_special(facts, FileType::character_device, 1, 3));
  put(root, "disk", *writer.add_special(facts, FileType::block_device, 0xfff, 0xfffff));
  put(root, "fifo", *writer.add_special(facts, FileType::fifo, 0, 0));
  for (const char* name : {"+", "-", ".a", "...", "\xff"}) put_directory(root, name);
  EXPECT_TRUE(writer.finish(root).ok());
  return *sys::read_at(file, 0, 64 << 20, "image");
}

}  // namespace berth::erofs
