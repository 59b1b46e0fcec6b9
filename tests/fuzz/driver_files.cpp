// SPDX-License-Identifier: Apache-2.0
#include "scan/driver_files.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

namespace scan = berth::scan;

/// Every path that is asked for is one file of the same bytes.
class OneFile : public scan::Tree {
 public:
  explicit OneFile(std::string bytes) : bytes_(std::move(bytes)) {}
  berth::Result<std::optional<File>> find_file(const std::string& path) const override {
    return std::optional<File>(File{path, bytes_.size()});
  }
  berth::Result<std::vector<std::string>> list(const std::string&) const override {
    return std::vector<std::string>{"libcuda.so.1", "libcuda.so.575.57.08"};
  }
  berth::Result<std::string> read(const File&, uint64_t offset, size_t length) const override {
    return offset < bytes_.size() ? bytes_.substr(offset, length) : std::string();
  }

 private:
  std::string bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  scan::LoaderSettings settings;
  settings.library_path = bytes.substr(0, 64);
  settings.program = "/program";
  auto found = scan::find_driver_files(OneFile(bytes), settings);
  if (!found.ok()) std::abort();  // the tree has no errors
  if (found->compat) (void)scan::judge_compat(*found->compat, "570.133.20", "12.8", {"tesla"});
  return 0;
}
