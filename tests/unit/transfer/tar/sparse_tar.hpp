// SPDX-License-Identifier: Apache-2.0
// Sparse members of a tar in every form that GNU tar writes, with maps that may lie.
#pragma once

#include <cstdio>
#include <string>

#include "support/tar_checksums.hpp"
#include "tar_builder.hpp"
#include "transfer/tar/tar.hpp"

namespace berth::transfer {

enum class SparseForm { old_gnu, pax_0_0, pax_0_1, pax_1_0 };
inline constexpr SparseForm kSparseForms[] = {SparseForm::old_gnu, SparseForm::pax_0_0,
                                              SparseForm::pax_0_1, SparseForm::pax_1_0};

namespace sparse_tar {

inline std::string octal(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "%011lo", static_cast<unsigned long>(value));
  if (value < uint64_t{1} << 33) return std::string(text, 12);
  std::string base256(12, '\0');
  base256[0] = '\x80';
  for (int i = 11; value > 0; --i, value >>= 8)
    base256[static_cast<size_t>(i)] = static_cast<char>(value);
  return base256;
}

inline std::string old_gnu(const std::string& name, const Extents& extents, uint64_t size,
                           const std::string& data) {
  std::string all = TarBuilder().add({.name = name, .type = 'S'}, data).unfinished();
  std::string record = all.substr(0, 512);
  record.replace(257, 8, std::string("ustar  \0", 8));
  record.replace(483, 12, octal(size));
  std::string more;
  for (size_t i = 0; i < extents.size(); ++i) {
    std::string part = octal(extents[i].offset) + octal(extents[i].length);
    if (i < 4) {
      record.replace(386 + i * 24, 24, part);
      continue;
    }
    if ((i - 4) % 21 == 0) {
      (more.empty() ? record[482] : more[more.size() - 8]) = '\1';
      more += std::string(512, '\0');
    }
    more.replace(more.size() - 512 + (i - 4) % 21 * 24, 24, part);
  }
  return with_checksums(record) + more + all.substr(512);
}

}  // namespace sparse_tar

/// `data`: what lies in the extents, one after the other.
inline std::string sparse_member(const std::string& name, SparseForm form, const Extents& extents,
                                 uint64_t size, const std::string& data) {
  using Records = std::vector<std::pair<std::string, std::string>>;
  std::string count = std::to_string(extents.size());
  Records records{{"GNU.sparse.size", std::to_string(size)}, {"GNU.sparse.numblocks", count}};
  switch (form) {
    case SparseForm::old_gnu:
      return sparse_tar::old_gnu(name, extents, size, data);
    case SparseForm::pax_0_0:
      for (const Extent& extent : extents) {
        records.emplace_back("GNU.sparse.offset", std::to_string(extent.offset));
        records.emplace_back("GNU.sparse.numbytes", std::to_string(extent.length));
      }
      return TarBuilder().pax(records).file(name, data).unfinished();
    case SparseForm::pax_0_1: {
      std::string list;
      for (const Extent& extent : extents) {
        list += (list.empty() ? "" : ",") + std::to_string(extent.offset) + "," +
                std::to_string(extent.length);
      }
      records.emplace_back("GNU.sparse.map", list);
      records.emplace_back("GNU.sparse.name", name);
      return TarBuilder().pax(records).file("GNUSparseFile.0/x", data).unfinished();
    }
    case SparseForm::pax_1_0: {
      std::string map = count + "\n";
      for (const Extent& extent : extents) {
        map += std::to_string(extent.offset) + "\n" + std::to_string(extent.length) + "\n";
      }
      map.resize((map.size() + 511) / 512 * 512, '\0');
      return TarBuilder()
          .pax({{"GNU.sparse.major", "1"},
                {"GNU.sparse.minor", "0"},
                {"GNU.sparse.name", name},
                {"GNU.sparse.realsize", std::to_string(size)}})
          .file("GNUSparseFile.0/x", map + data)
          .unfinished();
    }
  }
  return {};
}

}  // namespace berth::transfer
