// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/inventory.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/text.hpp"

namespace berth::gpu {
namespace {

constexpr std::array<std::string_view, 7> kKindNames = {"library",  "binary", "socket",   "config",
                                                        "firmware", "module", "directory"};

std::string_view last_component(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string number_or_nothing(const std::optional<uint32_t>& number) {
  return number ? std::to_string(*number) : std::string();
}

// Returns false if `text` is neither empty nor a number.
bool read_number(std::string_view text, std::optional<uint32_t>& out) {
  if (text.empty()) return true;
  auto number = parse_u64(text);
  if (!number || *number > UINT32_MAX) return false;
  out = static_cast<uint32_t>(*number);
  return true;
}

// Removes the part before the first tab from `rest` and returns it; returns all of `rest` if it has
// no tab.
std::string_view take_part(std::string_view& rest) {
  size_t tab = rest.find('\t');
  std::string_view part = rest.substr(0, tab);
  rest = tab == std::string_view::npos ? std::string_view() : rest.substr(tab + 1);
  return part;
}

}  // namespace

std::string to_json_text(const DriverFile& file) {
  std::string name = file.name == last_component(file.host_path) ? std::string() : file.name;
  std::string soname = file.soname == file.name ? std::string() : file.soname;
  return join({std::string(kKindNames[static_cast<size_t>(file.kind)]), file.host_path, name,
               file.container_path, soname, std::to_string(file.loader_flags),
               file.elf32 ? "32" : "64", join(file.capabilities, ",")},
              "\t");
}

Result<DriverFile> from_json_text(std::string_view text, std::type_identity<DriverFile>) {
  std::array<std::string_view, 8> parts;
  std::string_view rest = text;
  for (std::string_view& part : parts) part = take_part(rest);
  size_t kind = 0;
  while (kind < kKindNames.size() && kKindNames[kind] != parts[0]) ++kind;
  auto flags = parse_i64(parts[5]);
  if (kind == kKindNames.size() || !flags || !rest.empty()) {
    return make_error(Kind::corrupt, "expected a driver file, got " + quote(text));
  }
  DriverFile file;
  file.kind = static_cast<FileKind>(kind);
  file.host_path = parts[1];
  file.name = parts[2].empty() ? last_component(parts[1]) : parts[2];
  file.container_path = parts[3];
  file.soname = parts[4];
  if (file.soname.empty() && file.kind == FileKind::library) file.soname = file.name;
  file.loader_flags = static_cast<int32_t>(*flags);
  file.elf32 = parts[6] == "32";
  for (std::string_view word : split(parts[7], ',')) {
    if (!word.empty()) file.capabilities.emplace_back(word);
  }
  return file;
}

std::string to_json_text(const ProcText& text) {
  return join({number_or_nothing(text.gpu), number_or_nothing(text.slice), text.path, text.text},
              "\t");
}

Result<ProcText> from_json_text(std::string_view text, std::type_identity<ProcText>) {
  ProcText out;
  std::string_view rest = text;
  bool numbers = read_number(take_part(rest), out.gpu) && read_number(take_part(rest), out.slice);
  out.path = take_part(rest);
  out.text = rest;
  if (!numbers || out.path.empty()) {
    return make_error(Kind::corrupt, "expected a text of procfs, got " + quote(text));
  }
  return out;
}

std::vector<std::string> lines_of(const std::vector<UnusableFile>& files) {
  constexpr size_t kNamed = 3;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  std::vector<std::string> out;
  for (const UnusableFile& file : files) {
    groups[{file.path.substr(0, file.path.rfind('/')), file.why}].push_back(file.path);
  }
  for (const auto& [key, paths] : groups) {
    size_t named = paths.size() > kNamed ? 1 : paths.size();
    for (size_t i = 0; i < named; ++i) {
      std::string more;
      if (named < paths.size()) more = fmt::format(" and {} more beside it", paths.size() - 1);
      out.push_back(quote(paths[i]) + more + ": " + key.second);
    }
  }
  return out;
}

std::string name_of(const Selected& selected) {
  const Gpu& gpu = *selected.gpu;
  if (selected.slice != nullptr && !selected.slice->uuid.empty()) return selected.slice->uuid;
  bool whole_gpu = selected.partition == nullptr && selected.slice == nullptr;
  return whole_gpu && !gpu.uuid.empty() ? gpu.uuid : index_of(selected);
}

std::string index_of(const Selected& selected) {
  std::string index = std::to_string(selected.gpu->index);
  if (selected.partition != nullptr) return index + ":" + std::to_string(selected.partition->index);
  if (selected.slice != nullptr) return index + ":" + std::to_string(selected.slice->index);
  return index;
}

std::string key_of(const Selected& selected) {
  if (selected.partition != nullptr) {
    return fmt::format("{}/{}", selected.gpu->pci_address, selected.partition->index);
  }
  if (selected.slice == nullptr) return selected.gpu->pci_address;
  return fmt::format("{}/{}/{}", selected.gpu->pci_address, selected.slice->gpu_instance,
                     selected.slice->compute_instance);
}

std::string_view vendor_name(Vendor vendor) {
  static constexpr std::string_view kNames[] = {"NVIDIA", "AMD", "Intel"};
  return kNames[static_cast<size_t>(vendor)];
}

}  // namespace berth::gpu
