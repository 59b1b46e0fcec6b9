// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/new_image.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "transfer/layer/layers.hpp"

namespace berth::transfer {
namespace {

constexpr size_t kEmptyBlock = size_t{1} << 20;

using Words = std::vector<std::string>;

Error refuse(const std::string& instruction, const std::string& reason) {
  return make_error(Kind::usage, "read change " + quote(instruction) + ": " + reason);
}

/// Splits at blanks; blanks inside single and double quotes do not split, and a backslash escapes
/// the next character.
Result<Words> split_words(const std::string& instruction, std::string_view text) {
  Words words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return refuse(instruction, "a quote is not closed");
  if (inside) words.push_back(std::move(word));
  return words;
}

Result<Words> exec_or_shell(const std::string& instruction, std::string_view text) {
  if (!text.starts_with('[')) return Words{"/bin/sh", "-c", std::string(text)};
  auto words = json::read<Words>(text, "change");
  if (!words.ok()) return refuse(instruction, "expected a JSON array of strings");
  return words;
}

/// The pairs in "K=V K2=V2", or in the old form "K V".
Result<std::vector<std::pair<std::string, std::string>>> pairs(const std::string& instruction,
                                                               std::string_view text) {
  Words words = TRY(split_words(instruction, text));
  std::vector<std::pair<std::string, std::string>> result;
  if (!words.empty() && words[0].find('=') == std::string::npos && words.size() > 1) {
    std::string_view rest = trim(text.substr(words[0].size()));
    result.emplace_back(words[0], std::string(rest));
    return result;
  }
  for (const auto& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return refuse(instruction, "expected KEY=VALUE, got " + quote(word));
    }
    result.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return result;
}

void set_env(std::vector<std::string>& env, const std::string& key, const std::string& value) {
  for (auto& entry : env) {
    if (entry.starts_with(key + "=")) {
      entry = key + "=" + value;
      return;
    }
  }
  env.push_back(key + "=" + value);
}

}  // namespace

Result<void> LayerPacker::write(std::string_view bytes) {
  TRY(cancel_.check());
  sha_.update(bytes);
  // ISA-L matches do not cross the end of a piece. Without pieces of fixed size, a pipe would give
  // another blob than a file.
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kEmptyBlock - block_.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < kEmptyBlock) break;
    TRY(gzip_.write(block_));
    block_.clear();
  }
  return {};
}

Result<Digest> LayerPacker::finish() {
  TRY(gzip_.write(block_));
  TRY(gzip_.finish());
  return sha_.finish();
}

Result<oci::Descriptor> describe_layer(const sys::Fd& blob) {
  oci::Descriptor layer;
  layer.media_type = oci::media_type::kLayerGzip;
  Sha256 sha;
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    size_t count = TRY(sys::read_at(blob, layer.size, buffer.data(), buffer.size(), "layer"));
    if (count == 0) break;
    sha.update({buffer.data(), count});
    layer.size += count;
  }
  layer.digest = sha.finish();
  return layer;
}

std::string creation_time(const std::optional<uint64_t>& source_date) {
  return source_date ? format_time(static_cast<int64_t>(*source_date)) : image::timestamp_now();
}

Result<std::optional<image::Reference>> new_name(const std::string& text) {
  if (text.empty()) return std::optional<image::Reference>();
  image::Reference reference = TRY(image::Reference::parse(text));
  if (reference.digest()) {
    return make_error(Kind::usage,
                      "name an image " + quote(text) + ": a digest cannot be given as a name");
  }
  return std::optional<image::Reference>(std::move(reference));
}

Result<image::TransferResult> publish_new_image(const image::Store& store,
                                                image::Delivery& delivery, const NewImage& image,
                                                Events& events, Cancel& cancel) {
  std::string config_bytes = json::write(image.config);
  oci::Manifest manifest;
  manifest.media_type = oci::media_type::kManifest;
  manifest.config.media_type = oci::media_type::kConfig;
  manifest.config.digest = sha256_of(config_bytes);
  manifest.config.size = config_bytes.size();
  manifest.layers = image.layers;
  LayerPipeline layers(store, delivery, {}, events, cancel, {});
  TRY(layers.run(manifest, image.config));

  std::string manifest_bytes = json::write(manifest);
  image::ImageRecord record;
  record.reference = image.reference;
  record.target = record.manifest = sha256_of(manifest_bytes);
  record.config = manifest.config.digest;
  TRY(delivery.put_document(record.manifest, manifest_bytes));
  TRY(delivery.put_document(record.config, config_bytes));
  TRY(delivery.publish_image(record));

  image::TransferResult result;
  if (image.reference) result.reference = image.reference->canonical();
  result.digest = record.target.text();
  result.image_id = record.config.text();
  return result;
}

Result<void> apply_change(const std::string& instruction, oci::ContainerDefaults& config) {
  std::string_view text = trim(instruction);
  size_t blank = text.find_first_of(" \t");
  std::string verb = to_lower(text.substr(0, blank));
  std::string_view rest = blank == text.npos ? std::string_view() : trim(text.substr(blank));
  if (rest.empty()) return refuse(instruction, "expected INSTRUCTION and its arguments");

  if (verb == "cmd") {
    config.cmd = TRY(exec_or_shell(instruction, rest));
  } else if (verb == "entrypoint") {
    config.entrypoint = TRY(exec_or_shell(instruction, rest));
  } else if (verb == "env") {
    for (const auto& [key, value] : TRY(pairs(instruction, rest))) set_env(config.env, key, value);
  } else if (verb == "label") {
    for (const auto& [key, value] : TRY(pairs(instruction, rest))) config.labels[key] = value;
  } else if (verb == "expose") {
    for (const auto& port : TRY(split_words(instruction, rest))) {
      config.exposed_ports[port.find('/') == port.npos ? port + "/tcp" : port] = {};
    }
  } else if (verb == "volume") {
    bool array = rest.starts_with('[');
    Words paths = TRY(array ? exec_or_shell(instruction, rest) : split_words(instruction, rest));
    for (const auto& path : paths) config.volumes[path] = {};
  } else if (verb == "user") {
    config.user = rest;
  } else if (verb == "workdir") {
    config.working_dir = rest;
  } else if (verb == "stopsignal") {
    config.stop_signal = rest;
  } else if (verb == "onbuild") {
    config.on_build.emplace_back(rest);
  } else {
    return refuse(instruction,
                  "expected CMD, ENTRYPOINT, ENV, EXPOSE, LABEL, ONBUILD, STOPSIGNAL, USER, VOLUME "
                  "or WORKDIR");
  }
  return {};
}

}  // namespace berth::transfer
