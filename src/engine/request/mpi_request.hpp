// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"
#include "mpi/abi.hpp"

namespace berth::engine {

/// The value of --mpi: whether programs in a container get the image's MPI or the host's.
enum class MpiMode {
  image,      ///< the image's own, with the node's fabric
  automatic,  ///< the host's if it fits, else the image's; "auto"
  host,       ///< the host's, else an error
};
std::string to_json_text(MpiMode mode);
Result<MpiMode> from_json_text(std::string_view text, std::type_identity<MpiMode>);

struct MpiRequest {
  MpiMode mode = MpiMode::image;
  mpi::Rule rule = mpi::Rule::major;
  std::string library_path;  ///< the caller's, to find the host's MPI after "module load"
  std::string program;       ///< the program that each rank runs, if not the container's command
  bool operator==(const MpiRequest&) const = default;
};
template <class V>
void fields(V& v, MpiRequest& m) {
  v.required("mode", m.mode);
  v.required("rule", m.rule);
  v.optional("library_path", m.library_path);
  v.optional("program", m.program);
  v.strict();
}

}  // namespace berth::engine
