// SPDX-License-Identifier: Apache-2.0
// Serves the files of an EROFS image through FUSE where the kernel's driver may not mount it: for
// ordinary users, and on kernels without it. sys::mount_fuse() starts one such process for each
// mount; it may only read that one image.
//   berth-erofs [-f] [-o userxattr] IMAGE /dev/fd/N
#include <fcntl.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "erofs/reader.hpp"
#include "erofs/serve/server.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"

namespace berth {
namespace {

struct Request {
  erofs::Marks marks = erofs::Marks::stored;
  std::string image;
  std::string place;
};

Result<Request> parse(const std::vector<std::string_view>& words) {
  Error usage = make_error(Kind::usage, "expected [-f] [-o userxattr] IMAGE /dev/fd/N");
  Request request;
  std::vector<std::string_view> names;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-f") continue;  // it always stays in the foreground
    if (words[i] != "-o") {
      names.push_back(words[i]);
      continue;
    }
    if (++i == words.size() || words[i] != "userxattr") return usage;
    request.marks = erofs::Marks::user;
  }
  if (names.size() != 2) return usage;
  request.image = names[0];
  request.place = names[1];
  return request;
}

/// An open descriptor is used directly: its file may be impossible to open again.
Result<sys::Fd> open_image(const std::string& path) {
  constexpr std::string_view kOpen = "/proc/self/fd/";
  if (path.starts_with(kOpen)) {
    auto number = parse_u64(std::string_view(path).substr(kOpen.size()));
    if (number && *number <= 1'000'000) return sys::Fd(static_cast<int>(*number));
  }
  return sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

Result<void> run(const std::vector<std::string_view>& words) {
  Request request = TRY(parse(words));
  sys::Fd image = TRY(open_image(request.image));
  auto reader = TRY(erofs::Reader::open(image));
  auto owners = TRY(erofs::Owners::of_this_process());
  erofs::ShownTree tree(reader, std::move(owners), request.marks);
  return erofs::serve(tree, image, request.place);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-erofs")) return EXIT_FAILURE;
  try {
    auto done = berth::run({argv + 1, argv + argc});
    if (done.ok()) return EXIT_SUCCESS;
    std::fprintf(stderr, "%s\n", berth::to_line(done.error()).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return EXIT_FAILURE;
}
