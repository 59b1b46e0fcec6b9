// SPDX-License-Identifier: Apache-2.0
#include "known_error/table.hpp"

namespace berth::known_error {

std::span<const Row> rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> all = rows_of_gpu();
    for (const auto& part : {rows_of_program(), rows_of_system()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kRows;
}

}  // namespace berth::known_error
