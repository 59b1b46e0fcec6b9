// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace berth::engine {

/// What SELinux is told of a volume's files: nothing, that all containers share them, or that they
/// belong to this one.
enum class Relabel { none, shared, own };
std::string to_json_text(const Relabel& relabel);
Result<Relabel> from_json_text(std::string_view text, std::type_identity<Relabel>);

/// One -v. A source that is missing becomes a directory, as docker does.
struct Volume {
  std::string source;       ///< absolute path on the host; empty for a volume with a name
  std::string destination;  ///< absolute path in the container
  bool read_only = false;
  std::string propagation = "rprivate";  ///< rprivate, private, rshared, shared, rslave, slave
  std::string name = {};                 ///< of the volume in the store
  bool anonymous = false;                ///< the name was made up: it goes with the container
  bool no_copy = false;     ///< an empty volume does not get what the image has at the destination
  bool must_exist = false;  ///< of --mount: a missing source is an error
  bool non_recursive = false;  ///< what is mounted below the source stays out
  Relabel relabel = Relabel::none;
  bool operator==(const Volume&) const = default;
};
template <class V>
void fields(V& v, Volume& m) {
  v.optional("source", m.source);
  v.required("destination", m.destination);
  v.optional("read_only", m.read_only);
  v.required("propagation", m.propagation);
  v.optional("name", m.name);
  v.optional("anonymous", m.anonymous);
  v.optional("no_copy", m.no_copy);
  v.optional("must_exist", m.must_exist);
  v.optional("non_recursive", m.non_recursive);
  v.optional("relabel", m.relabel);
  v.strict();
}

/// One --tmpfs.
struct Tmpfs {
  std::string destination;           ///< absolute path in the container
  std::vector<std::string> options;  ///< mount options as given
  bool operator==(const Tmpfs&) const = default;
};
template <class V>
void fields(V& v, Tmpfs& m) {
  v.required("destination", m.destination);
  v.optional("options", m.options);
  v.strict();
}

/// "SRC:DST[:options]". Options: ro, rw, the propagation names, and z, Z, which are accepted and
/// mean nothing without SELinux. "~" is the shell's: a source that starts with "./" or is "." is
/// taken below `working_directory`.
/// Errors: usage (form, destination not absolute or "/", unknown option), unsupported (a source
/// that is a volume name: named volumes do not exist yet).
Result<Volume> parse_volume(std::string_view text, std::string_view working_directory);

/// "DST[:option,option…]".  Errors: usage.
Result<Tmpfs> parse_tmpfs(std::string_view text);

}  // namespace berth::engine
