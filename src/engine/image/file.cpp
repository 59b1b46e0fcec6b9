// SPDX-License-Identifier: Apache-2.0
#include "engine/image/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/image/rootfs.hpp"
#include "image/foreign.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/image_file.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kSuffixes[] = {".sqsh", ".squashfs", ".sif"};

class ViewFiles final : public image::ForeignFiles {
 public:
  explicit ViewFiles(const LayerView& view) : view_(view) {}
  Result<std::optional<std::string>> read(const std::string& path,
                                          size_t max_bytes) const override {
    return view_.read_file(path, max_bytes);
  }
  Result<bool> exists(const std::string& path) const override {
    return TRY(view_.look_up(path)) != LayerView::Type::absent;
  }

 private:
  const LayerView& view_;
};

}  // namespace

bool is_image_path(std::string_view image) {
  return image.starts_with("/") || image.starts_with("./") || image.starts_with("../");
}

Result<std::string> find_image_file(const std::string& path) {
  const std::string context = "cannot use " + quote(path) + " as an image";
  // O_NONBLOCK: do not block on a device or a pipe.
  sys::Fd file = TRY_CTX(sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY), context);
  struct stat info = TRY(sys::stat_fd(file, path));
  if (S_ISDIR(info.st_mode)) {
    return make_error(Kind::usage, quote(path) + " is a directory", "--rootfs " + path);
  }
  auto part = TRY_CTX(sys::identify_image(file, path), context);
  if (!part || part->format != sys::ImageFormat::squashfs) {
    return make_error(Kind::usage, quote(path) + " is neither a squashfs nor a SIF image",
                      "berth load or berth import for archives");
  }
  return sys::read_link(sys::cwd(), sys::fd_path(file));
}

Result<void> check_no_image_file(const std::string& reference) {
  bool named = std::ranges::any_of(kSuffixes,
                                   [&](std::string_view end) { return reference.ends_with(end); });
  if (!named || !TRY(sys::stat_entry(sys::cwd(), reference))) return {};
  return make_error(
      Kind::usage,
      quote(reference) + " is the name of an image in a registry; a file is given by its path",
      "./" + reference);
}

Result<image::Image> describe_image_file(const std::string& path) {
  LayerView view = TRY(LayerView::open({path}));
  image::Image image = no_image();
  image.config.config = TRY(image::describe_foreign(ViewFiles(view)));
  return image;
}

}  // namespace berth::engine
