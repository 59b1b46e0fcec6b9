// SPDX-License-Identifier: Apache-2.0
// The names of the files of NVIDIA's driver, the places where programs expect them, and the
// capabilities that need them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::gpu {

struct LibraryName {
  std::string_view base;          ///< "libcuda", before ".so"
  std::string_view capabilities;  ///< comma separated: any of these needs it
  enum class Version {
    driver,  ///< its file name ends with the driver's version
    own,     ///< its file name ends with a version of its own, or with the number of its SONAME
    either,  ///< one or the other, depending on the driver
  } version = Version::driver;
  /// Mesa and GLVND use this name too: the file is the driver's only if it needs libnvidia-glcore
  /// or libnvidia-eglcore, or if the driver has nothing for GLVND (before 361).
  bool contested = false;
};

/// Nothing for a library that is not the driver's.
const LibraryName* find_library_name(std::string_view base);

/// The capabilities that a library belongs to by its name without ".so…"; empty for a library that
/// is not the driver's.
std::vector<std::string> library_capabilities(std::string_view base);

/// "libcuda.so.570.133.20" → "570.133.20"; empty when no version of a driver follows ".so.": these
/// have two numbers or more, of which the first has three digits.
std::string_view driver_version_of(std::string_view file_name);

struct NamedFile {
  std::string_view name;
  std::string_view target;  ///< the directory in the container, or the full path of a socket
  std::string_view capabilities;
};

const std::vector<NamedFile>& program_names();        ///< for /usr/bin
const std::vector<NamedFile>& socket_names();         ///< of the driver's services
const std::vector<NamedFile>& service_directories();  ///< in which services make their sockets
/// Below etc or share. VERSION in a name stands for the driver's version.
const std::vector<NamedFile>& config_names();

/// "compute,video" → {"compute", "video"}
std::vector<std::string> words_of(std::string_view comma_list);

}  // namespace berth::gpu
