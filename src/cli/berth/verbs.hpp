// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/berth/verb.hpp"

namespace berth::cli {

/// All verbs, in the order of the help.
std::vector<const Verb*> all_verbs();

/// A verb as typed.
struct Call {
  const Verb* verb = nullptr;
  std::string command;             ///< "berth gpu list", "berth image ls": for messages
  std::vector<std::string> words;  ///< the command line after it
};

/// Finds the verb at the beginning of `words`, by its name or by docker's longer name ("image ls",
/// "container rm").
/// Errors: usage (an unknown verb, suggesting the nearest one; a group without its second word).
Result<Call> find_verb(const std::vector<std::string>& words);

/// "help run" → "run --help", "help gpu list" → "gpu list --help", "help" → nothing; other words
/// are unchanged.
/// Errors: usage (more words after "help" than a verb has).
Result<std::vector<std::string>> without_help(std::vector<std::string> words);

/// The text of "berth gpu --help". Nothing for other words.
std::optional<std::string> help_of_group(const std::vector<std::string>& words);

/// Flags that every verb accepts.
struct GlobalOptions {
  std::optional<std::string> root, state, driver_root, config_dir, layer_format, rootfs_driver;
  std::vector<std::string> cdi_directories, additional_stores;
  bool debug = false;
  std::string log_format = "text";
  bool version = false;
};
FlagTable global_flags(GlobalOptions& options);
inline constexpr std::string_view kNoDaemon = "there is no daemon to choose";
/// Global flags of docker, podman and others that Berth lacks, with their equivalents.
inline constexpr Elsewhere kGlobalElsewhere[] = {
    {"H", "ssh HOST berth ...", kNoDaemon},
    {"a", "ssh HOST berth ...", kNoDaemon},
    {"address", "ssh HOST berth ...", kNoDaemon},
    {"allow-root", "leave it out", "root may run containers"},
    {"c", "ssh HOST berth ...", kNoDaemon},
    {"cgroup-manager", "leave it out", "cgroups are created automatically"},
    {"config", "DOCKER_CONFIG=DIR berth ..."},
    {"connection", "ssh HOST berth ...", kNoDaemon},
    {"context", "ssh HOST berth ...", kNoDaemon},
    {"d", "--debug"},
    {"events-backend", "leave it out", "events are in the store"},
    {"host", "ssh HOST berth ...", kNoDaemon},
    {"identity", "ssh -i FILE HOST berth ...", kNoDaemon},
    {"l", "--debug, or 2>/dev/null"},
    {"log-level", "--debug, or 2>/dev/null"},
    {"n", "--root DIR", "there are no namespaces of containers"},
    {"namespace", "--root DIR", "there are no namespaces of containers"},
    {"nocolor", "leave it out", "the output has no colours"},
    {"q", "2>/dev/null after it"},
    {"quiet", "2>/dev/null after it"},
    {"r", "ssh HOST berth ...", kNoDaemon},
    {"remote", "ssh HOST berth ...", kNoDaemon},
    {"repo", "--root DIR"},
    {"runroot", "--state DIR"},
    {"runtime", "leave it out", "there is one runtime"},
    {"s", "2>/dev/null after it"},
    {"silent", "2>/dev/null after it"},
    {"snapshotter", "--rootfs-driver DRIVER"},
    {"storage-driver", "--rootfs-driver DRIVER"},
    {"storage-opt", "--rootfs-driver DRIVER"},
    {"tls", "ssh HOST berth ...", kNoDaemon},
    {"tlscacert", "ssh HOST berth ...", kNoDaemon},
    {"tlscert", "ssh HOST berth ...", kNoDaemon},
    {"tlskey", "ssh HOST berth ...", kNoDaemon},
    {"tlsverify", "ssh HOST berth ...", kNoDaemon},
    {"tmpdir", "--root DIR"},
    {"transient-store", "--root DIR"},
    {"url", "ssh HOST berth ...", kNoDaemon},
    {"verbose", "--debug"},
};

/// The text of "berth --help".
std::string berth_help();

/// The input of completion scripts, for all verbs.
CompletionInput completion_input(GlobalOptions& options);

}  // namespace berth::cli
