// SPDX-License-Identifier: Apache-2.0
#include "mpi/swap.hpp"

#include <algorithm>
#include <deque>

#include "base/text.hpp"
#include "scan/loader.hpp"

namespace berth::mpi {
namespace {

constexpr size_t kMaxBrought = 200, kMaxPlugins = 512;

/// The reason for a refusal; empty: not refused.
using Refusal = std::string;

/// A symbol or version that `needer` takes from the library `from` and that `other` lacks; empty:
/// there is none.
std::string missing_in(const Library& other, const Library& needer, const Library& from) {
  for (const VersionNeed& need : needer.symbols.needs) {
    bool asked = need.library == from.soname;
    if (asked && !other.symbols.offers.contains(need.version)) return need.version;
  }
  for (const std::string& name : needer.symbols.undefined) {
    if (from.symbols.defined.contains(name) && !other.symbols.defined.contains(name)) return name;
  }
  return {};
}

void add_once(std::string text, std::vector<std::string>& out) {
  if (std::ranges::find(out, text) == out.end()) out.push_back(std::move(text));
}

/// Replaces one MPI of the image by one of the host.
class Swap {
 public:
  Swap(Libraries& image, Libraries& host, const Installation& ours, const Installation& theirs)
      : image_(image), host_(host), ours_(ours), theirs_(theirs) {}

  /// Adds the necessary steps to `out`, unless it refuses.
  Result<Refusal> run(const Library* program, Decision& out);

 private:
  struct Item {
    const Library* library = nullptr;
    std::vector<std::string> names;
    std::string why;
    bool optional = false;
  };

  void search_in(const Library& library);
  Result<Refusal> take(const Library& library, std::string name, std::string why);
  Result<Refusal> take_companions();
  Result<Refusal> follow();
  Result<Refusal> resolve(const Library& needer, const std::string& name);
  Result<void> look_beside(const Library& library);
  Result<const Library*> find_on_host(const Library& needer, const std::string& name);
  Result<const Library*> in_image(const std::string& name);
  Result<Refusal> unmet_libc(const Library& library);
  Refusal missing_of_program(const Library& program) const;
  Result<std::vector<std::string>> places_in_image(const Item& item, const std::string& name);
  Result<void> write(Decision& out);

  Libraries& image_;
  Libraries& host_;
  const Installation& ours_;                     ///< the MPI of the image
  const Installation& theirs_;                   ///< the MPI of the host
  std::map<std::string, Item> items_;            ///< by the host's path
  std::map<std::string, std::string> brought_;   ///< SONAME → the host's path
  std::map<std::string, const Library*> kept_;   ///< SONAME → the image's library
  std::map<std::string, std::string> left_out_;  ///< SONAME → why
  std::vector<const Library*> kept_companions_;
  std::deque<const Library*> queue_;
  std::vector<std::string> directories_;
  std::set<const Library*> plugins_;
  std::set<std::string> searched_;  ///< directories that come before the loader's cache
  bool optional_ = false;           ///< plugins are being resolved: failures do not matter
};

/// The library that the image's loader finds, or one in the directory of the core library.
Result<const Library*> Swap::in_image(const std::string& name) {
  const Library* beside = TRY(image_.at(ours_.directory + "/" + name));
  if (beside != nullptr) return beside;
  return image_.find(name);
}

Result<const Library*> Swap::find_on_host(const Library& needer, const std::string& name) {
  std::vector<std::string> directories;
  for (std::string_view one : split(needer.search, ':')) directories.emplace_back(one);
  for (const std::string& directory : directories) {
    if (!directory.starts_with('/')) continue;
    const Library* found = TRY(host_.at(directory + "/" + name));
    if (found != nullptr) return found;
  }
  const Library* found = TRY(host_.find(name));
  if (found != nullptr) return found;
  // A loaded environment module has this directory in LD_LIBRARY_PATH.
  found = TRY(host_.at(scan::parent_of(needer.path) + "/" + name));
  if (found != nullptr) return found;
  return host_.at(theirs_.directory + "/" + name);
}

/// Records the RPATH and RUNPATH of `library`: the loader searches them before the cache, which
/// will have the host's libraries.
void Swap::search_in(const Library& library) {
  constexpr size_t kMaxSearched = 64;
  for (std::string_view directory : split(library.search, ':')) {
    if (directory.starts_with('/') && searched_.size() < kMaxSearched) searched_.emplace(directory);
  }
}

/// The first glibc version that `library` requires and the image lacks.
Result<Refusal> Swap::unmet_libc(const Library& library) {
  for (const VersionNeed& need : library.symbols.needs) {
    if (!is_of_libc(need.library)) continue;
    const Library* provider = TRY(image_.find(need.library));
    // Private symbols of glibc's libraries match only within one build of glibc.
    bool between_them = need.version == "GLIBC_PRIVATE";
    bool offered = provider != nullptr && provider->symbols.offers.contains(need.version);
    if (offered && !between_them) continue;
    std::string of = need.symbol.empty() ? "" : " (" + need.symbol + ")";
    return "the image's " + need.library +
           (provider == nullptr ? " is not there" : " has no " + need.version + of) +
           ", needed by " + library.path;
  }
  return Refusal();
}

Result<Refusal> Swap::take(const Library& library, std::string name, std::string why) {
  auto known = items_.find(library.path);
  if (known == items_.end()) {
    if (items_.size() >= kMaxBrought) return "it needs too many libraries";
    std::string unmet = TRY(unmet_libc(library));
    if (!unmet.empty() && !optional_) return unmet;
    if (!unmet.empty()) {
      left_out_.emplace(name, unmet);
      return Refusal();
    }
    Item item{&library, {library.soname}, std::move(why), optional_};
    known = items_.emplace(library.path, std::move(item)).first;
    brought_[library.soname] = library.path;
    search_in(library);
    queue_.push_back(&library);
  }
  add_once(name, known->second.names);
  brought_[name] = library.path;
  kept_.erase(name);
  return Refusal();
}

/// Replaces the image's companion libraries, with which programs may be linked, by the host's
/// equivalents.
Result<Refusal> Swap::take_companions() {
  for (const std::vector<std::string>& names : companions(ours_.abi)) {
    for (const std::string& name : names) {
      const Library* own = TRY(in_image(name));
      if (own == nullptr) continue;
      const Library* other = nullptr;
      for (const std::string& like : names) {
        if (other == nullptr) other = TRY(host_.at(theirs_.directory + "/" + like));
      }
      if (other == nullptr) {
        kept_companions_.push_back(own);
        continue;
      }
      Refusal refusal = TRY(take(*other, name, "beside the host's MPI"));
      if (!refusal.empty()) return refusal;
    }
  }
  return Refusal();
}

Result<Refusal> Swap::resolve(const Library& needer, const std::string& name) {
  // The GPU grant adds the libraries of GPU drivers.
  bool others = is_of_libc(name) || is_of_driver(name);
  if (others || brought_.contains(name) || left_out_.contains(name)) return Refusal();
  const Library* own = TRY(image_.find(name));
  const Library* other = TRY(find_on_host(needer, name));
  if (other == nullptr) {
    if (own != nullptr) {
      kept_[name] = own;
      return Refusal();
    }
    return optional_
               ? Refusal()
               : needer.path + " needs " + name + ", which neither the host nor the image has";
  }
  std::string why = "needed by " + name_of(needer.path);
  if (!is_of_one_piece(name) && own != nullptr) {
    std::string missing = missing_in(*own, needer, *other);
    if (missing.empty()) {
      kept_[name] = own;
      return Refusal();
    }
    if (optional_) {
      // A plugin may fail to load, but a library that programs of the image need may not.
      left_out_.emplace(name,
                        "the image's has no " + missing + ", for which " + needer.path + " asks");
      return Refusal();
    }
    why += ", for which the image's has no " + missing;
  }
  return take(*other, name, std::move(why));
}

/// Queues the plugins of a library; their needs are checked later.
Result<void> Swap::look_beside(const Library& library) {
  for (std::string& directory : TRY(directories_of(host_.tree(), library))) {
    if (std::ranges::find(directories_, directory) != directories_.end()) {
      continue;
    }
    for (const std::string& name : TRY(host_.tree().list(directory))) {
      if (name.find(".so") == name.npos || plugins_.size() >= kMaxPlugins) continue;
      const Library* plugin = TRY(host_.at(directory + "/" + name));
      if (plugin != nullptr) plugins_.insert(plugin);
    }
    directories_.push_back(std::move(directory));
  }
  return {};
}

/// Resolves everything in the queue, recursively.
Result<Refusal> Swap::follow() {
  while (!queue_.empty()) {
    const Library& library = *queue_.front();
    queue_.pop_front();
    for (const std::string& name : library.needed) {
      Refusal refusal = TRY(resolve(library, name));
      if (!refusal.empty()) return refusal;
    }
  }
  return Refusal();
}

/// A symbol that the program takes from the image's MPI and that the host's MPI lacks.
Refusal Swap::missing_of_program(const Library& program) const {
  for (const std::string& name : program.needed) {
    bool is_companion = std::ranges::any_of(
        kept_companions_, [&](const Library* own) { return own->soname == name; });
    if (!is_of_one_piece(name) || is_companion || brought_.contains(name)) continue;
    return program.path + " needs " + name + ", which the host's " + describe(theirs_.abi) +
           " does not have";
  }
  for (const std::string& name : program.symbols.undefined) {
    if (!ours_.core->symbols.defined.contains(name)) continue;
    bool there = std::ranges::any_of(items_, [&](const auto& one) {
      return one.second.library->symbols.defined.contains(name);
    });
    if (!there) {
      return program.path + " needs " + name + ", which the host's " + describe(theirs_.abi) +
             " does not have";
    }
  }
  return {};
}

/// All files of the image that the loader could choose for `name` instead of the host's file.
Result<std::vector<std::string>> Swap::places_in_image(const Item& item, const std::string& name) {
  std::vector<const Library*> own = TRY(image_.find_all(name));
  // Programs may have private copies of libraries, but parts of two MPIs must not be mixed.
  bool everywhere = is_of_one_piece(name);
  for (const std::string& directory : searched_) {
    if (!everywhere) break;
    const Library* one = TRY(image_.at(directory + "/" + name));
    if (one != nullptr) own.push_back(one);
  }
  if (item.library == theirs_.core && name == ours_.core->soname) own.push_back(ours_.core);
  std::vector<std::string> paths;
  for (const Library* one : own) paths.push_back(one->path);
  return paths;
}

Result<void> Swap::write(Decision& out) {
  for (auto& [path, item] : items_) {
    auto known = std::ranges::find_if(out.libraries, [&, &host_path = path](const Brought& one) {
      return one.host_path == host_path;
    });
    if (known == out.libraries.end()) {
      out.notes.push_back({item.library->soname, true, item.why, path});
      out.libraries.push_back({path, {}, {}, item.why});
      known = out.libraries.end() - 1;
    }
    for (const std::string& name : item.names) {
      add_once(name, known->names);
      for (std::string& place : TRY(places_in_image(item, name))) {
        add_once(std::move(place), known->over);
      }
    }
  }
  for (const auto& [name, own] : kept_) {
    out.notes.push_back(
        {name, false, "the image's own " + own->path + " has all that is needed", ""});
  }
  for (const auto& [name, why] : left_out_) out.notes.push_back({name, false, why, ""});
  for (const Library* own : kept_companions_) {
    std::string missing = missing_in(*theirs_.core, *own, *ours_.core);
    out.notes.push_back({own->soname, false,
                         missing.empty() ? "the host has none, the image's stays"
                                         : "the host has none; the image's needs " + missing +
                                               ", which the host's MPI does not have",
                         ""});
    if (missing.empty()) continue;
    out.warnings.push_back("programs with " + own->soname +
                           " will not run with the host's MPI: " + missing + " is missing there");
  }
  for (std::string& directory : directories_) add_once(std::move(directory), out.directories);
  return {};
}

Result<Refusal> Swap::run(const Library* program, Decision& out) {
  searched_.insert(ours_.directory);
  if (program != nullptr) search_in(*program);
  Refusal refusal = TRY(take(*theirs_.core, ours_.core->soname, "the host's MPI"));
  if (refusal.empty()) refusal = TRY(take_companions());
  if (refusal.empty()) refusal = TRY(follow());
  if (refusal.empty() && program != nullptr) refusal = missing_of_program(*program);
  if (!refusal.empty()) return refusal;
  // An MPI skips plugins that it cannot load, so nothing refuses from here on. Libraries that
  // plugins need have plugins of their own: for example, the transports of UCX.
  optional_ = true;
  std::set<const Library*> seen;
  for (size_t before = SIZE_MAX; before != items_.size() + plugins_.size();) {
    before = items_.size() + plugins_.size();
    std::vector<const Library*> libraries;
    for (const auto& [path, item] : items_) libraries.push_back(item.library);
    for (const Library* library : libraries) TRY(look_beside(*library));
    for (const Library* plugin : plugins_) {
      if (!seen.insert(plugin).second) continue;
      for (const std::string& name : plugin->needed) TRY(resolve(*plugin, name));
    }
    TRY(follow());
  }
  // Each name is mounted at one place.
  for (const auto& [path, item] : items_) {
    for (const std::string& name : item.names) {
      bool taken = std::ranges::any_of(out.libraries, [&, &own = path](const Brought& one) {
        return one.host_path != own && std::ranges::find(one.names, name) != one.names.end();
      });
      if (taken) return "its " + name + " is not that of the other MPI that is exchanged";
    }
  }
  TRY(write(out));
  return Refusal();
}

/// Uses the first MPI of the host that fits; returns the reason if none does.
Result<Refusal> swap_one(Libraries& image, Libraries& host, const Installation& ours,
                         const std::vector<Installation>& theirs, const Question& question,
                         const Library* program, Decision& out) {
  Refusal why;
  bool fitted = false;
  for (const Installation& one : theirs) {
    Verdict verdict = compare(ours.abi, one.abi, question.rule);
    Refusal refusal = verdict.why;
    size_t before = out.notes.size();
    if (verdict.fits) refusal = TRY(Swap(image, host, ours, one).run(program, out));
    if (refusal.empty()) {
      if (program != nullptr) out.own = TRY(use_of(host, one));
      std::string by = describe(one.abi) + " of the host (" + one.core->path + ")";
      out.notes.insert(out.notes.begin() + static_cast<ptrdiff_t>(before),
                       {ours.core->path, true, describe(ours.abi) + " is replaced by " + by, ""});
      if (!verdict.warning.empty())
        out.warnings.push_back(ours.core->path + ": " + verdict.warning);
      out.why += (out.why.empty() ? "" : "; ") + describe(ours.abi) + " is replaced by " + by;
      out.openmpi = out.openmpi || one.abi.family == Family::openmpi;
      return Refusal();
    }
    // If several MPIs are refused, the reason of the first one with a matching ABI is reported.
    if (why.empty() || (verdict.fits && !fitted)) why = refusal;
    fitted = fitted || verdict.fits;
  }
  return theirs.empty() ? "this node has no MPI that LD_LIBRARY_PATH or its loader's cache shows"
                        : why;
}

}  // namespace

Result<Decision> decide(Libraries& image, Libraries& host, const Question& question) {
  Decision out;
  const Library* program = nullptr;
  if (!question.program.empty()) program = TRY(image.at(question.program));
  std::vector<Installation> ours = TRY(find_mpi(image, program == nullptr ? "" : program->search));
  out.has_mpi = !ours.empty();
  if (ours.empty()) {
    out.why = "the image has no MPI that its loader or a usual place shows";
    return out;
  }
  // An image with glibc may also have musl's loader.
  bool glibc = TRY(image.find("libc.so.6")) != nullptr;
  if (!glibc && TRY(image.has_musl())) {
    out.why = "the image has musl, but the host's libraries are built for glibc";
    for (const Installation& one : ours) {
      out.notes.push_back({one.core->path, false, describe(one.abi) + ": " + out.why, ""});
    }
    return out;
  }
  std::vector<Installation> theirs = TRY(find_mpi(host));
  std::vector<Installation> own;
  if (program != nullptr) own = TRY(find_mpi_of(image, *program));
  if (!own.empty()) out.own = TRY(use_of(image, own[0]));
  std::string refused;
  for (const Installation& one : ours) {
    // An MPI that the program is not linked with does not affect it.
    bool is_its_own =
        std::ranges::any_of(own, [&](const Installation& used) { return used.core == one.core; });
    std::string why =
        TRY(swap_one(image, host, one, theirs, question, is_its_own ? program : nullptr, out));
    if (why.empty()) continue;
    out.notes.push_back({one.core->path, false, describe(one.abi) + " stays: " + why, ""});
    if (refused.empty() || is_its_own) refused = describe(one.abi) + " stays: " + why;
    if (is_its_own) out.own_stays = refused;
  }
  if (!out.swapped()) out.why = refused;
  if (out.own) out.own->called = calls_mpi(*program);
  return out;
}

}  // namespace berth::mpi
