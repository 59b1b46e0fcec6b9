// SPDX-License-Identifier: Apache-2.0
#include "engine/build/text.hpp"

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr const char* kAgent = "SSH_AUTH_SOCK";
constexpr const char* kSecretForm = "id=NAME,src=FILE or id=NAME,env=VARIABLE";

Result<std::string> existing(std::string_view path, const std::string& here) {
  std::string absolute = TRY(absolute_path(std::string(path), here));
  if (!TRY(sys::stat_entry(sys::cwd(), absolute))) {
    return make_error(Kind::not_found, "find " + quote(absolute) + ": no such file");
  }
  return absolute;
}

}  // namespace

Result<std::string> secret_text(std::string_view text, const std::string& here,
                                const Environment& environment) {
  std::string id, source, variable, type;
  for (std::string_view member : split(text, ',')) {
    size_t equal = member.find('=');
    std::string name = to_lower(member.substr(0, equal));
    std::string value(equal == member.npos ? "" : member.substr(equal + 1));
    if (name == "id") {
      id = value;
    } else if (name == "src" || name == "source") {
      source = value;
    } else if (name == "env") {
      variable = value;
    } else if (name == "type" && (value == "file" || value == "env")) {
      type = value;
    } else {
      return make_error(Kind::usage, "secret " + quote(text) + ": cannot read " + quote(member),
                        kSecretForm);
    }
  }
  if (id.empty()) return make_error(Kind::usage, "secret " + quote(text) + ": no id", kSecretForm);
  if (type == "env" && variable.empty()) variable = source.empty() ? id : source;
  bool named = !source.empty() || !variable.empty();
  if (!named && type.empty() && environment.get(id)) variable = id;
  if (!variable.empty()) {
    if (environment.get(variable)) return "id=" + id + ",type=env,env=" + variable;
    return make_error(Kind::not_found,
                      "secret " + quote(id) + ": there is no variable " + quote(variable));
  }
  std::string path = TRY_CTX(existing(source.empty() ? id : source, here), "secret " + quote(id));
  return "id=" + id + ",src=" + path;
}

Result<std::string> ssh_text(std::string_view text, const std::string& here,
                             const Environment& environment) {
  size_t equal = text.find('=');
  std::string id(text.substr(0, equal));
  if (equal == text.npos) {
    if (environment.get_filled(kAgent)) return id;
    return make_error(Kind::usage,
                      "ssh " + quote(text) + ": SSH_AUTH_SOCK is not set to an agent's socket",
                      "eval $(ssh-agent), or ssh " + id + "=KEYFILE");
  }
  std::string found;
  for (std::string_view path : split(text.substr(equal + 1), ',')) {
    found += (found.empty() ? "" : ",") + TRY_CTX(existing(path, here), "ssh " + quote(id));
  }
  return id + "=" + found;
}

}  // namespace berth::engine
