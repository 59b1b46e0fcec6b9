// SPDX-License-Identifier: Apache-2.0
#include "engine/image_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/rootfs.hpp"
#include "json/value.hpp"
#include "sys/file.hpp"
#include "sys/image_file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;
constexpr std::string_view kSuffixes[] = {".sqsh", ".squashfs", ".sif"};

// As /.singularity.d/actions/exec of such an image does it; newer ones leave it to apptainer.
constexpr const char* kWithEnvironment =
    "for s in /.singularity.d/env/*.sh; do if [ -f \"$s\" ]; then . \"$s\"; fi; done; exec \"$@\"";

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

std::string_view unquoted(std::string_view value) {
  bool quotes = value.size() >= 2 && value.front() == value.back() &&
                (value.front() == '"' || value.front() == '\'');
  return quotes ? value.substr(1, value.size() - 2) : value;
}

// One "K=V" in a line, as enroot writes and pam_env reads them. What is no such line is ignored.
std::vector<std::string> read_environment(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (line.starts_with("export ")) line = trim(line.substr(7));
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || !is_name(line.substr(0, equals))) continue;
    out.push_back(std::string(line.substr(0, equals + 1)) +
                  std::string(unquoted(line.substr(equals + 1))));
  }
  return out;
}

void read_labels(std::string_view text, std::map<std::string, std::string>& labels) {
  auto parsed = json::parse(text, "labels.json");
  if (!parsed.ok() || parsed->object() == nullptr) return;  // it is no more than a comment
  for (const auto& [name, value] : *parsed->object()) {
    if (const std::string* label = value.string()) labels[name] = *label;
  }
}

Result<bool> has_file(const LayerView& view, const char* path) {
  return TRY(view.find_file(path)).has_value();
}

Result<void> describe_singularity(const LayerView& view, oci::ContainerDefaults& says) {
  bool shell = TRY(view.look_up("/bin/sh")) == LayerView::Type::other;
  if (shell && TRY(view.look_up("/.singularity.d/env")) == LayerView::Type::directory) {
    says.entrypoint = {"/bin/sh", "-c", kWithEnvironment, "sh"};
  }
  if (TRY(has_file(view, "/.singularity.d/runscript"))) says.cmd = {"/.singularity.d/runscript"};
  auto labels = TRY(view.read_file("/.singularity.d/labels.json", kMaxFile));
  if (labels) read_labels(*labels, says.labels);
  return {};
}

Result<void> describe_enroot(const LayerView& view, oci::ContainerDefaults& says) {
  auto text = TRY(view.read_file("/etc/environment", kMaxFile));
  if (text) says.env = read_environment(*text);
  // It runs the image's entrypoint with what it is given, or with the image's command.
  if (!TRY(has_file(view, "/etc/rc"))) return {};
  says.entrypoint = {"/bin/sh", "/etc/rc"};
  says.cmd.clear();
  return {};
}

}  // namespace

bool is_image_path(std::string_view image) {
  return image.starts_with("/") || image.starts_with("./") || image.starts_with("../");
}

Result<std::string> find_image_file(const std::string& path) {
  const std::string context = "cannot use " + quoted(path) + " as an image";
  // A device or a pipe is not waited for.
  sys::Fd file = TRY_CTX(
      sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY), context);
  struct stat info = TRY(sys::stat_fd(file, path));
  if (S_ISDIR(info.st_mode)) {
    return make_error(Kind::usage, quoted(path) + " is a directory", "--rootfs " + path);
  }
  auto part = TRY_CTX(sys::identify_image(file, path), context);
  if (!part || part->format != sys::ImageFormat::squashfs) {
    return make_error(Kind::usage, quoted(path) + " is neither a squashfs nor a SIF image",
                      "berth load or berth import for archives");
  }
  return sys::read_link(sys::cwd(), sys::fd_path(file));
}

Result<void> check_no_image_file(const std::string& reference) {
  bool named = std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                           [&](std::string_view end) { return reference.ends_with(end); });
  if (!named || !TRY(sys::stat_entry(sys::cwd(), reference))) return {};
  return make_error(Kind::usage,
                    quoted(reference) + " is the name of an image in a registry; a file is told by "
                                        "its path",
                    "./" + reference);
}

Result<image::Image> describe_image_file(const LayerView& view) {
  image::Image image = no_image();
  oci::ContainerDefaults& says = image.config.config;
  says.cmd = {"/bin/sh"};
  if (TRY(view.look_up("/.singularity.d")) == LayerView::Type::directory) {
    TRY(describe_singularity(view, says));
  } else {
    TRY(describe_enroot(view, says));
  }
  return image;
}

Result<image::Image> describe_image_file(const std::string& path) {
  LayerView view = TRY(LayerView::open({path}));
  return describe_image_file(view);
}

}  // namespace berth::engine
