// SPDX-License-Identifier: Apache-2.0
#include "engine/files/copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/root_view.hpp"
#include "engine/context/paths.hpp"
#include "engine/image/transfer.hpp"
#include "engine/state/journal.hpp"
#include "sys/file/file.hpp"
#include "sys/file/root_walk.hpp"
#include "sys/mount/mount.hpp"

namespace berth::engine {
namespace {

constexpr int kHandle = O_PATH | O_NOFOLLOW;

/// A path in docker's interpretation.
struct Path {
  std::string text;        ///< absolute
  bool contents = false;   ///< ends in "/.": the directory's entries, not the directory
  bool directory = false;  ///< ends in "/" or "/.": the target must be a directory
};

Result<Path> parse_path(const std::string& text, const std::string& working_directory) {
  Path path;
  path.contents = text == "." || text.ends_with("/.");
  path.directory = path.contents || text.ends_with('/');
  path.text = TRY(absolute_path(text, working_directory));
  return path;
}

/// The last part of a path, ignoring "." and ""; "" for the root and a path that ends in "..".
std::string last_part(std::string_view text) {
  std::string last;
  for (std::string_view part : split(text, '/')) {
    if (!part.empty() && part != ".") last = part;
  }
  return last == ".." ? "" : last;
}

enum class LastLink { kept, followed };

/// The target of a path, as open descriptors.
struct Place {
  sys::Fd parent;    ///< the directory it is in
  std::string name;  ///< its name there; "." if the path ends in a directory
  sys::Fd entry;     ///< O_PATH; empty: does not exist
  bool is_directory = false;
};

/// Errors: not_found (a directory on the way).
Result<Place> find_place(const sys::Fd& root, const std::string& path, LastLink last_link) {
  sys::RootWalk walk = TRY(sys::RootWalk::begin(root, path));
  Place place;
  place.name = ".";
  while (auto name = walk.next()) {
    auto found = sys::open_at(walk.directory(), *name, kHandle);
    bool last = walk.is_last();
    if (!found.ok() && found.error().kind == Kind::not_found && last) {
      place.name = std::move(*name);
      place.parent = std::move(walk).directory();
      return place;
    }
    sys::Fd entry = TRY(std::move(found));
    mode_t type = TRY(sys::stat_fd(entry, *name)).st_mode & S_IFMT;
    if (type == S_IFLNK && (!last || last_link == LastLink::followed)) {
      TRY(walk.follow(*name));
      continue;
    }
    if (type == S_IFDIR) {
      walk.enter(std::move(entry));
      continue;
    }
    if (!last) return make_error(Kind::not_found, quote(*name) + " is not a directory");
    place.entry = std::move(entry);
    place.name = std::move(*name);
    place.parent = std::move(walk).directory();
    return place;
  }
  place.is_directory = true;
  place.entry = TRY(sys::open_at(walk.directory(), ".", kHandle | O_DIRECTORY));
  place.parent = std::move(walk).directory();
  return place;
}

/// One side of a copy, opened.
struct Side {
  std::string shown;  ///< for errors
  sys::Fd root;       ///< the root of the host, or of the container's view
  Path path;
};

Error no_such_path(const Side& side) {
  return make_error(Kind::not_found, "no such path: " + escape_controls(side.shown));
}

Result<Place> find_in(const Side& side, LastLink last_link) {
  auto place = find_place(side.root, side.path.text, last_link);
  if (!place.ok() && place.error().kind == Kind::not_found) return no_such_path(side);
  return place;
}

Result<Side> host_side(const CopySide& asked, const CopyOptions& options) {
  Side side;
  side.shown = asked.path;
  side.path = TRY(parse_path(asked.path, options.working_directory));
  side.root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  return side;
}

Result<Side> container_side(const CopySide& asked, const RootView& view) {
  Side side;
  side.shown = asked.container + ":" + asked.path;
  side.path = TRY(parse_path(asked.path, "/"));
  side.root = TRY(sys::duplicate(view.root()));
  return side;
}

struct Source {
  sys::Fd entry;
  std::string name;  ///< of the first member; "." for a directory's entries
  bool is_directory = false;
  bool is_device = false;
};

Result<Source> open_source(const Side& side, const CopyOptions& options) {
  bool follow = options.follow_link || side.path.directory;
  Place place = TRY(find_in(side, follow ? LastLink::followed : LastLink::kept));
  if (!place.entry) return no_such_path(side);
  if (side.path.directory && !place.is_directory) {
    return make_error(Kind::usage, quote(side.shown) + " is not a directory");
  }
  mode_t mode = TRY(sys::stat_fd(place.entry, side.shown)).st_mode;
  Source source{std::move(place.entry), last_part(side.path.text), place.is_directory,
                S_ISCHR(mode) || S_ISBLK(mode)};
  if (side.path.contents || source.name.empty()) source.name = ".";
  return source;
}

/// Where an archive is extracted, and the name of its first member there.
struct Destination {
  sys::Fd directory;
  std::string name;
};

// Extraction would replace a device that should be written to, such as /dev/null.
Result<void> check_replaceable(const Side& side, const sys::Fd& entry) {
  if (S_ISREG(TRY(sys::stat_fd(entry, side.shown)).st_mode)) return {};
  return make_error(Kind::usage,
                    "destination " + quote(side.shown) + " must be a directory or a regular file");
}

// The cases of the table in docker's reference of `cp`.
Result<Destination> choose_destination(const Side& side, const Source& source) {
  Place place = TRY(find_in(side, LastLink::followed));
  auto open = [&](const sys::Fd& directory) {
    return sys::open_at(directory, ".", O_RDONLY | O_DIRECTORY);
  };
  if (place.entry && place.is_directory) {
    return Destination{TRY(open(place.entry)), source.name};
  }
  if (place.entry && source.is_directory) {
    return make_error(Kind::usage,
                      "cannot copy directory: " + quote(side.shown) + " is not a directory");
  }
  if (place.entry) TRY(check_replaceable(side, place.entry));
  if (side.path.directory && !source.is_directory) {
    if (place.entry) return make_error(Kind::usage, quote(side.shown) + " is not a directory");
    return make_error(Kind::not_found, "no such directory: " + escape_controls(side.shown));
  }
  return Destination{TRY(open(place.parent)), place.name};
}

Result<RootView> view_of(const Context& context, const std::string& reference) {
  ContainerSummary container = TRY(get_container(context, reference));
  return RootView::open(context, container);
}

Result<void> check_writable(const RootView& view, const sys::Fd& directory) {
  if (!view.read_only()) return {};
  uint64_t there = TRY(sys::mount_id(directory, "the destination"));
  uint64_t root = TRY(sys::mount_id(view.root(), "the root"));
  if (there != root) return {};  // a volume: the kernel reports its mode
  return make_error(Kind::denied, "container rootfs is marked read-only");
}

Result<void> copy_out(const Context& context, const CopySide& from, const CopySide& to,
                      const CopyOptions& options) {
  RootView view = TRY(view_of(context, from.container));
  Side inside = TRY(container_side(from, view));
  Source source = TRY(open_source(inside, options));
  image::ArchiveRequest archive;
  archive.tree = descriptor_name(source.entry);
  archive.name = source.name;
  if (to.path == "-") {
    archive.output = "/dev/fd/1";
    TRY(transfer(context, std::move(archive), {}));
    return {};
  }
  if (!options.archive && source.is_device) {
    return make_error(Kind::unsupported,
                      quote(inside.shown) + " is a device, which cp does not create on the host",
                      "berth cp " + inside.shown + " - for a tar that has it");
  }
  Side host = TRY(host_side(to, options));
  Destination destination = TRY(choose_destination(host, source));
  archive.name = destination.name;
  image::ExtractRequest extract;
  extract.directory = descriptor_name(destination.directory);
  extract.owners = options.archive ? image::Owners::archive : image::Owners::root;
  extract.trust = options.archive ? image::Trust::inside : image::Trust::outside;
  return transfer_tree(context, std::move(archive), std::move(extract));
}

Result<void> extract_input(const Context& context, const RootView& view, const Side& side,
                           const CopyOptions& options) {
  Place place = TRY(find_in(side, LastLink::followed));
  if (!place.entry) return no_such_path(side);
  if (!place.is_directory) {
    return make_error(Kind::usage, "destination " + quote(side.shown) + " must be a directory");
  }
  sys::Fd directory = TRY(sys::open_at(place.entry, ".", O_RDONLY | O_DIRECTORY));
  TRY(check_writable(view, directory));
  image::ExtractRequest extract;
  extract.directory = descriptor_name(directory);
  extract.top = descriptor_name(view.root());
  extract.path = side.path.text;
  extract.input = "/dev/fd/0";
  extract.packed = true;
  extract.owners = options.archive ? image::Owners::archive : image::Owners::root;
  TRY(transfer(context, std::move(extract), {}));
  return {};
}

Result<void> copy_in(const Context& context, const CopySide& from, const CopySide& to,
                     const CopyOptions& options) {
  RootView view = TRY(view_of(context, to.container));
  Side inside = TRY(container_side(to, view));
  if (from.path == "-") return extract_input(context, view, inside, options);
  Side host = TRY(host_side(from, options));
  Source source = TRY(open_source(host, options));
  Destination destination = TRY(choose_destination(inside, source));
  TRY(check_writable(view, destination.directory));
  image::ArchiveRequest archive;
  archive.tree = descriptor_name(source.entry);
  archive.name = destination.name;
  image::ExtractRequest extract;
  extract.directory = descriptor_name(destination.directory);
  extract.owners = options.archive ? image::Owners::archive : image::Owners::root;
  return transfer_tree(context, std::move(archive), std::move(extract));
}

}  // namespace

CopySide parse_copy_side(std::string_view text) {
  size_t colon = text.find(':');
  bool host = text.starts_with('/') || colon == text.npos || text.substr(0, colon).starts_with('.');
  if (host) return {"", std::string(text)};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

Result<void> copy_files(const Context& context, const CopySide& from, const CopySide& to,
                        const CopyOptions& options) {
  // An error, not the root or the working directory: a script's variable may be empty.
  if (from.path.empty()) return make_error(Kind::usage, "copying source can not be empty");
  if (to.path.empty()) return make_error(Kind::usage, "copying destination can not be empty");
  if (!from.container.empty() && !to.container.empty()) {
    return make_error(Kind::usage, "copying between containers is not supported",
                      "berth cp " + from.container + ":" + from.path + " - | berth cp - " +
                          to.container + ":" + to.path);
  }
  if (!from.container.empty()) return copy_out(context, from, to, options);
  if (!to.container.empty()) return copy_in(context, from, to, options);
  return make_error(Kind::usage, "must specify at least one container source",
                    "berth cp CONTAINER:PATH PATH");
}

Result<void> export_container(const Context& context, std::string_view reference,
                              const std::string& output) {
  ContainerSummary container = TRY(get_container(context, reference));
  RootView view = TRY(RootView::open_layers(context, container));
  image::ArchiveRequest archive;
  archive.tree = descriptor_name(view.root());
  archive.output = output;
  TRY_CTX(transfer(context, std::move(archive), {}),
          "cannot export container " + quote(container.name));
  emit_container_event(context.paths, container.id, "export");
  return {};
}

}  // namespace berth::engine
