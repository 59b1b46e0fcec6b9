// SPDX-License-Identifier: Apache-2.0
#include "mpi/symbols.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace berth::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T>
void put(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A shared library, byte by byte: its addresses are its places in the file.
class Maker {
 public:
  enum Bind : uint8_t { local = 0, global = 1, weak = 2 };

  void symbol(const std::string& name, Bind bind, bool defined, uint16_t version = 0,
              uint64_t value = 0, uint8_t visibility = 0) {
    symbols_ += raw<uint32_t>(string(name)) + raw<uint8_t>(static_cast<uint8_t>(bind << 4)) +
                raw<uint8_t>(visibility) + raw<uint16_t>(defined ? 1 : 0) + raw<uint64_t>(value) +
                raw<uint64_t>(0);
    versions_ += raw<uint16_t>(version);
  }
  /// One version of one file.
  void need(const std::string& library, const std::string& version, uint16_t number,
            bool may_lack) {
    if (!needs_.empty()) put<uint32_t>(needs_, needs_.size() - 32 + 12, 32);
    needs_ += raw<uint16_t>(1) + raw<uint16_t>(1) + raw<uint32_t>(string(library)) +
              raw<uint32_t>(16) + raw<uint32_t>(0);
    needs_ += raw<uint32_t>(0) + raw<uint16_t>(may_lack ? 2 : 0) + raw<uint16_t>(number) +
              raw<uint32_t>(string(version)) + raw<uint32_t>(0);
    ++need_count_;
  }
  void offer(const std::string& version, bool base) {
    if (!offers_.empty()) put<uint32_t>(offers_, offers_.size() - 28 + 16, 28);
    offers_ += raw<uint16_t>(1) + raw<uint16_t>(base ? 1 : 0) + raw<uint16_t>(2) +
               raw<uint16_t>(1) + raw<uint32_t>(0) + raw<uint32_t>(20) + raw<uint32_t>(0);
    offers_ += raw<uint32_t>(string(version)) + raw<uint32_t>(0);
    ++offer_count_;
  }

  /// `text` comes first of all, at address kText.
  std::string file(const std::string& text = "") {
    std::string out(kText, '\0');
    std::memcpy(out.data(),
                "\x7f"
                "ELF\2\1\1",
                7);
    put<uint16_t>(out, 16, 3);
    put<uint16_t>(out, 18, scan::kMachineX86_64);
    out += text + std::string(8 - text.size() % 8, '\0');
    std::string dynamic;
    auto part = [&](uint64_t tag, const std::string& bytes) {
      dynamic += raw<uint64_t>(tag) + raw<uint64_t>(out.size());
      out += bytes + std::string(8 - bytes.size() % 8, '\0');
    };
    uint64_t symbols_at = 0;
    part(5, strings_);
    dynamic += raw<uint64_t>(10) + raw<uint64_t>(strings_.size());
    symbols_at = out.size();
    part(6, symbols_);
    part(0x6fff'fff0, versions_);
    part(0x6fff'fffe, needs_);
    dynamic += raw<uint64_t>(0x6fff'ffff) + raw<uint64_t>(need_count_);
    part(0x6fff'fffc, offers_);
    dynamic += raw<uint64_t>(0x6fff'fffd) + raw<uint64_t>(offer_count_);
    dynamic += std::string(16, '\0');
    uint64_t dynamic_at = out.size();
    out += dynamic;
    // Two sections: none, and the table of symbols.
    uint64_t sections_at = out.size();
    std::string row(64, '\0');
    put<uint32_t>(row, 4, 11);
    put<uint64_t>(row, 24, symbols_at);
    put<uint64_t>(row, 32, symbols_.size());
    out += std::string(64, '\0') + row;
    auto segment = [&](size_t at, uint32_t type, uint64_t from, uint64_t size) {
      put<uint32_t>(out, at, type);
      put<uint64_t>(out, at + 8, from);
      put<uint64_t>(out, at + 16, from);
      put<uint64_t>(out, at + 32, size);
    };
    put<uint64_t>(out, 32, 64);
    put<uint16_t>(out, 54, 56);
    put<uint16_t>(out, 56, 2);
    put<uint64_t>(out, 40, sections_at);
    put<uint16_t>(out, 58, 64);
    put<uint16_t>(out, 60, 2);
    segment(64, 1, 0, out.size());
    segment(120, 2, dynamic_at, dynamic.size());
    return out;
  }

  static constexpr size_t kText = 176;  // after two segments
  uint64_t need_count_ = 0, offer_count_ = 0;

 private:
  uint32_t string(const std::string& text) {
    auto at = static_cast<uint32_t>(strings_.size());
    strings_ += text + '\0';
    return at;
  }
  std::string strings_ = std::string(1, '\0');
  std::string symbols_ = std::string(24, '\0');
  std::string versions_ = std::string(2, '\0');
  std::string needs_, offers_;
};

Result<Symbols> read(const std::string& bytes) {
  scan::ReadAt read_at = [&](uint64_t offset, size_t length) -> Result<std::string> {
    return offset < bytes.size() ? bytes.substr(static_cast<size_t>(offset), length)
                                 : std::string();
  };
  auto elf = scan::read_elf(read_at);
  if (!elf.ok()) return elf.error();
  return read_symbols(*elf, read_at);
}

TEST(Symbols, are_what_others_can_see_and_what_must_be_found) {
  Maker maker;
  maker.symbol("MPI_Init", Maker::weak, true);
  maker.symbol("MPI_Send", Maker::global, true, 0, 0, 3);
  maker.symbol("hidden", Maker::global, true, 0, 0, 2);
  maker.symbol("inner", Maker::local, true);
  maker.symbol("malloc", Maker::global, false);
  maker.symbol("__gmon_start__", Maker::weak, false);
  auto symbols = read(maker.file());
  ASSERT_TRUE(symbols.ok()) << symbols.error().what;
  EXPECT_THAT(symbols->defined, ElementsAre("MPI_Init", "MPI_Send"));
  EXPECT_THAT(symbols->undefined, ElementsAre("malloc"));
}

TEST(Symbols, name_one_for_each_version_that_the_loader_insists_on) {
  Maker maker;
  maker.need("libc.so.6", "GLIBC_2.38", 2, false);
  maker.need("libm.so.6", "GLIBC_2.29", 3, false);
  maker.need("libc.so.6", "GLIBC_2.99", 4, true);
  maker.symbol("__isoc23_strtol", Maker::global, false, 2);
  maker.symbol("__isoc23_strtoul", Maker::global, false, 2);
  maker.symbol("maybe", Maker::weak, false, 4);
  auto symbols = read(maker.file());
  ASSERT_TRUE(symbols.ok()) << symbols.error().what;
  EXPECT_THAT(symbols->needs, ElementsAre(VersionNeed{"libc.so.6", "GLIBC_2.38", "__isoc23_strtol"},
                                          VersionNeed{"libm.so.6", "GLIBC_2.29", ""}));
}

TEST(Symbols, have_the_versions_that_a_library_defines_but_not_its_name) {
  Maker maker;
  maker.offer("libc.so.6", true);
  maker.offer("GLIBC_2.2.5", false);
  maker.offer("GLIBC_2.34", false);
  auto symbols = read(maker.file());
  ASSERT_TRUE(symbols.ok()) << symbols.error().what;
  EXPECT_THAT(symbols->offers, ElementsAre("GLIBC_2.2.5", "GLIBC_2.34"));
}

TEST(Symbols, tell_the_version_of_the_mpi_where_it_is_text) {
  for (const char* name : {"ompi_version_string", "MPII_Version_string", "MPIR_Version_string"}) {
    Maker maker;
    maker.symbol(name, Maker::global, true, 0, Maker::kText);
    EXPECT_EQ(read(maker.file("4.1.4"))->mpi_version, "4.1.4") << name;
    EXPECT_EQ(read(maker.file("\x1b[31m"))->mpi_version, "");
  }
  Maker astray;
  astray.symbol("ompi_version_string", Maker::global, true, 0, 1 << 30);
  EXPECT_EQ(read(astray.file())->mpi_version, "");
}

TEST(Symbols, of_a_file_without_tables_are_none) {
  Maker maker;
  auto symbols = read(maker.file());
  ASSERT_TRUE(symbols.ok());
  EXPECT_THAT(symbols->defined, IsEmpty());
  EXPECT_THAT(symbols->needs, IsEmpty());
}

TEST(Symbols, of_tables_that_lead_outside_are_an_error) {
  Maker maker;
  maker.need("libc.so.6", "GLIBC_2.38", 2, false);
  maker.symbol("x", Maker::global, false, 2);
  std::string whole = maker.file();
  for (size_t size = 0; size < whole.size(); ++size) ignore(read(whole.substr(0, size)));
  // Every byte on its own: nothing that reads past the end, and no end that is never reached.
  for (size_t at = 64; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(~changed[at]);
    ignore(read(changed));
  }
  Maker many;
  many.need("libc.so.6", "GLIBC_2.38", 2, false);
  many.need_count_ = uint64_t{1} << 60;
  EXPECT_TRUE(read(many.file()).ok());  // the list ends before its count does
  many.need("libc.so.6", "GLIBC_2.39", 3, false);
  std::string endless = many.file();
  EXPECT_TRUE(read(endless).ok());
}

TEST(Symbols, of_32_bits_are_not_read) {
  scan::ElfFile elf;
  elf.elf_class = scan::ElfClass::elf32;
  auto symbols = read_symbols(elf, {});
  ASSERT_FALSE(symbols.ok());
  EXPECT_THAT(symbols.error().what, HasSubstr("32 bits"));
}

}  // namespace
}  // namespace berth::mpi
