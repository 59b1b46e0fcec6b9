// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/host_descriptors.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "sys/file/file.hpp"
#include "sys/process/program.hpp"

namespace berth::runtime {
namespace {

Result<void> refuse_directory(int number, const char* stream) {
  sys::Fd fd(number);
  auto info = sys::stat_fd(fd, stream);
  fd.release();
  if (!info.ok() || !S_ISDIR(info->st_mode)) return {};  // a closed descriptor is harmless
  return make_error(Kind::usage, std::string(stream) + " is a directory of the host");
}

}  // namespace

Result<void> close_host_descriptors(Inside& inside) {
  inside.root.reset();
  inside.parents = Parents();
  inside.kernel_views.clear();
  inside.null_device.reset();
  inside.empty_tree.reset();
  inside.own_dev.reset();
  TRY(refuse_directory(STDIN_FILENO, "standard input"));
  TRY(refuse_directory(STDOUT_FILENO, "standard output"));
  TRY(refuse_directory(STDERR_FILENO, "standard error"));
  const LoaderHandles& loader = inside.loader;
  return sys::close_all_from(
      3 + static_cast<unsigned>(inside.prepared.preserve_fds),
      {inside.channel.fd().get(), inside.prepared.start_socket.get(), inside.terminal.get(),
       // Regular files, which are closed before the image's program is looked up.
       loader.image_cache.get(), loader.image_path.get(), loader.cache.get(), loader.path.get(),
       loader.configuration.get(), loader.original.get(), loader.kept.get()});
}

}  // namespace berth::runtime
