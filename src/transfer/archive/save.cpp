// SPDX-License-Identifier: Apache-2.0
// save: images as one tar that is an OCI layout and a docker-archive at once, or as an OCI layout
// directory.
#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <set>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "image/store.hpp"
#include "json/fields.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/process/stream.hpp"
#include "transfer/archive/archive.hpp"
#include "transfer/archive/members.hpp"
#include "transfer/archive/output_file.hpp"
#include "transfer/registry/blob_source.hpp"
#include "transfer/tar/outer_archive.hpp"
#include "transfer/work/cancel.hpp"

namespace berth::transfer {
namespace {

constexpr std::string_view kLayout = R"({"imageLayoutVersion":"1.0.0"})";

/// Repository → tag → top layer: the format of docker before 1.10.
using Repositories = std::map<std::string, std::map<std::string, std::string>>;

/// The metadata of an archive of these images.
struct Contents {
  oci::Index index;
  std::vector<DockerImage> docker;
  Repositories repositories;
  std::map<Digest, oci::Descriptor> blobs;
};

/// The name by which the user requested the image; nothing if it was requested by id.
std::optional<image::Reference> asked_name(const std::string& text, const image::Image& image) {
  auto reference = image::Reference::parse(text);
  if (!reference.ok()) return std::nullopt;
  for (const auto& known : image.references) {
    if (known == *reference && !known.digest()) return known;
  }
  return std::nullopt;
}

Result<void> add_image(const image::Store& store, const std::string& text, Contents& contents) {
  image::Image image = TRY(store.get_image(text));
  std::string manifest = TRY(store.read_document(image.manifest_digest));

  oci::Descriptor entry;
  entry.media_type = image.manifest.media_type.empty() ? std::string(oci::media_type::kManifest)
                                                       : image.manifest.media_type;
  entry.digest = image.manifest_digest;
  entry.size = manifest.size();
  entry.platform =
      oci::Platform{image.config.architecture, image.config.os, {}, {}, image.config.variant};
  DockerImage docker;
  docker.config = blob_name(image.id);
  for (const auto& layer : image.layers) docker.layers.push_back(blob_name(layer.blob.digest));

  auto name = asked_name(text, image);
  if (name) {
    entry.annotations["io.containerd.image.name"] = name->canonical();
    // skopeo looks an image up by this annotation; a full name is unique among several images.
    entry.annotations["org.opencontainers.image.ref.name"] = name->familiar();
    docker.repo_tags.push_back(name->familiar());
    if (!image.layers.empty()) {
      contents.repositories[name->familiar_name()][name->tag()] =
          image.layers.back().blob.digest.hex();
    }
  }
  contents.blobs[image.manifest_digest] = entry;
  contents.blobs[image.id] = image.manifest.config;
  for (const auto& layer : image.layers) contents.blobs[layer.blob.digest] = layer.blob;
  contents.index.manifests.push_back(std::move(entry));
  for (auto& known : contents.docker) {
    if (known.config != docker.config || known.layers != docker.layers) continue;
    known.repo_tags.insert(known.repo_tags.end(), docker.repo_tags.begin(), docker.repo_tags.end());
    return {};
  }
  contents.docker.push_back(std::move(docker));
  return {};
}

Result<uint64_t> write_tar(BlobSource& source, const Contents& contents, const sys::Fd& output,
                           Cancel& cancel) {
  ArchiveWriter tar = TRY(ArchiveWriter::open(output));
  uint64_t size = 0;
  TRY(tar.add_text("oci-layout", kLayout));
  TRY(tar.add_text("index.json", json::write(contents.index)));
  TRY(tar.add_text("manifest.json", json::write(contents.docker)));
  TRY(tar.add_text("repositories", json::write(contents.repositories)));
  TRY(tar.add_directory("blobs/"));
  TRY(tar.add_directory("blobs/sha256/"));
  for (const auto& [digest, described] : contents.blobs) {
    TRY(cancel.check());
    sys::Fd blob = TRY(source.open(described));
    TRY(tar.add_file(blob_name(digest), blob, described.size));
    size += described.size;
  }
  TRY(tar.finish());
  return size;
}

Result<void> copy_file(const sys::Fd& from, const sys::Fd& directory, const std::string& name) {
  sys::Fd to = TRY(sys::open_at(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0644));
  TRY(sys::copy_rest(from, to, name));
  return sys::close_checked(std::move(to), name);
}

Result<uint64_t> write_directory(BlobSource& source, const Contents& contents,
                                 const std::string& path, Cancel& cancel) {
  auto present = TRY(sys::stat_entry(sys::cwd(), path));
  if (present) return make_error(Kind::exists, "write " + quote(path) + ": it already exists");
  TRY(sys::make_directory(sys::cwd(), path));
  Rollback undo;
  undo.add([&] { ignore(sys::remove_tree(sys::cwd(), path)); });  // the first error is reported
  sys::Fd directory = TRY(sys::open_at(sys::cwd(), path, O_RDONLY | O_DIRECTORY));
  TRY(sys::make_directories(directory, "blobs/sha256"));
  uint64_t size = 0;
  for (const auto& [digest, described] : contents.blobs) {
    TRY(cancel.check());
    sys::Fd blob = TRY(source.open(described));
    TRY(copy_file(blob, directory, blob_name(digest)));
    size += described.size;
  }
  TRY(sys::write_file(directory, "index.json", json::write(contents.index)));
  TRY(sys::write_file(directory, "oci-layout", kLayout));
  undo.commit();
  return size;
}

Result<uint64_t> write_output(BlobSource& source, const Contents& contents,
                              const image::SaveRequest& request, Cancel& cancel) {
  if (request.format == "oci") return write_directory(source, contents, request.output, cancel);
  OutputFile output = TRY(OutputFile::open(request.output, 0644));
  uint64_t size = TRY(write_tar(source, contents, output.fd(), cancel));
  TRY(output.finish());
  return size;
}

}  // namespace

Result<image::TransferResult> save(const image::SaveRequest& request, const EventSink& sink,
                                   Cancel& cancel) {
  auto saved = [&]() -> Result<image::TransferResult> {
    if (request.format != "archive" && request.format != "oci") {
      return make_error(Kind::usage, "format " + quote(request.format) +
                                         " is unknown; there are archive and oci");
    }
    // Only compressed layers are saved, so it does not matter how layers are unpacked.
    image::Store store = TRY(image::Store::open(request.root, {}, request.additional_stores));
    Contents contents;
    contents.index.media_type = oci::media_type::kIndex;
    for (const auto& reference : request.references) TRY(add_image(store, reference, contents));
    Events events(sink, Events::Layers::hidden);
    BlobSource source(store, request.access, events, cancel);
    image::TransferResult result;
    result.size = TRY(write_output(source, contents, request, cancel));
    return result;
  };
  return TRY_CTX(saved(), "cannot save " + join(request.references, ", "));
}

}  // namespace berth::transfer
