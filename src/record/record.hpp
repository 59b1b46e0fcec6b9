// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

/// container.json: the file beside a container's bundle in which the engine and the container's
/// monitor record its settings and its history.
namespace berth::record {

/// The first line of container.json, written once, when the container is created. All times are
/// nanoseconds since 1970. Later changes are further lines, of which the last of each kind counts:
/// one short write at the end of a file needs no lock and, mostly, no block of the disk.
struct Container {
  std::string id;
  std::string name;                  ///< the first one; a Name has a later one
  std::string image;                 ///< as requested
  std::string image_id;              ///< "sha256:…"; empty with --rootfs
  std::vector<std::string> command;  ///< entrypoint and arguments
  int64_t created_ns = 0;
  bool remove = false;    ///< --rm
  bool prepared = false;  ///< made by `create`: it waits for its first start
  bool watched = false;   ///< its owner is a monitor, not a foreground `berth run`
  bool terminal = false;
  bool interactive = false;                  ///< -i
  int stop_signal = 15;                      ///< the first signal of `stop`
  std::optional<int64_t> stop_timeout = {};  ///< seconds until it kills; -1: never; none: ten
};
void fields(auto& v, Container& r) {
  v.required("id", r.id);
  v.required("name", r.name);
  v.required("image", r.image);
  v.required("image_id", r.image_id);
  v.required("command", r.command);
  v.required("created_ns", r.created_ns);
  v.required("remove", r.remove);
  v.optional("prepared", r.prepared);
  v.optional("watched", r.watched);
  v.required("terminal", r.terminal);
  v.optional("interactive", r.interactive);
  v.optional("stop_signal", r.stop_signal);
  v.optional("stop_timeout", r.stop_timeout);
}

/// Added by the monitor (monitor/record.cpp) when the command runs.
struct Start {
  int64_t started_ns = 0;
  int64_t pid = 0;           ///< of its first process, in the owner's pid namespace
  uint64_t start_ticks = 0;  ///< distinguishes that process from a later one with its pid
  std::string boot_id;       ///< of the machine's boot: after another boot nothing of it runs
  int restarts = 0;          ///< by the restart policy, since the user started it
};
void fields(auto& v, Start& r) {
  v.required("started_ns", r.started_ns);
  v.required("pid", r.pid);
  v.required("start_ticks", r.start_ticks);
  v.required("boot_id", r.boot_id);
  v.optional("restarts", r.restarts);
}

/// Appended by the owner at the end: a process that waits for a container of --rm holds the file
/// open and reads it there even after its removal. If it is missing and the owner is gone, the end
/// was not observed.
struct Exit {
  std::optional<int> exit_code;  ///< none: unknown
  int64_t finished_ns = 0;
  bool restarting = false;  ///< the restart policy restarts it
  bool oom_killed = false;
  std::string error = {};  ///< why it could not be started
  bool stopped = false;    ///< the user has ended it
};
void fields(auto& v, Exit& r) {
  v.always("exit_code", r.exit_code);
  v.required("finished_ns", r.finished_ns);
  v.optional("restarting", r.restarting);
  v.optional("oom_killed", r.oom_killed);
  v.optional("error", r.error);
  v.optional("stopped", r.stopped);
}

/// Added by `berth rename`.
struct Name {
  std::string name;
};
void fields(auto& v, Name& r) {
  v.required("name", r.name);
}

/// Added by `berth pause` and `unpause`; a start ends a pause.
struct Pause {
  bool paused = false;
};
void fields(auto& v, Pause& r) {
  v.always("paused", r.paused);
}

inline constexpr const char* kFile = "container.json";

/// The content of the file's lines.
struct Lines {
  std::optional<Container> record;  ///< none: never finished, or damaged; with the last name
  std::optional<Error> damage;      ///< why the first line is unreadable
  std::optional<Start> start;       ///< the last one
  std::optional<Exit> exit;         ///< after that start
  bool paused = false;
};

/// Reads the whole open file. Ignores half a line, left by an owner with a full disk.
/// Errors: io.
Result<Lines> read(const sys::Fd& file);

/// Appends a line to the file in `directory`: one short write, so a reader sees all of it or
/// nothing. Errors: not_found, io.
Result<void> append(const sys::Fd& directory, const std::string& line);

}  // namespace berth::record
