// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"
#include "mpi/abi.hpp"

namespace berth::engine {

/// What --mpi says: whether programs of a container get the image's MPI or the host's.
enum class MpiMode {
  image,      ///< the image's own, with the node's fabric
  automatic,  ///< the host's where it fits, else the image's; "auto"
  host,       ///< the host's, or no container
};
std::string to_json_text(MpiMode mode);
Result<MpiMode> from_json_text(std::string_view text, std::type_identity<MpiMode>);

struct MpiRequest {
  MpiMode mode = MpiMode::image;
  mpi::Rule rule = mpi::Rule::major;
  std::string library_path;  ///< of the caller, by which the host's MPI is found: module load
  std::string program;       ///< of the ranks, where it is not the container's command
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
