// SPDX-License-Identifier: Apache-2.0
#include "policy/site/toolkit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "json/fields.hpp"
#include "policy/policy.hpp"
#include "policy/site/toml.hpp"

namespace berth::policy {
namespace {

/// Why a key of the toolkit has no equivalent. The first entry counts that equals the key, or that
/// ends with a dot and is a prefix of the key.
struct Nothing {
  std::string_view key;
  std::string_view why;
};
constexpr std::array kNothing = {
    Nothing{"nvidia-container-cli.path", "there is no such program: Berth places the files itself"},
    Nothing{"nvidia-container-cli.environment", "nothing is executed that could read it"},
    Nothing{"nvidia-container-cli.ldconfig",
            "Berth writes the loader's cache itself; no ldconfig runs, of host or image"},
    Nothing{"nvidia-container-cli.ldcache", "found by itself; see gpu.library-directories"},
    Nothing{"nvidia-container-cli.load-kmods",
            "Berth loads no kernel module; systemd or modprobe does that at boot"},
    Nothing{"nvidia-container-cli.no-cgroups",
            "decided by who runs: root has device cgroups, an ordinary user has none"},
    Nothing{"nvidia-container-cli.user", "no program runs under another user"},
    Nothing{"nvidia-container-cli.debug", "berth --debug, or berth-runtime --debug --log FILE"},
    Nothing{"nvidia-container-runtime.debug", "berth-runtime --debug --log FILE"},
    Nothing{"nvidia-container-runtime.log-level", "berth-runtime --debug --log FILE"},
    Nothing{"nvidia-container-runtime.runtimes", "berth-runtime is the runtime, it calls no other"},
    Nothing{"nvidia-container-runtime.mode",
            "there is one mode: variables, CDI names and flags are all understood"},
    Nothing{"nvidia-container-runtime.modes.csv.", "Tegra boards are not supported"},
    Nothing{"nvidia-container-runtime.modes.jit-cdi.",
            "nothing is generated at a start; berth cdi generate writes files"},
    Nothing{"nvidia-container-runtime-hook.", "there is no hook: the runtime does its work"},
    Nothing{"nvidia-ctk.", "berth cdi generate, and berth policy, have its verbs"},
    Nothing{"features.allow-cuda-compat-libs-from-container",
            "the ELF note of the libraries decides; see gpu.forward-compatibility"},
    Nothing{"features.allow-ldconfig-from-container",
            "nothing of an image is executed with more rights than its program has"},
    Nothing{"features.allow-unknown-oci-spec-fields",
            "unknown members are always kept, as the specification says"},
    Nothing{"features.disable-imex-channel-creation", "Berth makes no channel"},
    Nothing{"features.enable-explicit-driver-libraries",
            "the libraries of a capability are found by name and version; see gpu.files"},
    Nothing{"features.gds", "NVIDIA_GDS=enabled asks for it"},
    Nothing{"features.mofed", "NVIDIA_MOFED=enabled asks for it"},
    Nothing{"features.gdrcopy", "NVIDIA_GDRCOPY=enabled asks for it"},
    Nothing{"features.nvswitch", "NVIDIA_NVSWITCH=enabled asks for it"},
};

std::string_view why_nothing(std::string_view key) {
  for (const Nothing& one : kNothing) {
    if (key == one.key || (one.key.ends_with('.') && key.starts_with(one.key))) return one.why;
  }
  return "not a key that is known to Berth";
}

std::string toml_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted_words;
  for (const std::string& word : words) quoted_words.push_back(toml_string(word));
  return "[" + join(quoted_words, ", ") + "]";
}

std::vector<std::string> toolkit_words(std::string_view list) {
  std::vector<std::string> out;
  for (std::string_view word : split(list, ',')) {
    if (!trim(word).empty()) out.emplace_back(trim(word));
  }
  return out;
}

class Importer {
 public:
  Importer(std::vector<TomlEntry> entries, std::string_view document)
      : entries_(std::move(entries)), document_(document) {}

  Result<std::string> run();

 private:
  Result<void> take(const TomlEntry& entry);
  Result<bool> take_top(const TomlEntry& entry, const std::string& key);
  Result<bool> take_table(const TomlEntry& entry, const std::string& key);
  Result<void> take_capabilities(const TomlEntry& entry);

  template <class T>
  Result<T> read(const TomlEntry& entry) const {
    std::string place = fmt::format("{}:{}: {}", document_, entry.line, key_of(entry));
    T out{};
    auto error = json::fill(entry.value, json::Path(place), out);
    if (error) return std::move(*error);
    return out;
  }
  void set(std::string_view key, const std::string& value) {
    lines_.push_back(fmt::format("{} = {}", key, value));
  }
  void set_flag(std::string_view key, bool value) { set(key, value ? "true" : "false"); }
  void comment(const TomlEntry& entry, std::string_view why) {
    lines_.push_back(fmt::format("# {}: {}", escape_controls(key_of(entry)), why));
  }

  std::vector<TomlEntry> entries_;
  std::string_view document_;
  std::vector<std::string> lines_;
  bool environment_seen_ = false;
  bool compatibility_off_ = false;
};

Result<void> Importer::take_capabilities(const TomlEntry& entry) {
  std::vector<std::string> known;
  for (const std::string& word : toolkit_words(TRY(read<std::string>(entry)))) {
    const auto& names = capability_names();
    if (word == "all" || std::ranges::find(names, word) != names.end()) {
      known.push_back(word);
    } else {
      comment(entry, "there is no capability " + quote(word));
    }
  }
  set("capabilities", toml_list(known));
  return {};
}

Result<bool> Importer::take_top(const TomlEntry& entry, const std::string& key) {
  if (key == "disable-require") {
    set_flag("requirements", !TRY(read<bool>(entry)));
  } else if (key == "swarm-resource") {
    set("swarm-resource", toml_list(toolkit_words(TRY(read<std::string>(entry)))));
  } else if (key == "accept-nvidia-visible-devices-envvar-when-unprivileged") {
    environment_seen_ = true;
    set("environment", TRY(read<bool>(entry)) ? "\"grant\"" : "\"privileged\"");
  } else if (key == "accept-nvidia-visible-devices-as-volume-mounts") {
    set_flag("devices-by-volume", TRY(read<bool>(entry)));
  } else if (key == "supported-driver-capabilities") {
    TRY(take_capabilities(entry));
  } else {
    return false;
  }
  return true;
}

Result<bool> Importer::take_table(const TomlEntry& entry, const std::string& key) {
  const std::string modes = "nvidia-container-runtime.modes.";
  if (key == "nvidia-container-cli.root") {
    std::string root = TRY(read<std::string>(entry));
    if (!root.empty()) set("driver-root", toml_string(root));
  } else if (key == modes + "cdi.default-kind") {
    set("default-kind", toml_string(TRY(read<std::string>(entry))));
  } else if (key == modes + "cdi.annotation-prefixes") {
    set("annotation-prefixes", toml_list(TRY(read<std::vector<std::string>>(entry))));
  } else if (key == modes + "cdi.spec-dirs") {
    set("cdi-directories", toml_list(TRY(read<std::vector<std::string>>(entry))));
  } else if (key == modes + "legacy.cuda-compat-mode") {
    compatibility_off_ = compatibility_off_ || TRY(read<std::string>(entry)) == "disabled";
  } else if (key == "features.disable-cuda-compat-lib-hook") {
    compatibility_off_ = compatibility_off_ || TRY(read<bool>(entry));
  } else if (key == "features.ignore-imex-channel-requests") {
    set_flag("imex-channels", !TRY(read<bool>(entry)));
  } else if (key == "features.no-additional-gids-for-device-nodes") {
    set_flag("additional-gids", !TRY(read<bool>(entry)));
  } else {
    return false;
  }
  return true;
}

Result<void> Importer::take(const TomlEntry& entry) {
  if (entry.value.object() != nullptr) return {};  // an empty table
  std::string key = key_of(entry);
  if (TRY(take_top(entry, key))) return {};
  if (TRY(take_table(entry, key))) return {};
  comment(entry, why_nothing(key));
  return {};
}

Result<std::string> Importer::run() {
  for (const TomlEntry& entry : entries_) TRY(take(entry));
  if (!environment_seen_) {
    lines_.emplace_back(
        "# accept-nvidia-visible-devices-envvar-when-unprivileged is true where it is not set. "
        "With\n"
        "# \"ignore\", Berth's own default, an image cannot give itself GPUs; --gpus still does.");
    set("environment", "\"grant\"");
  }
  if (compatibility_off_) set_flag("forward-compatibility", false);
  return fmt::format("# Made of {}.\n[gpu]\n{}\n", escape_controls(document_), join(lines_, "\n"));
}

}  // namespace

Result<std::string> import_toolkit(std::string_view text, std::string_view document) {
  std::vector<TomlEntry> entries = TRY(parse_toml(text, document));
  return Importer(std::move(entries), document).run();
}

}  // namespace berth::policy
