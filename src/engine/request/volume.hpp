// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace berth::engine {

/// How the files of a volume are relabeled for SELinux: not at all, as shared by all containers, or
/// as private to this container.
enum class Relabel { none, shared, own };
std::string to_json_text(const Relabel& relabel);
Result<Relabel> from_json_text(std::string_view text, std::type_identity<Relabel>);

/// One -v. A missing source is created as a directory, as with docker.
struct Volume {
  std::string source = {};       ///< absolute path on the host; empty for a named volume
  std::string destination = {};  ///< absolute path in the container
  bool read_only = false;
  std::string propagation = "rprivate";  ///< rprivate, private, rshared, shared, rslave, slave
  std::string name = {};                 ///< of the volume in the store
  bool anonymous = false;                ///< has a generated name; removed with the container
  bool no_copy = false;                  ///< do not fill an empty volume from the image
  bool must_exist = false;               ///< for --mount: a missing source is an error
  bool non_recursive = false;            ///< mounts below the source are left out
  std::vector<std::string> restrictions = {};  ///< nosuid, nodev, noexec
  Relabel relabel = Relabel::none;
  std::map<std::string, std::string> labels = {};  ///< for a volume that is created for this mount
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
  v.optional("restrictions", m.restrictions);
  v.optional("relabel", m.relabel);
  v.optional("labels", m.labels);
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

/// One --mount type=image: the files of an image as read-only data.
struct ImageMount {
  std::string source;       ///< a reference, or the absolute path of a squashfs or SIF
  std::string destination;  ///< absolute path in the container
  bool is_file = false;     ///< `source` is a file
  std::string id = {};      ///< the image that the reference named at creation
  bool operator==(const ImageMount&) const = default;
};
template <class V>
void fields(V& v, ImageMount& m) {
  v.required("source", m.source);
  v.required("destination", m.destination);
  v.optional("is_file", m.is_file);
  v.optional("id", m.id);
  v.strict();
}

/// Checks a volume's name: [a-zA-Z0-9][a-zA-Z0-9_.-]+, at most 255 bytes.
/// Errors: usage, with docker's message.
Result<void> check_volume_name(std::string_view name);

/// "SRC:DST[:options]", or "DST" for an anonymous volume. A source that does not begin with a slash
/// is the name of a volume; a source that is "." or "..", or begins with "./" or "../", is relative
/// to `working_directory`; "~" is not expanded. Options: ro, rw, nocopy, the propagation names, z
/// and Z.
/// Errors: usage (form, destination not absolute or "/", unknown option).
Result<Volume> parse_volume(std::string_view text, std::string_view working_directory);

using AnyMount = std::variant<Volume, Tmpfs, ImageMount>;
/// The value of docker's --mount: "type=bind,source=/a,target=/b,readonly", "type=volume,…",
/// "type=tmpfs,…", "type=image,…"; the source of an image mount stays as typed.
/// Errors: usage, with docker's message where scripts depend on it.
Result<AnyMount> parse_mount(std::string_view text);

/// "DST[:option,option…]".  Errors: usage.
Result<Tmpfs> parse_tmpfs(std::string_view text);

/// "cannot mount image 'alpine' at '/data'".
std::string cannot_mount(const ImageMount& mount);

}  // namespace berth::engine
