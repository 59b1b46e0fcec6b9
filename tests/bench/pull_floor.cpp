// SPDX-License-Identifier: Apache-2.0
// bench_pull_floor DIRECTORY BLOB…: what a pull of these gzip layers cannot do without, each alone
// and on one thread: inflating them, the SHA-256 of the compressed and of the uncompressed bytes,
// making their files in a tree below DIRECTORY, and writing as many bytes into one file there.
// Prints JSON: for each layer the bytes, the files, and seconds of wall and of processor time.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/piece_writer.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"
#include "transfer/compression/decompress.hpp"
#include "transfer/tar/entry.hpp"
#include "transfer/tar/tar.hpp"
#include "transfer/work/sha256.hpp"

namespace {

using namespace berth;
using transfer::TarEntry;
using Type = TarEntry::Type;

constexpr size_t kBlock = size_t{1} << 20;
constexpr const char* kPlace = "berth-pull-floor";

/// Adds up what passes between begin() and end().
class Stage {
 public:
  void begin() {
    wall_ = std::chrono::steady_clock::now();
    cpu_ = processor_seconds();
  }
  void end() {
    cpu_seconds += processor_seconds() - cpu_;
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
  }

  double seconds = 0;
  double cpu_seconds = 0;

 private:
  static double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

  std::chrono::steady_clock::time_point wall_;
  double cpu_ = 0;
};

struct Layer {
  uint64_t compressed = 0;
  uint64_t uncompressed = 0;
  std::vector<TarEntry> entries;
  Stage inflate, hash_compressed, hash_uncompressed, tree, one_file;
};

void hash_compressed(std::string_view bytes, Layer& layer) {
  transfer::sha256_of(bytes);  // brings the pages
  layer.hash_compressed.begin();
  transfer::sha256_of(bytes);
  layer.hash_compressed.end();
}

/// The blocks are hashed while the processor's cache has them, as in a pull.
Result<void> inflate(std::string_view bytes, Layer& layer) {
  auto inflater = transfer::Inflater::make(oci::Compression::gzip, bytes);
  auto block = std::make_unique<char[]>(kBlock);
  transfer::Sha256 hash;
  auto next = [&]() -> Result<std::string_view> {
    layer.inflate.begin();
    size_t count = TRY(inflater->read(block.get(), kBlock));
    layer.inflate.end();
    std::string_view read(block.get(), count);
    layer.hash_uncompressed.begin();
    hash.update(read);
    layer.hash_uncompressed.end();
    layer.uncompressed += count;
    return read;
  };
  transfer::TarReader tar(next);
  TarEntry entry;
  while (TRY(tar.next(entry))) layer.entries.push_back(entry);
  while (!TRY(next()).empty()) {
  }
  return {};
}

Result<void> finish(const sys::Fd& fd, const TarEntry& entry, const std::string& name) {
  TRY(sys::change_owner(fd, static_cast<uid_t>(entry.uid), static_cast<gid_t>(entry.gid), name));
  return sys::set_modified(fd, {entry.mtime, entry.mtime_nanoseconds}, name);
}

/// Large files go past the cache as far as the disk keeps up, as in a pull.
Result<void> fill(const sys::Fd& fd, uint64_t size, std::string_view block,
                  const std::string& name) {
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  static sys::PieceWriter pieces(sys::PieceWriter::Cache::past);
  if (size >= kLarge) pieces.begin(fd, name);
  for (uint64_t at = 0; at < size;) {
    std::string_view part = block.substr(0, size - at);
    TRY(size >= kLarge ? pieces.write(at, part) : sys::write_all(fd, part, name));
    at += part.size();
  }
  return pieces.flush();
}

Result<void> make_file(const sys::Fd& parent, const std::string& name, const TarEntry& entry,
                       std::string_view block) {
  sys::Fd fd =
      TRY(sys::open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, entry.mode & 0777));
  TRY(fill(fd, entry.size, block, name));
  TRY(finish(fd, entry, name));
  return sys::close_checked(std::move(fd), name);
}

/// The parent of the entry before is at hand: archives list a directory's entries together.
Result<void> make_tree(const sys::Fd& root, const std::vector<TarEntry>& entries,
                       std::string_view block) {
  constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  std::string at = ".";
  sys::Fd parent = TRY(sys::open_at(root, at, kDirectory));
  for (const TarEntry& entry : entries) {
    std::string path = entry.path.substr(0, entry.path.find_last_not_of('/') + 1);
    if (path == ".") continue;
    size_t slash = path.rfind('/');
    std::string directory = slash == path.npos ? "." : path.substr(0, slash);
    std::string name = path.substr(slash + 1);
    if (directory != at) {
      parent = TRY(sys::open_at(root, directory, kDirectory));
      at = directory;
    }
    if (entry.type == Type::directory) TRY(sys::make_new_directory(parent, name, 0755));
    if (entry.type == Type::symlink) TRY(sys::make_symlink(entry.link, parent, name));
    if (entry.type == Type::hard_link) TRY(sys::make_hard_link(root, entry.link, parent, name));
    if (entry.type == Type::file) TRY(make_file(parent, name, entry, block));
  }
  return {};
}

Result<void> make_one_file(const sys::Fd& place, uint64_t size, std::string_view block) {
  sys::Fd fd = TRY(sys::open_at(place, "one", O_WRONLY | O_CREAT | O_EXCL, 0644));
  TRY(fill(fd, size, block, "one"));
  return sys::close_checked(std::move(fd), "one");
}

/// A directory for what a stage makes. What is not yet on the disk from before is not its to wait
/// for, nor is memory that the page cache must give back first.
Result<sys::Fd> make_place(const sys::Fd& directory, const std::string& name) {
  TRY(sys::make_new_directory(directory, name, 0700));
  sync();
  sys::Fd drop = TRY(sys::open_at(sys::cwd(), "/proc/sys/vm/drop_caches", O_WRONLY));
  TRY(sys::write_all(drop, "1", "drop_caches"));
  return sys::open_at(directory, name, O_RDONLY | O_DIRECTORY);
}

/// Nothing is removed in between: a file system may look at each inode that was just given back.
Result<void> write(const sys::Fd& place, std::vector<Layer>& layers) {
  std::string block(kBlock, '\xa5');
  for (size_t i = 0; i < layers.size(); ++i) {
    sys::Fd tree = TRY(make_place(place, "tree" + std::to_string(i)));
    layers[i].tree.begin();
    TRY(make_tree(tree, layers[i].entries, block));
    layers[i].tree.end();
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    sys::Fd file = TRY(make_place(place, "file" + std::to_string(i)));
    layers[i].one_file.begin();
    TRY(make_one_file(file, layers[i].uncompressed, block));
    layers[i].one_file.end();
  }
  return {};
}

Result<Layer> read(const char* path) {
  sys::Fd blob = TRY(sys::open_at(sys::cwd(), path, O_RDONLY));
  sys::MappedFile mapped = TRY(sys::MappedFile::map(blob, path));
  Layer layer;
  layer.compressed = mapped.bytes().size();
  hash_compressed(mapped.bytes(), layer);
  TRY(inflate(mapped.bytes(), layer));
  return layer;
}

void print(const char* name, const Stage& stage) {
  std::printf(", \"%s\": {\"s\": %.4f, \"cpu_s\": %.4f}", name, stage.seconds, stage.cpu_seconds);
}

void print(const Layer& layer) {
  size_t files = 0;
  for (const TarEntry& entry : layer.entries) files += entry.type == Type::file ? 1 : 0;
  std::printf("{\"compressed\": %llu, \"uncompressed\": %llu, \"entries\": %zu, \"files\": %zu",
              static_cast<unsigned long long>(layer.compressed),
              static_cast<unsigned long long>(layer.uncompressed), layer.entries.size(), files);
  print("inflate", layer.inflate);
  print("sha256_compressed", layer.hash_compressed);
  print("sha256_uncompressed", layer.hash_uncompressed);
  print("tree", layer.tree);
  print("one_file", layer.one_file);
  std::printf("}");
}

Result<void> measure(const char* directory, char** blobs, int count) {
  std::vector<Layer> layers;
  for (int i = 0; i < count; ++i) {
    Layer layer = TRY(read(blobs[i]));
    layers.push_back(std::move(layer));
  }
  sys::Fd parent = TRY(sys::open_at(sys::cwd(), directory, O_RDONLY | O_DIRECTORY));
  sys::Fd place = TRY(make_place(parent, kPlace));
  auto written = write(place, layers);
  auto removed = sys::remove_tree(parent, kPlace);
  if (!written.ok()) return written;
  TRY(std::move(removed));
  std::printf("[");
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) std::printf(",\n");
    print(layers[i]);
  }
  std::printf("]\n");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_pull_floor DIRECTORY BLOB...\n", stderr);
    return 2;
  }
  auto done = measure(argv[1], argv + 2, argc - 2);
  if (!done.ok()) {
    std::fprintf(stderr, "bench_pull_floor: %s\n", to_line(done.error()).c_str());
    return 1;
  }
  return 0;
}
