// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd.hpp"

/// container.json: the file beside a container's bundle in which the engine and the container's
/// monitor write down what it is and what happened to it.
namespace berth::record {

/// The first line of container.json, written once, when the container is created. All times are
/// nanoseconds since 1970. What happens later are further lines, of which the last of each kind
/// counts: one short write at the end of a file needs no lock and, mostly, no block of the disk.
struct Container {
  std::string id;
  std::string name;                  ///< the first one; a Name has a later one
  std::string image;                 ///< as it was asked for
  std::string image_id;              ///< "sha256:…"; empty with --rootfs
  std::vector<std::string> command;  ///< entrypoint and arguments
  int64_t created_ns = 0;
  bool remove = false;    ///< --rm
  bool prepared = false;  ///< by `create`: it waits for its first start
  bool watched = false;   ///< its owner is a monitor, not the `berth run` in front of it
  bool terminal = false;
  bool interactive = false;                  ///< -i
  int stop_signal = 15;                      ///< what `stop` sends first
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
  int64_t pid = 0;           ///< of its first process, as the owner's user sees it
  uint64_t start_ticks = 0;  ///< of that process: tells it from a later one of the same number
  std::string boot_id;       ///< of the machine's boot: after another one nothing of it runs
  int restarts = 0;          ///< by the restart policy, since a person started it
};
void fields(auto& v, Start& r) {
  v.required("started_ns", r.started_ns);
  v.required("pid", r.pid);
  v.required("start_ticks", r.start_ticks);
  v.required("boot_id", r.boot_id);
  v.optional("restarts", r.restarts);
}

/// Added by the owner at the end: a process that waits for a container of --rm holds the file open
/// and reads it there even when it was removed. Without it a container whose owner is gone has lost
/// it.
struct Exit {
  std::optional<int> exit_code;  ///< none: nobody saw the end
  int64_t finished_ns = 0;
  bool restarting = false;  ///< the restart policy starts it again
  bool oom_killed = false;
  std::string error = {};  ///< why it could not be started
  bool stopped = false;    ///< a person has ended it
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

/// What the lines of the file say.
struct Lines {
  std::optional<Container>
      record;                   ///< none: it was never finished, or is damaged; with the last name
  std::optional<Error> damage;  ///< why the first line cannot be read
  std::optional<Start> start;   ///< the last one
  std::optional<Exit> exit;     ///< after that start
  bool paused = false;
};

/// Reads the whole open file. Half a line, of an owner whose disk was full, says nothing.
/// Errors: io.
Result<Lines> read(const sys::Fd& file);

/// Adds a line to the file in `directory`: one short write, so a reader sees it whole or not at
/// all. Errors: not_found, io.
Result<void> append(const sys::Fd& directory, const std::string& line);

}  // namespace berth::record
