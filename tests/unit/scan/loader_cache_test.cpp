// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "scan/loader.hpp"

namespace berth::scan {
namespace {

using ::testing::ElementsAre;

LoaderEntry entry(std::string soname, std::string path, int32_t flags = 0x303) {
  return {.soname = std::move(soname),
          .path = std::move(path),
          .flags = flags,
          .os_version = 0,
          .hwcap = 0};
}

std::vector<std::string> names(const LoaderCache& cache) {
  std::vector<std::string> out;
  for (const auto& e : cache.entries) out.push_back(e.soname + " " + e.path);
  return out;
}

TEST(LoaderCache, reads_what_it_writes) {
  LoaderCache cache;
  cache.entries = {entry("liba.so.1", "/lib/liba.so.1"), entry("libz.so.1", "/lib/libz.so.1")};
  auto read = read_loader_cache(write_loader_cache(cache));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(names(*read), ElementsAre("libz.so.1 /lib/libz.so.1", "liba.so.1 /lib/liba.so.1"));
}

TEST(LoaderCache, compares_names_as_the_loader_does) {
  EXPECT_LT(compare_library_names("libc.so.9", "libc.so.10"), 0);
  EXPECT_GT(compare_library_names("libc.so.10", "libc.so.9"), 0);
  EXPECT_EQ(compare_library_names("libc.so.6", "libc.so.6"), 0);
  EXPECT_GT(compare_library_names("libfoo2.so", "libfoo.so"), 0);  // digits sort last
  EXPECT_LT(compare_library_names("libfoo", "libfoo.so"), 0);
  EXPECT_LT(compare_library_names("libcuda.so", "libcuda.so.1"), 0);
}

TEST(LoaderCache, keeps_variants_for_newer_processors_before_the_plain_library) {
  LoaderCache cache;
  cache.hwcap_names = {"x86-64-v3"};
  cache.entries = {entry("libm.so.6", "/lib/libm.so.6"),
                   entry("libm.so.6", "/lib/glibc-hwcaps/x86-64-v3/libm.so.6")};
  cache.entries[1].hwcap = uint64_t{1} << 62;
  auto read = read_loader_cache(write_loader_cache(cache));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(read->hwcap_names, ElementsAre("x86-64-v3"));
  EXPECT_THAT(names(*read), ElementsAre("libm.so.6 /lib/glibc-hwcaps/x86-64-v3/libm.so.6",
                                        "libm.so.6 /lib/libm.so.6"));
  EXPECT_EQ(read->entries[0].hwcap, uint64_t{1} << 62);
}

TEST(LoaderCache, reads_a_file_with_the_older_header_in_front) {
  LoaderCache cache;
  cache.entries = {entry("libcuda.so.1", "/usr/lib/libcuda.so.1")};
  std::string old = std::string("ld.so-1.7.0\0", 12) + std::string("\1\0\0\0", 4);
  old += std::string(12, '\0');  // one older entry
  old += std::string((8 - old.size() % 8) % 8, '\0');
  auto read = read_loader_cache(old + write_loader_cache(cache));
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(names(*read), ElementsAre("libcuda.so.1 /usr/lib/libcuda.so.1"));
}

TEST(LoaderCache, reads_the_older_form_alone) {
  std::string old = std::string("ld.so-1.7.0\0", 12) + std::string("\1\0\0\0", 4);
  old += std::string("\3\0\0\0\0\0\0\0\5\0\0\0", 12) + std::string("libc\0/lib/libc\0", 15);
  auto read = read_loader_cache(old);
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_THAT(names(*read), ElementsAre("libc /lib/libc"));
}

TEST(LoaderCache, an_added_library_replaces_the_images_of_its_name_and_architecture) {
  LoaderCache base;
  base.hwcap_names = {"x86-64-v3"};
  base.entries = {entry("libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1"),
                  entry("libcuda.so.1", "/v3/libcuda.so.1"),
                  entry("libcuda.so.1", "/usr/lib32/libcuda.so.1", 0x3),
                  entry("libc.so.6", "/lib/libc.so.6")};
  base.entries[1].hwcap = uint64_t{1} << 62;
  auto merged = merge(base, {entry("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1")});
  EXPECT_THAT(names(merged),
              ElementsAre("libcuda.so.1 /usr/lib32/libcuda.so.1", "libc.so.6 /lib/libc.so.6",
                          "libcuda.so.1 /usr/local/nvidia/lib64/libcuda.so.1"));
}

TEST(LoaderCache, flags_tell_the_architecture) {
  EXPECT_EQ(loader_flags(ElfClass::elf64, kMachineX86_64), 0x303);
  EXPECT_EQ(loader_flags(ElfClass::elf64, kMachineAarch64), 0xA03);
  EXPECT_EQ(loader_flags(ElfClass::elf32, kMachine386), 0x3);
  EXPECT_EQ(loader_flags(ElfClass::elf64, 1), std::nullopt);
}

TEST(LoaderCache, refuses_a_file_without_magic) {
  EXPECT_EQ(to_line(read_loader_cache("hello").error()), "loader cache: unknown magic");
}

TEST(LoaderCache, refuses_a_count_beyond_the_file) {
  std::string bytes = write_loader_cache({});
  uint32_t count = 1000;
  std::memcpy(bytes.data() + 20, &count, 4);
  EXPECT_EQ(to_line(read_loader_cache(bytes).error()), "loader cache: entries outside of the file");
}

TEST(LoaderCache, survives_every_truncation_and_every_flipped_byte) {
  LoaderCache cache;
  cache.hwcap_names = {"x86-64-v2", "x86-64-v3"};
  cache.entries = {entry("liba.so.1", "/lib/liba.so.1"), entry("libz.so.1", "/lib/libz.so.1")};
  cache.entries[0].hwcap = (uint64_t{1} << 62) | 1;
  const std::string good = write_loader_cache(cache);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(read_loader_cache(good.substr(0, length)).ok()) << length;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      auto read = read_loader_cache(bad);
      if (read.ok()) ignore(read_loader_cache(write_loader_cache(*read)));
    }
  }
}

// What the fast way writes is what the plain one does.
void expect_same(const LoaderCache& image, const std::vector<LoaderEntry>& added) {
  auto fast = read_loader_cache(merged_loader_cache(write_loader_cache(image), added));
  auto plain = read_loader_cache(write_loader_cache(merge(image, added)));
  ASSERT_TRUE(fast.ok() && plain.ok());
  EXPECT_EQ(fast->hwcap_names, plain->hwcap_names);
  ASSERT_EQ(fast->entries.size(), plain->entries.size());
  for (size_t i = 0; i < fast->entries.size(); ++i) {
    EXPECT_TRUE(fast->entries[i] == plain->entries[i]) << i << " " << fast->entries[i].path;
  }
}

TEST(LoaderCache, merged_at_once_is_what_merging_and_writing_gives) {
  LoaderCache image;
  image.hwcap_names = {"x86-64-v3"};
  for (int i = 0; i < 300; ++i) {
    std::string name = "lib" + std::to_string(i % 150) + ".so." + std::to_string(i % 7);
    image.entries.push_back(entry(name, "/lib/" + name, i % 3 == 0 ? 3 : 0x303));
    if (i % 10 == 0) {
      image.entries.push_back(entry(name, "/lib/glibc-hwcaps/x86-64-v3/" + name));
      image.entries.back().hwcap = uint64_t{1} << 62;
    }
  }
  expect_same(image, {});
  expect_same({}, {entry("libcuda.so.1", "/n/libcuda.so.1")});
  expect_same(image, {entry("lib0.so.0", "/n/lib0.so.0"), entry("lib149.so.2", "/n/z"),
                      entry("lib7.so.0", "/n/lib7.so.0", 3), entry("liba.so", "/n/liba.so"),
                      entry("lib7.so.00", "/n/other"), entry("", "/n/none")});
}

TEST(LoaderCache, an_image_cache_that_cannot_be_read_counts_as_none) {
  std::vector<LoaderEntry> added = {entry("libcuda.so.1", "/n/libcuda.so.1")};
  std::string alone = merged_loader_cache("", added);
  EXPECT_EQ(merged_loader_cache("glibc-ld.so.cache1.1 and then nothing", added), alone);
  EXPECT_THAT(names(*read_loader_cache(alone)), ElementsAre("libcuda.so.1 /n/libcuda.so.1"));
}

// A megabyte that says it is half a terabyte.
std::string cache_of(std::vector<LoaderEntry> entries) {
  LoaderCache cache;
  cache.entries = std::move(entries);
  return write_loader_cache(cache);
}

const std::string kDriver = std::string(kDriverPlaces[0]) + "/";

TEST(LoaderCache, without_what_was_added_it_is_the_images) {
  auto image = entry("libz.so.1", "/lib/libz.so.1");
  std::vector<LoaderEntry> added = {entry("libcuda.so.1", kDriver + "lib64/libcuda.so.1"),
                                    entry("libcuda.so", kDriver + "lib64/libcuda.so.1"),
                                    entry("libmpi.so.40", "/opt/mpi/lib/libmpi.so.40")};
  EXPECT_EQ(loader_cache_without(merged_loader_cache(cache_of({image}), added), added),
            cache_of({image}));
  // As ldconfig finds it: by more names, and through the links.
  auto made = cache_of({image, entry("libcuda.so.1", kDriver + "lib64/libcuda.so.1"),
                        entry("libnvidia-new.so.2", kDriver + "lib64/libnvidia-new.so.2"),
                        entry("libcuda.so", "/lib/libcuda.so"),
                        entry("libmpi.so.40", "/opt/mpi/lib/libmpi.so.40"),
                        entry("libother.so.1", "/opt/mpi/lib/libother.so.1")});
  EXPECT_EQ(loader_cache_without(made, added),
            cache_of({image, entry("libother.so.1", "/opt/mpi/lib/libother.so.1")}));
}

TEST(LoaderCache, without_nothing_that_is_in_it_keeps_every_byte) {
  std::string older = cache_of({entry("libz.so.1", "/lib/libz.so.1")}) + "trailing";
  EXPECT_EQ(loader_cache_without(older, {entry("liba.so.1", "/a/liba.so.1")}), older);
  EXPECT_EQ(loader_cache_without("no cache", {}), "no cache");
}

TEST(LoaderCache, is_the_same_where_only_the_added_libraries_differ) {
  std::vector<LoaderEntry> added = {entry("libcuda.so.1", kDriver + "lib64/libcuda.so.1")};
  auto z = entry("libz.so.1", "/lib/libz.so.1");
  auto own = entry("libcuda.so.1", "/opt/libcuda.so.1");
  auto image = cache_of({z, own});
  EXPECT_TRUE(is_same_but_for(merged_loader_cache(image, added), image, added));
  EXPECT_TRUE(is_same_but_for(cache_of({}), "", added));
  EXPECT_FALSE(is_same_but_for(cache_of({z, entry("liba.so.1", "/lib/liba.so.1")}), image, added));
  EXPECT_FALSE(is_same_but_for(cache_of({}), image, added));
}

TEST(LoaderCache, links_are_for_the_libraries_of_this_machines_class) {
  int32_t native = *loader_flags(ElfClass::elf64,
#if defined(__x86_64__)
                                 kMachineX86_64);
#else
                                 kMachineAarch64);
#endif
  std::vector<LoaderEntry> entries = {
      entry("libcuda.so.1", kDriver + "lib64/libcuda.so.1", native),
      entry("libcuda.so", kDriver + "lib64/libcuda.so.1", native),
      entry("libnvcuvid.so.1", kDriver + "lib64/libnvcuvid.so.570", native),
      entry("libcuda.so", kDriver + "lib/libcuda.so.1", 3),
      entry("libmpi.so", "/opt/mpi/lib/libmpi.so.40", native)};
  LibraryLink plain{"/usr/lib/libcuda.so", kDriver + "lib64/libcuda.so.1"};
  LibraryLink numbered{"/usr/lib/libcuda.so.1", kDriver + "lib64/libcuda.so.1"};
  LibraryLink renamed{"/usr/lib/libnvcuvid.so.1", kDriver + "lib64/libnvcuvid.so.570"};
  EXPECT_THAT(default_links(entries), ElementsAre(plain, numbered, renamed));
  EXPECT_THAT(linker_links(entries), ElementsAre(plain, renamed));
}

TEST(LoaderCache, the_configuration_has_each_directory_once_in_the_order_of_the_libraries) {
  EXPECT_EQ(loader_configuration({entry("libb.so.1", "/b/libb.so.1"), entry("liba.so.1", "/a/x"),
                                  entry("libc.so.1", "/b/libc.so.1")}),
            "/b\n/a\n");
  EXPECT_EQ(without_number("libcuda.so.1"), "libcuda.so");
  EXPECT_EQ(without_number("libcuda.so"), "libcuda.so");
}

TEST(LoaderCache, entries_that_share_one_long_text_are_refused) {
  LoaderCache cache;
  for (int i = 0; i < 20000; ++i) cache.entries.push_back(entry("a", std::string(1, '/')));
  std::string bytes = write_loader_cache(cache);
  auto strings = static_cast<uint32_t>(bytes.size());
  bytes += std::string(4000, 'x') + std::string(1, '\0');
  for (size_t i = 0; i < 20000; ++i) {
    std::memcpy(bytes.data() + 48 + i * 24 + 4, &strings, 4);
    std::memcpy(bytes.data() + 48 + i * 24 + 8, &strings, 4);
  }
  auto read = read_loader_cache(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().what, "loader cache: strings longer than the file");
}

}  // namespace
}  // namespace berth::scan
