// SPDX-License-Identifier: Apache-2.0
// A synthetic driver tree in a directory that goes with the object, made by tests/support.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace berth::gpu::testing {

/// build/<preset>, in which this test program lies in bin/.
inline std::string build_directory() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

// Not by __FILE__, which a compiler cache makes relative to whoever compiled it first.
inline std::string source_directory() {
  return std::filesystem::path(build_directory()).parent_path().parent_path();
}

class Scratch {
 public:
  Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "berth-gpu-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// `options` are of driver_tree.py, e.g. "mig --no-uuid".
class DriverTree {
 public:
  explicit DriverTree(const std::string& kind, const std::string& options = {}) {
    std::string command = "/usr/bin/python3 " + source_directory() +
                          "/tests/support/driver_tree.py " + kind + " " + root() + " --no-mknod " +
                          options;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  std::string root() const { return scratch_.path() + "/root"; }
  std::string libraries() const { return root() + "/usr/lib/x86_64-linux-gnu"; }

 private:
  Scratch scratch_;
};

inline std::string with_nvml(const std::string& stub = "nvml_stub") {
  return "--nvml-stub " + build_directory() + "/lib/lib" + stub + ".so ";
}

}  // namespace berth::gpu::testing
