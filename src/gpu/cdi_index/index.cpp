// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi_index/index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "oci/cdi.hpp"
#include "oci/edit_fields.hpp"
#include "sys/file/file.hpp"
#include "sys/user/trusted_file.hpp"

namespace berth::gpu::cdi {

constexpr size_t kMaxIndexBytes = size_t{64} << 20;

void fields(auto& v, Stamp& stamp) {
  v.required("path", stamp.path);
  v.optional("stamp", stamp.stamp);
}

void fields(auto& v, IndexFile& file) {
  v.required("path", file.path);
  v.required("kind", file.kind);
  v.required("edits", file.edits);
}

void fields(auto& v, IndexDevice& device) {
  v.required("name", device.name);
  v.required("file", device.file);
  v.required("edits", device.edits);
}

void fields(auto& v, Fault& fault) {
  v.required("object", fault.object);
  v.required("text", fault.text);
}

void fields(auto& v, Index& index) {
  v.required("format", index.format);
  v.required("directories", index.directories);
  v.required("stamps", index.stamps);
  v.required("files", index.files);
  v.required("devices", index.devices);
  v.required("unavailable", index.unavailable);
  v.required("bad_files", index.bad_files);
}

namespace {

/// The error for a requested device that does not exist.
Error no_such_device(const Index& index, const std::string& name) {
  for (const Fault& fault : index.unavailable) {
    if (fault.object != name) continue;
    return make_error(Kind::unsupported, "device " + quote(name) + ": " + fault.text,
                      "berth cdi list");
  }
  std::vector<std::string_view> names;
  for (const IndexDevice& device : index.devices) names.push_back(device.name);
  auto near = nearest(name, names);
  std::string text = "no CDI device " + quote(name);
  if (near) text += ", did you mean " + quote(*near) + "?";
  if (!index.bad_files.empty()) {
    text += fmt::format(" ({} CDI file{} could not be read)", index.bad_files.size(),
                        index.bad_files.size() == 1 ? "" : "s");
  }
  std::string kind = name.substr(0, name.find('=') + 1);
  bool known =
      std::ranges::any_of(names, [&](std::string_view other) { return other.starts_with(kind); });
  bool ours = kind == "nvidia.com/gpu=" || kind == "amd.com/gpu=" || kind == "intel.com/gpu=";
  if (known || !ours || index.directories.empty()) {
    return make_error(Kind::not_found, text, "berth cdi list");
  }
  // No CDI file describes this machine's GPUs yet.
  return make_error(
      Kind::not_found,
      text + ": no file in " + join(index.directories, ", ") + " describes these GPUs",
      "--gpus, or berth cdi generate --output " + index.directories[0] + "/" +
          kind.substr(0, kind.find('.')) + ".yaml");
}

}  // namespace

std::vector<std::string> default_directories() {
  return {"/etc/cdi", "/var/run/cdi"};
}

Result<Stamp> stamp_of(const std::string& path) {
  // Links are followed: these files are often links, and it is the target that changes.
  auto fd = sys::open_at(sys::cwd(), path, O_PATH);
  if (!fd.ok()) {
    if (fd.error().kind == Kind::not_found) return Stamp{path, ""};
    return fd.error();
  }
  struct stat info = TRY(sys::stat_fd(*fd, path));
  if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
    return Stamp{path, fmt::format("{:o}:{:x}", info.st_mode, info.st_rdev)};
  }
  return Stamp{path, fmt::format("{:x}:{}:{}:{}.{:09}", info.st_dev, info.st_ino, info.st_size,
                                 info.st_mtim.tv_sec, info.st_mtim.tv_nsec)};
}

Result<bool> is_current(const Index& index) {
  for (const Stamp& stamp : index.stamps) {
    if (TRY(stamp_of(stamp.path)) != stamp) return false;
  }
  return true;
}

Result<oci::ContainerEdits> edits_of(const Index& index, const std::vector<std::string>& names) {
  oci::ContainerEdits edits;
  std::set<std::string_view> given;
  std::set<uint32_t> files;
  for (const std::string& name : names) {
    TRY(oci::cdi::parse_name(name));
    if (!given.insert(name).second) continue;
    auto device = std::ranges::find(index.devices, name, &IndexDevice::name);
    if (device == index.devices.end()) return no_such_device(index, name);
    if (files.insert(device->file).second) {
      oci::append(edits, index.files.at(device->file).edits);
    }
    oci::append(edits, device->edits);
  }
  return edits;
}

Result<std::optional<Index>> read_index(const std::string& path) {
  auto text = TRY(sys::read_trusted_file_if_exists(path, kMaxIndexBytes));
  if (!text) return std::optional<Index>();
  Index index = TRY(json::read<Index>(*text, path));
  if (index.format != kIndexFormat) {
    return make_error(Kind::unsupported, quote(path) + " was written by another version of Berth",
                      "berth cdi refresh");
  }
  for (const IndexDevice& device : index.devices) {
    if (device.file < index.files.size()) continue;
    return make_error(Kind::corrupt, path + ": " + quote(device.name) + " is of no file");
  }
  return std::optional<Index>(std::move(index));
}

std::string write_index(const Index& index) {
  return json::write(index) + "\n";
}

}  // namespace berth::gpu::cdi
