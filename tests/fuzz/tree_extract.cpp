// SPDX-License-Identifier: Apache-2.0
// Members of a tar below a directory that lies beside a file which nothing may touch. The first
// byte says whether links lead inside a root, and in what pieces the stream arrives.
#include "transfer/layer/tree_extract.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "support/tar_checksums.hpp"
#include "sys/file/file.hpp"
#include "sys/file/remove_tree.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"

namespace {

using namespace berth;

struct Places {
  sys::TempDir temp;
  Places() {
    sys::Fd base = *sys::open_at(sys::cwd(), "/dev/shm", O_RDONLY | O_DIRECTORY);
    temp = *sys::TempDir::make(base, "fuzz-extract-");
    BERTH_ASSERT(sys::write_file(temp.fd(), "secret", "kept").ok());
  }
};

Result<void> extract(std::string_view bytes, size_t piece, transfer::TreePlace place) {
  transfer::TarReader tar([&]() -> Result<std::string_view> {
    std::string_view part = bytes.substr(0, std::min(piece, bytes.size()));
    bytes.remove_prefix(part.size());
    return part;
  });
  transfer::TreeExtractOptions options{
      image::Owners::archive, image::Trust::outside,
      [](const std::string& text) { BERTH_ASSERT(!text.empty()); }};
  transfer::TreeExtractor extractor(std::move(place), std::move(options));
  transfer::TarEntry entry;
  while (TRY(tar.next(entry))) TRY(extractor.add(entry, tar));
  return extractor.finish();
}

void check_tree(const sys::Fd& directory, int depth) {
  if (depth > 20) return;
  auto names = sys::list_directory(directory, ".");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    struct stat status = **sys::stat_entry(directory, name);
    BERTH_ASSERT(!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode));
    BERTH_ASSERT(!S_ISREG(status.st_mode) || (status.st_mode & (S_ISUID | S_ISGID)) == 0);
    auto below = sys::open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (below.ok()) check_tree(*below, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Places places;
  if (size == 0) return 0;
  const sys::Fd& outer = places.temp.fd();
  BERTH_ASSERT(sys::make_directory(outer, "in").ok());
  sys::Fd in = *sys::open_at(outer, "in", O_RDONLY | O_DIRECTORY);
  BERTH_ASSERT(sys::make_symlink("..", in, "way").ok());
  BERTH_ASSERT(sys::make_symlink("../secret", in, "end").ok());
  transfer::TreePlace place{*sys::duplicate(in)};
  if (data[0] & 0x80) place = {*sys::duplicate(in), *sys::duplicate(in), "/"};
  std::string bytes = with_checksums({reinterpret_cast<const char*>(data) + 1, size - 1});
  ignore(extract(bytes, size_t{1} << (data[0] % 16), std::move(place)));
  BERTH_ASSERT(*sys::read_file(outer, "secret") == "kept");
  BERTH_ASSERT(sys::list_directory(outer, ".")->size() == 2);
  check_tree(in, 0);
  BERTH_ASSERT(sys::remove_tree(outer, "in").ok());
  return 0;
}
