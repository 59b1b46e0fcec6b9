// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/devices.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/text.hpp"
#include "runtime/mount/attach.hpp"
#include "runtime/mount/target.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/pty.hpp"

namespace berth::runtime {
namespace {

std::string number(const std::string& type, uint32_t major_number, uint32_t minor_number) {
  return type + " " + std::to_string(major_number) + ":" + std::to_string(minor_number);
}

mode_t type_bits(const std::string& type) {
  return type == "b" ? S_IFBLK : type == "p" ? S_IFIFO : S_IFCHR;
}

Result<void> make(Inside& inside, const plan::MakeNode& step) {
  Parents::Place parent = TRY(inside.parents.open(inside.root, inside.own_dev, step.path));
  // In a volume, host processes outside the device cgroup could use a new node, so none is made
  // there; an existing node is accepted.
  auto made = parent.is_own
                  ? sys::make_node(parent.directory, parent.name, type_bits(step.type) | step.mode,
                                   step.major, step.minor)
                  : Result<void>(lies_in_another_mount(step.path));
  bool there_already = !made.ok() && TRY(sys::stat_entry(parent.directory, parent.name));
  if (there_already) {
    // runtime-spec config-linux.md "Devices": "If a file already exists at path that does not match
    // the requested device, the runtime MUST generate an error."
    sys::Fd there = TRY(sys::open_at(parent.directory, parent.name, O_PATH | O_NOFOLLOW));
    if (TRY(sys::is_device(there, step.type, step.major, step.minor, step.path))) return {};
    return make_error(Kind::exists, "there is another file at this path");
  }
  TRY(std::move(made));
  if (step.uid == 0 && step.gid == 0) return {};
  sys::Fd node = TRY(sys::hold_made(parent.directory, parent.name, type_bits(step.type),
                                    makedev(step.major, step.minor)));
  return sys::change_owner(node, step.uid, step.gid, step.path);
}

// Opens the target of a bind, at exactly this path: a link in the image is not followed.
Result<sys::Fd> open_place(Inside& inside, const std::string& path) {
  Parents::Place parent = TRY(inside.parents.open(inside.root, inside.own_dev, path));
  auto made =
      sys::open_at(parent.directory, parent.name, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0644);
  if (made.ok()) return made;
  if (made.error().kind != Kind::exists) return made;
  sys::Fd place = TRY(sys::open_at(parent.directory, parent.name, O_PATH | O_NOFOLLOW));
  struct stat info = TRY(sys::stat_fd(place, path));
  if (S_ISLNK(info.st_mode) || S_ISDIR(info.st_mode)) {
    return make_error(Kind::exists, "there is another file at this path");
  }
  return place;
}

// The view that the parent has made, if the container's user namespace keeps us from reaching the
// node's directory.
const sys::Fd* take_held(Inside& inside) {
  const auto& held = inside.prepared.held_sources;
  const sys::Fd* node = held ? &held->nodes[inside.nodes_taken++] : nullptr;
  return node != nullptr && *node ? node : nullptr;
}

Result<void> bind(Inside& inside, const plan::BindNode& step) {
  const sys::Fd* held = take_held(inside);
  auto opened = sys::open_at(sys::cwd(), step.source, O_PATH);
  bool is_denied = !opened.ok() && opened.error().kind == Kind::denied && held != nullptr;
  sys::Fd source = TRY(is_denied ? sys::duplicate(*held) : std::move(opened));
  // The path is one of the host, but the device there may have changed since the plan was made.
  if (!TRY(sys::is_device(source, step.type, step.major, step.minor, step.source))) {
    return make_error(Kind::denied,
                      quote(step.source) + " is not " + number(step.type, step.major, step.minor));
  }
  sys::Fd place = TRY(open_place(inside, step.path));
  plan::MountAttributes harmless;
  // Read-only: the device can be read and written as before, but mode, owner and times of the
  // host's inode cannot be changed.
  harmless.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  NewMount view;
  if (is_denied) {
    view.detached = std::move(source);
  } else {
    view = TRY(make_view(source, false, step.source));
  }
  TRY(attach(std::move(view), place, harmless, step.path));
  return {};
}

Result<sys::Fd> open_console(Inside& inside, const plan::MakeConsole& step) {
  // Opening a device may have effects, and the container's device rules may not be active yet. So
  // it is checked first, then opened.
  sys::Fd found = TRY(sys::open_in_root(inside.root, "/dev/pts/ptmx", O_PATH));
  if (!TRY(sys::is_device(found, "c", 5, 2, "/dev/pts/ptmx"))) {
    return make_error(Kind::denied, "'/dev/pts/ptmx' is not the terminal multiplexer");
  }
  sys::Fd master = TRY(sys::open_at(sys::cwd(), sys::fd_path(found), O_RDWR | O_NOCTTY));
  inside.terminal = TRY(sys::open_terminal(master));
  if (step.size) {
    TRY(sys::set_window_size(master, {static_cast<uint16_t>(step.size->height),
                                      static_cast<uint16_t>(step.size->width)}));
  }
  return master;
}

Result<void> console(Inside& inside, const plan::MakeConsole& step) {
  sys::Fd master = TRY(open_console(inside, step));
  if (step.named) {
    sys::Fd place = TRY(open_place(inside, "/dev/console"));
    NewMount view = TRY(make_view(inside.terminal, false, "/dev/console"));
    TRY(attach(std::move(view), place, {}, "/dev/console"));
  }
  TRY(inside.channel.send(Message::console, {}, 0, master));
  TRY(sys::new_session());
  return sys::become_terminal(inside.terminal);
}

Result<void> replace(Inside& inside, const plan::ReplaceLink& step) {
  Parents::Place parent = TRY(inside.parents.open(inside.root, inside.own_dev, step.path));
  // The annotation that asks for the link may come from an image, so it may not change a volume.
  if (!parent.is_own) return lies_in_another_mount(step.path);
  const auto& [directory, name, is_own] = parent;
  auto made = sys::make_symlink(step.text, directory, name);
  if (made.ok() || made.error().kind != Kind::exists) return made;
  auto there = TRY(sys::stat_entry(directory, name));
  if (there && S_ISDIR(there->st_mode)) {
    return make_error(Kind::exists, "there is a directory at this path");
  }
  if (there && S_ISLNK(there->st_mode)) {
    auto text = sys::read_link(directory, name);
    if (text.ok() && *text == step.text) return {};
  }
  // Atomic, unlike ln(1) -sf: another process in the same root sees the old link or the new one.
  std::string other = ".link-" + sys::random_hex(16);
  TRY(sys::make_symlink(step.text, directory, other));
  auto renamed = sys::rename(directory, other, directory, name);
  if (!renamed.ok()) ignore(sys::remove_entry(directory, other));
  return renamed;
}

}  // namespace

Result<void> make_node(Inside& inside, const plan::MakeNode& step) {
  TRY_CTX(make(inside, step), "cannot make device " + quote(step.path));
  return {};
}

Result<void> bind_node(Inside& inside, const plan::BindNode& step) {
  TRY_CTX(bind(inside, step), "cannot make device " + quote(step.path));
  return {};
}

Result<void> make_link(Inside& inside, const plan::MakeLink& step) {
  std::string context = "cannot make link " + quote(step.path);
  Parents::Place parent =
      TRY_CTX(inside.parents.open(inside.root, inside.own_dev, step.path), context);
  if (!parent.is_own) return {};  // /dev is that of the machine
  auto made = sys::make_symlink(step.text, parent.directory, parent.name);
  if (!made.ok() && made.error().kind != Kind::exists) {
    return std::move(made).error().with_context(context);
  }
  return {};  // an entry of the image stays
}

Result<void> replace_link(Inside& inside, const plan::ReplaceLink& step) {
  TRY_CTX(replace(inside, step), "cannot make link " + quote(step.path));
  return {};
}

Result<void> make_console(Inside& inside, const plan::MakeConsole& step) {
  TRY_CTX(console(inside, step), "cannot make the container's terminal");
  return {};
}

}  // namespace berth::runtime
