// SPDX-License-Identifier: Apache-2.0
#include "engine/image/facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/image/store.hpp"
#include "facts/file_facts.hpp"
#include "facts/image_facts.hpp"
#include "facts/layer_scan.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"
#include "sys/mount/layer.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxKept = size_t{16} << 20;
constexpr int kMaxFactsDepth = 512;  // the depth limit of layer unpacking

Result<void> scan_directory(const sys::Fd& directory, const std::string& path, int depth,
                            facts::LayerScan& scan);

Result<void> scan_entry(const sys::Fd& directory, const std::string& name, const std::string& path,
                        int depth, facts::LayerScan& scan) {
  auto status = TRY(sys::stat_entry(directory, name));
  if (!status) return {};
  if (S_ISDIR(status->st_mode)) {
    sys::Fd below = TRY(sys::open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    return scan_directory(below, path, depth + 1, scan);
  }
  if (!S_ISREG(status->st_mode)) return {};
  auto found = TRY(sys::find_regular(directory, name));
  if (!found) return {};
  const sys::Fd& file = *found;
  std::string first = TRY(sys::read_at(file, 0, facts::kFirstBytes, name));
  if (!facts::may_have_facts(path, first)) return {};
  scan.add(path, [&](uint64_t offset, size_t length) {
    return sys::read_at(file, offset, length, name);
  });
  return {};
}

Result<void> scan_directory(const sys::Fd& directory, const std::string& path, int depth,
                            facts::LayerScan& scan) {
  if (depth > kMaxFactsDepth) return {};
  for (const std::string& name : TRY(sys::list_directory(directory, "."))) {
    TRY(scan_entry(directory, name, path.empty() ? name : path + "/" + name, depth, scan));
  }
  return {};
}

Result<facts::LayerFacts> layer_facts(const image::Layer& layer, Log& log) {
  std::string path = layer.directory.substr(0, layer.directory.rfind('/')) + "/" +
                     std::string(facts::kLayerFactsFile);
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, facts::kMaxLayerFacts));
  if (text) {
    auto kept = facts::read_layer_facts(*text);
    if (kept.ok() && *kept) return std::move(**kept);
  }
  facts::LayerFacts found =
      TRY_CTX(scan_layer(layer.directory), "cannot scan layer " + quote(layer.diff_id.text()));
  if (layer.read_only) return found;
  auto written = sys::replace_file(sys::cwd(), path, facts::write_layer_facts(found), 0600);
  // Without write access to the store, the layer is scanned again next time.
  if (!written.ok()) log.debug("keep the facts of a layer: " + to_line(written.error()));
  return found;
}

/// The files of all layers that a container sees, sorted by path.
Result<std::vector<facts::FileFacts>> visible_files(const LayerView& view,
                                                    std::vector<facts::LayerFacts> layers) {
  std::map<std::string, std::set<std::string>> directories;
  for (const facts::LayerFacts& layer : layers) {
    for (const facts::FileFacts& file : layer.files) {
      size_t slash = file.path.rfind('/');
      bool top = slash == std::string::npos;
      directories[top ? "" : file.path.substr(0, slash)].insert(top ? file.path
                                                                    : file.path.substr(slash + 1));
    }
  }
  std::map<std::string, size_t> shown_by;  // the layer by path; 0: the highest
  for (const auto& [directory, set] : directories) {
    std::vector<std::string> names(set.begin(), set.end());
    auto found = TRY(view.layers_of(directory, names));
    for (size_t i = 0; i < names.size(); ++i) {
      if (found[i]) shown_by[directory.empty() ? names[i] : directory + "/" + names[i]] = *found[i];
    }
  }
  std::vector<facts::FileFacts> visible;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (facts::FileFacts& file : layers[i].files) {
      auto shown = shown_by.find(file.path);
      if (shown != shown_by.end() && shown->second == i) visible.push_back(std::move(file));
    }
  }
  std::ranges::sort(visible,
                    [](const auto& left, const auto& right) { return left.path < right.path; });
  return visible;
}

facts::ImageCommand command_of(const oci::ImageConfig& config) {
  facts::ImageCommand command;
  command.arguments = config.config.entrypoint;
  command.arguments.insert(command.arguments.end(), config.config.cmd.begin(),
                           config.config.cmd.end());
  command.environment = config.config.env;
  command.working_directory = config.config.working_dir;
  command.architecture = config.architecture;
  return command;
}

Result<facts::ImageFacts> find_facts(const Context& context, const image::Image& image) {
  std::vector<std::string> directories = image.layer_directories();
  std::ranges::reverse(directories);
  LayerView view = TRY(LayerView::open(directories));
  std::vector<facts::LayerFacts> layers;
  for (auto layer = image.layers.rbegin(); layer != image.layers.rend(); ++layer) {
    layers.push_back(TRY(layer_facts(*layer, context.log)));
  }
  auto visible = TRY(visible_files(view, std::move(layers)));
  return facts::draw_together(LayerTree(view), visible, command_of(image.config));
}

}  // namespace

Result<facts::LayerFacts> scan_layer(const std::string& directory) {
  facts::LayerScan scan;
  sys::Layer layer = TRY(sys::open_layer(directory));
  TRY(scan_directory(layer.root, "", 0, scan));
  return scan.take();
}

Result<facts::ImageFacts> facts_of_image(const Context& context, const image::Image& image) {
  std::string path = facts_path(context, image);
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxKept));
  if (text) {
    auto kept = json::read<facts::ImageFacts>(*text, path);
    if (kept.ok() && kept->version == facts::kVersion) return kept;
  }
  if (!image.unpacked()) {
    return make_error(Kind::not_found, "one of its layers is not unpacked",
                      "berth pull, to complete the image");
  }
  facts::ImageFacts found = TRY(find_facts(context, image));
  TRY(sys::make_directories(sys::cwd(), context.paths.state + "/facts", 0700));
  TRY(sys::replace_file(sys::cwd(), path, json::write(found) + "\n", 0600));
  return found;
}

std::string facts_path(const Context& context, const image::Image& image) {
  return context.paths.state + "/facts/" + image.id.hex();
}

void forget_facts(const Context& context, const image::Image& image) {
  for (const char* ending : {"", kRefused}) {
    ignore(sys::remove_entry(sys::cwd(), facts_path(context, image) + ending));
  }
}

Result<facts::ImageFacts> facts_of_image_named(const Context& context, std::string_view name) {
  auto store = TRY(open_store(context));
  image::Image image = TRY(store.get_image(name));
  return TRY_CTX(facts_of_image(context, image), "cannot scan image " + quote(name));
}

}  // namespace berth::engine
