// SPDX-License-Identifier: Apache-2.0
#include "image/reference.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::image {
namespace {

constexpr std::string_view kDefaultRegistry = "docker.io";
constexpr std::string_view kOfficialPrefix = "library/";
constexpr size_t kMaxName = 255;
constexpr size_t kMaxTag = 128;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alnum(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c);
}

bool has_upper(std::string_view text) {
  return std::ranges::any_of(text, is_upper);
}

bool is_docker_hub(std::string_view registry) {
  return registry == kDefaultRegistry || registry == "index.docker.io" ||
         registry == "registry-1.docker.io";
}

Error refuse(std::string_view text, std::string_view reason) {
  return make_error(Kind::usage,
                    "read image name " + quote(text.substr(0, 300)) + ": " + std::string(reason));
}

bool is_image_id(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Docker's rule for whether the first part is a registry or belongs to the repository.
bool names_registry(std::string_view first) {
  return first.find_first_of(".:") != std::string_view::npos || first == "localhost" ||
         has_upper(first);
}

bool valid_port(std::string_view port) {
  auto number = parse_u64(port);
  return number && *number >= 1 && *number <= 65535 && port.size() <= 5;
}

/// "[::1]:5000", "host", "host:port", labels of letters, digits and inner hyphens.
bool valid_registry(std::string_view text) {
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    std::string_view address = text.substr(1, end - 1);
    std::string_view rest = text.substr(end + 1);
    return address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos &&
           (rest.empty() || (rest.starts_with(':') && valid_port(rest.substr(1))));
  }
  size_t colon = text.find(':');
  if (colon != std::string_view::npos && !valid_port(text.substr(colon + 1))) return false;
  for (std::string_view label : split(text.substr(0, colon), '.')) {
    if (label.empty() || !is_alnum(label.front()) || !is_alnum(label.back())) return false;
    if (!std::ranges::all_of(label, [](char c) { return is_alnum(c) || c == '-'; })) {
      return false;
    }
  }
  return true;
}

/// Lower-case letters and digits, joined by '.', '_', '__' or any number of '-'.
bool valid_component(std::string_view text) {
  auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (text.empty() || !plain(text.front()) || !plain(text.back())) return false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && !plain(text[end])) ++end;
    std::string_view joint = text.substr(i, end - i);
    bool good = joint.empty() || joint == "." || joint == "_" || joint == "__" ||
                joint.find_first_not_of('-') == std::string_view::npos;
    if (!good) return false;
    i = end + 1;
  }
  return true;
}

}  // namespace

namespace {

constexpr std::string_view kTransport = "docker://";

/// The name in docker's form: podman and Apptainer put a transport in front of it, Enroot and pyxis
/// a '#' behind the registry.
std::string plain_name(std::string_view text) {
  if (text.starts_with(kTransport)) text.remove_prefix(kTransport.size());
  std::string name(text);
  size_t mark = name.find('#');
  if (mark != std::string::npos) name[mark] = '/';
  return name;
}

/// "localhost:5000", "a.example:443"; "nginx:12" is an image and its tag.
bool is_host_and_port(std::string_view text) {
  size_t colon = text.find(':');
  bool host = text.starts_with("localhost:") || text.substr(0, colon).find('.') != text.npos;
  return host && colon != text.npos && valid_registry(text);
}

/// Removes the registry from the front of a name that has one; the default is Docker Hub.
std::string take_registry(std::string_view& name) {
  std::string registry(kDefaultRegistry);
  size_t slash = name.find('/');
  if (slash != std::string_view::npos && names_registry(name.substr(0, slash))) {
    registry = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  return is_docker_hub(registry) ? std::string(kDefaultRegistry) : registry;
}

}  // namespace

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > kMaxTag) return false;
  if (!is_alnum(text.front()) && text.front() != '_') return false;
  return std::ranges::all_of(
      text, [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

Result<Reference> Reference::parse(std::string_view given) {
  const std::string plain = plain_name(given);
  std::string_view text = plain;
  if (text.empty()) return refuse(text, "it is empty");
  if (is_image_id(text)) {
    return refuse(text, "64 hexadecimal digits are an image id, not a name");
  }
  Reference reference;
  std::string_view rest = text;

  if (size_t at = rest.find('@'); at != std::string_view::npos) {
    auto digest = Digest::parse(rest.substr(at + 1));
    if (!digest.ok()) {
      return refuse(text, "after '@' comes a digest: 'sha256:' and 64 hexadecimal digits");
    }
    reference.digest_ = std::move(*digest);
    rest = rest.substr(0, at);
  }
  // A colon after the last slash starts the tag; before it, it belongs to the registry's port.
  size_t slash = rest.rfind('/');
  size_t colon = rest.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    std::string_view tag = rest.substr(colon + 1);
    if (!is_tag(tag)) {
      return refuse(text,
                    "a tag has at most 128 letters, digits, '_', '.' and '-', and starts with a "
                    "letter, a digit or '_'");
    }
    if (!reference.digest_) reference.tag_ = tag;
    rest = rest.substr(0, colon);
  } else if (!reference.digest_) {
    reference.tag_ = "latest";
  }

  reference.registry_ = take_registry(rest);
  if (!valid_registry(reference.registry_)) {
    return refuse(text, quote(reference.registry_) + " is not a registry's host and port");
  }
  if (has_upper(rest)) return refuse(text, "repository name must be lower case");
  for (std::string_view component : split(rest, '/')) {
    if (!valid_component(component)) {
      return refuse(text,
                    "a repository is made of lower-case letters and digits, joined by '.', '_', "
                    "'__', '-' or '/'");
    }
  }
  bool official = reference.registry_ == kDefaultRegistry && rest.find('/') == rest.npos;
  reference.repository_ = (official ? std::string(kOfficialPrefix) : "") + std::string(rest);
  if (reference.registry_.size() + 1 + reference.repository_.size() > kMaxName) {
    return refuse(text, "it is longer than 255 characters");
  }
  return reference;
}

Result<SearchTerm> parse_search_term(std::string_view given) {
  auto refuse_term = [&](const std::string& reason, std::string hint = {}) {
    return make_error(Kind::usage, "read " + quote(given.substr(0, 300)) + ": " + reason,
                      std::move(hint));
  };
  if (given.starts_with("http://") || given.starts_with("https://")) {
    return refuse_term("it is an address", "REGISTRY/TEXT, without the scheme");
  }
  std::string_view text = given;
  if (text.starts_with(kTransport)) text.remove_prefix(kTransport.size());
  SearchTerm term;
  size_t slash = text.find_first_of("/#");  // '#' as in plain_name(); "c#" is a search text
  std::string_view first = text.substr(0, slash);
  bool registry = first == "localhost" || first.find_first_of(".:") != first.npos;
  if (slash == text.npos && is_host_and_port(text)) {
    return refuse_term("it names a registry and no text",
                       std::string(text) + "/TEXT, or " + std::string(text) + "/ for all");
  }
  if (registry && first.find(' ') == first.npos && slash != text.npos) {
    if (!valid_registry(first)) {
      return refuse_term(quote(first) + " is not a registry's host and port");
    }
    term.registry = first;
    text.remove_prefix(slash + 1);
  }
  if (term.registry.empty() || is_docker_hub(term.registry)) term.registry = kDefaultRegistry;
  bool hub = term.registry == kDefaultRegistry;
  if (hub && text.starts_with(kOfficialPrefix)) text.remove_prefix(kOfficialPrefix.size());
  if (text.size() > kMaxName) return refuse_term("it is longer than 255 characters");
  if (escape_controls(text) != text) return refuse_term("it holds control characters");
  if (hub && trim(text).empty()) return refuse_term("there is no text to look for");
  term.text = text;
  return term;
}

std::string Reference::manifest_reference() const {
  return digest_ ? digest_->text() : tag_;
}

std::string Reference::canonical() const {
  return registry_ + "/" + repository_ + (digest_ ? "@" + digest_->text() : ":" + tag_);
}

std::string Reference::familiar_name() const {
  if (registry_ != kDefaultRegistry) return registry_ + "/" + repository_;
  // Shortened only if the short form parses to the same name again. "docker.io/quay.io/x" does not
  // as "quay.io/x", and "library/a/b" does not as "a/b".
  bool official = repository_.starts_with(kOfficialPrefix);
  std::string name = official ? repository_.substr(kOfficialPrefix.size()) : repository_;
  if (official && (name.find('/') != name.npos || is_image_id(name))) return repository_;
  bool misread = names_registry(name.substr(0, name.find('/'))) && name.find('/') != name.npos;
  return misread ? registry_ + "/" + name : name;
}

std::string Reference::place() const {
  constexpr std::string_view kHttps = ":443";
  std::string registry = to_lower(registry_);
  if (registry.ends_with(kHttps)) registry.resize(registry.size() - kHttps.size());
  return std::string(is_docker_hub(registry) ? kDefaultRegistry : registry) + "/" + repository_;
}

std::string Reference::familiar() const {
  return familiar_name() + (digest_ ? "@" + digest_->text() : ":" + tag_);
}

}  // namespace berth::image
